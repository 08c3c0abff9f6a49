"""What is one thing, and what one statement? From raw mentions to entities and relations (LightRAG `Dedupe`).

A pure function of the mentions, of the decisions on similar names and of what people edited: no order, no history, so
that an incremental run and a full one agree. Which names mean the same is decided in `tasks.resolve`.
"""

import gc
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import fsum

from pydantic import TypeAdapter

from prompts.engine.errors import ModelRefused
from prompts.language.words import fold, stem
from prompts.resolve import PAIRS_IN_ONE_CALL, Decided, Pair, Resolve
from storage.edits import Edit
from storage.records import (
    Alias,
    Chunk,
    Claim,
    DeadLetter,
    Entity,
    Extraction,
    Mention,
    Occurrence,
    Record,
    Relation,
    RelationMention,
    content_id,
)
from tasks.claims import claims_of
from tasks.resolve.edits import Given, edited
from tasks.resolve.keys import Resolved, main_kind, name_key, qualifier_of
from tasks.resolve.rules import Prepared, prepare, resolve
from tasks.step import PATIENT, step
from tasks.together import together

__all__ = ["Graph", "build_graph", "dedupe", "name_key", "predicate_key"]

_TITLED = ("Mr ", "Mr. ", "Dr ", "Dr. ", "Prof ", "Prof. ", "Professor ", "Sir ")


_Placed = tuple[Mention, str]  # a mention and its document


class Graph(Record):
    """Entities and relations with every place that names them, why names were joined, and what is claimed.

    `evidence` holds, for each entity, the distinct sentences that describe it, in the order of the documents. An entity
    has a description already where somebody wrote one; `dead_letters` are decisions that a model refused.
    """

    entities: tuple[Entity, ...]
    aliases: tuple[Alias, ...]
    entity_occurrences: tuple[Occurrence, ...]
    relations: tuple[Relation, ...]
    relation_occurrences: tuple[Occurrence, ...]
    evidence: dict[str, tuple[str, ...]]
    dead_letters: tuple[DeadLetter, ...] = ()
    claims: tuple[Claim, ...] = ()


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
def build_graph(
    extractions: Sequence[Extraction],
    chunks: Mapping[str, Chunk],
    decided: Mapping[Pair, Decided] | None = None,
    edits: Sequence[Edit] = (),
) -> Graph:
    """Group mentions into entities and statements into relations.

    `chunks` maps chunk ids to chunks, for every chunk that occurs. Pairs of names without a decision are decided by
    rule. Relation weights are counts divided by the largest count (GraphRAG, section 2.3), so 0 < weight ≤ 1.
    """
    return _graph(extractions, _prepared(extractions, chunks), decided or {}, edits)


def _prepared(extractions: Sequence[Extraction], chunks: Mapping[str, Chunk]) -> Prepared:
    documents = {chunk.id: chunk.document for chunk in chunks.values()}
    return prepare(extractions, documents, {chunk.document: chunk.title for chunk in chunks.values()})


def _graph(
    extractions: Sequence[Extraction], prepared: Prepared, decided: Mapping[Pair, Decided], edits: Sequence[Edit]
) -> Graph:
    documents = prepared.documents
    resolved, given = edited(resolve(prepared, decided), edits)
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
    entities = [_entity(ids[key], mentions, degree[ids[key]], given.get(key)) for key, mentions in groups.items()]
    places = {(ids[key], one.chunk, one.start, one.end) for key, mentions in groups.items() for one, _ in mentions}
    return Graph(
        entities=tuple(sorted(entities, key=lambda entity: entity.id)),
        aliases=_aliases(groups, ids, entities, resolved),
        entity_occurrences=_occurrences(places),
        relations=relations,
        relation_occurrences=relation_places,
        evidence={ids[key]: _evidence(mentions) for key, mentions in groups.items()},
        claims=claims_of(extractions, documents, lambda document, name: ids[resolved.keys[document, name_key(name)]]),
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


def _entity(entity: str, mentions: Sequence[_Placed], degree: int, given: Given | None) -> Entity:
    if len(mentions) == 1:
        name, kind = mentions[0][0].name, mentions[0][0].kind
    else:
        names = Counter(mention.name for mention, _ in mentions)
        name = max(
            names,
            key=lambda name: (bool(qualifier_of(name)), not name.startswith(_TITLED), names[name], len(name), name),
        )
        kind = main_kind(Counter(mention.kind for mention, _ in mentions))
    said = given or Given()
    return Entity(
        id=entity,
        name=said.name or name,
        kind=said.kind or kind,
        description=said.description or "",
        mentions=len(mentions),
        degree=degree,
    )


def _aliases(
    groups: Mapping[str, Sequence[_Placed]], ids: Mapping[str, str], entities: Sequence[Entity], resolved: Resolved
) -> tuple[Alias, ...]:
    shown = {entity.id: entity.name for entity in entities}
    found: list[Alias] = []
    for key, mentions in groups.items():
        entity, name = ids[key], shown[ids[key]]
        told: dict[str, set[str]] = {}
        for mention, document in mentions:
            reasons = told.setdefault(mention.name, set())
            if reason := resolved.reasons.get((document, name_key(mention.name))):
                reasons.add(reason)
        # Of two names that were joined the reason may stand with the one that is shown.
        of_shown = told.pop(name, set())
        for other, reasons in told.items():
            reason = "" if name_key(other) == name_key(name) else min(reasons or of_shown, default="")
            found.append(Alias(entity=entity, name=other, reason=reason or "the same name, written differently"))
    return tuple(sorted(found, key=lambda alias: (alias.entity, alias.name)))


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


@step("dedupe", PATIENT)
async def dedupe(
    extractions: Sequence[Extraction], chunks: Sequence[Chunk], resolver: Resolve, edits: Sequence[Edit] = ()
) -> Graph:
    """Resolve all mentions of a generation into its graph; `resolver` decides on similar names."""
    with _no_collection():
        prepared = _prepared(extractions, {chunk.id: chunk for chunk in chunks})
    pairs = [one.pair for one in prepared.open]
    asked = [pairs[start : start + PAIRS_IN_ONE_CALL] for start in range(0, len(pairs), PAIRS_IN_ONE_CALL)]
    answers = await together([_decide(batch, resolver) for batch in asked])
    decided = {pair: said for found, _ in answers for pair, said in found.items()}
    with _no_collection():
        graph = _graph(extractions, prepared, decided, edits)
    return graph.model_copy(update={"dead_letters": tuple(letter for _, letter in answers if letter)})


async def _decide(pairs: Sequence[Pair], resolver: Resolve) -> tuple[dict[Pair, Decided], DeadLetter | None]:
    """The decisions; none, which leaves them to the rule, and a dead letter where the model refuses."""
    try:
        return dict(zip(pairs, await resolver.run(pairs), strict=True)), None
    except ModelRefused as error:
        item = content_id("prs", *(one.model_dump_json() for one in pairs))
        return {}, DeadLetter(item=item, step="resolve", error=error.message, remedy=error.remedy)
