"""Forget documents: remove them and everything made from them, and keep them out.

What follows from the rest is made anew at once; generations and caches that hold the text go.
"""

import json
import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path

from flows.index import derive
from flows.operations.history import next_generation, remembered
from flows.operations.watch import watched_after
from flows.orchestration.run_folder import forget_runs
from flows.runtime import Runtime, open_caches, usage_of
from flows.settings import PROGRAMS_FOLDER, TAILORING_FILE
from prompts.engine.embedders import text_hash
from prompts.text.segment import sentences
from storage.conversations import Turn
from storage.documents import as_spelt
from storage.errors import StorageError, UnknownDocument, UsageError
from storage.records import Chunk, Record
from storage.run_records import Usage
from storage.staging import OpenGeneration, Staging
from storage.uploads import (
    remove_upload,
    replace_upload,
    upload_folder,
    upload_path,
    uploaded_file,
)
from storage.workspace import Generation
from tasks.load.discover import printable
from tasks.load.encodings import Unreadable, decode
from tasks.load.rows import parse_json
from tasks.load.tables import read_table
from tasks.load.text import clean
from tasks.sync import DocumentTraces


class ForgetReport(Record):
    """What was removed: generations with the documents (`held` ones go with their last reader),
    and rows of the caches.

    Damaged generations go too: nobody can say what they hold. `generation` is the current one
    afterwards, 0 where nothing is indexed. `uploads` are the uploaded files that were removed or
    lost rows. `files` still hold the documents or words of theirs and are left alone: sources,
    uploads whose rows cannot be taken out, the tailoring, compiled steps. `same_text` are documents
    that remain though they say the same.
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
    conversation_turns: int = 0
    run_records: int = 0
    uploads: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    same_text: tuple[str, ...] = ()
    usage: Usage = Usage()


@dataclass
class Holdings:
    """What the stored generations hold of some documents."""

    generations: list[int] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    hashes: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)

    def add(self, generation: Generation, documents: Collection[str]) -> None:
        """Add what a generation holds."""
        stored = generation.documents.documents({*generation.documents.ids()} & {*documents})
        if not stored:
            return
        self.generations.append(generation.number)
        self.ids |= {document.id for document in stored}
        parts = [part for document in stored for part in document.parts]
        self.files |= {_file_of(part.path) for part in parts}
        self.texts |= {part.text for part in parts} | {document.title for document in stored}
        chunks = generation.documents.chunks(documents=[document.id for document in stored])
        windows = generation.vectors.windows([chunk.id for chunk in chunks])
        self.hashes |= {window.text_hash for window in windows}
        self.hashes |= {text_hash(text) for chunk in chunks for text in _embeddable(chunk)}


def _embeddable(chunk: Chunk) -> list[str]:
    """Return the texts of a chunk that a question may have had embedded."""
    spans = [chunk.text[start:end] for start, end in sentences(chunk.text)]
    return [chunk.title, chunk.text, f"{chunk.title}\n{chunk.text}", *spans]


async def forget(documents: Sequence[str], runtime: Runtime) -> ForgetReport:
    """Remove documents and all that was made from them; they stay out until they are indexed by
    name.

    The documents, their passages, extractions and vectors are deleted, what follows is made anew,
    and the generations and caches that hold their text go. An uploaded file goes too, or its rows
    in one in JSON Lines, JSON or CSV; files elsewhere are never touched. The name of an uploaded
    file means the documents that came from it alone. The history of runs keeps counts only.

    Raises NoGeneration, UnknownDocument, WorkspaceLocked, and FailureGate where too much of what
    follows from the rest fails.
    """
    async with remembered("forget", runtime) as summary:
        report = await _forget(documents, runtime)
        summary.update(generation=report.generation, documents=len(report.documents))
        summary.update(chunks=report.chunks, uploads=len(report.uploads))
        summary["seconds"] = round(report.usage.seconds, 2)
    return report


async def _forget(names: Sequence[str], runtime: Runtime) -> ForgetReport:
    started = time.monotonic()
    database, root = runtime.workspace.database, runtime.workspace.root
    memory, conversations = database.memory, database.conversations
    uploads = {name: file for name in names if (file := uploaded_file(root, name))}
    with next_generation(runtime, from_nothing=uploads.keys() == set(names)) as staging:
        documents, held = _meant(names, uploads, staging, runtime)
        if not documents:  # uploads that were never indexed
            for file in uploads.values():
                remove_upload(root, file)
            number = staging.base_number or 0
            return ForgetReport(documents=(), generation=number, chunks=0, uploads=tuple(uploads))
        chunks = staging.documents.chunks(documents=documents)
        rest = [row for row in staging.documents.documents() if row.id not in documents]
        traces = DocumentTraces(
            held.texts, (text for row in rest for text in (row.title, row.text))
        )
        _remove(documents, chunks, staging)
        memories = memory.remove_documents(documents)
        evaluated, run_records = _remove_answers(_holds(documents, traces), runtime)
        # A turn has words of ours too, which are no document's: its fields and reasons.
        in_turns = _holds(documents, traces.without(json.dumps(Turn.model_json_schema())))
        turns = conversations.forget_where(in_turns)
        answers, vectors = _remove_cached(traces, held, runtime)
        await derive(staging.documents.chunks(), set(documents), staging, runtime)
        left = {_file_of(part.path) for part in staging.documents.parts()}
        number = staging.publish(retire=held.generations, afresh=True)
        # Only after the publication: until then a failure must leave the files as they were.
        changed = _remove_uploads(uploads, held.files, left, traces, root)
    # Also what a question has stored meanwhile.
    memory.remove_documents(documents)
    turns += conversations.forget_where(in_turns)
    await watched_after(runtime)
    return ForgetReport(
        documents=tuple(documents),
        generation=number,
        chunks=len(chunks),
        retired=tuple(held.generations),
        held=tuple(runtime.workspace.retired()),
        memory=memories,
        model_answers=answers,
        embeddings=vectors,
        evaluated_answers=evaluated,
        conversation_turns=turns,
        run_records=run_records,
        uploads=changed,
        files=_files_left(held.files, changed, traces, root),
        same_text=tuple(document.id for document in rest if document.text in held.texts),
        usage=usage_of(runtime.models.meter, time.monotonic() - started),
    )


def _meant(
    names: Sequence[str], uploads: Collection[str], staging: Staging, runtime: Runtime
) -> tuple[list[str], Holdings]:
    """Return the documents that the names mean, and what is held of them.

    Raises UnknownDocument.
    """
    out = staging.documents.forgotten()
    spelt = as_spelt(names, {*staging.documents.ids(), *out})
    inside = from_uploads(uploads, staging, runtime.workspace.root)
    wanted = list(dict.fromkeys([*spelt, *inside]))
    held = Holdings()
    for info in runtime.workspace.generations():
        try:
            with runtime.workspace.read(info.number) as generation:
                held.add(generation, wanted)
        except StorageError:
            held.generations.append(info.number)
    documents = [name for name in wanted if name in held.ids or name in out]
    if unknown := [name for name in spelt if name not in documents and name not in uploads]:
        near = get_close_matches(unknown[0], staging.documents.ids(), n=3)
        raise UnknownDocument(unknown[0], near)
    return documents, held


def from_uploads(names: Collection[str], staging: OpenGeneration, root: Path) -> list[str]:
    """Return the documents whose parts all come from uploaded files of these names."""
    files = {printable(str(upload_path(root, name))) for name in names}
    parts = staging.documents.parts() if files else []
    inside = {part.document for part in parts if _file_of(part.path) in files}
    return sorted(inside - {part.document for part in parts if _file_of(part.path) not in files})


def _file_of(path: str) -> str:
    """Return the file of a part's path, which may end in a line number."""
    return re.sub(r":\d+$", "", path)


