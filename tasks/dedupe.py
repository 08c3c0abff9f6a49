"""What is one thing, and what one statement? From raw mentions to entities and relations (LightRAG `Dedupe`).

A pure function of the mentions: no order, no history, so that an incremental run and a full one agree. Which names mean
the same is decided in `tasks.resolve`.
"""

import gc
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import fsum

from pydantic import TypeAdapter

from prompts.language.words import fold, stem
from storage.records import (
    Alias,
    Chunk,
    Entity,
    Extraction,
    Mention,
    Occurrence,
    Record,
    Relation,
    RelationMention,
    content_id,
)
from tasks.resolve import Resolved, main_kind, name_key, qualifier_of, resolve
from tasks.step import step

__all__ = ["Graph", "build_graph", "dedupe", "name_key", "predicate_key"]

_TITLED = ("Mr ", "Mr. ", "Dr ", "Dr. ", "Prof ", "Prof. ", "Professor ", "Sir ")


_Placed = tuple[Mention, str]  # a mention and its document


class Graph(Record):
    """Entities and relations with every place that names them, and why names were joined.

    `evidence` holds, for each entity, the distinct sentences that describe it, in the order of the documents.
    """

    entities: tuple[Entity, ...]
    aliases: tuple[Alias, ...]
    entity_occurrences: tuple[Occurrence, ...]
    relations: tuple[Relation, ...]
    relation_occurrences: tuple[Occurrence, ...]
    evidence: dict[str, tuple[str, ...]]


