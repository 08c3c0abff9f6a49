"""Explore: the points of one look-up, and what to look up next; follow-ups are taken best first, within bounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from prompts.engine.effort import Effort
from prompts.explore import Explore, FollowUp
from prompts.partial import Offered
from prompts.text.relevance import CollectionTopic
from prompts.text.words import fold
from tasks.reports.pack import Point
from tasks.step import step


@dataclass(frozen=True, slots=True)
class LookUps:
    """How many follow-ups are looked up, and how far from the reports one may come up (1: from the reports alone)."""

    most: int
    depth: int


LOOK_UPS: Mapping[Effort, LookUps] = {"low": LookUps(2, 1), "medium": LookUps(5, 2), "high": LookUps(10, 3)}
DECAY = 0.7  # what is asked further on counts less


@dataclass
class Agenda:
    """What is still to be looked up: the most helpful first, then what came first; nothing twice."""

    bounds: LookUps = LOOK_UPS["medium"]
    _waiting: list[tuple[float, int, int, str]] = field(default_factory=list)
    _known: set[str] = field(default_factory=set)
    taken: int = 0

    def add(self, follow_ups: Sequence[FollowUp], depth: int) -> None:
        """Follow-ups that came up at a depth (0: the reports); what is too deep or known is dropped."""
        for one in follow_ups if depth < self.bounds.depth else ():
            if (key := fold(one.question.strip())) and key not in self._known:
                self._known.add(key)
                heappush(self._waiting, (-one.score * DECAY**depth, len(self._known), depth + 1, one.question))

    def next(self) -> tuple[str, int] | None:
        """(question, depth) of the best one; None where nothing is left or enough was looked up."""
        if not self._waiting or self.taken >= self.bounds.most:
            return None
        self.taken += 1
        _, _, depth, question = heappop(self._waiting)
        return question, depth


@step("explore")
async def explore(
    focus: str, texts: Sequence[tuple[str, Offered]], gist: CollectionTopic, explorer: Explore
) -> tuple[list[Point], list[FollowUp]]:
    """The points of these texts (name, text), and what to look up next."""
    found = await explorer.run(focus, [text for _, text in texts], gist)
    of = {piece.number: (name, piece.title or piece.document) for name, text in texts for _, piece in text.findings}
    nowhere = ("", "")
    points = [
        Point(one.text, one.score, tuple(one.findings), *(of[one.findings[0]] if one.findings else nowhere))
        for one in found.points
    ]
    return points, found.follow_ups
