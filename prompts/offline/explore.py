"""What to look up next by rules: the names that the best statements bring in."""

from collections.abc import Sequence

from prompts.offline.partial import RulePoint
from prompts.text.gist import Gist
from prompts.text.spans import names_of


def follow_ups_offline(points: Sequence[RulePoint], gist: Gist, most: int) -> list[tuple[str, int]]:
    """(name, score), best first: a name counts as much as the best statement that names it; one that the question has
    is known."""
    asked = {name.text.lower() for name in names_of(gist.relevance.ask.text)}
    scores: dict[str, int] = {}
    for point in sorted(points, key=lambda one: -one.score):
        for name in names_of(point.text):
            if name.text.lower() not in asked and point.score > 0:
                scores.setdefault(name.text, point.score)
    return sorted(scores.items(), key=lambda item: -item[1])[:most]