def _remove(documents: Sequence[str], chunks: Sequence[Chunk], staging: Staging) -> None:
    """Remove the documents from what the next generation is made of."""
    names = {part.document for part in staging.documents.parts()} & {*documents}
    stored = staging.documents.documents(names)
    hashes = {row.id: {part.text_hash for part in row.parts} for row in stored}
    with staging.transaction():
        staging.documents.remove_documents(documents)
        for name in documents:
            staging.documents.forget(name, hashes.get(name, ()))
        staging.extractions.remove_dead_letters([chunk.id for chunk in chunks])
        staging.vectors.drop_unused()


def _remove_cached(traces: DocumentTraces, held: Holdings, runtime: Runtime) -> tuple[int, int]:
    """Remove model answers and vectors of the documents from the caches; return how many."""
    caches = open_caches(runtime.settings, runtime.workspace)
    answers = caches.model_answers.remove_where(traces.found_in)
    vectors = caches.embeddings.remove(held.hashes)
    for database in {caches, runtime.workspace.database}:
        database.compact()
    return answers, vectors


def names_in(documents: Sequence[str]) -> Callable[[str], bool]:
    """Make a test whether a JSON text names one of the documents."""
    names = [json.dumps(name, ensure_ascii=False) for name in documents]
    return lambda text: any(name in text.replace('\\"', '"') for name in names)


