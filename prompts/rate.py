"""Rate: how relevant each report is to a question about the whole collection (GraphRAG, dynamic selection)."""

from collections.abc import Mapping, Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.messages import NotAsAsked
from prompts.engine.step import Step
from prompts.offline.partial import rate_offline
from prompts.text.evidence import Evidence
from prompts.text.relevance import CollectionTopic

__all__ = ["MOST", "Rate", "RateReports", "Rating", "Ratings", "rate_offline"]

MOST = 10


class Rating(BaseModel):
    """One report's relevance."""

    report: int
    reason: str = Field(default="", description="At most ten words: what it may give.")
    rating: float = Field(ge=0, le=MOST)


class Ratings(BaseModel):
    """A rating for every report."""

    ratings: list[Rating] = Field(default_factory=list)


class RateReports(dspy.Signature):
    """Rate how much reading each report would help to answer a question.

    The reports are about parts of a collection of documents; only the title and the opening of each are shown. What you
    rate low is left out, with all narrower reports under it; what you rate high is read in full, or followed down to
    narrower reports. A report that is left out wrongly is missing in the answer, one that is read in vain only costs a
    little: be generous where an opening leaves it open.

    The scale: 0 about something else, nothing towards an answer is to be expected. 2 shares a word or a thing with the
    question, no more. 4 touches the matter: a detail, an example, a contrast may be in it. 6 holds a part of the
    answer. 8 is largely about what is asked. 10 is about exactly that.

    Judge what the report is likely to hold, not how its words match: other words, a special case of what is asked, a
    part of a whole, the opposite side all count. A question about everything ("What are the main themes?") fits every
    report that says something of weight; rate by weight then. Rate each report by itself, and every one, by its number.

    Example. Question: "How did people earn a living by the river?" Reports: "[0] Ferry trade at Holm: Three families
    ran the ferries." "[1] Flood of 1908: The flood took the lower quay." "[2] Choral society: Its concerts." Ratings: 0
    "the ferrymen's trade", 9; 1 "losses to those at the quay, perhaps", 4; 2 "leisure, not work", 0.

    例：问题“渡口居民靠什么为生？”，报告“[0] 青石渡口的船家：三户人家世代摆渡。”评为9，理由“摆渡的生计”。"""

    question: str = dspy.InputField()
    reports: list[str] = dspy.InputField(desc="Each as [number] title: opening.")
    rated: Ratings = dspy.OutputField()


class Rate(Step):
    """A question and reports (title and opening) → the relevance of each, 0-1, in one call."""

    step = "rate"
    role = "filter"
    task = RateReports

    async def run(self, reports: Sequence[Evidence], gist: CollectionTopic) -> list[float]:
        """In the order of the reports, whose text is the opening; `prior` (0-1) is how much of what lies near to the
        question stands in the report's community."""
        if self.is_offline:
            return [rate_offline(report, gist) for report in reports]
        shown = [f"[{number}] {report.title}: {report.text}" for number, report in enumerate(reports)]
        rated: Ratings = (await self.acall(question=gist.relevance.question.text, reports=shown)).rated
        given = {one.report: one.rating for one in rated.ratings}
        return [given[number] / MOST for number in range(len(reports))]

    def check(self, outputs: Mapping[str, object], inputs: Mapping[str, object]) -> None:
        """Every report has a rating."""
        rated, reports = outputs["rated"], inputs["reports"]
        if not isinstance(rated, Ratings) or not isinstance(reports, list):
            raise TypeError(f"ratings of a list of reports, not {rated!r} of {reports!r}")
        missing = sorted(set(range(len(reports))) - {one.report for one in rated.ratings})
        if missing:
            raise NotAsAsked(f"no rating for the reports {', '.join(map(str, missing))}")
