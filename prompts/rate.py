"""How relevant is each report to a question about the whole collection? (GraphRAG, section 2.6, dynamic selection)"""

from collections.abc import Mapping, Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.messages import NotAsAsked
from prompts.engine.step import Step
from prompts.language.concepts import concept_terms
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance

MOST = 10
# How much of an offline rating is the report's own weight in the collection.
WEIGHT = 0.2
_OF_ALL = frozenset(
    term
    for word in (
        "main major key central overall common general important theme topic subject issue idea point document text "
        "corpus collection data set file source content report discuss cover talk speak about appear across summary "
        "summarise overview 主题 话题 内容 文档 文件 资料 主要 总体 整体 概述 总结 讨论 涉及 重要"
    ).split()
    for term in concept_terms(word)
)


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
    reports: list[str] = dspy.InputField(desc="Numbered titles and summaries.")
    rated: Ratings = dspy.OutputField()


class Rate(Step):
    """A question and reports (title and summary) → the relevance of each, 0-1, in one call."""

    step = "rate"
    role = "filter"
    task = RateReports

    async def run(self, reports: Sequence[Evidence], relevance: Relevance) -> list[float]:
        """In the order of the reports, whose text is the summary; `relevance` judges for the question."""
        if self.is_offline:
            return [rate_offline(report, relevance) for report in reports]
        shown = [f"[{number}] {report.title}: {report.text}" for number, report in enumerate(reports)]
        rated: Ratings = (await self.acall(question=relevance.ask.text, reports=shown)).rated
        given = {one.report: one.rating for one in rated.ratings}
        return [given[number] / MOST for number in range(len(reports))]

    def check(self, outputs: Mapping[str, object], inputs: Mapping[str, object]) -> None:
        rated, reports = outputs["rated"], inputs["reports"]
        if not isinstance(rated, Ratings) or not isinstance(reports, list):
            raise TypeError(f"ratings of a list of reports, not {rated!r} of {reports!r}")
        missing = sorted(set(range(len(reports))) - {one.report for one in rated.ratings})
        if missing:
            raise NotAsAsked(f"no rating for the reports {', '.join(map(str, missing))}")


def rate_offline(report: Evidence, relevance: Relevance) -> float:
    """The share of the question's words, by their rarity, that the report has, and a fifth of its own weight (0-1)."""
    return (1 - WEIGHT) * specific_coverage(report, relevance) + WEIGHT * report.prior


def specific_coverage(piece: Evidence, relevance: Relevance) -> float:
    """Coverage of the question's words; 0 where they speak of nothing but a collection ("the main themes")."""
    return 0.0 if speaks_of_all(relevance) else relevance.judge(piece).coverage


def speaks_of_all(relevance: Relevance) -> bool:
    """Whether a question asks about the collection as such, and names nothing in it."""
    return not relevance.names and not set(relevance.cues) - _OF_ALL
