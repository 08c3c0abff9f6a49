"""By which chains of relations are two things tied? The k cheapest: forward, backward, then in either direction."""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain, islice, pairwise
from math import log1p

import networkx as nx

from storage.records import Relation
from tasks.retrieve.facts import GraphFacts

K = 3
MAX_HOPS = 5
MAX_TRIED = 40  # of one kind and pair, those too long included


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
    cheapest first. A step through a hub costs more (1 + log of the degrees), so what everything touches comes last.
    """
    directed = _graph(facts, relations)
    pairs = [(one, two) for one in sources for two in targets if one != two and one in directed and two in directed]
    ways = (
        _cheapest(directed, pairs, k),
        ([*reversed(nodes)] for nodes in _cheapest(directed, [(two, one) for one, two in pairs], k)),
        _cheapest(directed.to_undirected(as_view=True), pairs, k),
    )
    unique = dict.fromkeys(tuple(nodes) for nodes in chain.from_iterable(ways))
    return [_relations(facts, nodes, relations) for nodes in islice(unique, k)]


def _graph(facts: GraphFacts, relations: Collection[str] | None) -> "nx.DiGraph[str]":
    if relations is None and facts.walkable is not None:
        return facts.walkable
    graph: nx.DiGraph[str] = nx.DiGraph()
    for relation in facts.relations.values():
        if relations is None or relation.predicate in relations:
            ends = (relation.source, relation.target)
            graph.add_edge(*ends, cost=1.0 + sum(log1p(facts.entities[end].degree) for end in ends) / 2)
    if relations is None:
        facts.walkable = graph
    return graph


def _cheapest(graph: "nx.Graph[str]", pairs: Iterable[tuple[str, str]], k: int) -> list[list[str]]:
    """The k cheapest paths over all pairs, as nodes."""
    found: list[tuple[float, list[str]]] = []
    for one, two in pairs:
        kept = 0
        try:
            for nodes in islice(nx.shortest_simple_paths(graph, one, two, weight="cost"), MAX_TRIED):
                if len(nodes) <= MAX_HOPS + 1:
                    found.append((nx.path_weight(graph, nodes, "cost"), nodes))
                    kept += 1
                if kept == k:
                    break
        except nx.NetworkXNoPath:
            continue
    return [nodes for _, nodes in sorted(found)[:k]]


def _relations(facts: GraphFacts, nodes: Sequence[str], relations: Collection[str] | None) -> list[Relation]:
    """For each pair of neighbours on a path the heaviest relation between them."""
    steps = []
    for one, two in pairwise(nodes):
        between = (relation for relation in facts.of(one) if two in (relation.source, relation.target))
        steps.append(next(one for one in between if relations is None or one.predicate in relations))
    return steps
