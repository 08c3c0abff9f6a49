"""What reports give towards an answer: how relevant each is, its points, and what to look up next.

Source: GraphRAG (arXiv 2404.16130), section 2.6: map; dynamic selection and DRIFT search after the authors' later work.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from prompts.engine.calls import NotAsAsked, first_fitting, rough_tokens
from prompts.engine.output_formats import ItemsFormat
from prompts.engine.step import InputField, Inputs, OutputField, Outputs, Signature, Step, left_out
from prompts.offline.read_reports import follow_ups_offline, rate_offline
from prompts.text.evidence import Evidence
from prompts.text.relevance import CollectionTopic

__all__ = ["Explore", "FollowUp", "Offered", "Partial", "PointWritten", "Rate", "rate_offline"]

MOST, MOST_RATING = 100, 10
MOST_FOLLOW_UPS = 5
RULE_FOLLOW_UPS = 3


@dataclass(frozen=True, slots=True)
class Offered:
    """A report as a model reads it: its title, its summary, and its findings with the sentences that show them.

    The numbers of the findings are those of the evidence, whose `prior` says how near their passage is (0-1).
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

    text: str = Field(description="One to four sentences in the question's language, with names and figures.")
    findings: list[int] = Field(default_factory=list, description="Numbers of all statements that show it.")
    score: int = Field(ge=0, le=MOST, description="How much it helps to answer; 0: not at all.")


class PointsWritten(BaseModel):
    """Points, none where nothing helps."""

    reasoning: str = Field(default="", description="In a few sentences: what in these reports bears on the question.")
    points: list[PointWritten] = Field(default_factory=list)


class AnswerPartly(Signature, prompt="partial"):
    question: str = InputField()
    reports: list[str] = InputField(desc="Each a title and a summary, then numbered statements.")
    partial: PointsWritten = OutputField()


class Partial(Step):
    """A question and some reports → scored points with the findings that show them."""

    step = "partial"
    role = "answer"
    task = AnswerPartly
    output_format = ItemsFormat()

    async def run(self, reports: Sequence[Offered], topic: CollectionTopic) -> list[PointWritten]:
        """Points in the model's order, as it wrote them."""
        if self.is_offline:
            return points_by_rules(reports, topic)
        shown = [report.written() for report in reports]
        written: PointsWritten = (await self.acall(question=topic.relevance.question.text, reports=shown)).partial
        return shown_by(reports, written.points)


def shown_by(reports: Sequence[Offered], points: Sequence[PointWritten]) -> list[PointWritten]:
    """The points with those of their numbers that findings of these reports have."""
    known = {piece.number for report in reports for _, piece in report.findings}
    return [
        point.model_copy(update={"findings": [number for number in dict.fromkeys(point.findings) if number in known]})
        for point in points
    ]


def points_by_rules(reports: Sequence[Offered], topic: CollectionTopic) -> list[PointWritten]:
    """Each finding's own sentence as a point; what it helps is `CollectionTopic.worth`."""
    pieces = [piece for report in reports for _, piece in report.findings]
    return [
        PointWritten(text=" ".join(piece.text.split()), findings=[piece.number], score=round(MOST * topic.worth(piece)))
        for piece in pieces
    ]


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


class ExploreReports(Signature, prompt="explore"):
    question: str = InputField()
    focus: str = InputField(desc="What was looked up.")
    reports: list[str] = InputField(desc="Titles, then numbered statements.")
    explored: Explored = OutputField()


class Explore(Step):
    """A question, what was looked up, and texts → points with the statements that show them, and follow-ups."""

    step = "explore"
    role = "answer"
    task = ExploreReports
    output_format = ItemsFormat()

    async def run(self, focus: str, texts: Sequence[Offered], topic: CollectionTopic) -> Explored:
        """Points as the model wrote them; follow-ups are bounded, the best first."""
        if self.is_offline:
            return explore_by_rules(texts, topic)
        shown = first_fitting((text.written() for text in texts), rough_tokens, self.policy.limits.map)
        explored: Explored = (
            await self.acall(question=topic.relevance.question.text, focus=focus, reports=shown)
        ).explored
        best = sorted(explored.follow_ups, key=lambda follow_up: -follow_up.score)[:MOST_FOLLOW_UPS]
        follow_ups = [follow_up for follow_up in best if follow_up.score > 0]
        return Explored(points=shown_by(texts, explored.points), follow_ups=follow_ups)


def explore_by_rules(texts: Sequence[Offered], topic: CollectionTopic) -> Explored:
    """The statements as points; what to look up next are the names that the best of them bring in."""
    points = points_by_rules(texts, topic)
    best = follow_ups_offline([(point.text, point.score) for point in points], topic, RULE_FOLLOW_UPS)
    return Explored(points=points, follow_ups=[FollowUp(question=name, score=score) for name, score in best])


class Rating(BaseModel):
    """One report's relevance."""

    report: int
    reason: str = Field(default="", description="At most ten words: what it may give.")
    rating: float = Field(ge=0, le=MOST_RATING)


class Ratings(BaseModel):
    """A rating for every report."""

    ratings: list[Rating] = Field(default_factory=list)


class RateReports(Signature, prompt="rate"):
    question: str = InputField()
    reports: list[str] = InputField(desc="Each as [number] title: opening.")
    rated: Ratings = OutputField()


class Rate(Step):
    """A question and reports (title and opening) → the relevance of each, 0-1, in one call."""

    step = "rate"
    role = "filter"
    task = RateReports
    output_format = ItemsFormat()

    async def run(self, reports: Sequence[Evidence], topic: CollectionTopic) -> list[float]:
        """In the order of the reports, whose text is the opening; `prior` (0-1) is how much of what lies near to the
        question stands in the report's community."""
        if self.is_offline:
            return [rate_offline(report, topic) for report in reports]
        shown = [f"[{number}] {report.title}: {report.text}" for number, report in enumerate(reports)]
        rated: Ratings = (await self.acall(question=topic.relevance.question.text, reports=shown)).rated
        ratings = {rating.report: rating.rating for rating in rated.ratings}
        return [ratings[number] / MOST_RATING for number in range(len(reports))]

    def check(self, outputs: Outputs, inputs: Inputs) -> None:
        """Every report has a rating."""
        missing = left_out(len(inputs["reports"]), (rating.report for rating in outputs["rated"].ratings))
        if missing:
            raise NotAsAsked(f"no rating for the reports {missing}")
