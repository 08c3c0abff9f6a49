"""`trellis graph` and `show`: what a generation knows of things that have a name, corrections by hand, stored texts."""

import asyncio
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from flows.cli.screen import Screen, runtime_of
from flows.operations.edit import EditReport, change, merge, named, split, undo
from flows.runtime import Runtime
from storage.errors import UsageError
from storage.graph import Edit, Subject
from storage.graph_records import Claim, ClaimStatus, Entity, Occurrence, Relation
from storage.records import Chunk, Document, Record, Scalar
from storage.workspace import Generation


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
    wanted = named(name, entities, aliases)
    by_id = {entity.id: entity for entity in entities}
    chosen = sorted((by_id[one] for one in wanted), key=lambda entity: (-entity.mentions, entity.id))
    other_names: dict[str, list[KnownAs]] = defaultdict(list)
    for alias in aliases:
        if alias.entity in wanted and alias.name != by_id[alias.entity].name:
            other_names[alias.entity].append(KnownAs(name=alias.name, reason=alias.reason))
    views = tuple(_view(entity, other_names[entity.id], by_id, generation) for entity in chosen)
    return GraphView(name=name, entities=views, generation=generation.number)


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


SHOWN_RELATIONS = 200


class DocumentView(Record):
    """A stored document: its text as offsets count it, and where it came from."""

    document: str
    title: str
    language: str
    text: str
    pages: tuple[int, ...]
    metadata: dict[str, Scalar]
    sources: tuple[str, ...]
    generation: int


def show(options: Namespace, screen: Screen) -> int:
    """Print a document's text and nothing else."""
    with _generation(options) as generation:
        document = generation.documents.document(options.document)
        number = generation.number
    if not screen.as_json:
        screen.exactly(document.text)
        return 0
    screen.json(
        DocumentView(
            document=document.id, title=document.title, language=document.language, text=document.text,
            pages=document.pages, metadata=document.metadata, generation=number,
            sources=tuple(sorted({part.source for part in document.parts})),
        )
    )  # fmt: skip
    return 0


def _show_entities(options: Namespace, screen: Screen) -> int:
    """Show every entity that has the name."""
    with _generation(options) as generation:
        found = look_up(options.name, generation)
    if screen.as_json:
        screen.json(found)
        return 0
    for place, entity in enumerate(found.entities):
        if place:
            screen.line()
        screen.line(f"{entity.name} ({entity.kind})", style="bold")
        if entity.description:
            screen.line(entity.description, indent=2)
        screen.line(f"{entity.occurrences} occurrences in {entity.documents} documents, id {entity.id}", indent=2)
        for alias in entity.aliases:
            screen.line(f"also {alias.name}: {alias.reason}", indent=2)
        for relation in entity.relations[:SHOWN_RELATIONS]:
            arrow = "→" if relation.direction == "out" else "←"
            screen.line(f"{arrow} {relation.predicate} {arrow} {relation.other}", indent=2, style="cyan")
            for said in relation.statements:
                screen.line(f'"{" ".join(said.quote.split())}" ({said.document})', indent=6)
        if len(entity.relations) > SHOWN_RELATIONS:
            screen.line(
                f"and {len(entity.relations) - SHOWN_RELATIONS} more relations (--json lists all)",
                indent=2,
                style="dim",
            )
        for claim in entity.claims[:SHOWN_RELATIONS]:
            told = ", ".join(part for part in (claim.kind, claim.status, claim.period) if part)
            screen.line(f"claim: {claim.description} ({told}; {claim.document})", indent=2)
    return 0


def _generation(options: Namespace) -> Generation:
    return runtime_of(options).workspace.read(options.as_of)


_USAGE = {
    "merge": "trellis graph merge NAME OTHER",
    "split": "trellis graph split NAME --names A,B | --documents D1,D2",
    "edit": "trellis graph edit NAME [--kind KIND] [--name NAME] [--description TEXT]",
    "edits": "trellis graph edits",
    "undo": "trellis graph undo ID",
}


def graph(options: Namespace, screen: Screen) -> int:
    """Show what has the name; after one of the words above, change the graph."""
    action, *words = options.words
    if action in _ACTIONS and (words or action == "edits"):
        return _ACTIONS[action](options, screen)
    if words:
        raise UsageError(
            f"`trellis graph` takes one name, not {len(words) + 1}.", f'Put it in quotes: "{" ".join(options.words)}".'
        )
    for given in ("names", "documents", *_EDITABLE):
        if getattr(options, given) is not None:
            raise UsageError(
                f"--{given} belongs to an edit.", f"Use: {_USAGE['edit' if given in _EDITABLE else 'split']}."
            )
    options.name = action
    return _show_entities(options, screen)


