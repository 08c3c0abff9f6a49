"""Edits of the graph by hand: each is stored, applied by every later run, and can be undone.

An edit publishes the next generation at once, made from what is stored; nothing is extracted again.
"""

from collections.abc import Callable, Collection, Sequence

from flows.index import derive
from flows.operations.history import next_generation, remembered
from flows.operations.watch import watched_after
from flows.runtime import Runtime
from storage.documents import as_spelt
from storage.errors import UsageError
from storage.graph import Edit, Subject
from storage.graph_records import Entity
from storage.records import Record, utc_now
from storage.staging import Staging
from tasks.resolve.keys import name_key
from tasks.traverse.entity_names import all_names, entities_named

LONGEST_NAME = 1_000  # characters: the limit of a whole triple (`tasks.load.rows`)
LONGEST_DESCRIPTION = 20_000  # characters

# `merge`, `split` or `change` with all but the last argument: finds the entities that an edit names
# and makes the edit. Raises UsageError where a name does not say which entity is meant.
Editing = Callable[[Staging], Edit]


class EditReport(Record):
    """The edit that was made or undone, and the generation that shows it."""

    edit: Edit
    undone: bool
    generation: int
    entities: int


async def edit(editing: Editing, runtime: Runtime) -> EditReport:
    """Store an edit and publish the graph with it."""
    at = utc_now()
    return await _edited(lambda staging: staging.edits.add(editing(staging), at), False, runtime)


async def undo(number: int, runtime: Runtime) -> EditReport:
    """Remove an edit; later ones hold. Raises NotFound for a number that no edit has."""
    return await _edited(lambda staging: staging.edits.remove(number), True, runtime)


async def _edited(change: Editing, undone: bool, runtime: Runtime) -> EditReport:
    async with remembered("undo" if undone else "edit", runtime) as summary:
        with next_generation(runtime) as staging:
            new_edit = change(staging)
            await derive(staging.documents.chunks(), (), staging, runtime)
            entities = len(staging.graph.entities())
            number = staging.publish()
        summary["generation"] = number
    await watched_after(runtime)
    return EditReport(edit=new_edit, undone=undone, generation=number, entities=entities)


def merge(name: str, other: str, staging: Staging) -> Edit:
    """Make two entities one, with the name of the first."""
    first, second = _find(name, staging), _find(other, staging)
    if first.id == second.id:
        raise UsageError(
            f"{name!r} and {other!r} are one thing already: {first.name}.", "Name another."
        )
    return Edit(action="merge", subject=_subject(first, staging), other=_subject(second, staging))


def split(name: str, names: Sequence[str], documents: Sequence[str], staging: Staging) -> Edit:
    """Make some names of an entity, or its mentions in some documents, an entity of their own."""
    entity = _find(name, staging)
    known_names, known_documents = _names(entity, staging), _documents(entity, staging)
    documents = as_spelt(documents, known_documents)
    keys = {name_key(written) for written in known_names}
    split_off = {name_key(written) for written in names}
    unknown = [("name", word, known_names) for word in names if name_key(word) not in keys]
    unknown += [
        ("document", word, known_documents) for word in documents if word not in known_documents
    ]
    for what, word, choices in unknown:
        raise UsageError(
            f"{entity.name!r} has no {what} {word!r}.", f"It has: {', '.join(choices)}."
        )
    if not keys - split_off or not {*known_documents} - {*documents}:
        raise UsageError(
            f"That is all of {entity.name!r}: nothing would be left.", "Leave something to it."
        )
    subject = _subject(entity, staging, without=split_off)
    return Edit(action="split", subject=subject, names=tuple(names), documents=tuple(documents))


def change(
    name: str, kind: str | None, new_name: str | None, description: str | None, staging: Staging
) -> Edit:
    """Give an entity another kind, name or description; None leaves it as it is."""
    for what, text in {"kind": kind, "name": new_name, "description": description}.items():
        if text is not None:
            _check_words(what, text)
    subject = _subject(_find(name, staging), staging)
    return Edit(action="change", subject=subject, kind=kind, name=new_name, description=description)


def edit_in_words(edit: Edit) -> str:
    """Return an edit as a sentence."""
    name = _subject_in_words(edit.subject)
    if edit.action == "merge" and edit.other:
        return f"{_subject_in_words(edit.other)} is {name}"
    if edit.action == "split":
        parts = ", ".join(edit.names) or f"what stands in {', '.join(edit.documents)}"
        return f"{parts} is not {name}"
    fields = {"kind": edit.kind, "name": edit.name, "description": edit.description}
    given = [f"{field} {value!r}" for field, value in fields.items() if value is not None]
    return f"{name}: {', '.join(given)}"


def _subject_in_words(subject: Subject) -> str:
    documents = ", ".join(subject.documents)
    return f"{subject.name} (of {documents})" if documents else subject.name


def _check_words(what: str, text: str) -> None:
    """Raise UsageError for a text that shows nothing, or that is too long."""
    if not any(letter.isprintable() and not letter.isspace() for letter in text):
        raise UsageError(
            f"The {what} {text[:40]!r} holds no visible character.", "Write one, or leave it out."
        )
    if what != "description" and not text.isprintable():
        raise UsageError(
            f"The {what} {text[:40]!r} holds an invisible character.", "Leave that character out."
        )
    most = LONGEST_DESCRIPTION if what == "description" else LONGEST_NAME
    if len(text) > most:
        raise UsageError(f"The {what} has {len(text):,} characters.", f"Use {most:,} at most.")


def _find(name: str, staging: Staging) -> Entity:
    """Return the entity with this name, alias or id.

    Raises NotFound with the nearest names, or UsageError with the ids where several have the name.
    """
    entities = staging.graph.entities()
    named = [entity for entity in entities if entity.id == name]
    named = named or entities_named(name, entities, staging.graph.aliases())
    if len(named) > 1:
        ids = ", ".join(
            f"{entity.id} ({entity.name}, {entity.kind}, {entity.mentions} mentions)"
            for entity in named
        )
        raise UsageError(f"{len(named)} things are called {name!r}.", f"Name one by its id: {ids}.")
    return named[0]


def _subject(entity: Entity, staging: Staging, without: Collection[str] = ()) -> Subject:
    """Describe an entity so that later runs find it: by a name that a text writes, and by its
    documents where other entities have the same name.
    """
    name = next(name for name in _names(entity, staging) if name_key(name) not in without)
    names = all_names(staging.graph.entities(), staging.graph.aliases())
    owners = {owner for written, owner in names if name_key(written) == name_key(name)}
    documents = () if owners <= {entity.id} else tuple(_documents(entity, staging))
    return Subject(name=name, documents=documents)


def _names(entity: Entity, staging: Staging) -> list[str]:
    """Return the names of an entity that texts write, its own name first if it is one of them."""
    extractions = staging.extractions.extractions(_chunks(entity, staging))
    written = {mention.name for extraction in extractions for mention in extraction.mentions}
    names = [entity.name, *(alias.name for alias in staging.graph.aliases([entity.id]))]
    return [name for name in names if name in written]


def _documents(entity: Entity, staging: Staging) -> list[str]:
    chunks = staging.documents.chunks(ids=_chunks(entity, staging))
    return sorted({chunk.document for chunk in chunks})


def _chunks(entity: Entity, staging: Staging) -> set[str]:
    return {place.chunk for place in staging.graph.occurrences("entity", [entity.id])}
