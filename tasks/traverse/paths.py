"""Paths: the k cheapest chains of relations between two things, forward, backward, then in either direction."""

from collections.abc import Collection, Sequence
from itertools import islice, pairwise
from typing import get_args

from storage.graph_records import Relation
from tasks.retrieve.facts import Direction, GraphFacts, Ways

K = 3


def shortest_paths(
    facts: GraphFacts,
    sources: Sequence[str],
    targets: Sequence[str],
    k: int = K,
    relations: Collection[str] | None = None,
) -> list[list[Relation]]:
    """Up to k chains from one of the sources to one of the targets, each through other entities; `relations` are the
    only ones to walk on.

    Those along the relations' own direction come first, then those against it, then mixed ones; within each the
    cheapest first. A step through a hub costs more, so that what everything touches comes last.
    """
    ways = facts.ways
    if relations is not None:
        ways = Ways(facts.entities, (one for one in facts.relations.values() if one.predicate in relations))
    unique: dict[tuple[str, ...], None] = {}
    directions: tuple[Direction, ...] = get_args(Direction)
    for direction in directions:
        found = [chain for one in sources for two in targets for chain in ways.cheapest(one, two, direction, k)]
        unique.update(dict.fromkeys(tuple(nodes) for _, nodes in sorted(found)))
    return [_relations(facts, nodes, relations) for nodes in islice(unique, k)]


def _relations(facts: GraphFacts, nodes: Sequence[str], relations: Collection[str] | None) -> list[Relation]:
    """For each pair of neighbours on a path the heaviest relation between them."""
    steps = []
    for one, two in pairwise(nodes):
        between = (relation for relation in facts.of(one) if two in (relation.source, relation.target))
        steps.append(next(one for one in between if relations is None or one.predicate in relations))
    return steps
