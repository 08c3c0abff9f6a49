"""Changes of a workspace without its sources: edits of the graph by hand, another try of what failed, forgetting.

Each makes the next generation at once from what is stored: the graph, its communities and reports follow anew. Edits
and what was forgotten hold for every run from then on, until they are undone.
"""

import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from rapidfuzz import process

from flows.index import derive
from flows.indexing.batches import ExtractionWork, extract_all
from flows.indexing.source_changes import author_of
from flows.operations.history import remembered
from flows.operations.uploads import forget_uploads, uploaded_rows
from flows.operations.watch import watched_after
from flows.orchestration.run_folder import forget_runs
from flows.runners import open_runner
from flows.runtime import Runtime, open_caches, usage_of
from flows.settings import PROGRAMS_FOLDER, TAILORING_FILE
from prompts.engine.embedders import text_hash
from prompts.text.segment import sentences
from prompts.text.words import fold_name, simplified
from storage.documents import as_spelt
from storage.errors import NotFound, StorageError, UnknownDocument, UsageError
from storage.graph import Edit, Subject
from storage.graph_records import Alias, Entity
from storage.records import Chunk, DeadLetter, Record, utc_now
from storage.run_records import Usage
from storage.staging import OpenGeneration, Staging
from storage.uploads import upload_folder, upload_path, uploaded_file
from storage.workspace import Generation
from tasks.extract import extraction_inputs
from tasks.load.discover import printable
from tasks.resolve.keys import name_key
from tasks.sync import DocumentTraces

NEAREST = 5
LONGEST_NAME = 1_000  # characters: as long as a whole triple may be (`tasks.load.rows`)
LONGEST_DESCRIPTION = 20_000  # characters: as long as a question may be


@contextmanager
def _next_generation(runtime: Runtime, from_nothing: bool = False) -> Iterator[Staging]:
    """The next generation of a workspace, to be changed and published. NoGeneration before anything
    is written, unless it may begin `from_nothing`.
    """
    runtime.workspace.recover()
    if not from_nothing:
        runtime.workspace.read().close()
    with runtime.workspace.write() as staging, runtime.models.without_history():
        yield staging


# --- edits of the graph ----------------------------------------------------------------------------------------------

# What finds the things that an edit names, and makes the edit: `merge`, `split` or `change` with all but the last
# argument. UsageError for a name that says nothing clear.
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
        with _next_generation(runtime) as staging:
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
        raise UsageError(f"{name!r} and {other!r} are one thing already: {first.name}.", "Name another.")
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
        raise UsageError(f"{thing.name!r} has no {what} {word!r}.", f"It has: {', '.join(choices)}.")
    if not keys - split_off or not {*places} - {*documents}:
        raise UsageError(f"That is all of {thing.name!r}: nothing would be left.", "Leave something to it.")
    subject = _subject(thing, staging, without=split_off)
    return Edit(action="split", subject=subject, names=tuple(names), documents=tuple(documents))


def change(name: str, kind: str | None, new_name: str | None, description: str | None, staging: Staging) -> Edit:
    """Give a thing another kind, name or description; None leaves it."""
    for what, text in {"kind": kind, "name": new_name, "description": description}.items():
        if text is not None:
            _check_words(what, text)
    subject = _subject(_find(name, staging), staging)
    return Edit(action="change", subject=subject, kind=kind, name=new_name, description=description)


EDITABLE = ("kind", "name", "description")


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
    """Raises UsageError for a text that nobody can see, or that is longer than what is read of it."""
    if not any(sign.isprintable() and not sign.isspace() for sign in text):
        raise UsageError(f"The {what} {text[:40]!r} holds no word.", "Write one, or leave it out.")
    if what != "description" and not text.isprintable():
        raise UsageError(f"The {what} {text[:40]!r} holds a sign that nobody can see.", "Leave that sign out.")
    most = LONGEST_DESCRIPTION if what == "description" else LONGEST_NAME
    if len(text) > most:
        raise UsageError(f"The {what} has {len(text):,} characters.", f"Use {most:,} at most.")


def entities_named(name: str, entities: Sequence[Entity], aliases: Sequence[Alias]) -> list[Entity]:
    """All things with this name or alias, compared as names are. NotFound, with the nearest, for none.

    The name as it is written decides where things differ in what folding removes ("Agni (film)").
    """
    having: dict[str, set[str]] = defaultdict(set)
    shown: dict[str, str] = {}
    names = [(entity.name, entity.id) for entity in entities] + [(alias.name, alias.entity) for alias in aliases]
    for written, entity in names:
        having[simplified(fold_name(written))].add(entity)
        shown.setdefault(simplified(fold_name(written)), written)
    key = simplified(fold_name(name))
    named = having.get(key, set())
    if not named:
        near = ", ".join(shown[other] for other, _, _ in process.extract(key, list(shown), limit=NEAREST))
        raise NotFound(f"The graph knows nothing called {name!r}.", f"Nearest: {near}." if near else "")
    exactly = {entity.id for entity in entities if entity.name == name} & named
    return [entity for entity in entities if entity.id in (exactly or named)]


