"""Selecting the reports that a question about the whole collection reads.

They are those of a level, or of the relevant branches. No report is read together with one above or
below it, so that nothing is read twice. Source: GraphRAG (arXiv 2404.16130), section 2.6, and for
the dynamic selection the authors' later practice: a model rates reports by their openings, or the
passages near to the question rate their communities.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from prompts.engine.effort import Policy, TokenLimits
from prompts.engine.helper import helped
from prompts.engine.messages import first_fitting, first_tokens, portions, rough_tokens
from prompts.read_reports import Rate, rate_offline
from prompts.text.evidence import Evidence
from prompts.text.relevance import CollectionTopic
from prompts.text.segment import sentences
from storage.graph_records import Community, Report
from storage.records import by_key
from tasks.batches import gather_or_cancel
from tasks.read_reports.near import CommunityChunkIndex, NearPassages
from tasks.retrying import BRIEF
from tasks.step import step

# A rating call has room for so many openings of reports, each with an equal share of its tokens.
REPORTS_A_CALL = 60
PER_REPORT = 30  # tokens: its number, and its reason and rating in the answer
# Rates how relevant reports are to the question, 0-1; None: unrated.
ReportRater = Callable[[Sequence[Report]], Awaitable[list[float | None]]]
# Returns how many tokens a report has when it is read.
Size = Callable[[Report], int]
# Returns the reports of communities, in order.
Reader = Callable[[Sequence[str]], Sequence[Report]]
READ_AT_ONCE = 100
MOST_RATED = 4_000  # reports whose words are compared, of the communities nearest to the question
# Without a model a report is followed if it has this share of the best root's rating; so are the
# best roots in any case.
KEPT_SHARE = 0.25
LEAST_ROOTS = 16
# With a model's ratings: those from "touches the matter" on, or else the best few roots.
TOUCHES = 0.4
LEAST_READ = 5
UNRATED = "unrated reports are read in the order of the search"


@dataclass(frozen=True, slots=True)
class Reach:
    """How many roots and reports on each level below are rated, and how many tokens are read."""

    roots: int
    below: int
    tokens: int


def reach_of(policy: Policy) -> Reach:
    """Return the reach of an effort; `tokens` fills one, two or eight calls of the map step."""
    calls = {"low": 1, "medium": 2, "high": 8}[policy.effort]
    roots, below = {"low": (40, 24), "medium": (60, 40), "high": (400, 400)}[policy.effort]
    return Reach(roots, below, calls * policy.limits.map)


@dataclass(frozen=True)
class ReportTree:
    """The reports by community, each with the nearest ones above and below it.

    `roots` have none above them. `ratings` are those of the reports themselves (0-10), `members`
    the entities of each; `read` loads reports.
    """

    ratings: Mapping[str, float]
    levels: Mapping[str, int]
    above: Mapping[str, str | None]
    below: Mapping[str, Sequence[str]]
    roots: Sequence[str]
    members: Mapping[str, tuple[str, ...]]
    read: Reader

    def in_turn(self, names: Sequence[str]) -> Iterator[Report]:
        """Load reports in portions, for a caller that may not need all of them."""
        for start in range(0, len(names), READ_AT_ONCE):
            yield from self.read(names[start : start + READ_AT_ONCE])


@dataclass(frozen=True)
class SelectedReports:
    """The reports to read, best first, the ratings given to reports, and the number left unseen."""

    reports: tuple[Report, ...]
    ratings: Mapping[str, float]
    pruned: int


def tree_of(
    communities: Sequence[Community], ratings: Mapping[str, float], read: Reader
) -> ReportTree:
    """Build the tree of the reports with these ratings; other communities are skipped."""
    parents = {community.id: community.parent for community in communities}
    above: dict[str, str | None] = {}
    for name in ratings:
        parent = parents.get(name)
        while parent is not None and parent not in ratings:
            parent = parents.get(parent)
        above[name] = parent
    below = by_key((parent, name) for name, parent in sorted(above.items()) if parent is not None)
    reported = [community for community in communities if community.id in ratings]
    return ReportTree(
        ratings=ratings,
        levels={community.id: community.level for community in reported},
        above=above,
        below=below,
        roots=sorted(name for name, parent in above.items() if parent is None),
        members={community.id: community.members for community in reported},
        read=read,
    )


def at_level(tree: ReportTree, level: int) -> SelectedReports:
    """Select the reports of a level (0 is the root), and those of branches that end above it."""
    chosen: list[str] = []
    waiting = list(tree.roots)
    while waiting:
        name = waiting.pop(0)
        if tree.levels[name] >= level or name not in tree.below:
            chosen.append(name)
        else:
            waiting += tree.below[name]
    return SelectedReports(tuple(tree.read(chosen)), {}, 0)


async def descend(
    tree: ReportTree,
    estimates: Mapping[str, float],
    size: Size,
    reach: Reach,
    rate: ReportRater | None = None,
) -> SelectedReports:
    """Select reports from the roots down; what is not relevant is left with all that is below it.

    `estimates` are ratings without a model, by community (0 if missing). They choose the reports
    that `rate` (a model, if any) is asked about, whose ratings are then decisive. A report gives
    way to those below it that are at least as relevant; if there are none, it is read itself.
    Reports that the model leaves unrated come after the rated ones, in the order of the estimates.
    """
    branch: dict[str, float] = defaultdict(float)
    for name, estimate in estimates.items():
        above: str | None = name
        while above is not None and branch[above] < estimate:
            branch[above] = estimate
            above = tree.above[above]
    likely = [name for name, best in branch.items() if best > 0 and tree.above[name] is None]
    roots = sorted(likely, key=lambda name: (-branch[name], name))[: reach.roots]
    roots += islice((name for name in tree.roots if not branch[name]), reach.roots - len(roots))
    given = await _rated(tree, roots, estimates, rate)
    ratings = _with_unrated(given)
    best = sorted(roots, key=lambda name: (-ratings[name], -estimates.get(name, 0.0), name))
    if rate is None:
        floor = KEPT_SHARE * max(ratings.values(), default=0.0)
        front = [name for name in roots if ratings[name] >= floor or name in best[:LEAST_ROOTS]]
    else:
        floor = TOUCHES
        front = [name for name in roots if ratings[name] >= floor] or best[:LEAST_READ]
    read: list[str] = []
    while front:
        under = [name for above in front for name in tree.below.get(above, ())]
        asked = (
            sorted(under, key=lambda name: (-branch[name], name))[: reach.below]
            if floor > 0
            else []
        )
        asked_ratings = await _rated(tree, asked, estimates, rate)
        given |= asked_ratings
        rated = _with_unrated(asked_ratings)
        ratings |= rated
        following: list[str] = []
        for above in front:
            least = max(floor, ratings[above])
            relevant = [
                name for name in tree.below.get(above, ()) if rated.get(name, -1.0) >= least
            ]
            following += relevant
            if not relevant:
                read.append(above)
        front = following
    read.sort(key=lambda name: (-ratings[name], -estimates.get(name, 0.0), name))
    chosen = first_fitting(tree.in_turn(read), size, reach.tokens)
    known = {name: rating for name, rating in given.items() if rating is not None}
    return SelectedReports(tuple(chosen), known, len(tree.ratings) - len(ratings))


def weightiest(
    tree: ReportTree, estimates: Mapping[str, float], size: Size, reach: Reach
) -> SelectedReports:
    """Select the roots with the best estimates, for a question about everything."""
    roots = sorted(tree.roots, key=lambda name: (-estimates[name], name))
    chosen = first_fitting(tree.in_turn(roots), size, reach.tokens)
    return SelectedReports(tuple(chosen), {}, len(tree.ratings) - len(chosen))


def _with_unrated(given: Mapping[str, float | None]) -> dict[str, float]:
    """Rate what the model left unrated as the least that is read: it may still help."""
    return {name: TOUCHES if rating is None else rating for name, rating in given.items()}


async def _rated(
    tree: ReportTree, names: Sequence[str], estimates: Mapping[str, float], rate: ReportRater | None
) -> dict[str, float | None]:
    if rate is None or not names:
        return {name: estimates.get(name, 0.0) for name in names}
    return dict(zip(names, await rate(tree.read(names)), strict=True))


# --- ratings --------------------------------------------------------------------------------------


def estimated_ratings(
    tree: ReportTree, near: NearPassages, grounds: CommunityChunkIndex
) -> dict[str, float]:
    """Estimate ratings (0-1) of reports by their words and the passages of their communities.

    For a question about everything they are the reports' own ratings. Missing ones count as 0.
    """
    if not near.topic.asked:
        return {name: rating / 10 for name, rating in tree.ratings.items()}
    held = grounds.held(near.chunks, MOST_RATED)
    return {
        report.community: rate_offline(
            Evidence(
                0, report.community, report.title, report.summary, prior=held[report.community]
            ),
            near.topic,
        )
        for report in tree.read(list(held))
    }


@step("rate", BRIEF, asks_model=True)
async def rate_reports(
    reports: Sequence[Report], estimates: Mapping[str, float], topic: CollectionTopic, rater: Rate
) -> list[float | None]:
    """Rate the relevance of reports, 0-1, by their titles and openings, many in one call.

    None stands for those that the model leaves unrated.
    """
    limits = rater.policy.limits
    openings = [
        Evidence(
            number,
            report.community,
            report.title,
            opening_of(report, limits),
            prior=estimates.get(report.community, 0.0),
        )
        for number, report in enumerate(reports)
    ]
    sizes = (rating_tokens(report, limits) for report in reports)
    calls = portions(openings, sizes, limits.rate)
    rated = await gather_or_cancel(_ratings(call, topic, rater) for call in calls)
    return [rating for call in rated for rating in call]


async def _ratings(
    openings: Sequence[Evidence], topic: CollectionTopic, rater: Rate
) -> list[float | None]:
    """Rate in one call; the trace says if the answer leaves some out."""
    unrated: list[float | None] = [None] * len(openings)
    ratings = await helped(
        rater,
        lambda step: step.run(openings, topic),
        UNRATED,
        otherwise=lambda: unrated,
        wanted=True,
    )
    if None in ratings and ratings is not unrated:
        left_out = f"{ratings.count(None)} of {len(openings)} reports have no rating"
        rater.models.meter.degrade(rater.step, left_out, UNRATED)
    return ratings


def rating_tokens(report: Report, limits: TokenLimits) -> int:
    """Estimate the tokens of a report when it is rated."""
    return rough_tokens(f"{report.title} {opening_of(report, limits)}") + PER_REPORT


def opening_of(report: Report, limits: TokenLimits) -> str:
    """Return the first sentences of a report's summary that fit; a long first one is cut."""
    most = limits.rate // REPORTS_A_CALL
    texts = [
        " ".join(report.summary[start:end].split()) for start, end in sentences(report.summary)
    ]
    return first_tokens(" ".join(first_fitting(texts, rough_tokens, most)), most)
