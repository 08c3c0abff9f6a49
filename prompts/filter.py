"""Does a passage help with the question? Entailment, neutral or contradiction (ERM4, Knowledge Filter).

The strong hypothesis is that the passage holds a direct answer (single-hop questions), the weak one that it may help.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import dspy
from pydantic import BaseModel, Field

from prompts.engine.calls import rough_tokens
from prompts.engine.step import Step
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance
from prompts.reading.sure import nearest

Label = Literal["entailment", "neutral", "contradiction"]
Hypothesis = Literal["strong", "weak"]
_HYPOTHESES: dict[Hypothesis, str] = {
    "strong": "The passage answers the question.",
    "weak": "The passage helps to answer the question.",
}
_FLOORS: dict[Hypothesis, float] = {"strong": 0.45, "weak": 0.15}
# What a model reads: no passage that shares less, so many tokens of a passage, so many of all.
NOTHING_SHARED = 0.1
PASSAGE_TOKENS = 160
SHOWN_TOKENS = 900


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
    other passages say on the matter, else neutral. Explain in a few words first."""

    question: str = dspy.InputField()
    hypothesis: str = dspy.InputField()
    passages: list[str] = dspy.InputField()
    judged: Judgements = dspy.OutputField()


class Filter(Step):
    """A question and passages → a label for each passage, in one call.

    What shares next to nothing with the question is neutral without being shown, and so is what the budget leaves out.
    """

    step = "filter"
    role = "filter"
    task = FilterKnowledge

    async def run(self, hypothesis: Hypothesis, passages: Sequence[Judged], relevance: Relevance) -> list[Label]:
        """Labels in the order of the passages, for the question of `relevance`."""
        if self.is_offline:
            return [filter_offline(hypothesis, passage.units, relevance) for passage in passages]
        shown = _worth_showing(passages, relevance)
        if not shown:
            return ["neutral"] * len(passages)
        prediction = await self.acall(
            question=relevance.ask.text,
            hypothesis=_HYPOTHESES[hypothesis],
            passages=[f"[{number}] {text}" for number, text in shown.items()],
        )
        judged: Judgements = prediction.judged
        labels = {judgement.passage: judgement.label for judgement in judged.judgements if judgement.passage in shown}
        return [labels.get(number, "neutral") for number in range(len(passages))]


def _worth_showing(passages: Sequence[Judged], relevance: Relevance) -> dict[int, str]:
    """The passages that a model judges, by number: the nearest ones, and of a long passage its nearest sentences."""
    scores = {number: support(passage.units, relevance) for number, passage in enumerate(passages)}
    kept: dict[int, str] = {}
    left = SHOWN_TOKENS
    for number in sorted(scores, key=lambda number: (-scores[number], number)):
        passage = passages[number]
        text = passage.text
        if rough_tokens(text) > PASSAGE_TOKENS and passage.units:
            text = " … ".join(unit.text for unit in nearest(passage.units, relevance, PASSAGE_TOKENS))
        left -= rough_tokens(text) + 4
        if passage.units and (scores[number] < NOTHING_SHARED or (kept and left < 0)):
            break
        kept[number] = text
    return dict(sorted(kept.items()))


def support(units: Sequence[Evidence], relevance: Relevance) -> float:
    """The best coverage that one unit has of the question's words and names (0-1)."""
    return max((judged.coverage * (0.4 + 0.6 * judged.names) for judged in map(relevance.judge, units)), default=0.0)


def filter_offline(hypothesis: Hypothesis, units: Sequence[Evidence], relevance: Relevance) -> Label:
    """By the best coverage that one unit of the passage has of the question's words and names.

    Offline nothing is called a contradiction: shared words show support, never its opposite.
    """
    return "entailment" if support(units, relevance) >= _FLOORS[hypothesis] else "neutral"