def _merge(options: Namespace, screen: Screen) -> int:
    name, other = _words(options, 2)
    return _run(options, screen, lambda runtime: merge(name, other, runtime))


def _split(options: Namespace, screen: Screen) -> int:
    (name,) = _words(options, 1)
    names, documents = _listed(options.names), _listed(options.documents)
    if bool(names) == bool(documents):
        raise UsageError("Say which part is another thing: --names, or --documents.", f"Use: {_USAGE['split']}.")
    return _run(options, screen, lambda runtime: split(name, names, documents, runtime))


def _edit(options: Namespace, screen: Screen) -> int:
    (name,) = _words(options, 1)
    kind, new_name, description = (_said(options, given) for given in _EDITABLE)
    if kind is new_name is description is None:
        raise UsageError("An edit changes something.", f"Use: {_USAGE['edit']}.")
    return _run(options, screen, lambda runtime: change(name, kind, new_name, description, runtime))


def _undo(options: Namespace, screen: Screen) -> int:
    (number,) = _words(options, 1)
    if not number.isdecimal():
        raise UsageError(f"{number!r} is no number of an edit.", "See `trellis graph edits`.")
    return _run(options, screen, lambda runtime: undo(int(number), runtime))


def _edits(options: Namespace, screen: Screen) -> int:
    _words(options, 0)
    with runtime_of(options).workspace.read(options.as_of) as generation:
        found = generation.edits.edits()
    if screen.as_json:
        screen.json(found)
        return 0
    for edit in found:
        screen.line(f"{edit.id:>4}  {edit.at}  {told(edit)}")
    screen.line(f"{len(found)} edits; undo one: trellis graph undo ID", style="dim")
    return 0


_EDITABLE = ("kind", "name", "description")
_ACTIONS: dict[str, Callable[[Namespace, Screen], int]] = {
    "merge": _merge, "split": _split, "edit": _edit, "edits": _edits, "undo": _undo,
}  # fmt: skip


def told(edit: Edit) -> str:
    """An edit in words."""
    name = _subject_in_words(edit.subject)
    if edit.action == "merge" and edit.other:
        return f"{_subject_in_words(edit.other)} is {name}"
    if edit.action == "split":
        return f"{', '.join(edit.names) or 'what stands in ' + ', '.join(edit.documents)} is not {name}"
    changes = ((given, getattr(edit, given)) for given in _EDITABLE)
    return f"{name}: " + ", ".join(f"{given} {value!r}" for given, value in changes if value is not None)


def _subject_in_words(subject: Subject) -> str:
    return f"{subject.name} (of {', '.join(subject.documents)})" if subject.documents else subject.name


def _run(options: Namespace, screen: Screen, work: Callable[[Runtime], Awaitable[EditReport]]) -> int:
    with screen.progress() as progress:
        report = asyncio.run(_awaited(work, runtime_of(options, progress)))
    if screen.as_json:
        screen.json(report)
        return 0
    said = f"Edit {report.edit.id} is undone" if report.undone else f"Edit {report.edit.id} is kept"
    screen.line(f"{said}: {told(report.edit)}.")
    screen.line(f"Published generation {report.generation} with {report.entities} entities.", style="bold green")
    return 0


async def _awaited(work: Callable[[Runtime], Awaitable[EditReport]], runtime: Runtime) -> EditReport:
    return await work(runtime)


def _words(options: Namespace, count: int) -> list[str]:
    action, *words = (str(word) for word in options.words)
    if len(words) != count:
        raise UsageError(f"`trellis graph {action}` takes {count} names, not {len(words)}.", f"Use: {_USAGE[action]}.")
    if options.as_of is not None and action != "edits":
        raise UsageError("An earlier generation cannot be edited.", "Leave --as-of out, or roll back first.")
    return words


def _listed(given: str | None) -> list[str]:
    """Names with commas between them; a comma that belongs to a name is written twice."""
    parts = (given or "").replace(",,", "\0").split(",")
    return [part.replace("\0", ",").strip() for part in parts if part.strip()]


def _said(options: Namespace, given: str) -> str | None:
    value = getattr(options, given)
    if value is not None and not value.strip():
        raise UsageError(f"--{given} is empty.", "Leave it out, or say what it should be.")
    return str(value) if value is not None else None
