"""Facts: which relations touch an entity, which ways lead on from it, and where each relation is stated."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import log1p

import scipy  # its parts are loaded at their first use

from storage.graph_records import Entity, Occurrence, Relation
from storage.records import by_key


class WeightedEdges:
    """The relations as weighted edges between entities, whatever their direction; immutable.

    A step costs 1 and the mean of log(1 + degree) of its ends.
    """

    def __init__(self, entities: Mapping[str, Entity], relations: Iterable[Relation]) -> None:
        ends = ((relation.source, relation.target) for relation in relations if relation.source != relation.target)
        pairs = sorted({(min(pair), max(pair)) for pair in ends})
        self.nodes = sorted({end for pair in pairs for end in pair})
        self.place = {node: index for index, node in enumerate(self.nodes)}
        penalty = {node: log1p(entities[node].degree) / 2 for node in self.nodes}
        rows = [self.place[node] for node, _ in pairs]
        columns = [self.place[node] for _, node in pairs]
        costs = [1.0 + penalty[first] + penalty[second] for first, second in pairs]
        self._steps = scipy.sparse.csr_matrix((costs, (rows, columns)), shape=(len(self.nodes), len(self.nodes)))

    def cheapest(self, source: str, target: str, k: int) -> list[tuple[float, list[str]]]:
        """The k cheapest chains with their cost, no node twice (Yen 1971); all if fewer."""
        if source == target or source not in self.place or target not in self.place:
            return []
        start, goal = self.place[source], self.place[target]
        from scipy.sparse.csgraph import yen  # with the linear algebra that it loads, for paths alone

        costs, before = yen(self._steps, start, goal, k, directed=False, return_predecessors=True)
        chains: list[tuple[float, list[str]]] = []
        for cost, earlier in zip(costs.tolist(), before, strict=True):
            chain = [goal]
            while chain[-1] != start:
                chain.append(int(earlier[chain[-1]]))
            chains.append((cost, [self.nodes[place] for place in reversed(chain)]))
        return chains


class GraphFacts:
    """The relations of a generation, for looking up and walking; immutable once made."""

    def __init__(self, entities: Sequence[Entity], relations: Sequence[Relation], places: Sequence[Occurrence]) -> None:
        self.entities = {entity.id: entity for entity in entities}
        self.relations = {relation.id: relation for relation in relations}
        self.places = defaultdict(list, by_key((place.item, place) for place in places))
        self.touching = by_key((end, relation) for relation in relations for end in (relation.source, relation.target))

    def of(self, entity: str) -> list[Relation]:
        """The relations into and out of an entity, heaviest first."""
        return sorted(self.touching.get(entity, ()), key=lambda relation: (-relation.weight, relation.id))

    @cached_property
    def ways(self) -> WeightedEdges:
        """All relations as weighted edges."""
        return WeightedEdges(self.entities, self.relations.values())

    def stated_in(self, chunks: Iterable[str]) -> "GraphFacts":
        """Only the relations that some chunks state, with those places alone; no entity tells what others say of it."""
        chunk_ids = set(chunks)
        places = [place for stated in self.places.values() for place in stated if place.chunk in chunk_ids]
        relations = [self.relations[item] for item in dict.fromkeys(place.item for place in places)]
        bare = {
            end: replace(self.entities[end], description="")
            for relation in relations
            for end in (relation.source, relation.target)
        }
        return GraphFacts(list((self.entities | bare).values()), relations, places)

    def along(self, entity: str, predicate: str, inverse: bool = False) -> list[Relation]:
        """The relations of one predicate out of an entity (`inverse`: into it), heaviest first."""
        return self._by_way.get(entity, {}).get((predicate, inverse), [])

    def is_a(self, entity: str, kind: str) -> bool:
        """Whether an entity is of a kind: its own, or one that a relation ties it to (`type`, `gender`)."""
        targets = (relation.target for relation in self.touching.get(entity, ()) if relation.source == entity)
        return self.entities[entity].kind == kind or any(self.entities[end].name == kind for end in targets)

    def leaving(self, entities: Iterable[str]) -> list[tuple[str, bool]]:
        """The ways that lead on from some entities: (predicate, whether against its direction), in order."""
        ways = self._by_way
        return sorted({way for entity in entities for way in ways.get(entity, {})})

    @cached_property
    def _by_way(self) -> dict[str, dict[tuple[str, bool], list[Relation]]]:
        ways: dict[str, dict[tuple[str, bool], list[Relation]]] = defaultdict(lambda: defaultdict(list))
        for relation in sorted(self.relations.values(), key=lambda relation: (-relation.weight, relation.id)):
            ways[relation.source][relation.predicate, False].append(relation)
            ways[relation.target][relation.predicate, True].append(relation)
        return ways
