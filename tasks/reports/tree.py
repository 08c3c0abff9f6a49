"""The reports that a question about the whole collection reads: those of a level, or the relevant branches.

Whatever is chosen is an antichain: no report is read together with one above or below it on its branch, so that nothing
is read twice. Source: GraphRAG (arXiv 2404.16130), section 2.6; dynamic selection after the authors' later practice.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from prompts.engine.effort import Policy
from storage.graph_records import Community, Report

# (reports) → how relevant each is to the question, 0-1.
Rate = Callable[[Sequence[Report]], Awaitable[list[float]]]
# How many tokens a report is when it is read.
Size = Callable[[Report], int]
# Without a model's ratings a report is read or followed from this share of the best root's rating on; the best roots
# are in any case.
KEPT_SHARE = 0.25
LEAST_ROOTS = 16
# Of a model's ratings: from "touches the matter" on. Where no root has that the best few are read.
TOUCHES = 0.4
LEAST_READ = 5


@dataclass(frozen=True, slots=True)
class Reach:
    """How many roots are looked at, how many reports on each level below, and how many tokens of reports are read."""

    roots: int
    below: int
    tokens: int


def reach_of(policy: Policy) -> Reach:
    """By effort; what is read are so many calls of the map step."""
    calls = {"low": 1, "medium": 2, "high": 8}[policy.effort]
    roots, below = {"low": (40, 24), "medium": (60, 40), "high": (400, 400)}[policy.effort]
    return Reach(roots, below, calls * policy.limits.map)


@dataclass(frozen=True)
class Tree:
    """Reports by community; `below` leads to the nearest reports under each, `roots` have none above; `members` are
    the entities of each."""

    reports: Mapping[str, Report]
    below: Mapping[str, tuple[str, ...]]
    roots: tuple[str, ...]
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Selected:
    """The reports to read, best first, the ratings given on the way (by community), and how many reports were left
    without a look."""

    reports: tuple[Report, ...]
    ratings: Mapping[str, float]
    pruned: int


def tree_of(communities: Sequence[Community], reports: Sequence[Report]) -> Tree:
    """The reports as a tree; a community without a report is passed through to the one above it."""
    known = {report.community: report for report in reports}
    parents = {community.id: community.parent for community in communities}
    below: dict[str, list[str]] = {}
    roots = []
    for report in reports:
        above = parents.get(report.community)
        while above is not None and above not in known:
            above = parents.get(above)
        if above is None:
            roots.append(report.community)
        else:
            below.setdefault(above, []).append(report.community)
    members = {community.id: community.members for community in communities if community.id in known}
    return Tree(known, {name: tuple(sorted(under)) for name, under in below.items()}, tuple(sorted(roots)), members)


def at_level(tree: Tree, level: int) -> Selected:
    """The reports of a level (0 is the root), with those of branches that end above it."""
    taken: list[Report] = []
    waiting = list(tree.roots)
    while waiting:
        name = waiting.pop(0)
        report = tree.reports[name]
        if report.level >= level or name not in tree.below:
            taken.append(report)
        else:
            waiting += tree.below[name]
    return Selected(tuple(taken), {}, 0)


async def descend(
    tree: Tree, free: Mapping[str, float], size: Size, reach: Reach, rate: Rate | None = None
) -> Selected:
    """From the roots down, level by level: what is not relevant is left with all that is under it.

    `free` are ratings that cost nothing, by community: where there are too many reports they choose those that `rate`
    (a model; None: nobody) is asked about, whose ratings stand. A report gives way to those under it that are at least
    as relevant; where none is, it is read itself. What is read, best first, is within the reach.
    """
    branch: dict[str, float] = {}
    for name in reversed(_downwards(tree)):
        branch[name] = max([free[name], *(branch[under] for under in tree.below.get(name, ()))])
    roots = sorted(tree.roots, key=lambda name: (-branch[name], name))[: reach.roots]
    ratings = await _rated(tree, roots, free, rate)
    best = sorted(roots, key=lambda name: (-ratings[name], -free[name], name))
    if rate is None:
        floor = KEPT_SHARE * max(ratings.values(), default=0.0)
        front = [name for name in roots if ratings[name] >= floor or name in best[:LEAST_ROOTS]]
    else:
        floor = TOUCHES
        front = [name for name in roots if ratings[name] >= floor] or best[:LEAST_READ]
    read: list[str] = []
    while front:
        under = [name for above in front for name in tree.below.get(above, ())]
        asked = sorted(under, key=lambda name: (-branch[name], name))[: reach.below] if floor > 0 else []
        ratings |= await _rated(tree, asked, free, rate)
        following: list[str] = []
        for above in front:
            least = max(floor, ratings[above])
            kept = [name for name in tree.below.get(above, ()) if name in asked and ratings[name] >= least]
            following += kept
            if not kept:
                read.append(above)
        front = following
    chosen = _fitting(sorted(read, key=lambda name: (-ratings[name], -free[name], name)), tree, size, reach)
    return Selected(tuple(tree.reports[name] for name in chosen), ratings, len(tree.reports) - len(ratings))


def weightiest(tree: Tree, free: Mapping[str, float], size: Size, reach: Reach) -> Selected:
    """The roots that count most, for a question about everything: none of them is more to the point than another."""
    roots = sorted(tree.roots, key=lambda name: (-free[name], name))
    chosen = _fitting(roots, tree, size, reach)
    return Selected(tuple(tree.reports[name] for name in chosen), {}, len(tree.reports) - len(chosen))


def _downwards(tree: Tree) -> list[str]:
    """All reports, each before those under it."""
    found = list(tree.roots)
    for name in found:
        found += tree.below.get(name, ())
    return found


async def _rated(tree: Tree, names: Sequence[str], free: Mapping[str, float], rate: Rate | None) -> dict[str, float]:
    if rate is None or not names:
        return {name: free[name] for name in names}
    return dict(zip(names, await rate([tree.reports[name] for name in names]), strict=True))


def _fitting(names: Sequence[str], tree: Tree, size: Size, reach: Reach) -> list[str]:
    """The first of these that fit; one at least."""
    room, chosen = reach.tokens, list[str]()
    for name in names:
        room -= size(tree.reports[name])
        if chosen and room < 0:
            break
        chosen.append(name)
    return chosen
