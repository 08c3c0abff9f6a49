"""Forgetting: a document goes with all that was made from it, and does not come back by itself.

It leaves the sources of truth (documents, passages, extractions, vectors), what follows from them is made anew without
it, and the generations and caches that hold its text go. Files and folders that were indexed are never touched.
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from flows.index import derive
from flows.indexing.concurrency import relaxed_gc
from flows.runtime import Runtime, open_caches, usage_of
from prompts.engine.embedder import text_hash
from prompts.text.segment import sentences
from storage.errors import StorageError, UnknownDocument, UsageError
from storage.generations import Generation
from storage.records import Chunk, Record
from storage.run_records import Usage
from storage.staging import Staging
from tasks.embed import embedded_text
from tasks.sync import Traces


class ForgetReport(Record):
    """What went: generations that held the documents (`held` ones go with their last reader) and rows of the caches.

    Generations that cannot be read, and those that were set aside, go too: nobody can say what they hold.

    `same_text` are documents that stay though they say the same.
    """

    documents: tuple[str, ...]
    generation: int
    chunks: int
    retired: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    memory: int = 0
    model_answers: int = 0
    embeddings: int = 0
    same_text: tuple[str, ...] = ()
    usage: Usage = Usage()


@dataclass
class _Held:
    """What the kept generations hold of some documents."""

    generations: list[int] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    hashes: set[str] = field(default_factory=set)

    def add(self, generation: Generation, documents: Collection[str]) -> None:
        there = set(generation.documents.ids())
        found = generation.documents.documents(there & set(documents))
        if not found:
            return
        self.generations.append(generation.number)
        self.ids |= {document.id for document in found}
        self.texts |= {part.text for document in found for part in document.parts}
        self.texts |= {document.title for document in found}
        chunks = generation.documents.chunks(documents=[document.id for document in found])
        self.hashes |= {window.text_hash for window in generation.vectors.windows([chunk.id for chunk in chunks])}
        self.hashes |= {text_hash(text) for chunk in chunks for text in _embeddable(chunk)}


async def forget(documents: Sequence[str], runtime: Runtime, keep_history: bool = False) -> ForgetReport:
    """Remove documents and all that was made from them; they stay out until they are indexed by name.

    `keep_history` leaves the older generations as they are. Raises NoGeneration, UnknownDocument, WorkspaceLocked, and
    FailureGate where what follows from the rest fails.
    """
    started = time.monotonic()
    runtime.workspace.recover()
    runtime.workspace.read().close()  # NoGeneration before anything is written
    with runtime.workspace.write() as staging, relaxed_gc():
        held = _held(documents, runtime)
        chunks = staging.documents.chunks(documents=documents)
        same = _same_text(documents, held, staging)
        _remove(documents, chunks, held, staging)
        removed = _purge(documents, held, staging, runtime)
        await derive(staging.documents.chunks(), set(documents), staging, runtime)
        retire = () if keep_history else tuple(held.generations)
        number = staging.publish(retire=retire, afresh=True)
    _purge_memory(documents, runtime)  # what a question that ran meanwhile has put there
    return ForgetReport(
        documents=tuple(documents), generation=number, chunks=len(chunks), retired=retire, same_text=same,
        held=tuple(runtime.workspace.retired()), **removed,
        usage=usage_of(runtime.models.meter, time.monotonic() - started),
    )  # fmt: skip


def let_in(documents: Sequence[str], runtime: Runtime) -> int:
    """Take documents off the list of those that stay out; the generation that says so.

    The next run on their source brings them back. Raises UsageError for one that is not on the list.
    """
    runtime.workspace.recover()
    runtime.workspace.read().close()
    with runtime.workspace.write() as staging:
        out = staging.documents.forgotten()
        for document in documents:
            if document not in out:
                listed = ", ".join(out) or "no document"
                raise UsageError(f"{document!r} is not forgotten.", f"Forgotten: {listed}.")
            staging.documents.unforget(document)
        return staging.publish()


def _held(documents: Sequence[str], runtime: Runtime) -> _Held:
    """What all kept generations hold of the documents; UnknownDocument where none has one."""
    held = _Held()
    for one in runtime.workspace.generations():
        try:
            with runtime.workspace.read(one.number) as generation:
                held.add(generation, documents)
        except StorageError:
            held.generations.append(one.number)
    held.generations += runtime.workspace.set_aside()
    with runtime.workspace.read() as generation:
        out, known = generation.documents.forgotten(), generation.documents.ids()
    for document in documents:
        if document not in held.ids and document not in out:
            raise UnknownDocument(document, get_close_matches(document, known, n=3))
    return held


def _same_text(documents: Sequence[str], held: _Held, staging: Staging) -> tuple[str, ...]:
    staying = (one for one in staging.documents.documents() if one.id not in documents)
    return tuple(one.id for one in staying if one.text in held.texts)


def _remove(documents: Sequence[str], chunks: Sequence[Chunk], held: _Held, staging: Staging) -> None:
    """Take the documents out of what the next generation is made from."""
    there = {part.document: set[str]() for part in staging.documents.parts()}
    for document in staging.documents.documents([one for one in documents if one in there]):
        there[document.id] = {part.text_hash for part in document.parts}
    with staging.transaction():
        staging.documents.remove_documents(documents)
        for name in documents:
            staging.documents.forget(name, there.get(name, ()))
        staging.extractions.remove_dead_letters([chunk.id for chunk in chunks])
        staging.vectors.drop_unused()


def _purge(documents: Sequence[str], held: _Held, staging: Staging, runtime: Runtime) -> dict[str, int]:
    """Remove what the caches hold of the documents, from their files too; how many rows of each."""
    caches = open_caches(runtime.settings, runtime.workspace)
    rest = staging.documents.documents()
    traces = Traces(held.texts, (text for one in rest for text in (one.title, one.text)))
    removed = {"memory": _purge_memory(documents, runtime)}
    removed["model_answers"] = caches.model_answers.remove_where(traces.found_in)
    removed["embeddings"] = caches.embeddings.remove(held.hashes)
    caches.compact()
    if caches is not runtime.workspace.side:
        runtime.workspace.side.compact()
    return removed


def _purge_memory(documents: Sequence[str], runtime: Runtime) -> int:
    return sum(runtime.workspace.side.memory.remove_document(one) for one in documents)


def _embeddable(chunk: Chunk) -> list[str]:
    """The texts of a passage that a question may have had embedded."""
    whole = embedded_text(chunk, 0, len(chunk.text))
    return [chunk.title, chunk.text, whole, *(chunk.text[start:end] for start, end in sentences(chunk.text))]
