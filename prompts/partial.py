"""What do these reports contribute to the answer, and how much does each point help? (GraphRAG, section 2.6, map)"""

from collections.abc import Sequence
from dataclasses import dataclass

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.language.words import is_han
from prompts.rate import WEIGHT, speaks_of_all, specific_coverage
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance

MOST = 100
FAINT = 0.12
SHORTEST = 25  # signs: what is shorter is a label or an aside


@dataclass(frozen=True, slots=True)
class Offered:
    """A report as a model reads it: its title, its summary, and its findings with the sentences that show them.

    The numbers of the findings are those of the evidence; `weight` (0-1) is what the report counts in the collection.
    """

    title: str
    summary: str
    findings: Sequence[tuple[str, Evidence]]
    weight: float = 0.0

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

    async def run(self, reports: Sequence[Offered], relevance: Relevance) -> list[PointWritten]:
        """Points in the model's order; one that names no finding that it was given is left out."""
        if self.is_offline:
            return partial_offline(reports, relevance)
        shown = [report.written() for report in reports]
        written: PointsWritten = (await self.acall(question=relevance.ask.text, reports=shown)).partial
        return shown_by(reports, written.points)


def shown_by(reports: Sequence[Offered], points: Sequence[PointWritten]) -> list[PointWritten]:
    """The points that name findings of these reports, each with those alone."""
    known = {piece.number for report in reports for _, piece in report.findings}
    return [
        point.model_copy(update={"findings": given})
        for point in points
        if (given := [number for number in dict.fromkeys(point.findings) if number in known])
    ]


def partial_offline(reports: Sequence[Offered], relevance: Relevance) -> list[PointWritten]:
    """Each finding's own sentence; it helps as much as it has of the question's words, and a little as its report
    weighs. What has next to nothing of a question that asks for something helps nothing."""
    points = []
    least = 0.0 if speaks_of_all(relevance) else FAINT
    for report in reports:
        for _, piece in report.findings:
            said = " ".join(piece.text.split())
            covered = specific_coverage(piece, relevance)
            helps = covered >= least and not said.startswith("#") and (len(said) >= SHORTEST or is_han(said))
            score = round(MOST * ((1 - WEIGHT) * covered + WEIGHT * report.weight)) if helps else 0
            points.append(PointWritten(text=said, score=score, findings=[piece.number]))
    return points
