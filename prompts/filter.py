"""Filter: does a passage help with the question? Entailment, neutral or contradiction, and why.

This is ERM4's Knowledge Filter. By the strong hypothesis a passage holds a direct answer (for
questions about a single fact), by the weak one it may help (for those that need several passages);
the model chooses.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

import dspy
from pydantic import BaseModel, Field

from prompts.answer import NumberedText, evidence_text
from prompts.engine.errors import ModelMisconfigured
from prompts.engine.local_models import CrossEncoder
from prompts.engine.step import Step

Hypothesis = Literal["strong", "weak", "either"]
Label = Literal["entailment", "neutral", "contradiction"]
HYPOTHESES: dict[Hypothesis, str] = {
    "strong": "The passage holds a direct answer to the question, or a part of one.",
    "weak": (
        "The passage helps to answer the question: it holds a part of the answer, or a link on the "
        "way to it."
    ),
    "either": (
        "Where one fact answers the question, the passage holds it or a part of it. Where several "
        "are needed (a chain, a comparison, a count), the passage holds one of them or a link on "
        "the way."
    ),
}


ALL_READ = "the model that answers reads every passage"


@dataclass(frozen=True, slots=True)
class FilterVerdict:
    """The label of one passage; `against` is the number of the passage that it contradicts."""

    label: Label
    explanation: str
    against: int | None = None


NOT_JUDGED = FilterVerdict("neutral", "no model judged it")


@dataclass(frozen=True)
class FilterRequest:
    """A question, what its passages must do, and the passages, best first.

    `all_read`: the answering model reads all of them, so that judging them gains nothing.
    """

    question: str
    passages: Sequence[NumberedText]
    hypothesis: Hypothesis = "either"
    all_read: bool = False


class Judgement(BaseModel):
    """The label of one passage with a short explanation."""

    passage: int
    explanation: str = Field(description="What it says towards the question, in a sentence.")
    label: Label
    against: int | None = Field(default=None, description="Of a contradiction.")


class Judgements(BaseModel):
    """A judgement for every passage, in their order."""

    judgements: list[Judgement] = Field(min_length=1)


class FilterKnowledge(dspy.Signature):
    """Judge for each passage whether the hypothesis is true of it.

    entailment: it is, in whatever words, language or units. neutral: the passage shares words or
    names with the question, but leads nowhere near the answer, or is about another thing of that
    name. contradiction: the passage is about what is asked and denies what another passage says:
    another figure for the same thing and time, another person for the same act; "against" is the
    number of that passage. Of two that contradict each other, label the less direct, older or less
    complete one. A later state of affairs is no contradiction.
    """

    passages: str = dspy.InputField()
    hypothesis: str = dspy.InputField()
    question: str = dspy.InputField()
    judged: Judgements = dspy.OutputField()


def _labels_of(
    folder: str, question: str, batch: Sequence[NumberedText]
) -> dict[int, FilterVerdict]:
    """Labels by a cross-encoder that reads each passage before the question.

    Raises ModelUnavailable where it is not on this machine.
    """
    encoder = CrossEncoder(folder)
    names = {place: name for name, place in encoder.labels.items()}
    if set(names.values()) != set(get_args(Label)):
        raise ModelMisconfigured(
            f"The cross-encoder {folder!r} has the labels {sorted(encoder.labels)}.",
            f"Name one with the labels {', '.join(get_args(Label))}: `trellis train filter --by "
            "cross-encoder`.",
        )
    logits = encoder.logits(
        [(f"{passage.title}\n{passage.text}".strip(), question) for passage in batch]
    )
    labels = [cast("Label", names[int(row.argmax())]) for row in logits]
    return {
        passage.number: FilterVerdict(label, "by its label alone")
        for passage, label in zip(batch, labels, strict=True)
    }


class Filter(Step):
    """A question and passages → a verdict for each passage, by its number."""

    step = "filter"
    role = "filter"
    writes_in = "question"
    task = FilterKnowledge

    def judges(self, request: FilterRequest) -> bool:
        """Whether a model is to be asked about these passages."""
        return not (self.is_offline or (request.all_read and self.spares(ALL_READ)))

    async def run(
        self, request: FilterRequest, batch: Sequence[NumberedText]
    ) -> dict[int, FilterVerdict]:
        """Verdicts by the numbers of the passages, from one call for the batch.

        A passage that a language model leaves out is missing; a cross-encoder labels each.
        """
        if encoder := self.models.encoder(self.role):
            return await asyncio.to_thread(_labels_of, encoder, request.question, batch)
        prediction = await self.acall(
            question=request.question,
            hypothesis=HYPOTHESES[request.hypothesis],
            passages=evidence_text(batch),
        )
        judged: Judgements = prediction.judged
        known = {passage.number for passage in batch}
        return {
            judgement.passage: FilterVerdict(
                judgement.label,
                " ".join(judgement.explanation.split()),
                judgement.against if judgement.against in known else None,
            )
            for judgement in judged.judgements
            if judgement.passage in known
        }