def _find(name: str, staging: Staging) -> Entity:
    """The thing with this name, alias or id. Raises NotFound (nearest names); UsageError: there are several (ids)."""
    entities = staging.graph.entities()
    by_id = {entity.id: entity for entity in entities}
    named = [by_id[name]] if name in by_id else entities_named(name, entities, staging.graph.aliases())
    if len(named) > 1:
        ids = ", ".join(f"{entity.id} ({entity.name}, {entity.kind}, {entity.mentions} mentions)" for entity in named)
        raise UsageError(f"{len(named)} things are called {name!r}.", f"Name one by its id: {ids}.")
    return named[0]


def _subject(thing: Entity, staging: Staging, without: Collection[str] = ()) -> Subject:
    """How to find a thing again: by a name that a text writes, and where others have it too, by its documents."""
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


# --- another try of what failed --------------------------------------------------------------------------------------


class Letter(DeadLetter):
    """A dead letter with the document of its passage; None where it is of no passage that is still there."""

    document: str | None = None

    @property
    def needs_source(self) -> bool:
        """Whether only another run on its source can mend it: what could not be read is stored nowhere."""
        return self.step == "load"


class RetryReport(Record):
    """What came of it: `failed` are letters that were tried in vain, `waiting` those that need their source.

    `published` is False where nothing succeeded: then the generation is the one that was there.
    """

    tried: int
    succeeded: int
    failed: tuple[Letter, ...]
    waiting: tuple[Letter, ...]
    generation: int
    published: bool
    usage: Usage


def letters_of(generation: OpenGeneration) -> tuple[Letter, ...]:
    """All dead letters of a generation, by step and item."""
    letters = generation.extractions.dead_letters()
    passages = generation.documents.chunks(ids={letter.item for letter in letters if letter.step == "extract"})
    documents = {chunk.id: chunk.document for chunk in passages}
    return tuple(Letter(**dict(letter), document=documents.get(letter.item)) for letter in letters)


async def retry(runtime: Runtime) -> RetryReport:
    """Try exactly the failed work of the current generation again, without its sources; publish what succeeds.

    Raises NoGeneration, WorkspaceLocked, and FailureGate where what follows from the new passages fails in turn.
    """
    async with remembered("retry", runtime) as summary:
        report = await _retry(runtime)
        if report.tried:
            summary.update(report.model_dump(include={"generation", "published", "succeeded"}))
            summary["seconds"] = round(report.usage.seconds, 2)
    return report


async def _retry(runtime: Runtime) -> RetryReport:
    started = time.monotonic()
    with _next_generation(runtime) as staging:
        before = letters_of(staging)
        tried = [letter for letter in before if not letter.needs_source]
        succeeded = 0
        if tried:
            await _extract_again({letter.item for letter in tried if letter.step == "extract"}, staging, runtime)
            documents = {letter.document for letter in tried if letter.document is not None}
            await derive(staging.documents.chunks(), documents, staging, runtime)
            left = {(letter.item, letter.step) for letter in letters_of(staging)}
            succeeded = sum((letter.item, letter.step) not in left for letter in tried)
        after = letters_of(staging) if succeeded else before
        number = staging.publish() if succeeded else staging.base_number or 0
    if succeeded:
        await watched_after(runtime)
    return RetryReport(
        tried=len(tried), succeeded=succeeded, generation=number, published=succeeded > 0,
        failed=tuple(letter for letter in after if not letter.needs_source),
        waiting=tuple(letter for letter in after if letter.needs_source),
        usage=usage_of(runtime.models.meter, time.monotonic() - started),
    )  # fmt: skip


async def _extract_again(passages: set[str], staging: Staging, runtime: Runtime) -> None:
    """Extract passages that failed; those that fail again keep a letter."""
    todo = staging.documents.chunks(ids=passages)
    # Counted as what the generation was made with, also where another model takes over what that one could not do:
    # else the next run would give it back to the one that failed.
    author = author_of("extract", staging.meta, runtime)
    inputs = {chunk.id: extraction_inputs(chunk, author) for chunk in todo}
    async with open_runner(runtime) as runner:
        failed = await extract_all(ExtractionWork(todo, inputs, earlier=passages), staging, runtime, runner)
    staging.extractions.remove_dead_letters(step="extract")
    staging.extractions.put_dead_letters(failed)


