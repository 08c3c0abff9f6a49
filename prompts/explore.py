"""What do these reports or passages say to the question, and what should be asked next? (GraphRAG's DRIFT search)"""

from collections.abc import Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.language.spans import names_of
from prompts.partial import MOST, Offered, PointWritten, partial_offline, shown_by
from prompts.reading.gist import Gist

MOST_FOLLOW_UPS = 3


class FollowUp(BaseModel):
    """A question that would bring the answer on."""

    question: str = Field(description="Stands on its own, names what it asks about.")
    score: int = Field(ge=0, le=MOST, description="How much its answer would help.")


class Explored(BaseModel):
    """Points found here and what to ask next."""

    points: list[PointWritten] = Field(default_factory=list)
    follow_ups: list[FollowUp] = Field(default_factory=list, description=f"At most {MOST_FOLLOW_UPS}; none if enough.")


class ExploreReports(dspy.Signature):
    """From these texts alone, list the points that help to answer the question, then what to look up next for it.
    Figures exactly as written."""

    question: str = dspy.InputField()
    focus: str = dspy.InputField(desc="What was looked up.")
    reports: list[str] = dspy.InputField(desc="Titles and numbered statements.")
    explored: Explored = dspy.OutputField()


class Explore(Step):
    """A question, what was looked up, and texts → points with the statements that show them, and follow-ups."""

    step = "explore"
    role = "answer"
    task = ExploreReports

    async def run(self, focus: str, texts: Sequence[Offered], gist: Gist) -> Explored:
        """Points as the model wrote them; follow-ups are bounded, the best first."""
        if self.is_offline:
            return explore_offline(texts, gist)
        shown = [text.written() for text in texts]
        found: Explored = (await self.acall(question=gist.relevance.ask.text, focus=focus, reports=shown)).explored
        best = sorted(found.follow_ups, key=lambda one: -one.score)[:MOST_FOLLOW_UPS]
        follow_ups = [one for one in best if one.score > 0]
        return Explored(points=shown_by(texts, found.points), follow_ups=follow_ups)


def explore_offline(texts: Sequence[Offered], gist: Gist) -> Explored:
    """The statements as points; what to look up next are the names that the best of them bring in.

    A name that the question has is known; one counts as much as the best statement that names it.
    """
    points = partial_offline(texts, gist)
    asked = {name.text.lower() for name in names_of(gist.relevance.ask.text)}
    scores: dict[str, int] = {}
    for point in sorted(points, key=lambda one: -one.score):
        for name in names_of(point.text):
            if name.text.lower() not in asked and point.score > 0:
                scores.setdefault(name.text, point.score)
    best = sorted(scores.items(), key=lambda item: -item[1])[:MOST_FOLLOW_UPS]
    return Explored(points=points, follow_ups=[FollowUp(question=name, score=score) for name, score in best])
