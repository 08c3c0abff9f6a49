"""What does the scripted model answer where reports are rated and read, and where it answers without any document?"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.server.words import content_words, names

Fields = Mapping[str, str | Sequence[str]]
MOST_POINTS, MOST_FOLLOW_UPS = 5, 2
_NUMBERED = re.compile(r"^\[(\d+)\]\s*(.*)$", re.M)


@dataclass(frozen=True, slots=True)
class Rating:
    """One report's relevance, 0-10."""

    report: int
    rating: float


@dataclass(frozen=True, slots=True)
class Ratings:
    """A rating for each report."""

    ratings: tuple[Rating, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """A point with its score, 0-100."""

    text: str
    findings: tuple[int, ...]
    score: int


@dataclass(frozen=True, slots=True)
class Points:
    """Points of some reports."""

    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class FollowUp:
    """What to look up next."""

    question: str
    score: int


@dataclass(frozen=True, slots=True)
class Explored:
    """Points and what to look up next."""

    points: tuple[Point, ...]
    follow_ups: tuple[FollowUp, ...]


@dataclass(frozen=True, slots=True)
class Direct:
    """An answer without documents."""

    answer: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Passage:
    """A hypothetical passage."""

    passage: str


def rate(fields: Fields) -> Ratings:
    """Three for each content word that a report shares with the question, ten at most."""
    asked = content_words(str(fields["question"]))
    shared = [len(asked & content_words(text)) for text in fields["reports"]]
    return Ratings(tuple(Rating(number, min(10, 3 * count)) for number, count in enumerate(shared)))


def partial(fields: Fields) -> Points:
    """The findings that share content words with the question, twenty points for each word."""
    asked = content_words(str(fields["question"]))
    found = [
        Point(said, (int(number),), min(100, 20 * shared))
        for report in fields["reports"]
        for number, said in _NUMBERED.findall(report)
        if (shared := len(asked & content_words(said)))
    ]
    return Points(tuple(sorted(found, key=lambda point: -point.score)[:MOST_POINTS]))


def explore(fields: Fields) -> Explored:
    """The same points; next are the names in them that the question does not have."""
    points = partial(fields).points
    known = {*names(str(fields["question"])), *names(str(fields["focus"]))}
    new = dict.fromkeys(name for point in points for name in names(point.text) if name not in known)
    return Explored(points, tuple(FollowUp(f"What about {name}?", 50) for name in list(new)[:MOST_FOLLOW_UPS]))


def hypothesize(fields: Fields) -> Passage:
    """The question as a statement."""
    return Passage(f"It is known that {str(fields['question']).rstrip('?')}.")


def direct(fields: Fields) -> Direct:
    """The last name of the question."""
    named = names(str(fields["question"]))
    return Direct(f"It is {named[-1]}." if named else "", tuple(named[-1:]))
