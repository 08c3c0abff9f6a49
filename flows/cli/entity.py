"""What does a generation know of the things that have a name?"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Literal

from rapidfuzz import process

from prompts.language.words import fold_name
from storage.errors import UsageError
from storage.generations import Generation
from storage.records import Alias, Chunk, Claim, ClaimStatus, Document, Entity, Occurrence, Record, Relation

NEAREST = 5


class KnownAs(Record):
    """Another name of an entity, and why it was merged."""

    name: str
    reason: str


class Statement(Record):
    """A sentence that states a relation: `quote` is `text[start:end]` of the document."""

    document: str
    title: str
    chunk: str
    start: int
    end: int
    quote: str


class ClaimView(Statement):
    """A claim that the entity is the subject or the object of, by their names; of an empty span the quote is empty."""

    id: str
    subject: str
    object: str | None
    kind: str
    status: ClaimStatus
    since: str | None
    until: str | None
    description: str

    @property
    def period(self) -> str:
        """In words; empty where the text does not say."""
        if self.since == self.until:
            return self.since or ""
        ends = (("from", self.since), ("until", self.until))
        return " ".join(f"{word} {day}" for word, day in ends if day)


class RelationView(Record):
    """A relation as seen from one of its ends; `out` goes from the entity to `other`."""

    id: str
    direction: Literal["in", "out"]
    predicate: str
    other: str
    description: str
    weight: float
    count: int
    statements: tuple[Statement, ...]


class EntityView(Record):
    """An entity with all that is known of it; relations come heaviest first, claims by what they hold and when."""

    id: str
    name: str
    kind: str
    description: str
    degree: int
    aliases: tuple[KnownAs, ...]
    relations: tuple[RelationView, ...]
    claims: tuple[ClaimView, ...]
    occurrences: int
    documents: int


class GraphView(Record):
    """The entities that have the name asked for, the most mentioned first."""

    name: str
    entities: tuple[EntityView, ...]
    generation: int


def look_up(name: str, generation: Generation) -> GraphView:
    """All entities with this name or alias, compared as names are. Raises UsageError, which names the nearest names."""
    entities = generation.graph.entities()
    aliases = generation.graph.aliases()
    wanted = _named(name, entities, aliases)
    by_id = {entity.id: entity for entity in entities}
    chosen = sorted((by_id[one] for one in wanted), key=lambda entity: (-entity.mentions, entity.id))
    other_names: dict[str, list[KnownAs]] = defaultdict(list)
    for alias in aliases:
        if alias.entity in wanted and alias.name != by_id[alias.entity].name:
            other_names[alias.entity].append(KnownAs(name=alias.name, reason=alias.reason))
    views = tuple(_view(entity, other_names[entity.id], by_id, generation) for entity in chosen)
    return GraphView(name=name, entities=views, generation=generation.number)


def _named(name: str, entities: Sequence[Entity], aliases: Sequence[Alias]) -> set[str]:
    names: dict[str, set[str]] = defaultdict(set)
    shown: dict[str, str] = {}
    for written, entity in [(one.name, one.id) for one in entities] + [(one.name, one.entity) for one in aliases]:
        names[fold_name(written)].add(entity)
        shown.setdefault(fold_name(written), written)
    found = names.get(fold_name(name))
    if found:
        # The name as it was written decides, where things differ in what folding removes ("Agni (film)").
        return {one.id for one in entities if one.name == name and one.id in found} or found
    near = process.extract(fold_name(name), list(shown), limit=NEAREST)
    nearest = ", ".join(shown[key] for key, _, _ in near)
    raise UsageError(f"The graph knows nothing called {name!r}.", f"Nearest: {nearest}." if nearest else "")


def _view(entity: Entity, aliases: Sequence[KnownAs], by_id: dict[str, Entity], generation: Generation) -> EntityView:
    relations = sorted(generation.graph.neighbours(entity.id), key=lambda one: (-one.weight, one.id))
    said = generation.graph.occurrences("relation", [relation.id for relation in relations])
    places = generation.graph.occurrences("entity", [entity.id])
    claimed = generation.graph.claims([entity.id])
    speaking = {place.chunk for place in said} | {claim.chunk for claim in claimed}
    chunks = {one.id: one for one in generation.documents.chunks(ids=speaking | {place.chunk for place in places})}
    stated = {chunks[chunk].document for chunk in speaking}
    documents = {one.id: one for one in generation.documents.documents(stated)}
    statements: dict[str, list[Statement]] = defaultdict(list)
    for place in said:
        statements[place.item].append(_statement(place, chunks[place.chunk], documents))
    views = tuple(_relation(one, entity, by_id, statements[one.id]) for one in relations)
    claims = [_claim(one, _statement(one, chunks[one.chunk], documents), by_id) for one in claimed]
    claims.sort(key=lambda one: (one.kind, one.since or one.until or "", one.id))
    where = Counter(chunks[place.chunk].document for place in places)
    return EntityView(
        id=entity.id, name=entity.name, kind=entity.kind, description=entity.description, degree=entity.degree,
        aliases=tuple(aliases), relations=views, claims=tuple(claims), occurrences=len(places), documents=len(where),
    )  # fmt: skip


def _relation(
    relation: Relation, entity: Entity, by_id: dict[str, Entity], statements: Sequence[Statement]
) -> RelationView:
    outward = relation.source == entity.id
    return RelationView(
        id=relation.id, direction="out" if outward else "in", predicate=relation.predicate,
        other=by_id[relation.target if outward else relation.source].name, description=relation.description,
        weight=relation.weight, count=relation.count, statements=tuple(statements),
    )  # fmt: skip


def _claim(claim: Claim, said: Statement, by_id: dict[str, Entity]) -> ClaimView:
    return ClaimView(
        **dict(said), id=claim.id, subject=by_id[claim.subject].name, kind=claim.kind, status=claim.status,
        object=by_id[claim.object].name if claim.object else None, since=claim.since, until=claim.until,
        description=claim.description,
    )  # fmt: skip


def _statement(place: Occurrence | Claim, chunk: Chunk, documents: dict[str, Document]) -> Statement:
    document = documents[chunk.document]
    return Statement(
        document=document.id, title=document.title, chunk=chunk.id, start=place.start, end=place.end,
        quote=document.text[place.start : place.end],
    )  # fmt: skip
