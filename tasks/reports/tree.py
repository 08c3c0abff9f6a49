"""Which reports does a question about the whole collection read? Those of a level, or the relevant branches.

Whatever is chosen is an antichain: no report is read together with one above or below it on its branch, so that nothing
is read twice. Source: GraphRAG (arXiv 2404.16130), section 2.6; dynamic selection after the authors' later practice.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from storage.records import Community, Report

# (reports) → how relevant each is to the question, 0-1.
Rate = Callable[[Sequence[Report]], Awaitable[list[float]]]
# A report is read or followed from this share of the best root's rating on.
KEPT_SHARE = 0.5
# So many of the best roots are followed in any case: a question about everything shares few words with any report.
LEAST_ROOTS = 12


@dataclass(frozen=True)
class Tree:
    """Reports by community; `below` leads to the nearest reports under each, `roots` have none above."""

    reports: Mapping[str, Report]
    below: Mapping[str, tuple[str, ...]]
    roots: tuple[str, ...]


@dataclass(frozen=True)
class Selected:
    """The reports to read, the ratings given on the way (by community), and how many reports no one looked at."""

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
    return Tree(known, {name: tuple(sorted(under)) for name, under in below.items()}, tuple(sorted(roots)))


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


async def descend(tree: Tree, rate: Rate) -> Selected:
    """From the roots down, level by level: what is not relevant is left with all that is under it.

    A report gives way to those under it that are relevant too; where none is, it is read itself.
    """
    ratings = dict(zip(tree.roots, await rate([tree.reports[name] for name in tree.roots]), strict=True))
    floor = KEPT_SHARE * max(ratings.values(), default=0.0)
    best = set(sorted(tree.roots, key=lambda name: (-ratings[name], name))[:LEAST_ROOTS])
    front = [name for name in tree.roots if ratings[name] >= floor or name in best]
    read: list[str] = []
    while front:
        under = [name for above in front for name in tree.below.get(above, ())] if floor > 0 else []
        ratings |= zip(under, await rate([tree.reports[name] for name in under]), strict=True) if under else ()
        following: list[str] = []
        for above in front:
            least = max(floor, ratings[above])
            kept = [name for name in tree.below.get(above, ()) if name in ratings and ratings[name] >= least]
            following += kept
            if not kept:
                read.append(above)
        front = following
    return Selected(tuple(tree.reports[name] for name in read), ratings, len(tree.reports) - len(ratings))
