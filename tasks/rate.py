"""How relevant is each report? Many are rated in one call, by title and summary alone."""

from collections.abc import Sequence

from prompts.engine.calls import rough_tokens
from prompts.rate import Rate
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance
from storage.records import Report
from tasks.step import step
from tasks.together import together

CALL_TOKENS = 2_000  # of titles and summaries


@step("rate")
async def rate_reports(reports: Sequence[Report], relevance: Relevance, rater: Rate) -> list[float]:
    """The relevance of each report, 0-1, in order."""
    calls: list[list[Evidence]] = []
    room = 0
    for number, report in enumerate(reports):
        size = rough_tokens(f"{report.title} {report.summary}")
        if not calls or size > room:
            calls.append([])
            room = CALL_TOKENS
        calls[-1].append(Evidence(number, report.community, report.title, report.summary, prior=report.rating / 10))
        room -= size
    rated = await together(rater.run(call, relevance) for call in calls)
    return [rating for call in rated for rating in call]
