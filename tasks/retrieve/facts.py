"""Facts: the relations of each entity, the ways that lead on from it, and where each is stated."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property
from math import log1p

import scipy
from scipy.sparse.csgraph import yen

from storage.columns import ById, column_of, with_column
from storage.graph_records import Entity, Occurrence, Relation
from storage.records import by_key

# A relation's predicate, and whether it is walked from its target to its source.
Way = tuple[str, bool]


class WeightedEdges:
    """The relations as undirected weighted edges between entities; immutable.

    A step costs 1 plus the mean of log(1 + degree) of its ends.
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
        """Return the k cheapest paths without a cycle, and their costs (Yen 1971)."""
        if source == target or source not in self.place or target not in self.place:
            return []
        start, goal = self.place[source], self.place[target]
        costs, before = yen(self._steps, start, goal, k, directed=False, return_predecessors=True)
        paths: list[tuple[float, list[str]]] = []
        for cost, earlier in zip(costs.tolist(), before, strict=True):
            path = [goal]
            while path[-1] != start:
                path.append(int(earlier[path[-1]]))
            paths.append((cost, [self.nodes[place] for place in reversed(path)]))
        return paths


class GraphFacts:
    """The relations of a generation, to look up and walk; safe to share between threads."""

    def __init__(
        self, entities: ById[Entity], relations: Sequence[Relation], places: Sequence[Occurrence]
    ) -> None:
        self.entities, self.relations = entities, ById(relations)
        self._places = places
        self.predicates = column_of(relations, "predicate")  # in the order of the relations
        self._sources, self._targets = (column_of(relations, end) for end in ("source", "target"))
        ends = enumerate(zip(self._sources, self._targets, strict=True))
        self._touching = by_key((end, place) for place, pair in ends for end in dict.fromkeys(pair))
        self._stating = by_key(
            (item, place) for place, item in enumerate(column_of(places, "item"))
        )
        self.of = cache(self._heaviest_first)
        self._ways_from = cache(self._grouped_by_way)

    def _heaviest_first(self, entity: str) -> Sequence[Relation]:
        touching = [self.relations.records[place] for place in self._touching.get(entity, ())]
        return sorted(touching, key=lambda relation: (-relation.weight, relation.id))

    def _grouped_by_way(self, entity: str) -> Mapping[Way, list[Relation]]:
        ways: dict[Way, list[Relation]] = defaultdict(list)
        for relation in self.of(entity):
            if relation.source == entity:
                ways[relation.predicate, False].append(relation)
            if relation.target == entity:
                ways[relation.predicate, True].append(relation)
        return dict(ways)

    @property
    def connected(self) -> Collection[str]:
        return dict.fromkeys([*self._sources, *self._targets])

    def places(self, relation: str) -> list[Occurrence]:
        return [self._places[place] for place in self._stating.get(relation, ())]

    def stated_by(self, chunk: str) -> list[Occurrence]:
        """Return the places of the relations that a chunk states."""
        return [self._places[place] for place in self._in_chunk.get(chunk, ())]

    @cached_property
    def _in_chunk(self) -> Mapping[str, list[int]]:
        return by_key(
            (chunk, place) for place, chunk in enumerate(column_of(self._places, "chunk"))
        )

    @cached_property
    def ways(self) -> WeightedEdges:
        return WeightedEdges(self.entities, zip(self._sources, self._targets, strict=True))

    def ways_along(self, predicates: Collection[str]) -> WeightedEdges:
        ends = zip(self.predicates, self._sources, self._targets, strict=True)
        return WeightedEdges(
            self.entities, [(source, target) for name, source, target in ends if name in predicates]
        )

    def starting(self, predicate: str, inverse: bool = False) -> tuple[str, ...]:
        """Return the sources (`inverse`: targets) of a predicate's relations, each once."""
        stated = zip(self.predicates, self._targets if inverse else self._sources, strict=True)
        return tuple(dict.fromkeys(end for name, end in stated if name == predicate))

    def stated_in(self, chunks: Iterable[str]) -> "GraphFacts":
        """Keep only the relations that these chunks state, with those places alone.

        Entities lose their descriptions, which are made from all documents.
        """
        wanted = set(chunks)
        stated = enumerate(column_of(self._places, "chunk"))
        places = [self._places[place] for place, chunk in stated if chunk in wanted]
        relations = [self.relations[item] for item in dict.fromkeys(place.item for place in places)]
        undescribed = with_column(self.entities.records, "description", "")
        return GraphFacts(ById(undescribed, self.entities.place), relations, places)

    def along(self, entity: str, predicate: str, inverse: bool = False) -> list[Relation]:
        """Return the relations of a predicate out of (`inverse`: into) an entity, heaviest
        first.
        """
        return self._ways_from(entity).get((predicate, inverse), [])

    def is_a(self, entity: str, kind: str) -> bool:
        """Whether an entity is of a kind: its own, or one that a relation of it names (`type`,
        `gender`).
        """
        targets = (relation.target for relation in self.of(entity) if relation.source == entity)
        return self.entities[entity].kind == kind or any(
            self.entities[end].name == kind for end in targets
        )

    def leaving(self, entities: Iterable[str]) -> list[Way]:
        return sorted({way for entity in entities for way in self._ways_from(entity)})
