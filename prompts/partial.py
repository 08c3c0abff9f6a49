"""What do these reports contribute to the answer, and how much does each point help? (GraphRAG, section 2.6, map)"""

from collections.abc import Sequence
from dataclasses import dataclass

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.reading.evidence import Evidence
from prompts.reading.gist import Gist

MOST = 100


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
        said = [f"[{piece.number}] {summary}" for summary, piece in self.findings]
        return "\n".join([f"{self.title}: {self.summary}".strip(": "), *said])


class PointWritten(BaseModel):
    """One point of the answer."""

    text: str = Field(description="One or two sentences in the question's language.")
    score: int = Field(ge=0, le=MOST, description="How much it helps to answer; 0: not at all.")
    findings: list[int] = Field(description="Numbers of the findings that show it.")


class PointsWritten(BaseModel):
    """Points, none where nothing helps."""

    points: list[PointWritten] = Field(default_factory=list)


class AnswerPartly(dspy.Signature):
    """From these reports alone, list the points that help to answer the question. Figures exactly as written."""

    question: str = dspy.InputField()
    reports: list[str] = dspy.InputField(desc="Title, summary, numbered findings.")
    partial: PointsWritten = dspy.OutputField()


class Partial(Step):
    """A question and some reports → scored points with the findings that show them."""

    step = "partial"
    role = "answer"
    task = AnswerPartly

    async def run(self, reports: Sequence[Offered], gist: Gist) -> list[PointWritten]:
        """Points in the model's order, as it wrote them."""
        if self.is_offline:
            return partial_offline(reports, gist)
        shown = [report.written() for report in reports]
        written: PointsWritten = (await self.acall(question=gist.relevance.ask.text, reports=shown)).partial
        return shown_by(reports, written.points)


def shown_by(reports: Sequence[Offered], points: Sequence[PointWritten]) -> list[PointWritten]:
    """The points with those of their numbers that findings of these reports have."""
    known = {piece.number for report in reports for _, piece in report.findings}
    return [
        point.model_copy(update={"findings": [one for one in dict.fromkeys(point.findings) if one in known]})
        for point in points
    ]


def partial_offline(reports: Sequence[Offered], gist: Gist) -> list[PointWritten]:
    """Each finding's own sentence; it helps as much as it says about what is asked (`Gist.worth`)."""
    points = []
    for report in reports:
        for _, piece in report.findings:
            said = " ".join(piece.text.split())
            points.append(PointWritten(text=said, score=round(MOST * gist.worth(piece)), findings=[piece.number]))
    return points