# --- forgetting ------------------------------------------------------------------------------------------------------


class ForgetReport(Record):
    """What went: generations that held the documents (`held` ones go with their last reader) and
    rows of the caches.

    Generations that cannot be read go too: nobody can say what they hold. `generation` is the
    current one after it, 0 where nothing is indexed; `uploads` are the uploaded files that went, or
    lost rows; `files` hold the documents or words of theirs, and stay as they are: sources, the
    tailoring, compiled steps. `same_text` are documents that stay though they say the same.
    """

    documents: tuple[str, ...]
    generation: int
    chunks: int
    retired: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    memory: int = 0
    model_answers: int = 0
    embeddings: int = 0
    evaluated_answers: int = 0
    run_records: int = 0
    uploads: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    same_text: tuple[str, ...] = ()
    usage: Usage = Usage()


@dataclass
class _Holdings:
    """What the kept generations hold of some documents."""

    generations: list[int] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    hashes: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)

    def add(self, generation: Generation, documents: Collection[str]) -> None:
        stored = generation.documents.documents({*generation.documents.ids()} & {*documents})
        if not stored:
            return
        self.generations.append(generation.number)
        self.ids |= {document.id for document in stored}
        self.files |= {_file_of(part.path) for document in stored for part in document.parts}
        self.texts |= {part.text for document in stored for part in document.parts}
        self.texts |= {document.title for document in stored}
        chunks = generation.documents.chunks(documents=[document.id for document in stored])
        self.hashes |= {window.text_hash for window in generation.vectors.windows([chunk.id for chunk in chunks])}
        self.hashes |= {text_hash(text) for chunk in chunks for text in _embeddable(chunk)}


async def forget(documents: Sequence[str], runtime: Runtime) -> ForgetReport:
    """Remove documents and all that was made from them; they stay out until they are indexed by
    name.

    They leave the sources of truth (documents, passages, extractions, vectors), what follows is
    made anew, and the generations and caches that hold their text go. An uploaded file goes too, or
    the rows of one; files elsewhere are never touched. The name of an uploaded file stands for the
    documents that came from it alone, also where there are none. The history of runs tells how much
    went, and not what. Raises NoGeneration, UnknownDocument, WorkspaceLocked, and FailureGate where
    what follows from the rest fails.
    """
    async with remembered("forget", runtime) as summary:
        report = await _forget(documents, runtime)
        summary.update(generation=report.generation, documents=len(report.documents), chunks=report.chunks)
        summary["uploads"] = len(report.uploads)
        summary["seconds"] = round(report.usage.seconds, 2)
    return report


async def _forget(documents: Sequence[str], runtime: Runtime) -> ForgetReport:
    started = time.monotonic()
    memory, root = runtime.workspace.database.memory, runtime.workspace.root
    named = [name for name in documents if uploaded_file(root, name)]
    with _next_generation(runtime, from_nothing=set(named) == set(documents)) as staging:
        known = {*staging.documents.ids(), *staging.documents.forgotten()}
        spelt = as_spelt(documents, known)
        wanted = list(dict.fromkeys([*spelt, *_from_uploads(named, staging, root)]))
        held, out = _holdings(wanted, runtime), staging.documents.forgotten()
        documents = [name for name in wanted if name in held.ids or name in out]
        unread = {name for name in wanted if name not in documents}
        if unknown := sorted(unread - {*named, *uploaded_rows(root)} if unread - {*named} else ()):
            raise UnknownDocument(unknown[0], get_close_matches(unknown[0], staging.documents.ids(), n=3))
        if not documents:
            uploads = forget_uploads(named, lambda part: part.document in unread, root)
            return ForgetReport(documents=(), generation=staging.base_number or 0, chunks=0, uploads=uploads)
        chunks = staging.documents.chunks(documents=documents)
        staying = [document for document in staging.documents.documents() if document.id not in documents]
        _remove(documents, chunks, staging)
        memories = memory.remove_documents(documents)
        traces = DocumentTraces(held.texts, (text for document in staying for text in (document.title, document.text)))
        caches = open_caches(runtime.settings, runtime.workspace)
        answers, vectors = caches.model_answers.remove_where(traces.found_in), caches.embeddings.remove(held.hashes)
        evaluated, run_records = _forget_elsewhere(documents, traces, runtime)
        for store in {id(store): store for store in (caches, runtime.workspace.database)}.values():
            store.compact()
        await derive(staging.documents.chunks(), set(documents), staging, runtime)
        forgotten, texts = set(documents), staging.documents.forgotten_texts()
        number = staging.publish(retire=held.generations, afresh=True)
        # Only now: where what came before fails, the files are as they were, and the documents are known.
        uploads = forget_uploads(
            {*named, *documents},
            lambda part: (
                part.document in unread or (texts.get(part.text_hash) if part.by_line else part.document) in forgotten
            ),
            root,
        )
    memory.remove_documents(documents)  # what a question that ran meanwhile has put there
    await watched_after(runtime)
    return ForgetReport(
        documents=tuple(documents), generation=number, chunks=len(chunks), retired=tuple(held.generations),
        held=tuple(runtime.workspace.retired()), memory=memories, model_answers=answers, embeddings=vectors,
        evaluated_answers=evaluated, run_records=run_records, uploads=uploads,
        files=(*_elsewhere(held.files, root), *_made_by_hand(traces, root)),
        same_text=tuple(document.id for document in staying if document.text in held.texts),
        usage=usage_of(runtime.models.meter, time.monotonic() - started),
    )  # fmt: skip


