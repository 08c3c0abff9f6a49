"""Edits of the graph by hand: each is kept with the workspace, and the next generation is made at once.

Nothing is extracted anew: the graph, its communities and reports follow from what is stored. Every run from then on
applies the edits too, until they are undone.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from rapidfuzz import process

from flows.index import derive
from flows.runtime import Runtime
from prompts.text.words import fold_name
from storage.errors import UsageError
from storage.graph import Edit, Subject
from storage.graph_records import Alias, Entity
from storage.records import Record
from storage.staging import Staging
from tasks.resolve.keys import name_key

NEAREST = 5


class EditReport(Record):
    """The edit that was kept or undone, and the generation that shows it."""

    edit: Edit
    undone: bool
    generation: int
    entities: int


async def merge(name: str, other: str, runtime: Runtime) -> EditReport:
    """Make two things one, which keeps the name of the first. Raises UsageError for a name that says nothing clear."""

    def made(staging: Staging) -> Edit:
        first, second = find(name, staging), find(other, staging)
        if first.id == second.id:
            raise UsageError(f"{name!r} and {other!r} are one thing already: {first.name}.", "Name another.")
        return Edit(action="merge", subject=_subject(first, staging), other=_subject(second, staging))

    return await _kept(made, runtime)


async def split(name: str, names: Sequence[str], documents: Sequence[str], runtime: Runtime) -> EditReport:
    """Make what some of its names, or some documents, say of a thing another thing."""

    def made(staging: Staging) -> Edit:
        thing = find(name, staging)
        known, places = _names(thing, staging), _documents(thing, staging)
        for what, asked, there in (("name", names, known), ("document", documents, places)):
            keys = {name_key(one) for one in there} if what == "name" else set(there)
            for one in asked:
                if (name_key(one) if what == "name" else one) not in keys:
                    raise UsageError(f"{thing.name!r} has no {what} {one!r}.", f"It has: {', '.join(there)}.")
        left = {name_key(one) for one in known} - {name_key(one) for one in names}
        if not left or not set(places) - set(documents):
            raise UsageError(f"That is all of {thing.name!r}: nothing would be left.", "Leave something to it.")
        subject = _subject(thing, staging, without={name_key(one) for one in names})
        return Edit(action="split", subject=subject, names=tuple(names), documents=tuple(documents))

    return await _kept(made, runtime)


async def change(
    name: str, kind: str | None, new_name: str | None, description: str | None, runtime: Runtime
) -> EditReport:
    """Give a thing another kind, name or description; None leaves it."""

    def made(staging: Staging) -> Edit:
        subject = _subject(find(name, staging), staging)
        return Edit(action="change", subject=subject, kind=kind, name=new_name, description=description)

    return await _kept(made, runtime)


async def undo(number: int, runtime: Runtime) -> EditReport:
    """Forget an edit; later ones stay. Raises UsageError for a number that no edit has."""
    return await _published(lambda staging: staging.edits.remove(number), True, runtime)


async def _kept(made: Callable[[Staging], Edit], runtime: Runtime) -> EditReport:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return await _published(lambda staging: staging.edits.add(made(staging), at), False, runtime)


async def _published(changed: Callable[[Staging], Edit], undone: bool, runtime: Runtime) -> EditReport:
    runtime.workspace.recover()
    runtime.workspace.read().close()  # NoGeneration where there is nothing to edit
    with runtime.workspace.write() as staging:
        edit = changed(staging)
        await derive(staging.documents.chunks(), (), staging, runtime)
        entities = len(staging.graph.entities())
        return EditReport(edit=edit, undone=undone, generation=staging.publish(), entities=entities)


def named(name: str, entities: Sequence[Entity], aliases: Sequence[Alias]) -> set[str]:
    """The ids of all things with this name or alias, compared as names are. UsageError, with the nearest, for none.

    The name as it is written decides where things differ in what folding removes ("Agni (film)").
    """
    having: dict[str, set[str]] = defaultdict(set)
    shown: dict[str, str] = {}
    for written, entity in [(one.name, one.id) for one in entities] + [(one.name, one.entity) for one in aliases]:
        having[fold_name(written)].add(entity)
        shown.setdefault(fold_name(written), written)
    found = having.get(fold_name(name))
    if found:
        return {one.id for one in entities if one.name == name} & found or found
    near = ", ".join(shown[key] for key, _, _ in process.extract(fold_name(name), list(shown), limit=NEAREST))
    raise UsageError(f"The graph knows nothing called {name!r}.", f"Nearest: {near}." if near else "")


def find(name: str, staging: Staging) -> Entity:
    """The thing with this name, alias or id. Raises UsageError: there is none (nearest names), or several (ids)."""
    entities = {entity.id: entity for entity in staging.graph.entities()}
    if name in entities:
        return entities[name]
    found = named(name, list(entities.values()), staging.graph.aliases())
    if len(found) == 1:
        return entities[found.pop()]
    several = (entities[one] for one in sorted(found))
    told = ", ".join(f"{one.id} ({one.name}, {one.kind}, {one.mentions} mentions)" for one in several)
    raise UsageError(f"{len(found)} things are called {name!r}.", f"Name one by its id: {told}.")


def _subject(thing: Entity, staging: Staging, without: set[str] | None = None) -> Subject:
    """How to find a thing again: by a name that a text writes, and where others have it too, by its documents."""
    name = next(name for name in _names(thing, staging) if name_key(name) not in (without or set()))
    key = name_key(name)
    others = [entity.id for entity in staging.graph.entities() if name_key(entity.name) == key]
    others += [alias.entity for alias in staging.graph.aliases() if name_key(alias.name) == key]
    alone = set(others) <= {thing.id}
    return Subject(name=name, documents=() if alone else tuple(_documents(thing, staging)))


def _names(thing: Entity, staging: Staging) -> list[str]:
    """The names that texts write for a thing; the shown one first where it is one of them."""
    chunks = {place.chunk for place in staging.graph.occurrences("entity", [thing.id])}
    written = {mention.name for found in staging.extractions.extractions(chunks) for mention in found.mentions}
    names = [thing.name, *(alias.name for alias in staging.graph.aliases([thing.id]))]
    return [name for name in names if name in written]


def _documents(thing: Entity, staging: Staging) -> list[str]:
    chunks = {place.chunk for place in staging.graph.occurrences("entity", [thing.id])}
    return sorted({chunk.document for chunk in staging.documents.chunks(ids=chunks)})