def _holds(documents: Sequence[str], traces: DocumentTraces) -> Callable[[str], bool]:
    """Make a test whether a JSON text names one of the documents or has a trace of them."""
    named = names_in(documents)
    return lambda text: named(text) or traces.found_in(text)


def _remove_answers(holds: Callable[[str], bool], runtime: Runtime) -> tuple[int, int]:
    """Remove the answers in evaluations, watched questions and feedback that hold the documents,
    and the recorded runs of this workspace that do; return how many of each.
    """
    database = runtime.workspace.database
    answers = database.running_answers.remove_where(holds)
    answers += database.watched.forget_where(holds)
    answers += database.feedback.forget_where(holds)
    answers += database.evaluations.forget_where(holds)
    return answers, forget_runs(runtime.workspace.root, holds)


# --- uploaded files ---


def _remove_uploads(
    named: dict[str, Path],
    files: Collection[str],
    left: Collection[str],
    traces: DocumentTraces,
    root: Path,
) -> tuple[str, ...]:
    """Remove the uploads that were named and those with no document left; take the forgotten rows
    out of the others. Return the names of the files that changed.
    """
    folder, changed = upload_folder(root.absolute()), list[str]()
    for path in sorted({*map(Path, files), *(file.absolute() for file in named.values())}):
        if not path.is_relative_to(folder) or not path.is_file():
            continue
        if str(path) not in left:
            remove_upload(root, path)
        elif not _take_rows_out(path, traces, root):
            continue
        changed.append(path.relative_to(folder).as_posix())
    return tuple(changed)


def _take_rows_out(path: Path, traces: DocumentTraces, root: Path) -> bool:
    """Write an upload without its forgotten rows, in UTF-8; return whether there were any."""
    without_rows = _WITHOUT_ROWS.get(path.suffix.lower())
    if without_rows is None:
        return False
    try:
        text = decode(path.read_bytes())
        kept = without_rows(text, traces.found_in)
    except Unreadable:  # changed since it was indexed: the report names it as left alone
        return False
    if kept != text:
        replace_upload(root, path, kept.encode("utf-8", "surrogatepass"))
    return kept != text


Goes = Callable[[str], bool]


def _lines_left(text: str, goes: Goes) -> str:
    """Blank some rows of JSON Lines; the others keep their line, which may be their id."""
    return "\n".join("" if goes(line) else line for line in text.split("\n"))


def _table_left(text: str, goes: Goes) -> str:
    """Blank some rows of a delimited text; a row may span several lines."""
    read = clean(text)  # as it was indexed: lines may end in \r
    lines = read.split("\n")
    for (before, _), (last, _) in pairwise(read_table(read, None)):
        if goes("\n".join(lines[before:last])):
            lines[before:last] = [""] * (last - before)
    left = "\n".join(lines)
    return text if left == read else left


def _list_left(text: str, goes: Goes) -> str:
    """Drop some items of a JSON list."""
    items = parse_json(text)
    if not isinstance(items, list):
        return text
    left = [item for item in items if not goes(json.dumps(item, ensure_ascii=False))]
    return text if len(left) == len(items) else json.dumps(left, ensure_ascii=False)


_WITHOUT_ROWS: dict[str, Callable[[str, Goes], str]] = {
    ".jsonl": _lines_left,
    ".ndjson": _lines_left,
    ".csv": _table_left,
    ".tsv": _table_left,
    ".json": _list_left,
}


def _files_left(
    files: Collection[str], changed: Collection[str], traces: DocumentTraces, root: Path
) -> tuple[str, ...]:
    """Return the files that still hold the documents or words of theirs."""
    gone = {str(upload_folder(root.absolute()) / name) for name in changed}
    left = [file for file in sorted(files) if file not in gone and Path(file).exists()]
    made = (root / TAILORING_FILE, *sorted((root / PROGRAMS_FOLDER).glob("*.json")))
    left += [
        str(file)
        for file in made
        if file.is_file() and traces.found_in(file.read_text(encoding="utf-8", errors="replace"))
    ]
    return tuple(left)


def let_in(documents: Sequence[str], runtime: Runtime) -> int:
    """Let forgotten documents in again, and return the generation that does.

    The next run on their source brings them back. Raises UsageError for one that is not forgotten.
    """
    with next_generation(runtime) as staging:
        out = staging.documents.forgotten()
        for document in as_spelt(documents, out):
            if document not in out:
                known = ", ".join(out) or "no document"
                raise UsageError(f"{document!r} is not forgotten.", f"Forgotten: {known}.")
            staging.documents.unforget(document)
        return staging.publish()
