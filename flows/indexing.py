"""How do documents become a generation?

load ─ sync ─ chunk ─ extract ─ dedupe ─ summarize ─ detect communities ─ report ─ embed ─ publish

This is the story without Prefect; `flows.index` runs it as a recorded flow.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from flows.deriving import derive
from flows.extracting import Work, extract_all
from flows.garbage import rare_collection
from flows.indexing_store import (
    Carried,
    carried_over,
    only_failed_again,
    rebind,
    store_chunks,
    store_terms,
    store_vectors,
    summary_of,
    unchanged,
)
from flows.remaking import note_makers, with_earlier_prompts
from flows.runners.runner import Runner, open_runner
from flows.runtime import Runtime
from flows.side_by_side import beside, in_thread, side_by_side
from storage.records import Chunk, IndexReport
from storage.staging import Staging
from tasks.chunk import chunk
from tasks.embed import plan_windows
from tasks.extract import extraction_inputs
from tasks.load.sources import Loaded
from tasks.load.step import load
from tasks.sync import SyncPlan

EMBED_BATCH = 256
TERMS_BATCH = 256


@dataclass(frozen=True)
class IndexOptions:
    """What a run may do: `full` forgets earlier extractions, `allow_removals` lifts the guard against mass removal,
    `remake` makes anew what a new version's prompts would word otherwise, however much that is."""

    full: bool = False
    allow_removals: bool = False
    remake: bool = False


async def build_index(sources: Sequence[str | Path], options: IndexOptions, runtime: Runtime) -> IndexReport:
    """Bring the workspace up to date with the sources and publish a new generation where anything changed.

    Raises the errors of `storage.errors`; whatever is raised, the current generation stays as it was.
    """
    started = time.monotonic()
    loaded = await load(sources)
    runtime, waiting = with_earlier_prompts(runtime, options.remake or options.full)
    report = await _build(loaded, options, runtime, started)
    return report.model_copy(update={"kept_prompts": waiting})


async def _build(loaded: Loaded, options: IndexOptions, runtime: Runtime, started: float) -> IndexReport:
    carried = carried_over(loaded, options, runtime)
    if unchanged(carried, runtime):
        return summary_of(carried, runtime, started)
    with runtime.workspace.write() as staging, rare_collection():
        if staging.base_number != carried.generation:
            # Another run published since we compared; under the lock nobody else can.
            carried = carried_over(loaded, options, runtime)
        chunks, moved = await _chunk(carried.plan, staging, runtime)
        # Most of an extraction is waiting for the model: what retrieval needs is made meanwhile.
        async with open_runner(runtime) as runner, beside(_make_findable(chunks, staging, runtime, runner)):
            extracted = await _extract(chunks, carried, staging, runtime, runner)
        if only_failed_again(carried, staging, runtime):
            return summary_of(carried, runtime, started)
        changed = None if carried.full or carried.fingerprint != runtime.fingerprint else moved | extracted
        await derive(chunks, changed, staging, runtime)
        if only_failed_again(carried, staging, runtime, derived=True):
            return summary_of(carried, runtime, started)
        staging.meta.put_meta("fingerprint", runtime.fingerprint)
        note_makers(staging, runtime)
        generation = staging.publish()
    return summary_of(carried, runtime, started, generation)


async def _chunk(plan: SyncPlan, staging: Staging, runtime: Runtime) -> tuple[list[Chunk], set[str]]:
    """Cut what is new and store it; the chunks of the whole generation, and the documents that have others now."""
    settings = runtime.settings
    new = await chunk(plan.put, settings.chunk_tokens, settings.chunk_overlap)
    changed = store_chunks(staging, plan, new)
    return staging.documents.chunks(), changed


async def _extract(
    chunks: Sequence[Chunk], carried: Carried, staging: Staging, runtime: Runtime, runner: Runner
) -> set[str]:
    """Extract the chunks that no earlier run has, batch by batch; the documents of those that have extractions now."""
    author = runtime.authors["extract"]
    inputs = {part.id: extraction_inputs(part, author) for part in chunks}
    stored = {} if carried.full else staging.extractions.inputs()
    anew = {document.id for document in carried.plan.put}
    todo = [
        part
        for part in chunks
        if stored.get(part.id) != inputs[part.id] or (part.kind == "triples" and part.document in anew)
    ]
    documents = {part.document for part in todo}
    reused, todo = rebind(todo, inputs, carried)
    staging.extractions.save_extractions(reused, {found.chunk: inputs[found.chunk] for found in reused})
    earlier = {letter.item for letter in carried.letters if letter.step == "extract"}
    failed = await extract_all(Work(todo, inputs, carried.weights, earlier), staging, runtime, runner)
    staging.extractions.remove_dead_letters(step="extract")
    staging.extractions.remove_dead_letters(carried.outdated_letters, step="load")
    staging.extractions.put_dead_letters([*failed, *carried.loaded.dead_letters])
    return documents


async def _make_findable(chunks: Sequence[Chunk], staging: Staging, runtime: Runtime, runner: Runner) -> None:
    """Store the terms and vectors of the chunks that have none yet."""
    await asyncio.sleep(0)  # the calls to models go out first
    await store_terms(staging, chunks, TERMS_BATCH)
    await _embed(chunks, staging, runtime, runner)


async def _embed(chunks: Sequence[Chunk], staging: Staging, runtime: Runtime, runner: Runner) -> None:
    """Embed the texts that have no vector yet and store the windows of all chunks."""
    have = (
        {window.chunk for window in staging.vectors.windows()}
        if staging.vectors.model() == runtime.embedder.name
        else set()
    )
    new = [part for part in chunks if part.id not in have]
    planned = await in_thread(plan_windows, new, runtime.embedder, have=())
    known = staging.vectors.have(runtime.embedder.name, list(planned.missing))
    texts = {key: text for key, text in planned.missing.items() if key not in known}
    keys = sorted(texts, key=lambda key: len(texts[key]))
    batches = [{key: texts[key] for key in keys[at : at + EMBED_BATCH]} for at in range(0, len(keys), EMBED_BATCH)]
    done = 0
    works = (partial(runner.embed, batch) for batch in batches)
    async with aclosing(side_by_side(works, await runner.at_once(1) if batches else 1)) as results:
        async for vectors in results:
            store_vectors(staging, runtime.embedder.name, vectors)
            done += len(vectors)
            runtime.progress("embed", done, len(keys))
    if staging.vectors.model() not in (None, runtime.embedder.name):
        staging.vectors.remove_windows()
    staging.vectors.put_windows(runtime.embedder.name, list(planned.windows))
    await in_thread(staging.build_index)
