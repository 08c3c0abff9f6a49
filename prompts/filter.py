"""Does a passage help with the question? Entailment, neutral or contradiction (ERM4, Knowledge Filter).

The strong hypothesis is that the passage holds a direct answer (single-hop questions), the weak one that it may help.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance

Label = Literal["entailment", "neutral", "contradiction"]
Hypothesis = Literal["strong", "weak"]
_HYPOTHESES: dict[Hypothesis, str] = {
    "strong": "The passage answers the question.",
    "weak": "The passage helps to answer the question.",
}
_FLOORS: dict[Hypothesis, float] = {"strong": 0.45, "weak": 0.15}


@dataclass(frozen=True, slots=True)
class Judged:
    """A passage to judge: its units and its whole text."""

    units: Sequence[Evidence]
    text: str


class Judgement(BaseModel):
    """The label of one passage with a short explanation."""

    passage: int
    explanation: str
    label: Label


class Judgements(BaseModel):
    """A judgement for every passage."""

    judgements: list[Judgement] = Field(default_factory=list)


class FilterKnowledge(dspy.Signature):
    """Judge each passage against the hypothesis: entailment if it supports it, contradiction if it denies what the
    other passages
    say on the matter, else neutral. Explain in a few words first."""

    question: str = dspy.InputField()
    hypothesis: str = dspy.InputField()
    passages: list[str] = dspy.InputField()
    judged: Judgements = dspy.OutputField()


class Filter(Step):
    """A question and passages → a label for each passage."""

    step = "filter"
    role = "filter"
    task = FilterKnowledge

    async def run(self, hypothesis: Hypothesis, passages: Sequence[Judged], relevance: Relevance) -> list[Label]:
        """Labels in the order of the passages, for the question of `relevance`."""
        if self.is_offline:
            return [filter_offline(hypothesis, passage.units, relevance) for passage in passages]
        prediction = await self.acall(
            question=relevance.ask.text,
            hypothesis=_HYPOTHESES[hypothesis],
            passages=[f"[{number}] {passage.text}" for number, passage in enumerate(passages)],
        )
        judged: Judgements = prediction.judged
        labels = {judgement.passage: judgement.label for judgement in judged.judgements}
        return [labels.get(number, "neutral") for number in range(len(passages))]


def filter_offline(hypothesis: Hypothesis, units: Sequence[Evidence], relevance: Relevance) -> Label:
    """By the best coverage that one unit of the passage has of the question's words and names.

    Offline nothing is called a contradiction: shared words show support, never its opposite.
    """
    best = max((judged.coverage * (0.4 + 0.6 * judged.names) for judged in map(relevance.judge, units)), default=0.0)
    return "entailment" if best >= _FLOORS[hypothesis] else "neutral"
