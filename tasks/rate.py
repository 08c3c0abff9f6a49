"""How relevant is each report? Many are rated in one call, by title and summary alone."""

from collections.abc import Sequence

from prompts.engine.calls import rough_tokens
from prompts.rate import Rate
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance
from storage.records import Report
from tasks.portions import portions
from tasks.step import step
from tasks.together import together

CALL_TOKENS = 2_000  # of titles and summaries


@step("rate")
async def rate_reports(reports: Sequence[Report], relevance: Relevance, rater: Rate) -> list[float]:
    """The relevance of each report, 0-1, in order."""
    shown = [
        Evidence(number, report.community, report.title, report.summary, prior=report.rating / 10)
        for number, report in enumerate(reports)
    ]
    sizes = [rough_tokens(f"{one.title} {one.text}") for one in shown]
    calls = [[shown[place] for place in portion] for portion in portions(sizes, CALL_TOKENS)]
    rated = await together(rater.run(call, relevance) for call in calls)
    return [rating for call in rated for rating in call]
