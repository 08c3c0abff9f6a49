"""Does a passage help with the question? Entailment, neutral or contradiction, and why (ERM4, Knowledge Filter).

The strong hypothesis is that the passage holds a direct answer (single-hop questions), the weak one that it may help.
Rules judge first: by the graph and the words (`prompts.reading.entail`), and by what passages say of the same
(`prompts.reading.conflict`). A model is asked only about the passages that they are not sure of.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

import dspy
from pydantic import BaseModel, Field

from prompts.engine.calls import rough_tokens
from prompts.engine.step import Step
from prompts.reading.conflict import Conflict, Told, conflicts
from prompts.reading.entail import (
    NOTHING_SHARED,
    Candidate,
    Hypothesis,
    Signs,
    explained,
    probability,
    signs_of,
    strength,
)
from prompts.reading.relevance import Relevance
from prompts.reading.sure import nearest

Label = Literal["entailment", "neutral", "contradiction"]
_HYPOTHESES: dict[Hypothesis, str] = {
    "strong": "The passage answers the question.",
    "weak": "The passage helps to answer the question.",
}
# What a model does not read: a passage that is evidence so surely, and one that is none by the graph or by its words.
SURE = 0.9
# So many tokens of a passage, so many in a call, so many calls: one for a plain fact, which has few passages that
# answer it. What is left over keeps the rules' label.
PASSAGE_TOKENS = 160
SHOWN_TOKENS = 900
CALLS: dict[Hypothesis, int] = {"strong": 1, "weak": 3}
KNOWN = 2
_REASON = 160  # characters


@dataclass(frozen=True, slots=True)
class Verdict:
    """The label of one passage, why, and how far above the floor of the hypothesis the rules see it."""

    label: Label
    explanation: str
    strength: float


@dataclass(frozen=True, slots=True)
class Verdicts:
    """A verdict for each passage, in their order, and which of them contradict each other."""

    each: tuple[Verdict, ...]
    conflicts: tuple[Conflict, ...]


class Judgement(BaseModel):
    """The label of one passage with a short explanation."""

    passage: int
    explanation: str
    label: Label


class Judgements(BaseModel):
    """A judgement for every passage."""

    judgements: list[Judgement] = Field(default_factory=list)


class FilterKnowledge(dspy.Signature):
    """Judge each passage against the hypothesis: entailment if it supports it, contradiction if it denies what is known
    or what the other passages say on the matter, else neutral. Explain in a few words first."""

    question: str = dspy.InputField()
    hypothesis: str = dspy.InputField()
    known: list[str] = dspy.InputField()
    passages: list[str] = dspy.InputField()
    judged: Judgements = dspy.OutputField()


class Filter(Step):
    """A question and passages → a verdict for each passage and the conflicts among them.

    What the rules are sure of is not shown to a model, unless it is in conflict. The others go in one call, or in some
    at once; a judgement of a passage that was not shown is refused, and one that is not given is the rules'.
    """

    step = "filter"
    role = "filter"
    task = FilterKnowledge

    async def run(
        self,
        hypothesis: Hypothesis,
        passages: Sequence[Candidate],
        relevance: Relevance,
        trusted: Collection[int] = (),
    ) -> Verdicts:
        """Verdicts in the order of the passages, for the question of `relevance`; `trusted` are places of passages
        that are known to hold."""
        signs = signs_of(hypothesis, passages, relevance)
        found = judge_offline(hypothesis, passages, signs, relevance, trusted)
        if self.is_offline:
            return found
        unsure = _unsure(hypothesis, passages, signs, found)
        batches = list(islice(_batches(unsure, passages, relevance), CALLS[hypothesis]))
        known = [one.best.evidence.text for one in _surest(hypothesis, signs, trusted) if one.best is not None]
        answers = await asyncio.gather(*(self._asked(hypothesis, batch, known, relevance) for batch in batches))
        judged = {one.passage: one for answer in answers for one in answer}
        return _merged(found, judged)

    async def _asked(
        self, hypothesis: Hypothesis, shown: Mapping[int, str], known: Sequence[str], relevance: Relevance
    ) -> list[Judgement]:
        prediction = await self.acall(
            question=relevance.ask.text,
            hypothesis=_HYPOTHESES[hypothesis],
            known=list(known),
            passages=[f"[{number}] {text}" for number, text in shown.items()],
        )
        judged: Judgements = prediction.judged
        return [one for one in judged.judgements if one.passage in shown]


def judge_offline(
    hypothesis: Hypothesis,
    passages: Sequence[Candidate],
    signs: Sequence[Signs],
    relevance: Relevance,
    trusted: Collection[int] = (),
) -> Verdicts:
    """By rules: what is above the floor is entailed, and what is worse supported than what it excludes contradicts."""
    told = [Told(place, one.title, one.text, one.units) for place, one in enumerate(passages)]
    found = conflicts(relevance, told, trusted, single=hypothesis == "strong")
    nothing = max((one.support for one in signs), default=0.0) < NOTHING_SHARED
    each = []
    for one in signs:
        above = min(strength(hypothesis, one), -1.0) if nothing else strength(hypothesis, one)
        each.append(Verdict("entailment" if above >= 0 else "neutral", explained(one, relevance), above))
    for conflict in found:
        if conflict.contradicted is not None:
            each[conflict.contradicted] = replace(
                each[conflict.contradicted], label="contradiction", explanation=against(conflict)
            )
    return Verdicts(tuple(each), tuple(found))


def against(conflict: Conflict) -> str:
    """What the worse supported side of a conflict says, and what the other."""
    first = conflict.contradicted == conflict.one
    worse, better = (conflict.says, conflict.other_says) if first else (conflict.other_says, conflict.says)
    return f"says {_short(worse)!r} where others say {_short(better)!r}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _REASON else line[: _REASON - 1] + "…"


def _unsure(
    hypothesis: Hypothesis, passages: Sequence[Candidate], signs: Sequence[Signs], found: Verdicts
) -> list[int]:
    """The places of the passages that a model judges, the likeliest first."""
    disputed = {place for one in found.conflicts for place in (one.one, one.other)}
    places = []
    for place, (passage, one) in enumerate(zip(passages, signs, strict=True)):
        likely = probability(hypothesis, one)
        sure = likely >= SURE if likely is not None else bool(passage.units) and one.support < NOTHING_SHARED
        hopeless = likely is not None and found.each[place].strength < 0
        if place in disputed or not (sure or hopeless):
            places.append(place)
    return sorted(places, key=lambda place: (-found.each[place].strength, place))


def _surest(hypothesis: Hypothesis, signs: Sequence[Signs], trusted: Collection[int]) -> list[Signs]:
    """What the passages to judge are compared with: what is known to hold, else what is surely evidence."""
    sure = [(probability(hypothesis, one) or 0.0, one) for one in signs]
    best = [one for likely, one in sorted(sure, key=lambda pair: -pair[0]) if likely >= SURE]
    return ([signs[place] for place in sorted(trusted)] or best)[:KNOWN]


def _batches(places: Sequence[int], passages: Sequence[Candidate], relevance: Relevance) -> Iterator[dict[int, str]]:
    """What each call shows, by place: whole passages, and of a long one its nearest sentences."""
    shown: dict[int, str] = {}
    left = SHOWN_TOKENS
    for place in places:
        passage = passages[place]
        text = passage.text
        if rough_tokens(text) > PASSAGE_TOKENS and passage.units:
            text = " … ".join(unit.text for unit in nearest(passage.units, relevance, PASSAGE_TOKENS))
        size = rough_tokens(text) + 4
        if shown and size > left:
            yield dict(sorted(shown.items()))
            shown, left = {}, SHOWN_TOKENS
        shown[place] = text
        left -= size
    if shown:
        yield dict(sorted(shown.items()))


def _merged(found: Verdicts, judged: Mapping[int, Judgement]) -> Verdicts:
    """The rules' verdicts with the model's in their place, and the conflicts as the model settles them."""
    each = tuple(
        replace(one, label=judged[place].label, explanation=_short(judged[place].explanation))
        if place in judged
        else one
        for place, one in enumerate(found.each)
    )
    return Verdicts(each, tuple(_settled(one, each) for one in found.conflicts))


def _settled(conflict: Conflict, each: Sequence[Verdict]) -> Conflict:
    """A conflict whose worse side is the one that is labelled so."""
    worse = [place for place in (conflict.one, conflict.other) if each[place].label == "contradiction"]
    return replace(conflict, contradicted=worse[0] if len(worse) == 1 else None)
