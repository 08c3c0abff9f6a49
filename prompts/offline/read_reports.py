"""Ratings of reports and follow-ups by rules, for questions about the whole collection."""

from collections.abc import Sequence

from prompts.text.evidence import Evidence
from prompts.text.languages import names_of
from prompts.text.relevance import CollectionTopic

# What the report's own words count beside what lies near to the question in its community.
OWN_WORDS = 0.35


def rate_offline(report: Evidence, topic: CollectionTopic) -> float:
    """How much a report would help, 0-1; its `prior` is the share of what lies near to the question
    that stands in its community.
    """
    return (1 - OWN_WORDS) * report.prior + OWN_WORDS * topic.covered(
        f"{report.title} {report.text}"
    )


def follow_ups_offline(
    points: Sequence[tuple[str, int]], topic: CollectionTopic, most: int
) -> list[tuple[str, int]]:
    """(name, score) by (text, score) of points, best first: a name counts as much as the best point
    that names it; one that the question has is known.
    """
    asked = {name.text.lower() for name in names_of(topic.relevance.question.text)}
    scores: dict[str, int] = {}
    for text, score in sorted(points, key=lambda point: -point[1]):
        for name in names_of(text):
            if name.text.lower() not in asked and score > 0:
                scores.setdefault(name.text, score)
    return sorted(scores.items(), key=lambda item: -item[1])[:most]
