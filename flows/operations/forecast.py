"""Forecast: what an index run would do, and what it would cost.

The forecast is a rehearsal: the same flow, on a workspace of its own that is thrown away, with a stand-in for every
model. So it knows what is in the cache, what has changed, and which reports that touches; only what a model would
write is estimated, from what it has written for this workspace before, else by a stated rule.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from flows.index import IndexOptions, build_index
from flows.indexing.changes import sync
from flows.indexing.earlier_prompts import with_earlier_prompts
from flows.operations.history import written_before
from flows.runtime import INDEXING, Runtime
from prompts.engine.embedder import NoEmbedder
from prompts.engine.embedding_api import STEP, ApiEmbedder
from prompts.engine.meter import Meter
from prompts.forecast import AnswerLengths, answer, extraction_tokens, lengths_of
from storage.errors import NoGeneration
from storage.generations import Workspace, rehearsal
from storage.records import Skipped
from storage.run_records import DocumentCounts
from storage.spending import Forecast, StepForecast
from tasks.chunk import chunk
from tasks.embed import plan_windows
from tasks.extract import extraction_inputs
from tasks.load.step import load

SAMPLE = 500  # passages


class _Unread(NoEmbedder):
    """Embeds nothing, under the name of an embedder: in a rehearsal nobody searches."""

    def __init__(self, name: str) -> None:
        self.name = name


@dataclass(frozen=True)
class _Plan:
    """What a run would do, without what it costs."""

    documents: DocumentCounts
    skipped: tuple[Skipped, ...]
    chunks: int
    to_extract: int


async def forecast(sources: Sequence[str | Path], options: IndexOptions, runtime: Runtime) -> Forecast:
    """The plan of a run and what it would take; calls no model and leaves the workspace as it is.

    Raises what the run would raise before its first call.
    """
    started = time.monotonic()
    runtime, _ = with_earlier_prompts(runtime, options.remake or options.full)
    embedder = runtime.embedder
    if all(map(runtime.models.is_offline, INDEXING)) and not isinstance(embedder, ApiEmbedder):
        return await _unpaid(sources, options, runtime, started)
    lengths = cache(partial(_lengths, runtime))  # read at the first call, if there is one
    models = runtime.models.rehearsed(lambda call: answer(call, lengths().rates, lengths().each))
    with rehearsal(runtime.workspace) as stage:
        settings = runtime.settings.model_copy(update={"workspace": stage.root, "runner": "local"})
        rehearsed = replace(runtime, settings=settings, workspace=stage, models=models, embedder=_Unread(embedder.name))
        report = await build_index(sources, options, rehearsed)
        if isinstance(embedder, ApiEmbedder) and report.published:
            _forecast_vectors(embedder, stage, models.meter)
    steps = _steps(models.meter, lengths().known if models.meter.rows() else frozenset())
    asked = sum(one.calls + one.cached_calls for one in steps if one.step == "extract")
    return _told(_Plan(report.documents, report.skipped, report.chunks, asked), steps, started)


async def _unpaid(sources: Sequence[str | Path], options: IndexOptions, runtime: Runtime, started: float) -> Forecast:
    """The plan where no model is asked: there is nothing to rehearse."""
    changes = sync(await load(sources), options.full, options.allow_removals, runtime)
    new = await chunk(changes.plan.put, runtime.settings.chunk_tokens, runtime.settings.chunk_overlap)
    anew = {document.id for document in changes.plan.put} | set(changes.plan.removed)
    try:
        with runtime.workspace.read() as generation:
            staying = sum(one.document not in anew for one in generation.documents.chunks())
    except NoGeneration:
        staying = 0
    unread = [
        one
        for one in new
        if one.kind == "triples" or extraction_inputs(one, runtime.authors["extract"]) not in changes.extractions
    ]
    plan = _Plan(changes.plan.counts, changes.loaded.skipped, staying + len(new), len(unread))
    return _told(plan, (), started)


def _lengths(runtime: Runtime) -> AnswerLengths:
    return lengths_of(written_before(runtime), _average_extraction(runtime.workspace))


def _average_extraction(workspace: Workspace) -> float:
    """Tokens of the stand-in's extraction of a stored passage; 0 where none is stored."""
    try:
        with workspace.read() as generation:
            every = [one for one in generation.documents.chunks() if one.kind == "text"]
    except NoGeneration:
        return 0.0
    some = every[:: max(1, len(every) // SAMPLE)]
    return sum(extraction_tokens(one.title, one.text) for one in some) / len(some) if some else 0.0


def _forecast_vectors(embedder: ApiEmbedder, stage: Workspace, meter: Meter) -> None:
    """Enter what embedding the new passages will take."""
    with stage.read() as made:
        done = {window.chunk for window in made.vectors.windows()}
        new = [one for one in made.documents.chunks() if one.id not in done]
        planned = plan_windows(new, embedder, have=())
        stored = made.vectors.have(embedder.name, list(planned.missing))
    texts = {key: text for key, text in planned.missing.items() if key not in stored}
    if texts:
        meter.record(STEP, embedder.name, embedder.forecast(texts))


def _steps(meter: Meter, known: frozenset[str]) -> tuple[StepForecast, ...]:
    return tuple(
        StepForecast(
            step=step, model=model, calls=spent.calls, cached_calls=spent.cached_calls,
            input_tokens=spent.input_tokens, output_tokens=spent.output_tokens, cost_usd=spent.cost_usd,
            basis="history" if step in known else "rule",
        )
        for step, model, spent in meter.rows()
    )  # fmt: skip


def _told(plan: _Plan, steps: tuple[StepForecast, ...], started: float) -> Forecast:
    costs = [one.cost_usd for one in steps]
    known = [cost for cost in costs if cost is not None]
    return Forecast(
        documents=plan.documents, skipped=plan.skipped, chunks=plan.chunks, chunks_to_extract=plan.to_extract,
        calls=sum(one.calls for one in steps), cached_calls=sum(one.cached_calls for one in steps),
        input_tokens=sum(one.input_tokens for one in steps), output_tokens=sum(one.output_tokens for one in steps),
        cost_usd=sum(known) if len(known) == len(costs) else None, steps=steps, seconds=time.monotonic() - started,
    )  # fmt: skip