@contextmanager
def _no_collection() -> Iterator[None]:
    """No cyclic garbage collection meanwhile: it would walk through all records again and again to find nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_no_collection()
def build_graph(extractions: Sequence[Extraction], chunks: Mapping[str, Chunk]) -> Graph:
    """Group mentions into entities and statements into relations.

    `chunks` maps chunk ids to chunks, for every chunk that occurs. Relation weights are counts divided by the largest
    count (GraphRAG, section 2.3), so 0 < weight ≤ 1.
    """
    documents = {chunk.id: chunk.document for chunk in chunks.values()}
    titles = {chunk.document: chunk.title for chunk in chunks.values()}
    resolved = resolve(extractions, documents, titles)
    groups: dict[str, list[_Placed]] = defaultdict(list)
    for extraction in extractions:
        document = documents[extraction.chunk]
        for mention in extraction.mentions:
            groups[resolved.keys[document, name_key(mention.name)]].append((mention, document))
    ids = {key: content_id("ent", key) for key in groups}
    relations, relation_places = _relations(extractions, documents, resolved, ids)
    degree: Counter[str] = Counter()
    for relation in relations:
        degree[relation.source] += 1
        degree[relation.target] += 1
    entities = [_entity(ids[key], mentions, degree[ids[key]]) for key, mentions in groups.items()]
    places = {(ids[key], one.chunk, one.start, one.end) for key, mentions in groups.items() for one, _ in mentions}
    return Graph(
        entities=tuple(sorted(entities, key=lambda entity: entity.id)),
        aliases=_aliases(groups, ids, entities, resolved),
        entity_occurrences=_occurrences(places),
        relations=relations,
        relation_occurrences=relation_places,
        evidence={ids[key]: _evidence(mentions) for key, mentions in groups.items()},
    )


def _evidence(mentions: Sequence[_Placed]) -> tuple[str, ...]:
    if len(mentions) == 1:
        return (mentions[0][0].description,) if mentions[0][0].description else ()
    ordered = sorted(mentions, key=lambda pair: (pair[1], pair[0].start, pair[0].name, pair[0].description))
    return tuple(dict.fromkeys(mention.description for mention, _ in ordered if mention.description))


def _occurrences(places: Iterable[tuple[str, str, int, int]]) -> tuple[Occurrence, ...]:
    names = ("item", "chunk", "start", "end")
    return _many_occurrences().validate_python([dict(zip(names, place, strict=True)) for place in sorted(places)])


@lru_cache(maxsize=1)
def _many_occurrences() -> TypeAdapter[tuple[Occurrence, ...]]:
    """All records in one call: a third of the time of as many constructors."""
    return TypeAdapter(tuple[Occurrence, ...])


def _entity(entity: str, mentions: Sequence[_Placed], degree: int) -> Entity:
    if len(mentions) == 1:
        only = mentions[0][0]
        return Entity(id=entity, name=only.name, kind=only.kind, mentions=1, degree=degree)
    names = Counter(mention.name for mention, _ in mentions)
    name = max(
        names, key=lambda name: (bool(qualifier_of(name)), not name.startswith(_TITLED), names[name], len(name), name)
    )
    kind = main_kind(Counter(mention.kind for mention, _ in mentions))
    return Entity(id=entity, name=name, kind=kind, mentions=len(mentions), degree=degree)


def _aliases(
    groups: Mapping[str, Sequence[_Placed]], ids: Mapping[str, str], entities: Sequence[Entity], resolved: Resolved
) -> tuple[Alias, ...]:
    shown = {entity.id: entity.name for entity in entities}
    found: dict[tuple[str, str], str] = {}
    for key, mentions in groups.items():
        # One mention has the entity's name, whatever it is.
        for mention, document in mentions if len(mentions) > 1 else ():
            if mention.name != shown[ids[key]]:
                reason = resolved.reasons.get((document, name_key(mention.name)), "the same name, written differently")
                place = ids[key], mention.name
                found[place] = min(reason, found.get(place, reason))
    return tuple(Alias(entity=entity, name=name, reason=found[entity, name]) for entity, name in sorted(found))


@lru_cache(maxsize=100_000)
def predicate_key(predicate: str) -> str:
    """The form under which predicates are compared: folded stems."""
    return " ".join(stem(word) for word in fold(predicate).replace("_", " ").replace("/", " ").split())


def _relations(
    extractions: Sequence[Extraction], documents: Mapping[str, str], resolved: Resolved, ids: Mapping[str, str]
) -> tuple[tuple[Relation, ...], tuple[Occurrence, ...]]:
    groups: dict[tuple[str, str, str], list[RelationMention]] = defaultdict(list)
    for extraction in extractions:
        document = documents[extraction.chunk]
        for said in extraction.relations:
            source = ids[resolved.keys[document, name_key(said.source)]]
            target = ids[resolved.keys[document, name_key(said.target)]]
            if source != target:
                groups[source, target, predicate_key(said.predicate)].append(said)
    # fsum is exact, so that the order of the documents cannot change the last digit of a weight.
    weights = {place: fsum(said.weight for said in group) for place, group in groups.items()}
    heaviest = max(weights.values(), default=1.0) or 1.0
    relations, places = [], set()
    for place, group in groups.items():
        relation = _relation(place, group, weights[place] / heaviest)
        relations.append(relation)
        places |= {(relation.id, said.chunk, said.start, said.end) for said in group}
    return tuple(sorted(relations, key=lambda relation: relation.id)), _occurrences(places)


def _relation(place: tuple[str, str, str], group: Sequence[RelationMention], weight: float) -> Relation:
    source, target, key = place
    wordings = Counter(said.predicate for said in group) if len(group) > 1 else {group[0].predicate: 1}
    described = min(((len(said.description), said.description) for said in group if said.description), default=(0, ""))
    return Relation(
        id=content_id("rel", source, target, key),
        source=source,
        target=target,
        predicate=max(wordings, key=lambda wording: (wordings[wording], wording)),
        description=described[1],
        weight=weight,
        count=len(group),
        keys=tuple(sorted({key for said in group for key in said.keys})),
    )


@step("dedupe")
async def dedupe(extractions: Sequence[Extraction], chunks: Sequence[Chunk]) -> Graph:
    """Resolve all mentions of a generation into its graph."""
    return build_graph(extractions, {chunk.id: chunk for chunk in chunks})
