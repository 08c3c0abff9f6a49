"""Reads reports for an answer: the relevance of each, its points, and what to look up next.

Source: GraphRAG (arXiv 2404.16130), section 2.6 (map), and the authors' later work (dynamic
selection, DRIFT search).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import dspy
from pydantic import BaseModel, Field

from prompts.engine.adapter import StepAdapter
from prompts.engine.messages import first_fitting, rough_tokens
from prompts.engine.step import Inputs, Outputs, Step, doubt_missing
from prompts.offline.read_reports import follow_ups_offline, rate_offline
from prompts.text.evidence import Evidence
from prompts.text.relevance import CollectionTopic
from prompts.text.words import fold

__all__ = ["Explore", "FollowUp", "Offered", "Partial", "PointWritten", "Rate", "rate_offline"]

MOST, MOST_RATING = 100, 10
MOST_FOLLOW_UPS = 5
RULE_FOLLOW_UPS = 3


@dataclass(frozen=True, slots=True)
class Offered:
    """A report as a model reads it: title, summary, and findings with the evidence for each.

    A finding has the number of its evidence, whose `prior` (0-1) is the passage's nearness.
    """

    title: str
    summary: str
    findings: Sequence[tuple[str, Evidence]]

    def written(self) -> str:
        """The report as text, each finding with its number."""
        lines = [f"[{piece.number}] {summary}" for summary, piece in self.findings]
        return "\n".join([f"{self.title}: {self.summary}".strip(": "), *lines])


class PointWritten(BaseModel):
    """One point of the answer, the statements that show it, and how much it helps."""

    text: str = Field(description="One to four sentences.")
    findings: list[int] = Field(default_factory=list)
    score: int = Field(ge=0, le=MOST)


class PointsWritten(BaseModel):
    """Points, none where nothing helps."""

    points: list[PointWritten] = Field(default_factory=list)


class AnswerPartly(dspy.Signature):
    """Note what these reports give towards the answer to a question about a whole collection of
    documents.

    Other readers read other reports; the answer is written from the points of all, so that what
    you do not note is lost. Each point says one thing and stands alone: who or what, where and
    when, with names, figures and telling details as written. A point may draw several statements
    together, and says how many. Give both sides where statements disagree. What is said of
    something else is no point.

    findings are the numbers in brackets of all statements that show the point. score is how much
    it helps: 90-100 answers the question or a main part of it, 70-89 an important part, 40-69 a
    detail, an example or a differing view, 10-39 background. Where nothing helps, give no points.
    """

    reports: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    partial: PointsWritten = dspy.OutputField()


class Partial(Step):
    """A question and some reports → scored points with the findings that show them."""

    step = "partial"
    role = "answer"
    writes_in = "question"
    task = AnswerPartly
    output_format = StepAdapter(items=True)

    async def run(self, reports: Sequence[Offered], topic: CollectionTopic) -> list[PointWritten]:
        """Points in the model's order."""
        if self.is_offline:
            return points_by_rules(reports, topic)
        shown = [report.written() for report in reports]
        written: PointsWritten = (
            await self.acall(question=topic.relevance.question.text, reports=shown)
        ).partial
        return shown_by(reports, written.points)


def shown_by(reports: Sequence[Offered], points: Sequence[PointWritten]) -> list[PointWritten]:
    """The points without numbers that no finding of these reports has, and none of them twice: a
    small model may repeat one until its answer is cut.
    """
    known = {piece.number for report in reports for _, piece in report.findings}

    def existing(numbers: Sequence[int]) -> list[int]:
        return [number for number in dict.fromkeys(numbers) if number in known]

    first: dict[str, PointWritten] = {}
    for point in points:
        first.setdefault(fold(point.text), point)
    return [
        point.model_copy(update={"findings": existing(point.findings)}) for point in first.values()
    ]


def points_by_rules(reports: Sequence[Offered], topic: CollectionTopic) -> list[PointWritten]:
    """Each finding's own sentence as a point, scored by `CollectionTopic.worth`."""
    pieces = [piece for report in reports for _, piece in report.findings]
    return [
        PointWritten(
            text=" ".join(piece.text.split()),
            findings=[piece.number],
            score=round(MOST * topic.worth(piece)),
        )
        for piece in pieces
    ]


class FollowUp(BaseModel):
    """A question that would bring the answer on."""

    question: str
    score: int = Field(ge=0, le=MOST)


