"""Ratings of reports and follow-up questions without a model, for the whole collection."""

from collections.abc import Sequence

from prompts.text.evidence import Evidence
from prompts.text.languages import names_of
from prompts.text.relevance import CollectionTopic

OWN_WORDS = 0.35  # The weight of a report's words beside what lies near in its community


def rate_offline(report: Evidence, topic: CollectionTopic) -> float:
    """Rate how much a report would help (0-1).

    Its `prior` is the share of what lies near the question that stands in its community.
    """
    return (1 - OWN_WORDS) * report.prior + OWN_WORDS * topic.covered(
        f"{report.title} {report.text}"
    )


def follow_ups_offline(
    points: Sequence[tuple[str, int]], topic: CollectionTopic, most: int
) -> list[tuple[str, int]]:
    """Return (name, score) of (text, score) points, best first.

    A name scores as much as the best point that holds it; names of the question are left out.
    """
    asked = {name.text.lower() for name in names_of(topic.relevance.question.text)}
    scores: dict[str, int] = {}
    for text, score in sorted(points, key=lambda point: -point[1]):
        for name in names_of(text):
            if name.text.lower() not in asked and score > 0:
                scores.setdefault(name.text, score)
    return sorted(scores.items(), key=lambda item: -item[1])[:most]
