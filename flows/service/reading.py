"""The content of a workspace as records, for commands, the service and its page: documents,
entities, paths, reports, status.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from typing import Literal

from pydantic import Field

from flows.runtime import Runtime
from flows.session import Session
from flows.usage import masked
from prompts.engine.models import ROLES
from prompts.schema import Schema
from prompts.text.words import fold_name, simplified
from storage.documents import DocumentSummary
from storage.errors import NotFound, StorageError
from storage.facts import DatedFact, LeftOutCount
from storage.graph_records import (
    Alias,
    Claim,
    Entity,
    Finding,
    Occurrence,
    Relation,
    Report,
    TextSpan,
)
from storage.layout import size_of
from storage.provenance import SCHEMA
from storage.records import Recognized, Record, Scalar, by_key
from storage.run_records import UsageRow
from storage.workspace import Generation, WorkspaceProblem
from storage.workspace_db import RunRow
from tasks.read_reports.select import tree_of
from tasks.retrieve.facts import GraphFacts
from tasks.traverse.entity_names import entities_named
from tasks.traverse.plan import shortest_paths

LAST_RUNS = 5


# --- documents ---


class DocumentPage(Record):
    """Part of the documents that match, ordered by id; `total` counts all of them."""

    documents: tuple[DocumentSummary, ...]
    total: int
    generation: int


class PassageSpan(TextSpan):
    """A passage of a document; citations name it as `chunk`."""

    chunk: str
    heading: str
    page: int | None


class SourceText(Record):
    """A document's text as offsets count it, its sources, its passages, and the boxes of what was
    recognised in pictures.
    """

    document: str
    title: str
    language: str
    text: str
    pages: tuple[int, ...]
    metadata: dict[str, Scalar]
    sources: tuple[str, ...]
    generation: int
    spans: tuple[PassageSpan, ...] = ()
    recognized: tuple[Recognized, ...] = ()


def list_documents(
    generation: Generation, text: str = "", limit: int = 100, offset: int = 0
) -> DocumentPage:
    """List the documents whose id or title contains the text, ignoring case."""
    matching = generation.documents.summaries(text)
    return DocumentPage(
        documents=tuple(matching[offset : offset + limit]),
        total=len(matching),
        generation=generation.number,
    )


def source_text(generation: Generation, document: str) -> SourceText:
    """Return a stored document. Raises UnknownDocument, which names similar ids."""
    stored = generation.documents.document(document)
    spans = tuple(
        PassageSpan(
            document=stored.id,
            start=chunk.start,
            end=chunk.end,
            chunk=chunk.id,
            heading=chunk.heading,
            page=stored.page_of(chunk.start),
        )
        for chunk in generation.documents.chunks(documents=[stored.id])
    )
    return SourceText(
        document=stored.id,
        title=stored.title,
        language=stored.language,
        text=stored.text,
        pages=stored.pages,
        metadata=dict(stored.metadata),
        sources=tuple(sorted({part.source for part in stored.parts})),
        spans=spans,
        recognized=stored.recognized,
        generation=generation.number,
    )


# --- entities ---


class Quote(TextSpan):
    """A quoted span: `quote` is `text[start:end]` of the document."""

    title: str
    quote: str


class _Quotes:
    """Quotes documents of a generation and reads each once."""

    def __init__(
        self, generation: Generation, chunks: Iterable[str] = (), documents: Iterable[str] = ()
    ) -> None:
        passages = generation.documents.chunks(ids=set(chunks))
        self.document_of = {chunk.id: chunk.document for chunk in passages}
        read = generation.documents.documents({*documents, *self.document_of.values()})
        self._documents = {document.id: document for document in read}

    def at(self, document: str, start: int, end: int) -> Quote:
        stored = self._documents[document]
        return Quote(
            document=document,
            start=start,
            end=end,
            title=stored.title,
            quote=stored.text[start:end],
        )

    def of(self, place: Occurrence | Claim | DatedFact) -> Quote:
        return self.at(self.document_of[place.chunk], place.start, place.end)


class ClaimView(Claim, Quote):
    """A claim with its quote; `subject` and `object` are names."""

    @property
    def period(self) -> str:
        """The time of the claim in words; empty if the text does not say."""
        if self.since == self.until:
            return self.since or ""
        ends = ("from", self.since), ("until", self.until)
        return " ".join(f"{word} {day}" for word, day in ends if day)


class FactView(Quote):
    """A typed fact with its quote; `object` is the name of what a relation leads to.

    `closed_by` is the id of the newer fact that ends it, or empty.
    """

    id: str
    type: str
    value: str
    object: str | None
    number: float | None
    unit: str
    day: str
    yes: bool | None
    valid_from: str | None
    valid_to: str | None
    closed_by: str

    @property
    def period(self) -> str:
        """The time for which it holds in words; empty if the text does not say."""
        ends = ("from", self.valid_from), ("until", self.valid_to)
        return " ".join(f"{word} {day}" for word, day in ends if day)


class ShownRelation(Record):
    """A relation with the quotes that state it."""

    id: str
    source: str
    target: str
    predicate: str
    description: str
    weight: float
    count: int
    keys: tuple[str, ...]
    statements: tuple[Quote, ...]


class RelationView(ShownRelation):
    """A relation seen from one of its ends; `out` goes from the entity to `other`."""

    direction: Literal["in", "out"]
    other: str


class EntityView(Record):
    """An entity with its relations, heaviest first, and its claims by kind and time."""

    id: str
    name: str
    kind: str
    description: str
    mentions: int
    degree: int
    aliases: tuple[Alias, ...]
    relations: tuple[RelationView, ...]
    claims: tuple[ClaimView, ...]
    facts: tuple[FactView, ...] = ()
    occurrences: int
    documents: int


class GraphView(Record):
    """The entities of one name, the most mentioned first."""

    name: str
    entities: tuple[EntityView, ...]
    generation: int


def look_up(name: str, generation: Generation) -> GraphView:
    """Return all entities with this name or alias. Raises NotFound, which names similar names."""
    entities = {entity.id: entity for entity in generation.graph.entities()}
    chosen = entities_named(name, list(entities.values()), generation.graph.aliases())
    ordered = sorted(chosen, key=lambda entity: (-entity.mentions, entity.id))
    views = entity_views(ordered, entities, generation)
    return GraphView(name=name, entities=tuple(views), generation=generation.number)


def entity_views(
    shown: Sequence[Entity], entities: Mapping[str, Entity], generation: Generation
) -> list[EntityView]:
    """Return what the generation knows of some entities; `entities` holds all of it by id."""
    graph, ids = generation.graph, [entity.id for entity in shown]
    relations = sorted(
        graph.relations_at(ids), key=lambda relation: (-relation.weight, relation.id)
    )
    claims = sorted(
        graph.claims(ids),
        key=lambda claim: (claim.kind, claim.since or claim.until or "", claim.id),
    )
    mentions = graph.occurrences("entity", ids)
    stated = graph.occurrences("relation", [relation.id for relation in relations])
    facts = generation.facts.facts(subjects=ids)
    quoted: list[Occurrence | Claim | DatedFact] = [*stated, *mentions, *claims, *facts]
    quotes = _Quotes(generation, [place.chunk for place in quoted])
    statements = by_key((place.item, quotes.of(place)) for place in stated)
    mentions_of = by_key((place.item, place.chunk) for place in mentions)
    relations_of = by_key(
        (end, relation) for relation in relations for end in {relation.source, relation.target}
    )
    claims_of = by_key(
        (end, claim) for claim in claims for end in {claim.subject, claim.object} if end
    )
    facts_of = by_key((fact.subject, fact) for fact in facts)
    aliases_of = by_key((alias.entity, alias) for alias in graph.aliases(ids))

    def name_of(end: str | None) -> str | None:
        return entities[end].name if end else None

    def relation_view(relation: Relation, entity: Entity) -> RelationView:
        is_out = relation.source == entity.id
        return RelationView(
            **asdict(relation),
            direction="out" if is_out else "in",
            other=entities[relation.target if is_out else relation.source].name,
            statements=tuple(statements.get(relation.id, ())),
        )

    def claim_view(claim: Claim) -> ClaimView:
        names = {"subject": name_of(claim.subject), "object": name_of(claim.object)}
        return ClaimView.model_validate(dict(claim) | dict(quotes.of(claim)) | names)

    def fact_view(fact: DatedFact) -> FactView:
        own = asdict(fact) | dict(quotes.of(fact)) | {"object": name_of(fact.object)}
        return FactView.model_validate(own, extra="ignore")

    def view(entity: Entity) -> EntityView:
        chunks = mentions_of.get(entity.id, [])
        return EntityView(
            **asdict(entity),
            relations=tuple(relation_view(row, entity) for row in relations_of.get(entity.id, ())),
            occurrences=len(chunks),
            aliases=tuple(row for row in aliases_of.get(entity.id, ()) if row.name != entity.name),
            claims=tuple(map(claim_view, claims_of.get(entity.id, ()))),
            facts=tuple(map(fact_view, facts_of.get(entity.id, ()))),
            documents=len({quotes.document_of[chunk] for chunk in chunks}),
        )

    return list(map(view, shown))


def entity_within(view: EntityView, documents: Collection[str]) -> EntityView | None:
    """Return what these documents state of an entity, without names and descriptions that are made
    from all documents; None where they state nothing.
    """
    relations = []
    for relation in view.relations:
        quotes = tuple(quote for quote in relation.statements if quote.document in documents)
        if quotes:
            changed = {"statements": quotes, "description": "", "keys": ()}
            relations.append(relation.model_copy(update=changed))
    claims = tuple(claim for claim in view.claims if claim.document in documents)
    facts = tuple(fact for fact in view.facts if fact.document in documents)
    if not relations and not claims and not facts:
        return None
    stated = {"relations": tuple(relations), "claims": claims, "facts": facts}
    return view.model_copy(update={**stated, "aliases": (), "description": ""})


class EntityPage(Record):
    """Part of the entities that match, the most mentioned first; `total` counts all of them."""

    entities: tuple[Entity, ...]
    total: int
    generation: int


def search_entities(generation: Generation, text: str = "", limit: int = 50) -> EntityPage:
    """List the entities with a name that contains the text, both folded as names are compared."""
    key = simplified(fold_name(text))
    entities: Sequence[Entity] = generation.graph.entities()
    if key:
        called = {
            alias.entity
            for alias in generation.graph.aliases()
            if key in simplified(fold_name(alias.name))
        }
        entities = [
            row for row in entities if row.id in called or key in simplified(fold_name(row.name))
        ]
    ordered = sorted(entities, key=lambda entity: (-entity.mentions, entity.name, entity.id))
    return EntityPage(
        entities=tuple(ordered[:limit]), total=len(ordered), generation=generation.number
    )


def entities_called(session: Session, name: str) -> list[Entity]:
    """Return the entities with a name, or the one with an id. Raises NotFound."""
    by_id = session.graph.facts.entities
    if name in by_id:
        return [by_id[name]]
    return entities_named(name, list(by_id.values()), session.generation.graph.aliases())


class PathStep(ShownRelation):
    """A relation on a path, with the names of its ends."""

    source_name: str
    target_name: str


class GraphPath(Record):
    """A path between two entities; it may follow a relation against its direction."""

    entities: tuple[str, ...]
    steps: tuple[PathStep, ...]


class Paths(Record):
    """The paths between two entities, the cheapest first: a step through a hub costs more."""

    paths: tuple[GraphPath, ...]
    generation: int


def paths_between(
    session: Session, first: str, second: str, k: int = 3, facts: GraphFacts | None = None
) -> Paths:
    """Find up to k paths between the entities of two names (or ids). Raises NotFound.

    `facts` are the relations that a path may use (default: all).
    """
    facts = facts or session.graph.facts
    sources, targets = (
        [entity.id for entity in entities_called(session, name)] for name in (first, second)
    )
    chains = shortest_paths(facts, sources, targets, k)
    relations = {relation.id for chain in chains for relation in chain}
    places = {relation: facts.places(relation) for relation in relations}
    quotes = _Quotes(
        session.generation, [place.chunk for stated in places.values() for place in stated]
    )

    def path_step(relation: Relation) -> PathStep:
        return PathStep(
            **asdict(relation),
            source_name=facts.entities[relation.source].name,
            target_name=facts.entities[relation.target].name,
            statements=tuple(map(quotes.of, places[relation.id])),
        )

    paths = []
    for chain in chains:
        walked = [next(end for end in (chain[0].source, chain[0].target) if end in sources)]
        for relation in chain:
            walked.append(relation.target if relation.source == walked[-1] else relation.source)
        paths.append(
            GraphPath(
                entities=tuple(facts.entities[node].name for node in walked),
                steps=tuple(path_step(row) for row in chain),
            )
        )
    return Paths(paths=tuple(paths), generation=session.number)


# --- reports ---


class ListedReport(Report):
    """A report with its number of entities and the nearest reports above and below it."""

    members: int
    parent: str | None
    children: tuple[str, ...]


class QuotedFinding(Finding, Quote):
    """A finding with its quote and the `others` that support it."""

    others: tuple[Quote, ...]


class ReportView(Report):
    """A report with quoted findings, the reports above and below, and its entities by degree."""

    findings: tuple[QuotedFinding, ...]
    parent: ListedReport | None
    children: tuple[ListedReport, ...]
    members: tuple[Entity, ...]
    generation: int


def list_reports(generation: Generation) -> dict[str, ListedReport]:
    """Return all reports by community, ordered by level and falling importance."""
    stored = generation.communities
    tree = tree_of(stored.with_reports(), stored.ratings(), lambda names: stored.reports(of=names))
    ordered = sorted(
        stored.reports(), key=lambda report: (report.level, -report.rating, report.community)
    )
    return {
        report.community: ListedReport(
            **dict(report),
            members=len(tree.members[report.community]),
            parent=tree.above[report.community],
            children=tuple(tree.below.get(report.community, ())),
        )
        for report in ordered
    }


def report_view(community: str, generation: Generation) -> ReportView:
    """Return the report of a community. Raises NotFound, which names similar ids."""
    listed = list_reports(generation)
    if community not in listed:
        near = ", ".join(get_close_matches(community, listed, n=3))
        raise NotFound(
            f"There is no report {community!r}.",
            f"Nearest: {near}." if near else "See `trellis reports`.",
        )
    report = listed[community]
    quotes = _Quotes(
        generation,
        documents={place.document for finding in report.findings for place in finding.places},
    )
    findings = []
    for finding in report.findings:
        first, *others = (
            quotes.at(place.document, place.start, place.end) for place in finding.places
        )
        findings.append(
            QuotedFinding.model_validate(dict(finding) | dict(first) | {"others": others})
        )
    groups = generation.communities.communities(report.level)
    members = next(group.members for group in groups if group.id == community)
    around = {
        "parent": listed[report.parent] if report.parent else None,
        "children": [listed[child] for child in report.children],
        "members": sorted(
            generation.graph.entities(members),
            key=lambda entity: (-entity.degree, entity.name, entity.id),
        ),
        "findings": findings,
        "generation": generation.number,
    }
    return ReportView.model_validate(dict(report) | around)


# --- the workspace ---


class SourceView(Record):
    """A source and its number of documents."""

    source: str
    documents: int


class Status(Record):
    """The content and the settings of a workspace; `generation` is None before the first index run.

    `usage` counts the model calls of the run that published the current generation; `problems`
    names damaged and lost parts with remedies. `copy_of` is the address of a published index, where
    the workspace only holds what is there.
    """

    workspace: str
    copy_of: str | None = None
    generation: int | None = None
    created: str | None = None
    counts: dict[str, int] = Field(default_factory=dict)
    size_bytes: int = 0
    workspace_bytes: int
    sources: tuple[SourceView, ...] = ()
    documents: tuple[str, ...] = ()
    settings: dict[str, object]
    models: dict[str, str]
    embedding: str
    usage: tuple[UsageRow, ...] = ()
    runs: tuple[RunRow, ...] = ()
    problems: tuple[WorkspaceProblem, ...] = ()


def workspace_status(runtime: Runtime) -> Status:
    """Return the content of a workspace and its settings with masked keys; writes nothing."""
    workspace, settings = runtime.workspace, runtime.settings
    current = next((info for info in workspace.generations() if info.current), None)
    problems, held = workspace.problems(), dict[str, object]()
    if current is not None:
        held["generation"] = current.number
    if current is not None and not current.damage:
        held |= current.model_dump(include={"created", "counts", "size_bytes"})
        try:
            with workspace.read(current.number) as generation:
                held |= {
                    "sources": _sources(generation),
                    "documents": generation.documents.ids(),
                    "usage": generation.meta.usage(),
                }
        except StorageError as error:
            if error.message not in {problem.message for problem in problems}:
                problems.append(WorkspaceProblem(message=error.message, remedy=error.remedy))
    if workspace.root.is_dir():  # A look must not create the folder.
        held["runs"] = workspace.database.runs.list(LAST_RUNS)
        if fault := workspace.database.fault:
            problems.append(WorkspaceProblem(message=fault.message, remedy=fault.remedy))
    held |= {
        "workspace": str(workspace.root.absolute()),
        "copy_of": workspace.origin,
        "workspace_bytes": size_of(workspace.root),
        "problems": problems,
        "settings": json.loads(masked(settings.model_dump_json())),
        "models": {role: runtime.models.name(role) for role in ROLES},
        "embedding": runtime.embedder.name,
    }
    return Status.model_validate(held)


def part_status(session: Session) -> Status:
    """Return the content of a part of a generation, without what only the whole workspace has."""
    stored, runtime = session.generation, session.runtime
    return Status(
        workspace=runtime.workspace.root.name,
        generation=stored.number,
        counts=stored.meta.counts(),
        workspace_bytes=0,
        sources=tuple(_sources(stored)),
        documents=tuple(stored.documents.ids()),
        settings={},
        models={role: runtime.models.name(role) for role in ROLES},
        embedding=runtime.embedder.name,
    )


def _sources(generation: Generation) -> list[SourceView]:
    pairs = {(part.source, part.document) for part in generation.documents.parts()}
    counts = Counter(source for source, _ in pairs)
    return [
        SourceView(source=source, documents=number) for source, number in sorted(counts.items())
    ]


class TypeView(Record):
    """A type of fact in words, and how many different facts there are of it."""

    name: str
    type: str
    facts: int


class KindView(Record):
    """A kind of entity, how many there are, and their attributes."""

    name: str
    meaning: str
    entities: int
    attributes: tuple[TypeView, ...]


class SchemaView(Record):
    """The schema of a generation with what there is of each type, and what was left out."""

    kinds: tuple[KindView, ...]
    relations: tuple[TypeView, ...]
    left_out: tuple[LeftOutCount, ...]
    generation: int


def schema_view(generation: Generation) -> SchemaView:
    """Return the schema that the facts of a generation were checked against, with counts."""
    schema = Schema.model_validate(generation.meta.get_meta(SCHEMA) or {})
    counted = {(row.kind, row.type): row.facts for row in generation.facts.by_type()}
    by_type = Counter[str]()
    for (_, name), facts in counted.items():
        by_type[name] += facts
    entities = generation.facts.by_kind()
    kinds = tuple(
        KindView(
            name=name,
            meaning=kind.meaning,
            entities=entities.get(name, 0),
            attributes=tuple(
                TypeView(name=own, type=each.shown, facts=counted.get((name, own), 0))
                for own, each in kind.attributes.items()
            ),
        )
        for name, kind in schema.kinds.items()
    )
    relations = tuple(
        TypeView(name=name, type=each.shown, facts=by_type[name])
        for name, each in schema.relations.items()
    )
    left_out = tuple(generation.facts.left_out())
    return SchemaView(
        kinds=kinds, relations=relations, left_out=left_out, generation=generation.number
    )
