"""What tells that a question is about a whole collection? A mark is a wording, with its weight and how it is told."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """A wording that speaks for the whole collection (weight above 0) or for a part of it (below), and why."""

    weight: float
    reason: str
    pattern: re.Pattern[str]


def mark(weight: float, reason: str, pattern: str, *, ignore_case: bool = True) -> Mark:
    """A mark from the text of a pattern."""
    return Mark(weight, reason, re.compile(pattern, re.I if ignore_case else 0))


def shown(text: str, marks: Sequence[Mark]) -> Iterator[Mark]:
    """The marks that a text shows, in their order."""
    return (one for one in marks if one.pattern.search(text))
