"""Partial answers: what some reports give towards the answer, point by point (GraphRAG, section 2.6, map)."""

from collections.abc import Sequence
from dataclasses import dataclass

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.offline.partial import MOST, partial_offline
from prompts.text.evidence import Evidence
from prompts.text.relevance import CollectionTopic


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
    """One point of the answer, the statements that show it, and how much it helps."""

    text: str = Field(description="One to four sentences in the question's language, with names and figures.")
    findings: list[int] = Field(default_factory=list, description="Numbers of all statements that show it.")
    score: int = Field(ge=0, le=MOST, description="How much it helps to answer; 0: not at all.")


class PointsWritten(BaseModel):
    """Points, none where nothing helps."""

    reasoning: str = Field(default="", description="In a few sentences: what in these reports bears on the question.")
    points: list[PointWritten] = Field(default_factory=list)


class AnswerPartly(dspy.Signature):
    """Note what some reports give towards the answer to a question about a whole collection of documents.

    You read one portion of the reports; other readers read the others. Somebody who has read none of them then writes
    the answer from the points of all readers, the most helpful first, and sees nothing else: what you do not note is
    lost, and what is vague in your note stays vague in the answer.

    Write several points for a portion that helps, as many as there are different things to say. Each point says one
    thing that stands on its own: who or what, where and when, what is said or done, with names, figures, dates and
    telling details as they are written. A point may draw together several statements ("three of the five interviews
    name cost first"), and then has the numbers of all of them; say how many and which sources, so that points of
    different readers can be added up. Give both sides where statements disagree, and note exceptions to a tendency.
    What is said about something else is no point, however near its words are; nor is anything that no statement says.

    findings are the numbers in brackets before the statements: all that show the point, and no others. A point taken
    from the title or summary of a report has the numbers of the statements that bear it out, if there are any.

    score says how much the point helps whoever answers: 90-100 it answers the question, or a main part of it; 70-89 an
    important part, or strong evidence for one; 40-69 a detail, an example, a differing view that belongs in a full
    answer; 10-39 background; 0 of no help. Compare with what a perfect answer would say, not with the other points of
    this portion: a portion may hold nothing above 30. If nothing in it helps, give no points.

    Example. Question: "What did people hold against the new quay?" Reports: "Quay dispute: Letters on the quay. [4] The
    ferrymen wrote that the new quay would cost eleven of them their work. [7] Una Kerr feared floods in the lower
    street. [9] The quay opened in 1914." Points: "Eleven ferrymen feared to lose their work through the new quay" [4],
    90; "Una Kerr expected floods in the lower street" [7], 80. The date of the opening is no point.

    例：问题“居民对改建渡口有何意见？”，报告“[2] 十二户商家联名反对停航改建。[5] 沈望认为改建后客流会增加三成。”要点：
    “十二户商家联名反对停航改建”[2]，90；“沈望支持改建，预计客流增加三成”[5]，85。"""

    question: str = dspy.InputField()
    reports: list[str] = dspy.InputField(desc="Each a title and a summary, then numbered statements.")
    partial: PointsWritten = dspy.OutputField()


class Partial(Step):
    """A question and some reports → scored points with the findings that show them."""

    step = "partial"
    role = "answer"
    task = AnswerPartly

    async def run(self, reports: Sequence[Offered], gist: CollectionTopic) -> list[PointWritten]:
        """Points in the model's order, as it wrote them."""
        if self.is_offline:
            return points_by_rules(reports, gist)
        shown = [report.written() for report in reports]
        written: PointsWritten = (await self.acall(question=gist.relevance.question.text, reports=shown)).partial
        return shown_by(reports, written.points)


def shown_by(reports: Sequence[Offered], points: Sequence[PointWritten]) -> list[PointWritten]:
    """The points with those of their numbers that findings of these reports have."""
    known = {piece.number for report in reports for _, piece in report.findings}
    return [
        point.model_copy(update={"findings": [one for one in dict.fromkeys(point.findings) if one in known]})
        for point in points
    ]


def points_by_rules(reports: Sequence[Offered], gist: CollectionTopic) -> list[PointWritten]:
    """Each finding's own sentence as a point."""
    pieces = [piece for report in reports for _, piece in report.findings]
    return [
        PointWritten(text=one.text, findings=[one.number], score=one.score) for one in partial_offline(pieces, gist)
    ]
