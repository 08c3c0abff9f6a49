"""Edits of the graph by hand: each is kept, applied by every run from then on, and can be undone.

An edit makes the next generation at once from what is stored; no model is asked to extract.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence

from rapidfuzz import process

from flows.index import derive
from flows.operations.history import next_generation, remembered
from flows.operations.watch import watched_after
from flows.runtime import Runtime
from prompts.text.words import fold_name, simplified
from storage.documents import as_spelt
from storage.errors import NotFound, UsageError
from storage.graph import Edit, Subject
from storage.graph_records import Alias, Entity
from storage.records import Record, utc_now
from storage.staging import Staging
from tasks.resolve.keys import name_key

NEAREST = 5
LONGEST_NAME = 1_000  # characters: as long as a whole triple may be (`tasks.load.rows`)
LONGEST_DESCRIPTION = 20_000  # characters: as long as a question may be
EDITABLE = ("kind", "name", "description")

# What finds the things that an edit names, and makes the edit: `merge`, `split` or `change` with
# all but the last argument. UsageError for a name that says nothing clear.
Editing = Callable[[Staging], Edit]


class EditReport(Record):
    """The edit that was kept or undone, and the generation that shows it."""

    edit: Edit
    undone: bool
    generation: int
    entities: int


async def edit(editing: Editing, runtime: Runtime) -> EditReport:
    """Keep an edit and publish the graph with it; no model is asked to extract."""
    at = utc_now()
    return await _edited(lambda staging: staging.edits.add(editing(staging), at), False, runtime)


async def undo(number: int, runtime: Runtime) -> EditReport:
    """Forget an edit; later ones stay. Raises NotFound for a number that no edit has."""
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
    """Make two things one, which keeps the name of the first."""
    first, second = _find(name, staging), _find(other, staging)
    if first.id == second.id:
        raise UsageError(
            f"{name!r} and {other!r} are one thing already: {first.name}.", "Name another."
        )
    return Edit(action="merge", subject=_subject(first, staging), other=_subject(second, staging))


def split(name: str, names: Sequence[str], documents: Sequence[str], staging: Staging) -> Edit:
    """Make what some of its names, or some documents, say of a thing another thing."""
    thing = _find(name, staging)
    known, places = _names(thing, staging), _documents(thing, staging)
    documents = as_spelt(documents, places)
    keys, split_off = {name_key(word) for word in known}, {name_key(word) for word in names}
    unknown = [("name", word, known) for word in names if name_key(word) not in keys]
    unknown += [("document", word, places) for word in documents if word not in places]
    for what, word, choices in unknown:
        raise UsageError(
            f"{thing.name!r} has no {what} {word!r}.", f"It has: {', '.join(choices)}."
        )
    if not keys - split_off or not {*places} - {*documents}:
        raise UsageError(
            f"That is all of {thing.name!r}: nothing would be left.", "Leave something to it."
        )
    subject = _subject(thing, staging, without=split_off)
    return Edit(action="split", subject=subject, names=tuple(names), documents=tuple(documents))


def change(
    name: str, kind: str | None, new_name: str | None, description: str | None, staging: Staging
) -> Edit:
    """Give a thing another kind, name or description; None leaves it."""
    for what, text in {"kind": kind, "name": new_name, "description": description}.items():
        if text is not None:
            _check_words(what, text)
    subject = _subject(_find(name, staging), staging)
    return Edit(action="change", subject=subject, kind=kind, name=new_name, description=description)


def edit_in_words(edit: Edit) -> str:
    """Say what an edit does."""
    name = _subject_in_words(edit.subject)
    if edit.action == "merge" and edit.other:
        return f"{_subject_in_words(edit.other)} is {name}"
    if edit.action == "split":
        parts = ", ".join(edit.names) or f"what stands in {', '.join(edit.documents)}"
        return f"{parts} is not {name}"
    values = [(field, getattr(edit, field)) for field in EDITABLE]
    given = [f"{field} {value!r}" for field, value in values if value is not None]
    return f"{name}: {', '.join(given)}"


def _subject_in_words(subject: Subject) -> str:
    documents = ", ".join(subject.documents)
    return f"{subject.name} (of {documents})" if documents else subject.name


def _check_words(what: str, text: str) -> None:
    """Raises UsageError for a text that nobody can see, or that is longer than what is read of
    it.
    """
    if not any(sign.isprintable() and not sign.isspace() for sign in text):
        raise UsageError(f"The {what} {text[:40]!r} holds no word.", "Write one, or leave it out.")
    if what != "description" and not text.isprintable():
        raise UsageError(
            f"The {what} {text[:40]!r} holds a sign that nobody can see.", "Leave that sign out."
        )
    most = LONGEST_DESCRIPTION if what == "description" else LONGEST_NAME
    if len(text) > most:
        raise UsageError(f"The {what} has {len(text):,} characters.", f"Use {most:,} at most.")


def entities_named(name: str, entities: Sequence[Entity], aliases: Sequence[Alias]) -> list[Entity]:
    """All things with this name or alias, compared as names are. NotFound, with the nearest, for
    none.

    The name as it is written decides where things differ in what folding removes ("Agni (film)").
    """
    having: dict[str, set[str]] = defaultdict(set)
    shown: dict[str, str] = {}
    names = [(entity.name, entity.id) for entity in entities] + [
        (alias.name, alias.entity) for alias in aliases
    ]
    for written, entity in names:
        having[simplified(fold_name(written))].add(entity)
        shown.setdefault(simplified(fold_name(written)), written)
    key = simplified(fold_name(name))
    named = having.get(key, set())
    if not named:
        near = ", ".join(
            shown[other] for other, _, _ in process.extract(key, list(shown), limit=NEAREST)
        )
        raise NotFound(
            f"The graph knows nothing called {name!r}.", f"Nearest: {near}." if near else ""
        )
    exactly = {entity.id for entity in entities if entity.name == name} & named
    return [entity for entity in entities if entity.id in (exactly or named)]


def _find(name: str, staging: Staging) -> Entity:
    """The thing with this name, alias or id. Raises NotFound (nearest names); UsageError: there are
    several (ids).
    """
    entities = staging.graph.entities()
    by_id = {entity.id: entity for entity in entities}
    named = (
        [by_id[name]] if name in by_id else entities_named(name, entities, staging.graph.aliases())
    )
    if len(named) > 1:
        ids = ", ".join(
            f"{entity.id} ({entity.name}, {entity.kind}, {entity.mentions} mentions)"
            for entity in named
        )
        raise UsageError(f"{len(named)} things are called {name!r}.", f"Name one by its id: {ids}.")
    return named[0]


def _subject(thing: Entity, staging: Staging, without: Collection[str] = ()) -> Subject:
    """How to find a thing again: by a name that a text writes, and where others have it too, by its
    documents.
    """
    name = next(name for name in _names(thing, staging) if name_key(name) not in without)
    named = [(entity.name, entity.id) for entity in staging.graph.entities()]
    named += [(alias.name, alias.entity) for alias in staging.graph.aliases()]
    alone = {owner for written, owner in named if name_key(written) == name_key(name)} <= {thing.id}
    return Subject(name=name, documents=() if alone else tuple(_documents(thing, staging)))


def _names(thing: Entity, staging: Staging) -> list[str]:
    """The names that texts write for a thing; the shown one first where it is one of them."""
    chunks = {place.chunk for place in staging.graph.occurrences("entity", [thing.id])}
    extractions = staging.extractions.extractions(chunks)
    written = {mention.name for extraction in extractions for mention in extraction.mentions}
    names = [thing.name, *(alias.name for alias in staging.graph.aliases([thing.id]))]
    return [name for name in names if name in written]


def _documents(thing: Entity, staging: Staging) -> list[str]:
    chunks = {place.chunk for place in staging.graph.occurrences("entity", [thing.id])}
    return sorted({chunk.document for chunk in staging.documents.chunks(ids=chunks)})
