"""Indexing: documents become the next generation of a workspace.

load → sync → chunk → extract → dedupe → summarize → detect communities → report → embed → publish

`index` is the Prefect flow, whose runs Prefect records; `index_documents` does the same work
without Prefect. `flows/indexing/` holds what each step reads from the last generation and writes
into the next.
"""

import tasks.prefect_environment  # noqa: F401 -- before Prefect

import asyncio
import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from prefect import flow
from pydantic import Field

from flows.indexing.batches import (
    embed_chunks,
    embed_graph,
    embed_propositions,
    extract_chunks,
    propose_chunks,
)
from flows.indexing.concurrency import background_task
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
    seen_before,
    sync,
    with_earlier_prompts,
)
from flows.operations.history import remembered
from flows.operations.run_pages import index_in_words
from flows.operations.watch import watched_after
from flows.orchestration.recording import ends_in_words, index_run_name, recorded, within
from flows.orchestration.shown_runs import show_index_run
from flows.orchestration.state_hooks import clean_up
from flows.runners import open_runner
from flows.runtime import Runtime, open_runtime, usage_rows, with_budget
from flows.settings import load_settings
from prompts.engine.errors import BudgetSpent
from prompts.picture import ReadPicture
from storage.errors import BudgetReached
from storage.records import Chunk
from storage.run_records import NO_BUDGET, Budget, IndexReport
from storage.staging import Staging
from tasks.communities import partition_by
from tasks.load.sources import PathOrGraph, load
from tasks.picture import describe

logger = logging.getLogger(__name__)


@flow(
    flow_run_name=index_run_name,
    persist_result=False,
    on_failure=[clean_up],
    on_crashed=[clean_up],
    on_cancellation=[clean_up],
)
@ends_in_words(index_in_words)
async def index(  # noqa: PLR0913, PLR0917 -- each is a field of the form in Prefect's page
    source: Annotated[list[str], Field(min_length=1)] | Annotated[str, Field(min_length=1)],
    workspace: str | None = None,
    full: bool = False,
    allow_removals: bool = False,
    remake: bool = False,
    minutes: Annotated[float, Field(gt=0)] | None = None,
    budget: Budget = NO_BUDGET,
) -> IndexReport:
    """Bring a workspace up to date with its sources and publish the next generation.

    Only the named sources are synchronised; if nothing has changed, nothing is published. If the
    run fails, the current generation stays, and the next run reuses the answers of the models.

    Args:
        source: Files, folders, glob patterns or addresses (s3://, gs://, az://, github://,
            https://): one, or a list of them.
        workspace: The folder of state (default: the one in the settings, or ./.trellis).
        full: Extract everything again, not only what has changed.
        allow_removals: Go on if more than 30% of the documents would be removed.
        remake: Also make again what a new version's prompts would word differently.
        minutes: Give up after this time (default: no limit).
        budget: Stop, with nothing published, before models use more tokens or cost more US
            dollars.
    """
    sources = [source] if isinstance(source, str) else source
    settings = load_settings({"workspace": workspace})
    async with recorded(settings) as progress, within(minutes):
        opened = open_runtime(settings, progress.tell, tell=partial(logger.info, "%s"))
        runtime = with_budget(opened, budget)
        report = await index_documents(sources, IndexOptions(full, allow_removals, remake), runtime)
    await show_index_run(report, sources, runtime)
    return report


@dataclass(frozen=True)
class IndexOptions:
    """What a run may do.

    `full` ignores earlier extractions, `allow_removals` allows the removal of many documents,
    `remake` makes again what a new version's prompts would word differently.
    """

    full: bool = False
    allow_removals: bool = False
    remake: bool = False


async def index_documents(
    sources: Sequence[PathOrGraph], options: IndexOptions, runtime: Runtime
) -> IndexReport:
    """Build the index and enter the run in the history; then remove answers about lost passages
    from memory, and ask watched questions again.

    A UsageError is not entered as a run. Raises BudgetReached if the budget does not suffice.
    """
    runtime.workspace.recover(from_nothing=True)
    async with remembered("index", runtime) as summary:
        try:
            report = await build_index(sources, options, runtime)
        except BudgetSpent as end:
            raise BudgetReached(end.spent, end.budget, end.unit, end.needed) from end
        summary.update(
            generation=report.generation,
            published=report.published,
            seconds=round(report.seconds, 2),
        )
        summary.update(documents=report.documents.model_dump(), chunks=report.chunks)
    if not report.published:
        return report
    with runtime.workspace.read() as generation:
        runtime.workspace.database.memory.expire(generation.documents.chunk_ids())
    return report.model_copy(update={"changed_answers": await watched_after(runtime)})


async def build_index(
    sources: Sequence[PathOrGraph], options: IndexOptions, runtime: Runtime
) -> IndexReport:
    """Bring the workspace up to date with the sources; publish a new generation if any changed.

    Raises the errors of `storage.errors`; the current generation then stays as it was.
    """
    started, published = time.monotonic(), None
    reader = ReadPicture(runtime.models)
    seen = seen_before(runtime, describes=not reader.is_offline, anew=options.full)
    loaded = await load(sources, runtime.models.cache, not reader.is_offline, seen)
    await asyncio.to_thread(seen.save)
    if loaded.figures:
        loaded = await describe(loaded, reader)
    runtime, kept_prompts = with_earlier_prompts(runtime, options.remake or options.full)
    changes = await sync(loaded, options.full, options.allow_removals, runtime)
    if changes.retry or not nothing_new(changes, runtime):
        # A wrong name of an algorithm is an error before any work is done.
        await asyncio.to_thread(partition_by, runtime.settings.communities)
        with runtime.workspace.write() as staging, runtime.models.without_history():
            if staging.base_number != changes.generation:
                # Another run has published since the comparison; now we hold the lock.
                changes = await sync(loaded, options.full, options.allow_removals, runtime)
            published = await _next_generation(changes, staging, runtime)
    return report_of(changes, runtime, started, published, kept_prompts)


async def _next_generation(
    changes: SourceChanges, staging: Staging, runtime: Runtime
) -> int | None:
    """Build and publish the next generation; return its number.

    Returns None, with nothing published, if only the same items failed again.
    """
    chunks, moved = await chunk_documents(changes.plan, staging, runtime)
    # Extraction mostly waits for the model: the embeddings are made at the same time.
    async with (
        open_runner(runtime) as runner,
        background_task(embed_chunks(chunks, staging, runtime, runner)),
    ):
        extracted = await extract_chunks(chunks, changes, staging, runtime, runner)
        await propose_chunks(chunks, changes.full, staging, runtime)
    await embed_propositions(chunks, staging, runtime)
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
    """Derive entities, descriptions, communities, reports and vectors from extractions and edits.

    `documents` are those whose extractions have changed since the graph was made; None makes all
    anew. Raises FailureGate if too much failed.
    """
    before = resolved_before(staging, documents)
    graph = await dedupe_mentions(chunks, before, staging, runtime)
    graph = await summarize_graph(graph, staging, runtime)
    communities = await find_communities(graph, staging, runtime)
    await report_communities(graph, communities, staging, runtime)
    store_resolution(staging, graph, before)
    await embed_graph(graph.touched, staging, runtime)
    staging.meta.replace_usage(usage_rows(runtime.models.meter))
