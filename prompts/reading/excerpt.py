"""Which part of a long sentence shows what is said? A stretch between clause boundaries that holds it."""

import re
from collections.abc import Sequence
from itertools import pairwise

from prompts.language.words import fold

LONGEST = 200  # characters of a quote that is meant to be read at a glance
_BOUNDARY = re.compile(r"(?<=[,;:，；：、。])\s*|\s+(?=[(（–—-])|(?<=[)）])\s+")
_SPACE = re.compile(r"\s+")


def excerpt(text: str, wanted: Sequence[str], longest: int = LONGEST) -> tuple[int, int]:
    """The span of the stretch of at most `longest` characters that holds most of what is wanted, the first wanted
    string before all others; the whole text where that is short enough."""
    if len(text) <= longest:
        return 0, len(text)
    low = fold(text)
    low = low if len(low) == len(text) else text.casefold().ljust(len(text))
    places = [(low.find(fold(one)), len(one), 4 if rank == 0 else 1) for rank, one in enumerate(wanted) if one.strip()]
    places = [place for place in places if place[0] >= 0]
    cuts = _cuts(text, longest)
    best = (-1, 0, 0, min(longest, len(text)))
    for at, start in enumerate(cuts[:-1]):
        end = max((cut for cut in cuts[at + 1 :] if cut - start <= longest), default=min(start + longest, len(text)))
        held = sum(weight for place, size, weight in places if start <= place and place + size <= end)
        best = max(best, (held, end - start if held else 0, -start, end))
    start, end = -best[2], best[3]
    whole = text[start:end]
    return start + len(whole) - len(whole.lstrip()), end - (len(whole) - len(whole.rstrip()))


def _cuts(text: str, longest: int) -> list[int]:
    """Where the text may be cut: at clause boundaries, and at spaces where a clause is too long."""
    found = sorted({0, *(match.end() for match in _BOUNDARY.finditer(text)), len(text)})
    if any(after - before > longest for before, after in pairwise(found)):
        found = sorted({*found, *(match.end() for match in _SPACE.finditer(text))})
    return found
