"""Do two names mean one thing? The decision on the pairs that the rules of entity resolution leave open.

Offline by a scored rule: how alike the names are, the kinds, what is said of both, and what contradicts. A model gets
many pairs in one call; what it leaves out is decided by the rule.
"""

from collections.abc import Mapping, Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.calls import Doubtful
from prompts.engine.step import Step
from prompts.offline.resolve import Decided, NameInContext, Pair, decide

__all__ = [
    "MOST_SAID", "MOST_SHARED", "PAIRS_IN_ONE_CALL", "Decided", "NameInContext", "Pair", "PairVerdict", "PairVerdicts",
    "Resolve", "ResolveNames", "decide",
]  # fmt: skip

PAIRS_IN_ONE_CALL = 30
MOST_SAID, MOST_LENGTH, MOST_SHARED = 2, 200, 5


class PairVerdict(BaseModel):
    """The decision on one pair."""

    pair: int = Field(description="Its number.")
    reason: str = Field(description="One sentence.")
    same: bool


class PairVerdicts(BaseModel):
    """A verdict for every pair, in their order."""

    verdicts: list[PairVerdict] = Field(default_factory=list)


class ResolveNames(dspy.Signature):
    """The entities of a knowledge graph were named in different passages, and each of these pairs of names may mean one
    and the same thing. Decide for every pair. What you join becomes one entity with the facts of both, and what you
    leave apart stays two: a false join mixes up two things for every later question, a missed one splits what is known
    of one thing. When in doubt, leave apart.

    - same: true where both names mean one thing: a name with and without a middle name, a spelling slip, another
    script or transcription, a short or former name, an abbreviation, a title or legal form more or less. What is said
    of both must fit together, and something besides the likeness of the names must speak for it: the same role,
    place, date, number, work, or the same rare names beside both.
    - same: false for relatives, namesakes, a person and what is named after that person, a whole and its part, a firm
    and its branch, a place and an event there, editions and models ("Report 2023", "Report 2024"), things that are
    alike or work together, and wherever what is said contradicts (other birth years, professions, countries).
    Different kinds alone decide nothing: readers label one thing differently.
    - Where nothing is said of either, the names alone decide: true only if one is plainly a written form of the other.
    - reason: first what speaks for it and against it, in one sentence that a person who checks the graph understands.

    Examples. "Edda Quist (person): founded Harrow Mill | E. Quist (person): sold the ruins": true, since both owned the
    same mill. "Quist (person): a surveyor in 1960" beside her: false, another trade and ninety years later.
    "水利局 (organisation): 2016年建成南溪抽水站 | 县水利局 (organisation): 管理南溪抽水站": true, the same station.
    "南溪抽水站 (place) | 北溪抽水站 (place)": false, two places."""

    pairs: list[str] = dspy.InputField(
        desc="[number] name (kind): what is said; the same of the other name; rare names that stand beside both."
    )
    decided: PairVerdicts = dspy.OutputField()


class Resolve(Step):
    """Pairs of names → a decision on each, in one call for many."""

    step = "resolve"
    role = "resolve"
    task = ResolveNames

    async def run(self, pairs: Sequence[Pair]) -> list[Decided]:
        """In the order of the pairs; at most PAIRS_IN_ONE_CALL are meant to be asked at once."""
        if self.is_offline:
            return [decide(pair) for pair in pairs]
        shown = [_shown(number, pair) for number, pair in enumerate(pairs)]
        verdicts: PairVerdicts = (await self.acall(pairs=shown)).decided
        by_number = {verdict.pair: verdict for verdict in verdicts.verdicts}
        return [
            Decided(same=by_number[number].same, reason=f"a model decided: {by_number[number].reason}")
            if number in by_number
            else decide(pair)
            for number, pair in enumerate(pairs)
        ]

    def check(self, outputs: Mapping[str, object], inputs: Mapping[str, object]) -> None:
        """What is left out is asked for once more; then the rule stands in for it."""
        decided, pairs = outputs["decided"], inputs["pairs"]
        if isinstance(decided, PairVerdicts) and isinstance(pairs, list):
            left = sorted(set(range(len(pairs))) - {verdict.pair for verdict in decided.verdicts})
            if left:
                raise Doubtful(f"it gives no verdict on the pairs {', '.join(map(str, left))}.", dict(outputs))


def _shown(number: int, pair: Pair) -> str:
    shared = f" | both beside: {', '.join(pair.shared[:MOST_SHARED])}" if pair.shared else ""
    return f"[{number}] {_side(pair.first)} | {_side(pair.second)}{shared}"


def _side(mention: NameInContext) -> str:
    statements = " ".join(text[:MOST_LENGTH] for text in mention.said[:MOST_SAID])
    return f"{mention.name} ({mention.kind}): {statements}" if statements else f"{mention.name} ({mention.kind})"
