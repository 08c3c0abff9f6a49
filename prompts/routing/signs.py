"""What speaks for a structure? A sign is a wording that a kind of task has, with its weight and how it is told."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from prompts.structures.checks import StructureName

# What a further sign for the same structure adds: the second half of its weight, the third a quarter, …
FURTHER = 0.5


@dataclass(frozen=True, slots=True)
class Vote:
    """How much (about 0.3 a hint, 1 a sign, 3 all but certain) something speaks for a structure, and why."""

    structure: StructureName
    weight: float
    reason: str


@dataclass(frozen=True, slots=True)
class Sign:
    """A vote that holds where the pattern is found."""

    vote: Vote
    pattern: re.Pattern[str]


def sign(structure: StructureName, weight: float, reason: str, pattern: str) -> Sign:
    """A sign from the text of a pattern; case does not count."""
    return Sign(Vote(structure, weight, reason), re.compile(pattern, re.I))


def votes(text: str, signs: Sequence[Sign]) -> Iterator[Vote]:
    """The votes of the signs that a text shows, in the order of the signs."""
    return (one.vote for one in signs if one.pattern.search(text))


def strength(cast: Iterable[Vote]) -> float:
    """What votes for one structure come to: signs of one task overlap, so each further one counts half as much."""
    ordered = sorted((vote.weight for vote in cast), reverse=True)
    return sum(weight * FURTHER**place for place, weight in enumerate(ordered))
