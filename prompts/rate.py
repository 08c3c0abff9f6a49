"""How relevant is each report to a question about the whole collection? (GraphRAG, section 2.6, dynamic selection)"""

from collections.abc import Mapping, Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.messages import NotAsAsked
from prompts.engine.step import Step
from prompts.reading.evidence import Evidence
from prompts.reading.gist import Gist

MOST = 10
# What the report's own words count offline beside what lies near to the question in its community.
OWN_WORDS = 0.35


class Rating(BaseModel):
    """One report's relevance."""

    report: int
    rating: float = Field(ge=0, le=MOST)


class Ratings(BaseModel):
    """A rating for every report."""

    ratings: list[Rating] = Field(default_factory=list)


class RateReports(dspy.Signature):
    """Rate how much each report would help to answer the question: 0 not at all, 5 touches it, 10 is about it."""

    question: str = dspy.InputField()
    reports: list[str] = dspy.InputField(desc="Numbered titles and openings.")
    rated: Ratings = dspy.OutputField()


class Rate(Step):
    """A question and reports (title and opening) → the relevance of each, 0-1, in one call."""

    step = "rate"
    role = "filter"
    task = RateReports

    async def run(self, reports: Sequence[Evidence], gist: Gist) -> list[float]:
        """In the order of the reports, whose text is the opening; `prior` (0-1) is how much of what lies near to the
        question stands in the report's community."""
        if self.is_offline:
            return [rate_offline(report, gist) for report in reports]
        shown = [f"[{number}] {report.title}: {report.text}" for number, report in enumerate(reports)]
        rated: Ratings = (await self.acall(question=gist.relevance.ask.text, reports=shown)).rated
        given = {one.report: one.rating for one in rated.ratings}
        return [given[number] / MOST for number in range(len(reports))]

    def check(self, outputs: Mapping[str, object], inputs: Mapping[str, object]) -> None:
        rated, reports = outputs["rated"], inputs["reports"]
        if not isinstance(rated, Ratings) or not isinstance(reports, list):
            raise TypeError(f"ratings of a list of reports, not {rated!r} of {reports!r}")
        missing = sorted(set(range(len(reports))) - {one.report for one in rated.ratings})
        if missing:
            raise NotAsAsked(f"no rating for the reports {', '.join(map(str, missing))}")


def rate_offline(report: Evidence, gist: Gist) -> float:
    """What lies near to the question in the report's community, and the question's words in the report (0-1)."""
    return (1 - OWN_WORDS) * report.prior + OWN_WORDS * gist.covered(f"{report.title} {report.text}")
