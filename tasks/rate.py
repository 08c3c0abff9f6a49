"""Rate: how relevant each report is to a question about the whole collection."""

from collections.abc import Mapping, Sequence

from prompts.engine.calls import fitting, rough_tokens
from prompts.engine.effort import TokenLimits
from prompts.rate import Rate, rate_offline
from prompts.text.evidence import Evidence
from prompts.text.relevance import CollectionTopic
from prompts.text.segment import sentences
from storage.graph_records import Report
from tasks.batching import gather_or_cancel, portions
from tasks.reports.near import CommunityChunkIndex, Near
from tasks.reports.tree import Tree
from tasks.step import step

# So many openings fit into one call: the larger the call, the more of each summary is shown.
REPORTS_A_CALL = 60
PER_REPORT = 30  # its number, and its reason and rating in the answer


def rated_free(tree: Tree, near: Near, grounds: CommunityChunkIndex) -> dict[str, float]:
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
async def rate_reports(
    reports: Sequence[Report], free: Mapping[str, float], gist: CollectionTopic, rater: Rate
) -> list[float]:
    """The relevance of each report, 0-1, in order, by its title and the opening of its summary; many in one call."""
    limits = rater.policy.limits
    shown = [
        Evidence(number, report.community, report.title, opening_of(report, limits), prior=free[report.community])
        for number, report in enumerate(reports)
    ]
    sizes = [rating_tokens(report, limits) for report in reports]
    calls = [[shown[place] for place in portion] for portion in portions(sizes, limits.rate)]
    rated = await gather_or_cancel(rater.run(call, gist) for call in calls)
    return [rating for call in rated for rating in call]


def rating_tokens(report: Report, limits: TokenLimits) -> int:
    """About how many tokens a report is when it is rated."""
    return rough_tokens(f"{report.title} {opening_of(report, limits)}") + PER_REPORT


def opening_of(report: Report, limits: TokenLimits) -> str:
    """The first sentences of a report's summary that fit; the first one, cut, where it goes on for long."""
    most = limits.rate // REPORTS_A_CALL
    told = [" ".join(report.summary[start:end].split()) for start, end in sentences(report.summary)]
    opening = " ".join(fitting(told, most))
    words = opening
    while rough_tokens(words) > most:
        words = words[: int(len(words) * most / rough_tokens(words))].rstrip()
    return words if len(words) == len(opening) else f"{words}…"
