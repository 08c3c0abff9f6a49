"""Explore: what reports or passages say to a question, and what should be asked next (GraphRAG's DRIFT search)."""

from collections.abc import Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.offline.partial import MOST, follow_ups_offline, partial_offline
from prompts.partial import Offered, PointWritten, points_by_rules, shown_by
from prompts.text.relevance import CollectionTopic

MOST_FOLLOW_UPS = 5
RULE_FOLLOW_UPS = 3


class FollowUp(BaseModel):
    """A question that would bring the answer on."""

    question: str = Field(description="Stands on its own, names what it asks about.")
    score: int = Field(ge=0, le=MOST, description="How much its answer would add; 0: nothing.")


class Explored(BaseModel):
    """Points found here and what to ask next."""

    reasoning: str = Field(
        default="", description="In a few sentences: what is answered so far, what is open, what these texts hint at."
    )
    points: list[PointWritten] = Field(default_factory=list)
    follow_ups: list[FollowUp] = Field(
        default_factory=list, description=f"At most {MOST_FOLLOW_UPS}, the best first; none if nothing is open."
    )


class ExploreReports(dspy.Signature):
    """Explore a collection of documents for the answer to a question, step by step: note what these texts give, then
    say what to look up next.

    At first the texts are reports on parts of the collection, later passages that were found for a follow-up question
    (the focus). Points and follow-ups are collected over all steps; the final answer is written from the points alone.

    Points. Each says one thing that stands on its own and helps to answer the question, not merely the focus: who or
    what, where and when, with names, figures and telling details as they are written. findings are the numbers in
    brackets before all statements that show it. score: 90-100 it answers the question or a main part of it; 70-89 an
    important part; 40-69 a detail, an example, a differing view that belongs in a full answer; 10-39 background; 0 no
    help. From reports alone write a first answer in points as broad as the question is; from passages the details,
    corrections and examples that the reports do not have. Say nothing that the texts do not say.

    Follow-ups. Each is a question to the documents whose answer would add most: a thing, person or event that the texts
    hint at and leave open; evidence or figures for a general statement; the other side of a dispute; a part of the
    question that nothing speaks of yet. It is searched for by itself, so name what it asks about in full, as documents
    would write it. No question twice, none whose answer stands here already, none that goes beyond the user's question.
    score: 80-100 the answer would be wrong or hollow without it; 50-79 it would be richer; 10-49 worth a look if there
    is time; 0 nothing. If nothing is open, give none.

    Example. Question: "Why did the ferry trade decline?" Focus: the same. Reports: "Ferry trade: A decline. [3]
    Fares fell by half after the tunnel opened. [6] The company sold four of six boats." Points: "Fares fell by half
    after the tunnel opened" [3], 90; "the company sold four of its six boats" [6], 60. Follow-ups: "When did the Tarn
    Tunnel open, and who used it?", 80; "What did the ferry company say about selling its boats?", 60.

    例：问题“渡口为何衰落？”，“[1] 大桥通车后客流减半。”要点：“大桥通车后客流减半”[1]，90。
    追问：“大桥是哪一年通车的？”，75。"""

    question: str = dspy.InputField()
    focus: str = dspy.InputField(desc="What was looked up.")
    reports: list[str] = dspy.InputField(desc="Titles, then numbered statements.")
    explored: Explored = dspy.OutputField()


class Explore(Step):
    """A question, what was looked up, and texts → points with the statements that show them, and follow-ups."""

    step = "explore"
    role = "answer"
    task = ExploreReports

    async def run(self, focus: str, texts: Sequence[Offered], gist: CollectionTopic) -> Explored:
        """Points as the model wrote them; follow-ups are bounded, the best first."""
        if self.is_offline:
            return explore_by_rules(texts, gist)
        shown = [text.written() for text in texts]
        found: Explored = (await self.acall(question=gist.relevance.question.text, focus=focus, reports=shown)).explored
        best = sorted(found.follow_ups, key=lambda one: -one.score)[:MOST_FOLLOW_UPS]
        follow_ups = [one for one in best if one.score > 0]
        return Explored(points=shown_by(texts, found.points), follow_ups=follow_ups)


def explore_by_rules(texts: Sequence[Offered], gist: CollectionTopic) -> Explored:
    """The statements as points; what to look up next are the names that the best of them bring in."""
    points = partial_offline([piece for text in texts for _, piece in text.findings], gist)
    best = follow_ups_offline(points, gist, RULE_FOLLOW_UPS)
    return Explored(
        points=points_by_rules(texts, gist),
        follow_ups=[FollowUp(question=name, score=score) for name, score in best],
    )
