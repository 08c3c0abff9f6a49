"""Extraction and embedding in batches: results are stored as they come.

What fails becomes a dead letter, and too many failures end the run. Chunks get the terms and the
vectors by which they are found, relations with keys get vectors.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from flows.indexing.concurrency import in_thread, side_by_side
from flows.indexing.pace import expected_time
from flows.indexing.source_changes import SourceChanges
from flows.runners import Runner
from flows.runtime import Runtime
from prompts.engine.embedders import text_hash
from prompts.propositions import ListStatements
from prompts.text.words import WORDS_VERSION
from storage.errors import FailureGate
from storage.records import Chunk, DeadLetter
from storage.staging import Staging
from tasks.embed import embed, windows_of
from tasks.extract import Extracts, extraction_inputs
from tasks.propositions import propose, proposition_inputs, proposition_windows
from tasks.retrieve.dual_levels import keyed_text
from tasks.retrieve.lexical import chunk_terms

BATCH = 64  # chunks to extract


@dataclass(frozen=True)
class ExtractionWork:
    """Chunks to extract, the hash of each one's input, and the weights of triples.

    Weights are by document and line. `earlier` are the chunks that failed in an earlier run: they
    do not count as failures of this one.
    """

    todo: Sequence[Chunk]
    inputs: Mapping[str, str]
    weights: Mapping[tuple[str, str], float] = field(default_factory=dict)
    earlier: Collection[str] = ()


async def extract_chunks(
    chunks: Sequence[Chunk],
    changes: SourceChanges,
    staging: Staging,
    runtime: Runtime,
    runner: Runner,
) -> set[str]:
    """Extract the chunks that no earlier run has extracted; return their documents."""
    author = runtime.authors["extract"]
    stored = {} if changes.full else staging.extractions.inputs()
    anew = {document.id for document in changes.plan.put}
    earlier = {letter.item for letter in changes.letters if letter.step == "extract"}
    # A stored chunk of an unchanged document needs no comparison: another author would have changed
    # the fingerprint, and with it all documents.
    asked = (
        part
        for part in chunks
        if part.document in anew or part.id in earlier or part.id not in stored
    )
    inputs = {part.id: extraction_inputs(part, author) for part in asked}
    todo = [
        part
        for part in chunks
        if part.id in inputs
        and (
            stored.get(part.id) != inputs[part.id]
            or (part.kind == "triples" and part.document in anew)
        )
    ]
    documents = {part.document for part in todo}
    failed = await extract_all(
        ExtractionWork(todo, inputs, changes.weights, earlier), staging, runtime, runner
    )
    staging.extractions.remove_dead_letters(step="extract")
    staging.extractions.remove_dead_letters(changes.outdated_letters, step="load")
    staging.extractions.put_dead_letters([*failed, *changes.loaded.dead_letters])
    limit = runtime.settings.failure_limit
    if failed and limit < 1 and not staging.extractions.inputs():
        raise _failure("extract", failed, len(failed), limit)  # there is nothing to publish
    return documents


async def extract_all(
    work: ExtractionWork, staging: Staging, runtime: Runtime, runner: Runner
) -> list[DeadLetter]:
    """Extract the chunks and store the results; return the dead letters.

    Raises FailureGate if more of the new chunks fail than the settings allow.
    """
    todo, limit = work.todo, runtime.settings.failure_limit
    new = sum(chunk.id not in work.earlier for chunk in todo)
    failed: list[DeadLetter] = []
    done = 0
    lm = runtime.models.lm_or_none("extract")
    concurrency = lm.terms.limits.concurrency if lm else 0
    passages = sum(chunk.kind != "triples" for chunk in todo) if lm else 0
    expected = expected_time(passages, runtime) if passages else ""
    if passages:
        told = expected or "the time is told when the first are done"
        runtime.tell(f"{passages} passages: {told}")
    # A model that was never asked is timed by as many passages as it reads at once.
    first = BATCH if lm is None or expected else min(BATCH, max(1, concurrency))
    starts = [0, *range(first, len(todo), BATCH)] if todo else []
    batches = [todo[start:end] for start, end in pairwise([*starts, len(todo)])]
    works = (partial(runner.extract, batch, work.weights) for batch in batches)
    # Enough batches that the model does not wait for the last answers of one.
    at_once = runner.at_once(1 if lm is None else 2 + concurrency // BATCH)
    if todo:
        runtime.progress("extract", 0, len(todo))
    async with aclosing(side_by_side(works, at_once)) as results:
        async for extracts in results:
            await in_thread(_store, extracts, work.inputs, staging)
            failed += extracts.dead_letters
            done += len(extracts.extractions) + len(extracts.dead_letters)
            runtime.progress("extract", done, len(todo))
            if (left := len(todo) - done) and passages and not expected:
                expected = expected_time(left, runtime)
                if expected:
                    runtime.tell(f"{left} passages left: {expected}")
            failed_anew = [letter for letter in failed if letter.item not in work.earlier]
            gate("extract", failed_anew, new, limit)
    return failed


def _store(extracts: Extracts, inputs: Mapping[str, str], staging: Staging) -> None:
    staging.extractions.save_extractions(
        list(extracts.extractions),
        {extraction.chunk: inputs[extraction.chunk] for extraction in extracts.extractions},
    )


def gate(step: str, failed: Sequence[DeadLetter], total: int, limit: float) -> None:
    """Raise FailureGate, with the most frequent reason, if more failed than the limit allows.

    A single failure ends a run only if the limit is 0.
    """
    if len(failed) > max(1 if limit else 0, limit * total):
        raise _failure(step, failed, total, limit)


def _failure(step: str, failed: Sequence[DeadLetter], total: int, limit: float) -> FailureGate:
    reasons = Counter((letter.error, letter.remedy) for letter in failed)
    (reason, remedy), times = reasons.most_common(1)[0]
    error = FailureGate(step, len(failed), total, limit)
    error.message += f" {times} of them: {reason}"
    error.remedy = remedy or error.remedy
    error.args = (error.message, error.remedy)
    return error


def replace_letters(
    staging: Staging,
    step: str,
    failed: Sequence[DeadLetter],
    total: int,
    limit: float,
    items: Collection[str] | None = None,
) -> None:
    """Replace the dead letters of a derived step, of these items (None: all).

    Raises FailureGate if there are too many.
    """
    gate(step, failed, total, limit)
    staging.extractions.remove_dead_letters(items, step)
    staging.extractions.put_dead_letters(failed)


# --- propositions ---------------------------------------------------------------------------------


async def propose_chunks(
    chunks: Sequence[Chunk], anew: bool, staging: Staging, runtime: Runtime
) -> None:
    """List the propositions of the chunks of text that have none by the current prompt; with
    `anew` of all. Where the settings do not ask for propositions, remove them.

    Raises FailureGate if too many chunks fail.
    """
    stored, limit = staging.propositions, runtime.settings.failure_limit
    proposer = runtime.makers.get(ListStatements.step)
    if not isinstance(proposer, ListStatements):
        stored.remove()
        staging.extractions.remove_dead_letters(step=ListStatements.step)
        return
    done = {} if anew else stored.inputs()
    inputs = {
        chunk.id: proposition_inputs(chunk, proposer.author)
        for chunk in chunks
        if chunk.kind != "triples"
    }
    todo = [chunk for chunk in chunks if inputs.get(chunk.id) != done.get(chunk.id)]
    failed = await propose_all(todo, inputs, proposer, staging, runtime)
    replace_letters(staging, proposer.step, failed, len(todo), limit)


async def propose_all(
    todo: Sequence[Chunk],
    inputs: Mapping[str, str],
    proposer: ListStatements,
    staging: Staging,
    runtime: Runtime,
) -> list[DeadLetter]:
    """List and store the propositions of these chunks; return the dead letters."""
    failed: list[DeadLetter] = []
    done = 0
    batches = [todo[at : at + BATCH] for at in range(0, len(todo), BATCH)]
    works = (partial(propose, batch, proposer) for batch in batches)
    async with aclosing(side_by_side(works, 2)) as results:
        async for proposed in results:
            await in_thread(staging.propositions.put, proposed.by_chunk, inputs)
            failed += proposed.dead_letters
            done += len(proposed.by_chunk) + len(proposed.dead_letters)
            runtime.progress(proposer.step, done, len(todo))
    return failed


# --- vectors --------------------------------------------------------------------------------------

EMBED_BATCH, TERMS_BATCH, TEXTS_BATCH = 128, 2048, 512
TERMS = "terms"  # key in `meta`: the version of the rules for terms


async def embed_graph(touched: Collection[str] | None, staging: Staging, runtime: Runtime) -> None:
    """Embed keys and description of the stored relations of these entities (None: all)."""
    keyed = [
        keyed_text(relation) for relation in staging.graph.relations_at(touched) if relation.keys
    ]
    texts = {text_hash(text): text for text in keyed if runtime.embedder.reads(text)}
    await _embed_new(texts, "embed names", staging, runtime)


async def embed_propositions(chunks: Sequence[Chunk], staging: Staging, runtime: Runtime) -> None:
    """Embed the propositions of these chunks that have no window yet, and store the windows."""
    by_id, vectors = {chunk.id: chunk for chunk in chunks}, staging.vectors
    stored, have = staging.propositions.propositions(by_id), {row.id for row in vectors.windows()}
    windows = [
        (window, text)
        for window, text in await in_thread(proposition_windows, stored, by_id, runtime.embedder)
        if window.id not in have
    ]
    texts = {window.text_hash: text for window, text in windows}
    await _embed_new(texts, "embed propositions", staging, runtime)
    vectors.put_windows(runtime.embedder.name, [window for window, _ in windows])


async def _embed_new(
    texts: Mapping[str, str], work: str, staging: Staging, runtime: Runtime
) -> None:
    """Store the vectors of texts (by hash) that have none; `work` is what the progress tells."""
    vectors, embedder = staging.vectors, runtime.embedder
    known = vectors.have(embedder.name, list(texts))
    todo = [key for key in texts if key not in known]
    for at in range(0, len(todo), TEXTS_BATCH):
        batch = {key: texts[key] for key in todo[at : at + TEXTS_BATCH]}
        vectors.put(embedder.name, await embed(batch, embedder))
        runtime.progress(work, min(at + TEXTS_BATCH, len(todo)), len(todo))


async def embed_chunks(
    chunks: Sequence[Chunk], staging: Staging, runtime: Runtime, runner: Runner
) -> None:
    """Store terms and vectors of the chunks without any, and the index of all vectors."""
    await asyncio.sleep(0)  # calls to models begin first
    await _store_terms(chunks, staging)
    vectors, embedder = staging.vectors, runtime.embedder
    is_same_model = vectors.model() == embedder.name
    have = {window.chunk for window in vectors.windows()} if is_same_model else set()
    new = [part for part in chunks if part.id not in have]
    windows = await in_thread(windows_of, new, embedder)
    known = vectors.have(embedder.name, [window.text_hash for window, _ in windows])
    texts = {window.text_hash: text for window, text in windows if window.text_hash not in known}
    keys = sorted(texts, key=lambda key: len(texts[key]))
    batches = [
        {key: texts[key] for key in keys[at : at + EMBED_BATCH]}
        for at in range(0, len(keys), EMBED_BATCH)
    ]
    done = 0
    works = (partial(runner.embed, batch) for batch in batches)
    if keys:
        runtime.progress("embed", 0, len(keys))
    async with aclosing(side_by_side(works, runner.at_once(1))) as results:
        async for embedded in results:
            vectors.put(embedder.name, dict(embedded))
            done += len(embedded)
            runtime.progress("embed", done, len(keys))
    if not is_same_model:
        vectors.remove_windows()
    vectors.put_windows(embedder.name, [window for window, _ in windows])
    await in_thread(staging.build_index)


async def _store_terms(chunks: Sequence[Chunk], staging: Staging) -> None:
    """Store the terms of the chunks that have none by the current rules, without blocking."""
    cut_alike = staging.meta.get_meta(TERMS) == WORDS_VERSION
    done = staging.documents.chunks_with_postings() if cut_alike else set()
    todo = [chunk for chunk in chunks if chunk.id not in done]
    for start in range(0, len(todo), TERMS_BATCH):
        counts = {}
        for chunk in todo[start : start + TERMS_BATCH]:
            counts[chunk.id] = dict(chunk_terms(chunk))
            await asyncio.sleep(0)
        await in_thread(staging.documents.put_postings, counts)
    staging.meta.put_meta(TERMS, WORDS_VERSION)
