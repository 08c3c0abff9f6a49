"""Which relations touch an entity, which ways lead on from it, and where is each relation stated?"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from storage.records import Entity, Occurrence, Relation
from tasks.traverse.ways import Ways


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
        self._ways: dict[str, dict[tuple[str, bool], list[Relation]]] | None = None

    def of(self, entity: str) -> list[Relation]:
        """The relations into and out of an entity, heaviest first."""
        return sorted(self.touching.get(entity, ()), key=lambda relation: (-relation.weight, relation.id))

    @cached_property
    def ways(self) -> Ways:
        """All relations as weighted edges."""
        return Ways(self.entities, self.relations.values())

    def stated_in(self, chunks: Iterable[str]) -> "GraphFacts":
        """Only the relations that some chunks state, with those places alone; no entity tells what others say of it."""
        kept = set(chunks)
        places = [place for stated in self.places.values() for place in stated if place.chunk in kept]
        relations = [self.relations[item] for item in dict.fromkeys(place.item for place in places)]
        bare = {
            end: self.entities[end].model_copy(update={"description": ""})
            for relation in relations
            for end in (relation.source, relation.target)
        }
        return GraphFacts(list((self.entities | bare).values()), relations, places)

    def along(self, entity: str, predicate: str, inverse: bool = False) -> list[Relation]:
        """The relations of one predicate out of an entity (`inverse`: into it), heaviest first."""
        return self._by_way().get(entity, {}).get((predicate, inverse), [])

    def is_a(self, entity: str, kind: str) -> bool:
        """Whether an entity is of a kind: its own, or one that a relation ties it to (`type`, `gender`)."""
        said = (one.target for one in self.touching.get(entity, ()) if one.source == entity)
        return self.entities[entity].kind == kind or any(self.entities[end].name == kind for end in said)

    def leaving(self, entities: Iterable[str]) -> list[tuple[str, bool]]:
        """The ways that lead on from some entities: (predicate, whether against its direction), in order."""
        ways = self._by_way()
        return sorted({way for entity in entities for way in ways.get(entity, {})})

    def _by_way(self) -> dict[str, dict[tuple[str, bool], list[Relation]]]:
        if self._ways is None:
            ways: dict[str, dict[tuple[str, bool], list[Relation]]] = defaultdict(lambda: defaultdict(list))
            for relation in sorted(self.relations.values(), key=lambda one: (-one.weight, one.id)):
                ways[relation.source][relation.predicate, False].append(relation)
                ways[relation.target][relation.predicate, True].append(relation)
            self._ways = ways
        return self._ways

    def inside(self, chunks: Iterable[str]) -> list[Relation]:
        """The relations that some chunks state, in the order of the chunks."""
        found = dict.fromkeys(item for chunk in chunks for item in self.in_chunk.get(chunk, ()))
        return [self.relations[item] for item in found]
