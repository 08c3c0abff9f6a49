"""Decides whether pairs of names, which the rules of entity resolution leave open, are one thing.

A model gets many pairs in one call. A pair on which no model has decided is not joined.
"""

from collections.abc import Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.adapter import StepAdapter
from prompts.engine.messages import first_tokens
from prompts.engine.step import Inputs, Outputs, Step, doubt_missing

PAIRS_IN_ONE_CALL = 20
MOST_SAID, MOST_SHARED = 2, 5


class NameInContext(BaseModel, frozen=True):
    """A name with its kind and sentences that say something of what it names."""

    name: str
    kind: str = "thing"
    said: tuple[str, ...] = ()


class Pair(BaseModel, frozen=True):
    """Two names that may mean one thing; `shared` are other names, not frequent ones, that stand
    beside both.
    """

    first: NameInContext
    second: NameInContext
    shared: tuple[str, ...] = ()


class Decided(BaseModel, frozen=True):
    """Whether a pair is one thing, and why, in words for the people who read the graph."""

    same: bool
    reason: str


UNDECIDED = Decided(same=False, reason="no model has decided on it")


class PairVerdict(BaseModel):
    """The decision on one pair."""

    pair: int
    reason: str = Field(description="What speaks for and against it, in a sentence.")
    same: bool


class PairVerdicts(BaseModel):
    """A verdict for every pair, in their order."""

    verdicts: list[PairVerdict] = Field(default_factory=list)


class ResolveNames(dspy.Signature):
    """Decide for each pair of names in a knowledge graph whether both mean one and the same thing.
    In doubt they do not: a false join mixes two things up for every later question.

    same is true for a middle name more or less, a slip of spelling, another script, a short or
    former name, an abbreviation, a title or legal form; what is said of both must fit, and more
    than the likeness of the names must speak for it: the same role, place, date or work, or the
    same rare names beside both. Where nothing is said, only if one is plainly a written form of
    the other.

    same is false for relatives, namesakes, a whole and its part, a firm and its branch, a thing
    and what is named after it, editions and models, and wherever what is said contradicts.
    Different kinds decide nothing.
    """

    pairs: list[str] = dspy.InputField()
    decided: PairVerdicts = dspy.OutputField()


class Resolve(Step):
    """Pairs of names → a decision on each, in one call for many."""

    step = "resolve"
    role = "resolve"
    task = ResolveNames
    output_format = StepAdapter(items=True)

    async def run(self, pairs: Sequence[Pair]) -> list[Decided]:
        """The decisions in the order of the pairs, of which there are at most PAIRS_IN_ONE_CALL."""
        if self.is_offline:
            return [UNDECIDED] * len(pairs)
        # Each name has the share of a full call, so that a pair always reads the same.
        most = self.policy.limits.rate // (2 * PAIRS_IN_ONE_CALL)
        shown = [_shown(number, pair, most) for number, pair in enumerate(pairs)]
        verdicts: PairVerdicts = (await self.acall(pairs=shown)).decided
        by_number = {verdict.pair: verdict for verdict in verdicts.verdicts}
        return [
            Decided(
                same=by_number[number].same, reason=f"a model decided: {by_number[number].reason}"
            )
            if number in by_number
            else UNDECIDED
            for number in range(len(pairs))
        ]

    def check(self, outputs: Outputs, inputs: Inputs) -> None:
        """Raise Doubtful where a pair has no verdict."""
        decided = (verdict.pair for verdict in outputs["decided"].verdicts)
        problem = "it gives no verdict on the pairs {}."
        doubt_missing(len(inputs["pairs"]), decided, outputs, problem)


def _shown(number: int, pair: Pair, most: int) -> str:
    shared = f" | both beside: {', '.join(pair.shared[:MOST_SHARED])}" if pair.shared else ""
    return f"[{number}] {_side(pair.first, most)} | {_side(pair.second, most)}{shared}"


def _side(mention: NameInContext, most: int) -> str:
    statements = first_tokens(" ".join(mention.said), most)
    return (
        f"{mention.name} ({mention.kind}): {statements}"
        if statements
        else f"{mention.name} ({mention.kind})"
    )
