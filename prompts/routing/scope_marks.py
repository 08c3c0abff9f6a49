"""What tells that a question is about a whole collection? A mark is a wording, and how it is told."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """A wording that speaks for the whole collection or for a part of it; `scope_weights` says which, and how much."""

    reason: str
    pattern: re.Pattern[str]


def mark(reason: str, pattern: str, *, ignore_case: bool = True) -> Mark:
    """A mark from the text of a pattern."""
    return Mark(reason, re.compile(pattern, re.I if ignore_case else 0))
