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

from flows.garbage import rare_collection
from flows.indexing_store import (
    Carried,
    carried_over,
    gate,
    keep_letters,
    known_reports,
    only_failed_again,
    rebind,
    store_chunks,
    store_graph,
    store_terms,
    store_vectors,
    summary_of,
    unchanged,
)
from flows.runtime import Runtime, usage_rows
from flows.side_by_side import beside, in_thread, side_by_side
from prompts.extract import Extract
from prompts.report import WriteReports
from prompts.summarize import Summarize
from storage.records import Chunk, DeadLetter, Extraction, IndexReport
from storage.staging import Staging
from tasks.chunk import chunk
from tasks.communities import detect_communities
from tasks.dedupe import dedupe
from tasks.embed import embed, plan_windows
from tasks.extract import extract, extraction_inputs
from tasks.load.step import load
from tasks.report import Evidence, report
from tasks.summarize import summarize
from tasks.sync import SyncPlan

BATCH = 64
EMBED_BATCH = 256
TERMS_BATCH = 256
FAILURE_LIMIT = 0.1


@dataclass(frozen=True)
class IndexOptions:
    """What a run may do: `full` forgets earlier extractions, `allow_removals` lifts the guard against mass removal."""

    full: bool = False
    allow_removals: bool = False


async def build_index(sources: Sequence[str | Path], options: IndexOptions, runtime: Runtime) -> IndexReport:
    """Bring the workspace up to date with the sources and publish a new generation where anything changed.

    Raises the errors of `storage.errors`; whatever is raised, the current generation stays as it was.
    """
    started = time.monotonic()
    loaded = await load(sources)
    carried = carried_over(loaded, options, runtime)
    if unchanged(carried, runtime):
        return summary_of(carried, runtime, started)
    with runtime.workspace.write() as staging, rare_collection():
        if staging.base_number != carried.generation:
            # Another run published since we compared; under the lock nobody else can.
            carried = carried_over(loaded, options, runtime)
        chunks = await _chunk(carried.plan, staging, runtime)
        # Most of an extraction is waiting for the model: what retrieval needs is made meanwhile.
        async with beside(_make_findable(chunks, staging, runtime)):
            extractions = await _extract(chunks, carried, staging, runtime)
        if only_failed_again(carried, staging, runtime):
            return summary_of(carried, runtime, started)
        graph = await dedupe(extractions, chunks)
        async with beside(summarize(graph, Summarize(runtime.models, runtime.settings.tailoring))) as describing:
            # While a model describes them; who belongs together depends on the relations alone.
            communities = await detect_communities(graph.entities, graph.relations, runtime.settings.community_size)
        described = describing.result()
        entities = described.entities
        evidence = Evidence(
            entities=entities, relations=graph.relations, places=graph.relation_occurrences, chunks=tuple(chunks)
        )
        known = known_reports(staging)
        writer = WriteReports(runtime.models, runtime.settings.tailoring)
        async with beside(in_thread(store_graph, staging, graph, entities)):
            reported = await report(communities, evidence, writer, known)
        staging.communities.replace_communities(communities, list(reported.reports))
        keep_letters(staging, "summarize", described.dead_letters, len(entities), FAILURE_LIMIT)
        keep_letters(staging, "report", reported.dead_letters, len(reported.reports), FAILURE_LIMIT)
        staging.meta.replace_usage(usage_rows(runtime.models.meter))
        staging.meta.put_meta("fingerprint", runtime.fingerprint)
        generation = staging.publish()
    return summary_of(carried, runtime, started, generation)


async def _chunk(plan: SyncPlan, staging: Staging, runtime: Runtime) -> list[Chunk]:
    """Cut what is new, store it, and return the chunks of the whole generation."""
    settings = runtime.settings
    new = await chunk(plan.put, settings.chunk_tokens, settings.chunk_overlap)
    store_chunks(staging, plan, new)
    return staging.documents.chunks()


async def _extract(chunks: Sequence[Chunk], carried: Carried, staging: Staging, runtime: Runtime) -> list[Extraction]:
    """Extract the chunks that no earlier run has, batch by batch; the extractions of the whole generation."""
    extractor = Extract(runtime.models, runtime.settings.gleanings, runtime.settings.tailoring)
    inputs = {part.id: extraction_inputs(part, runtime.extractor) for part in chunks}
    stored = {} if carried.full else staging.extractions.inputs()
    anew = {document.id for document in carried.plan.put}
    todo = [
        part
        for part in chunks
        if stored.get(part.id) != inputs[part.id] or (part.kind == "triples" and part.document in anew)
    ]
    reused, todo = rebind(todo, inputs, carried)
    staging.extractions.save_extractions(reused, {found.chunk: inputs[found.chunk] for found in reused})
    failed: list[DeadLetter] = []
    done = 0
    batches = [todo[start : start + BATCH] for start in range(0, len(todo), BATCH)]
    works = (partial(extract, batch, extractor, carried.weights) for batch in batches)
    # So many batches at once that the model never waits for the last answers of one; offline there is no waiting.
    ahead = 1 if extractor.is_offline else 2 + runtime.settings.concurrency // BATCH
    async with aclosing(side_by_side(works, ahead)) as results:
        async for found in results:
            await in_thread(
                staging.extractions.save_extractions,
                list(found.extractions),
                {e.chunk: inputs[e.chunk] for e in found.extractions},
            )
            failed += found.dead_letters
            done += len(found.extractions) + len(found.dead_letters)
            runtime.progress("extract", done, len(todo))
            if len(failed) > max(1, FAILURE_LIMIT * len(todo)):
                raise gate("extract", failed, len(todo), FAILURE_LIMIT)
    staging.extractions.remove_dead_letters(step="extract")
    staging.extractions.remove_dead_letters(carried.outdated_letters, step="load")
    staging.extractions.put_dead_letters([*failed, *carried.loaded.dead_letters])
    return staging.extractions.extractions()


async def _make_findable(chunks: Sequence[Chunk], staging: Staging, runtime: Runtime) -> None:
    """Store the terms and vectors of the chunks that have none yet."""
    await asyncio.sleep(0)  # the calls to models go out first
    await store_terms(staging, chunks, TERMS_BATCH)
    await _embed(chunks, staging, runtime)


async def _embed(chunks: Sequence[Chunk], staging: Staging, runtime: Runtime) -> None:
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
    for start in range(0, len(keys), EMBED_BATCH):
        batch = {key: texts[key] for key in keys[start : start + EMBED_BATCH]}
        store_vectors(staging, runtime.embedder.name, await embed(batch, runtime.embedder))
        runtime.progress("embed", min(start + EMBED_BATCH, len(keys)), len(keys))
    if staging.vectors.model() not in (None, runtime.embedder.name):
        staging.vectors.remove_windows()
    staging.vectors.put_windows(runtime.embedder.name, list(planned.windows))
    await in_thread(staging.build_index)