def _from_uploads(names: Collection[str], staging: Staging, root: Path) -> list[str]:
    """The documents all of whose parts come from uploaded files of these names."""
    files = {printable(str(upload_path(root, name))) for name in names}
    parts = staging.documents.parts() if files else []
    inside = {part.document for part in parts if _file_of(part.path) in files}
    return sorted(inside - {part.document for part in parts if _file_of(part.path) not in files})


def _file_of(path: str) -> str:
    """The file of a part's path, which may end in a line."""
    return re.sub(r":\d+$", "", path)


def _elsewhere(files: Collection[str], root: Path) -> tuple[str, ...]:
    """The files that are there and are no uploads of the workspace."""
    uploads = upload_folder(root.absolute())
    return tuple(file for file in sorted(files) if not Path(file).is_relative_to(uploads) and Path(file).exists())


def _made_by_hand(traces: DocumentTraces, root: Path) -> list[str]:
    """The tailoring and the compiled steps of a workspace that hold words of the documents:
    examples in them may.
    """
    files = (root / TAILORING_FILE, *sorted((root / PROGRAMS_FOLDER).glob("*.json")))
    return [
        str(file)
        for file in files
        if file.is_file() and traces.found_in(file.read_text(encoding="utf-8", errors="replace"))
    ]


def _forget_elsewhere(documents: Sequence[str], traces: DocumentTraces, runtime: Runtime) -> tuple[int, int]:
    """Remove what evaluations, watched questions and feedback hold of the documents, and what Prefect does of
    runs on this workspace.

    How many answers that were, and how many records of Prefect's.
    """
    names = [json.dumps(name, ensure_ascii=False) for name in documents]

    def holds(text: str) -> bool:
        return any(name in text.replace('\\"', '"') for name in names) or traces.found_in(text)

    database = runtime.workspace.database
    places = (database.running_answers.remove_where, database.watched.forget_where, database.feedback.forget_where)
    answers = sum(forget_in(holds) for forget_in in (*places, runtime.workspace.evaluations.forget_where))
    return answers, forget_runs(runtime.workspace.root, holds)


def let_in(documents: Sequence[str], runtime: Runtime) -> int:
    """Take documents off the list of those that stay out; the generation that says so.

    The next run on their source brings them back. Raises UsageError for one that is not on the list.
    """
    with _next_generation(runtime) as staging:
        out = staging.documents.forgotten()
        for document in as_spelt(documents, out):
            if document not in out:
                raise UsageError(f"{document!r} is not forgotten.", f"Forgotten: {', '.join(out) or 'no document'}.")
            staging.documents.unforget(document)
        return staging.publish()


def _holdings(documents: Sequence[str], runtime: Runtime) -> _Holdings:
    """What all kept generations hold of the documents."""
    held = _Holdings()
    for info in runtime.workspace.generations():
        try:
            with runtime.workspace.read(info.number) as generation:
                held.add(generation, documents)
        except StorageError:
            held.generations.append(info.number)
    return held


def _remove(documents: Sequence[str], chunks: Sequence[Chunk], staging: Staging) -> None:
    """Take the documents out of what the next generation is made from."""
    names = {part.document for part in staging.documents.parts()} & {*documents}
    stored = staging.documents.documents(names)
    hashes = {document.id: {part.text_hash for part in document.parts} for document in stored}
    with staging.transaction():
        staging.documents.remove_documents(documents)
        for name in documents:
            staging.documents.forget(name, hashes.get(name, ()))
        staging.extractions.remove_dead_letters([chunk.id for chunk in chunks])
        staging.vectors.drop_unused()


def _embeddable(chunk: Chunk) -> list[str]:
    """The texts of a passage that a question may have had embedded."""
    return [
        chunk.title,
        chunk.text,
        f"{chunk.title}\n{chunk.text}",
        *(chunk.text[start:end] for start, end in sentences(chunk.text)),
    ]
