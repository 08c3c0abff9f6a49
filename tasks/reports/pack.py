"""Packing: the order and portions in which reports are read, and which partial answers go into the final one.

Source: GraphRAG (arXiv 2404.16130), section 2.6: shuffled and packed; scored; descending until the context is full.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from prompts.engine.calls import rough_tokens
from prompts.text.thesaurus import concept_terms
from tasks.batching import portions

T = TypeVar("T")
PACK_TOKENS = 3_000  # of reports in one call
MOST_POINTS = 12
LEAST_SHARE = 0.5  # of the best point's score: what helps less stays out
FAINT_SHARE = 0.15  # the same while few sources have spoken
FEW_SOURCES = 7
ALIKE = 0.7  # the share of its terms from which a point repeats another


@dataclass(frozen=True, slots=True)
class Point:
    """A partial answer: what is said, how much it helps (1-100), the findings that show it, its report and source."""

    text: str
    score: int
    findings: tuple[int, ...]
    report: str
    source: str


def shuffled(reports: Sequence[T], seed: str) -> list[T]:
    """In an order of their own, the same for the same seed, so that no neighbourhood of reports fills one portion."""
    mixed = list(reports)
    random.Random(seed).shuffle(mixed)  # noqa: S311 -- an order, not a secret
    return mixed


def packed(texts: Sequence[str], most: int = PACK_TOKENS) -> list[list[int]]:
    """The places of the texts, in order, in portions of at most so many tokens; a longer text is alone."""
    return portions([rough_tokens(text) for text in texts], most)


def filled(points: Sequence[Point], most: int, size: Callable[[Point], int]) -> list[Point]:
    """The points that go into the answer: none of score 0, none twice, the most helpful first, as many as fit.

    Of points that help alike, those of sources and reports that have said less come first. What helps little is there
    only where it lets a further source speak.
    """
    top = max((point.score for point in points), default=0)
    left = [point for point in points if point.score >= max(1.0, FAINT_SHARE * top)]
    terms = {point: frozenset(concept_terms(point.text)) for point in left}
    taken: list[Point] = []
    said: Counter[str] = Counter()
    sources: set[str] = set()
    while left and len(taken) < MOST_POINTS:
        best = max(left, key=lambda one: (_worth(one, said), -left.index(one)))
        left.remove(best)
        faint = best.score < LEAST_SHARE * top and (best.source in sources or len(sources) >= FEW_SOURCES)
        if faint or any(_repeats(terms[best], terms[other]) for other in taken):
            continue
        most -= size(best)
        if taken and most < 0:
            break
        taken.append(best)
        said.update((best.source, best.report))
        sources.add(best.source)
    return taken


def _worth(point: Point, said: Mapping[str, int]) -> float:
    # Half as much for each time that its source has spoken, a little less for each of its report.
    return float(point.score * 0.5 ** said.get(point.source, 0) * 0.8 ** said.get(point.report, 0))


def _repeats(one: frozenset[str], two: frozenset[str]) -> bool:
    return len(one & two) > ALIKE * min(len(one), len(two)) if one and two else one == two
