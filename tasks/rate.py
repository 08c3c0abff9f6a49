"""How relevant is each report? Offline that costs nothing; a model rates only where it spares more than it costs."""

from collections.abc import Mapping, Sequence

from prompts.engine.calls import rough_tokens
from prompts.language.segment import sentences
from prompts.rate import Rate, rate_offline
from prompts.reading.evidence import Evidence
from prompts.reading.gist import Gist
from storage.records import Report
from tasks.portions import portions
from tasks.reports.near import Grounds, Near
from tasks.reports.tree import Tree
from tasks.step import step
from tasks.together import together

CALL_TOKENS = 2_500  # of titles and openings
OPENING_TOKENS = 45
PER_REPORT = 12  # its number, and its rating in the answer


def rated_free(tree: Tree, near: Near, grounds: Grounds) -> dict[str, float]:
    """A rating (0-1) of every report, by community, without a model: what lies near to the question in its community,
    and its words; where the question asks about everything, how much it counts in the collection."""
    if not near.gist.asked:
        return {name: report.rating / 10 for name, report in tree.reports.items()}
    held = grounds.held(near.chunks)
    return {
        name: rate_offline(Evidence(0, name, report.title, report.summary, prior=held[name]), near.gist)
        for name, report in tree.reports.items()
    }


@step("rate")
async def rate_reports(reports: Sequence[Report], free: Mapping[str, float], gist: Gist, rater: Rate) -> list[float]:
    """The relevance of each report, 0-1, in order, by its title and its first sentence; many in one call."""
    shown = [
        Evidence(number, report.community, report.title, opening_of(report), prior=free[report.community])
        for number, report in enumerate(reports)
    ]
    sizes = [rating_tokens(report) for report in reports]
    calls = [[shown[place] for place in portion] for portion in portions(sizes, CALL_TOKENS)]
    rated = await together(rater.run(call, gist) for call in calls)
    return [rating for call in rated for rating in call]


def rating_tokens(report: Report) -> int:
    """About how many tokens a report is when it is rated."""
    return rough_tokens(f"{report.title} {opening_of(report)}") + PER_REPORT


def opening_of(report: Report) -> str:
    """The first sentence of a report's summary, cut where it goes on for long."""
    first = next((report.summary[start:end] for start, end in sentences(report.summary)), "")
    words = " ".join(first.split())
    while rough_tokens(words) > OPENING_TOKENS:
        words = words[: int(len(words) * OPENING_TOKENS / rough_tokens(words))].rstrip()
    return words if len(words) == len(" ".join(first.split())) else f"{words}…"
