"""Indexing: documents become the next generation of a workspace.

load → sync → chunk → extract → dedupe → summarize → detect communities → report → embed → publish

The story is told here, one call a step; `flows/indexing/` holds what a step reads of the last generation and writes
into the next. `index` is the same as a Prefect flow (`flows/orchestration/recorded_flows.py`).
"""

import asyncio
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flows.indexing.batches import embed_chunks, embed_graph, extract_chunks
from flows.indexing.concurrency import background_task, relaxed_gc
from flows.indexing.graph_update import (
    dedupe_mentions,
    find_communities,
    report_communities,
    resolved_before,
    store_resolution,
    summarize_graph,
)
from flows.indexing.source_changes import (
    SourceChanges,
    chunk_documents,
    nothing_new,
    only_failed_again,
    publish,
    report_of,
    sync,
    with_earlier_prompts,
)
from flows.runners import Runner
from flows.runtime import Runtime, usage_rows
from storage.records import Chunk
from storage.run_records import IndexReport
from storage.staging import Staging
from tasks.communities import partition_by
from tasks.load.sources import PathOrGraph, load

if TYPE_CHECKING:
    from flows.orchestration.recorded_flows import index as index  # noqa: PLC0414 -- for who imports it from here


@dataclass(frozen=True)
class IndexOptions:
    """What a run may do: `full` forgets earlier extractions, `allow_removals` lifts the guard against mass removal,
    `remake` makes anew what a new version's prompts would word otherwise."""

    full: bool = False
    allow_removals: bool = False
    remake: bool = False


async def build_index(sources: Sequence[PathOrGraph], options: IndexOptions, runtime: Runtime) -> IndexReport:
    """Bring the workspace up to date with the sources and publish a new generation where anything changed.

    Raises the errors of `storage.errors`; whatever is raised, the current generation stays as it was.
    """
    started, published = time.monotonic(), None
    loaded = await load(sources)
    runtime, kept_prompts = with_earlier_prompts(runtime, options.remake or options.full)
    changes = await sync(loaded, options.full, options.allow_removals, runtime)
    if changes.retry or not nothing_new(changes, runtime):
        # what is wrong there is told before anything is made
        await asyncio.to_thread(partition_by, runtime.settings.communities)
        with runtime.workspace.write() as staging, relaxed_gc(), runtime.models.without_history():
            if staging.base_number != changes.generation:
                # Another run published since we compared; under the lock nobody else can.
                changes = await sync(loaded, options.full, options.allow_removals, runtime)
            published = await _next_generation(changes, staging, runtime)
    return report_of(changes, runtime, started, published, kept_prompts)


async def _next_generation(changes: SourceChanges, staging: Staging, runtime: Runtime) -> int | None:
    """Its number; None where nothing came of it but the failures that were there before."""
    chunks, moved = await chunk_documents(changes.plan, staging, runtime)
    # Most of an extraction is waiting for the model: what retrieval needs is made meanwhile.
    async with Runner(runtime) as runner, background_task(embed_chunks(chunks, staging, runtime, runner)):
        extracted = await extract_chunks(chunks, changes, staging, runtime, runner)
    if only_failed_again(changes, staging, runtime):
        return None
    anew = changes.full or changes.fingerprint != runtime.fingerprint
    await derive(chunks, None if anew else moved | extracted, staging, runtime)
    if only_failed_again(changes, staging, runtime, derived=True):
        return None
    return await publish(staging, runtime)


async def derive(
    chunks: Sequence[Chunk], documents: Collection[str] | None, staging: Staging, runtime: Runtime
) -> None:
    """All that follows from extractions and edits by hand: entities, descriptions, communities, reports, their vectors.

    `documents` are those with extractions that came, went or changed since the graph was made; None makes all anew.
    Raises FailureGate where too much of it failed.
    """
    before = resolved_before(staging, documents)
    graph = await dedupe_mentions(chunks, before, staging, runtime)
    graph = await summarize_graph(graph, staging, runtime)
    communities = await find_communities(graph, staging, runtime)
    await report_communities(graph, communities, staging, runtime)
    store_resolution(staging, graph, before)
    await embed_graph(graph.touched, staging, runtime)
    staging.meta.replace_usage(usage_rows(runtime.models.meter))


def __getattr__(name: str) -> Any:
    """The Prefect flow `index`, loaded when it is first used: Prefect takes a second to load."""
    if name == "index":
        from flows.orchestration.recorded_flows import index

        return index
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
