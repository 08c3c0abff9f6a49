"""Facts: which relations touch an entity, which ways lead on from it, and where each relation is
stated.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from math import log1p

import scipy
from scipy.sparse.csgraph import yen

from storage.columns import ById, column_of, with_column
from storage.graph_records import Entity, Occurrence, Relation
from storage.records import by_key


class WeightedEdges:
    """The relations as weighted edges between entities, whatever their direction; immutable.

    A step costs 1 and the mean of log(1 + degree) of its ends.
    """

    def __init__(self, entities: Mapping[str, Entity], ends: Iterable[tuple[str, str]]) -> None:
        """`ends` are source and target of each relation."""
        pairs = sorted({(min(pair), max(pair)) for pair in ends if pair[0] != pair[1]})
        self.nodes = sorted({end for pair in pairs for end in pair})
        self.place = {node: index for index, node in enumerate(self.nodes)}
        penalty = {node: log1p(entities[node].degree) / 2 for node in self.nodes}
        rows = [self.place[node] for node, _ in pairs]
        columns = [self.place[node] for _, node in pairs]
        costs = [1.0 + penalty[first] + penalty[second] for first, second in pairs]
        self._steps = scipy.sparse.csr_matrix(
            (costs, (rows, columns)), shape=(len(self.nodes), len(self.nodes))
        )

    def cheapest(self, source: str, target: str, k: int) -> list[tuple[float, list[str]]]:
        """The k cheapest chains with their cost, no node twice (Yen 1971); all if fewer."""
        if source == target or source not in self.place or target not in self.place:
            return []
        start, goal = self.place[source], self.place[target]
        costs, before = yen(self._steps, start, goal, k, directed=False, return_predecessors=True)
        chains: list[tuple[float, list[str]]] = []
        for cost, earlier in zip(costs.tolist(), before, strict=True):
            way = [goal]
            while way[-1] != start:
                way.append(int(earlier[way[-1]]))
            chains.append((cost, [self.nodes[place] for place in reversed(way)]))
        return chains


class GraphFacts:
    """The relations of a generation, for looking up and walking; safe to share between threads."""

    def __init__(
        self, entities: ById[Entity], relations: Sequence[Relation], places: Sequence[Occurrence]
    ) -> None:
        self.entities, self.relations = entities, ById(relations)
        self._places = places
        self.predicates = column_of(relations, "predicate")  # that of each relation
        self._sources, self._targets = (
            column_of(relations, "source"),
            column_of(relations, "target"),
        )
        ends = enumerate(zip(self._sources, self._targets, strict=True))
        self._touching = by_key((end, place) for place, pair in ends for end in dict.fromkeys(pair))
        self._stating = by_key(
            (item, place) for place, item in enumerate(column_of(places, "item"))
        )
        self._of: dict[str, list[Relation]] = {}
        self._ways: dict[str, dict[tuple[str, bool], list[Relation]]] = {}

    @property
    def connected(self) -> Collection[str]:
        """The entities that some relation touches."""
        return list(dict.fromkeys(chain(self._sources, self._targets)))

    def of(self, entity: str) -> Sequence[Relation]:
        """The relations into and out of an entity, heaviest first."""
        if entity not in self._of:
            touching = [self.relations.records[place] for place in self._touching.get(entity, ())]
            self._of[entity] = sorted(
                touching, key=lambda relation: (-relation.weight, relation.id)
            )
        return self._of[entity]

    def places(self, relation: str) -> list[Occurrence]:
        """Where a relation is stated, the first place first."""
        return [self._places[place] for place in self._stating.get(relation, ())]

    @cached_property
    def ways(self) -> WeightedEdges:
        """All relations as weighted edges."""
        return WeightedEdges(self.entities, zip(self._sources, self._targets, strict=True))

    def ways_along(self, predicates: Collection[str]) -> WeightedEdges:
        """The relations of these predicates alone as weighted edges."""
        ends = zip(self.predicates, self._sources, self._targets, strict=True)
        return WeightedEdges(
            self.entities, [(source, target) for name, source, target in ends if name in predicates]
        )

    def starting(self, predicate: str, inverse: bool = False) -> tuple[str, ...]:
        """Where the relations of one predicate start (`inverse`: end), each entity once."""
        stated = zip(self.predicates, self._targets if inverse else self._sources, strict=True)
        return tuple(dict.fromkeys(end for name, end in stated if name == predicate))

    @cached_property
    def _by_chunk(self) -> Mapping[str, list[int]]:
        return by_key(
            (chunk, place) for place, chunk in enumerate(column_of(self._places, "chunk"))
        )

    def stated_in(self, chunks: Iterable[str]) -> "GraphFacts":
        """Only the relations that some chunks state, with those places alone; no entity tells what
        others say of it.
        """
        stating = sorted(place for chunk in set(chunks) for place in self._by_chunk.get(chunk, ()))
        places = [self._places[place] for place in stating]
        relations = [self.relations[item] for item in dict.fromkeys(place.item for place in places)]
        undescribed = with_column(self.entities.records, "description", "")
        return GraphFacts(ById(undescribed, self.entities.place), relations, places)

    def along(self, entity: str, predicate: str, inverse: bool = False) -> list[Relation]:
        """The relations of one predicate out of an entity (`inverse`: into it), heaviest first."""
        return self._ways_from(entity).get((predicate, inverse), [])

    def is_a(self, entity: str, kind: str) -> bool:
        """Whether an entity is of a kind: its own, or one that a relation ties it to (`type`,
        `gender`).
        """
        targets = (relation.target for relation in self.of(entity) if relation.source == entity)
        return self.entities[entity].kind == kind or any(
            self.entities[end].name == kind for end in targets
        )

    def leaving(self, entities: Iterable[str]) -> list[tuple[str, bool]]:
        """The ways that lead on from some entities: (predicate, whether against its direction), in
        order.
        """
        return sorted({way for entity in entities for way in self._ways_from(entity)})

    def _ways_from(self, entity: str) -> Mapping[tuple[str, bool], list[Relation]]:
        if entity not in self._ways:
            ways = defaultdict[tuple[str, bool], list[Relation]](list)
            for relation in self.of(entity):
                if relation.source == entity:
                    ways[relation.predicate, False].append(relation)
                if relation.target == entity:
                    ways[relation.predicate, True].append(relation)
            self._ways[entity] = dict(ways)
        return self._ways[entity]