class Explored(BaseModel):
    """Points found here and what to ask next."""

    points: list[PointWritten] = Field(default_factory=list)
    follow_ups: list[FollowUp] = Field(
        default_factory=list,
        description=f"At most {MOST_FOLLOW_UPS}, the best first; none if nothing is open.",
    )


class ExploreReports(dspy.Signature):
    """Explore a collection of documents for the answer to a question: note what these texts give,
    then say what to look up next.

    points: each says one thing that helps to answer the question and stands alone, with names,
    figures and details as written; findings are the numbers in brackets of all statements that
    show it. score: 90-100 answers the question or a main part of it, 70-89 an important part,
    40-69 a detail or a differing view, 10-39 background. Say nothing that the texts do not say.

    follow_ups: questions to the documents whose answers would add most: what the texts leave open,
    evidence for a general statement, the other side of a dispute, a part that nothing speaks of
    yet. Each names in full what it asks about. None that is answered here or goes beyond the
    question. score: 80-100 the answer would be wrong without it, 50-79 poorer, 10-49 worth a look.
    """

    reports: list[str] = dspy.InputField()
    focus: str = dspy.InputField()
    question: str = dspy.InputField()
    explored: Explored = dspy.OutputField()


class Explore(Step):
    """A question, a focus and texts → points with their statements, and follow-up questions."""

    step = "explore"
    role = "answer"
    writes_in = "question"
    task = ExploreReports
    output_format = StepAdapter(items=True)

    async def run(self, focus: str, texts: Sequence[Offered], topic: CollectionTopic) -> Explored:
        """Points in the model's order; the best follow-ups, the best first."""
        if self.is_offline:
            return explore_by_rules(texts, topic)
        shown = first_fitting(
            (text.written() for text in texts), rough_tokens, self.policy.limits.map
        )
        explored: Explored = (
            await self.acall(question=topic.relevance.question.text, focus=focus, reports=shown)
        ).explored
        best = sorted(explored.follow_ups, key=lambda follow_up: -follow_up.score)[:MOST_FOLLOW_UPS]
        follow_ups = [follow_up for follow_up in best if follow_up.score > 0]
        return Explored(points=shown_by(texts, explored.points), follow_ups=follow_ups)


def explore_by_rules(texts: Sequence[Offered], topic: CollectionTopic) -> Explored:
    """The statements as points, and the new names in the best of them as follow-ups."""
    points = points_by_rules(texts, topic)
    best = follow_ups_offline(
        [(point.text, point.score) for point in points], topic, RULE_FOLLOW_UPS
    )
    return Explored(
        points=points, follow_ups=[FollowUp(question=name, score=score) for name, score in best]
    )


class Rating(BaseModel):
    """One report's relevance."""

    report: int
    rating: float = Field(ge=0, le=MOST_RATING)


class Ratings(BaseModel):
    """A rating for every report."""

    ratings: list[Rating] = Field(default_factory=list)


class RateReports(dspy.Signature):
    """Rate from 0 to 10 how much reading each report would help to answer the question. Only the
    opening of each is shown.

    0: about something else. 2: shares a word with the question. 4: touches the matter. 6: holds a
    part of the answer. 8: largely about what is asked. 10: exactly that. Judge what the report is
    likely to hold, not how its words match. What you rate low is not read, so be generous in
    doubt; rate by weight where the question is about everything. Rate every report by its number.
    """

    reports: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    rated: Ratings = dspy.OutputField()


class Rate(Step):
    """A question and reports (title and opening) → the relevance of each, 0-1, in one call."""

    step = "rate"
    role = "filter"
    task = RateReports
    output_format = StepAdapter(items=True)

    async def run(self, reports: Sequence[Evidence], topic: CollectionTopic) -> list[float | None]:
        """The relevance of each report, whose text is its opening; None where the model gave none.

        `prior` (0-1) is the share of the passages near the question in the report's community.
        """
        if self.is_offline:
            return [rate_offline(report, topic) for report in reports]
        shown = [
            f"[{number}] {report.title}: {report.text}" for number, report in enumerate(reports)
        ]
        rated: Ratings = (
            await self.acall(question=topic.relevance.question.text, reports=shown)
        ).rated
        ratings = {rating.report: rating.rating for rating in rated.ratings}
        return [
            ratings[number] / MOST_RATING if number in ratings else None
            for number in range(len(reports))
        ]

    def check(self, outputs: Outputs, inputs: Inputs) -> None:
        """Raise Doubtful where a report has no rating."""
        rated = (rating.report for rating in outputs["rated"].ratings)
        doubt_missing(len(inputs["reports"]), rated, outputs, "no rating for the reports {}")
