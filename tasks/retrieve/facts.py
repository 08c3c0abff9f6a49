"""Which relations touch an entity, and by which chains are two entities tied? (PolyG, sections 3-4)"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import log1p

import networkx as nx

from storage.records import Entity, Occurrence, Relation

MAX_HOPS = 5
MAX_TRIED = 40


class GraphFacts:
    """The relations of a generation, for looking up and walking; immutable once made."""

    def __init__(self, entities: Sequence[Entity], relations: Sequence[Relation], places: Sequence[Occurrence]) -> None:
        self.entities = {entity.id: entity for entity in entities}
        self.relations = {relation.id: relation for relation in relations}
        self.places: dict[str, list[Occurrence]] = defaultdict(list)
        self.in_chunk: dict[str, list[str]] = defaultdict(list)
        for place in places:
            self.places[place.item].append(place)
            self.in_chunk[place.chunk].append(place.item)
        self.touching: dict[str, list[Relation]] = defaultdict(list)
        for relation in relations:
            self.touching[relation.source].append(relation)
            self.touching[relation.target].append(relation)
        self._graph: nx.Graph[str] | None = None

    def of(self, entity: str) -> list[Relation]:
        """The relations into and out of an entity, heaviest first."""
        return sorted(self.touching.get(entity, ()), key=lambda relation: (-relation.weight, relation.id))

    def inside(self, chunks: Iterable[str]) -> list[Relation]:
        """The relations that some chunks state, in the order of the chunks."""
        found = dict.fromkeys(item for chunk in chunks for item in self.in_chunk.get(chunk, ()))
        return [self.relations[item] for item in found]

    def paths(self, sources: Sequence[str], targets: Sequence[str], k: int = 3) -> list[list[Relation]]:
        """Up to k chains of relations from one of the sources to one of the targets, cheapest first.

        A step through a hub costs more (1 + log of its degree): chains through what everything touches come last.
        """
        graph = self._undirected()
        found: list[tuple[float, list[str]]] = []
        for source in sources:
            for target in targets:
                if source != target and source in graph and target in graph:
                    found += self._between(graph, source, target, k)
        found.sort(key=lambda item: (item[0], item[1]))
        unique = {tuple(nodes): nodes for _, nodes in found}
        return [self._steps(nodes) for nodes in list(unique.values())[:k]]

    def _between(self, graph: "nx.Graph[str]", source: str, target: str, k: int) -> list[tuple[float, list[str]]]:
        found: list[tuple[float, list[str]]] = []
        try:
            for tried, nodes in enumerate(nx.shortest_simple_paths(graph, source, target, weight="cost")):
                if tried >= MAX_TRIED or len(found) >= k:
                    break
                if len(nodes) <= MAX_HOPS + 1:
                    found.append((nx.path_weight(graph, nodes, "cost"), nodes))
        except nx.NetworkXNoPath:
            return []
        return found

    def _undirected(self) -> "nx.Graph[str]":
        if self._graph is None:
            graph: nx.Graph[str] = nx.Graph()
            for relation in self.relations.values():
                ends = (relation.source, relation.target)
                penalty = sum(log1p(self.entities[end].degree) for end in ends) / 2
                graph.add_edge(*ends, cost=1.0 + penalty)
            self._graph = graph
        return self._graph

    def _steps(self, nodes: Sequence[str]) -> list[Relation]:
        """For each pair of neighbours on a path the heaviest relation between them."""
        steps = []
        for one, two in pairwise(nodes):
            between = [relation for relation in self.of(one) if two in (relation.source, relation.target)]
            steps.append(between[0])
        return steps
