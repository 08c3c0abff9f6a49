"""The forecast of an index run, from the history of those before it.

It is a rehearsal: the same flow, on a workspace of its own that is thrown away, with a stand-in for every model.
So it knows what is in the cache, what has changed, and which reports that touches; only what a model would write, and
how long it takes, is estimated: from what was written for this workspace before, else by a stated rule.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from flows.index import IndexOptions, build_index
from flows.indexing.source_changes import sync, with_earlier_prompts
from flows.runtime import INDEXING, Runtime
from prompts.engine.embedders import NoEmbedder
from prompts.engine.embedding_api import STEP, ApiEmbedder
from prompts.engine.models import Role
from prompts.engine.spending import Meter
from prompts.forecast import AnswerLengths, Written, answer, extraction_tokens, lengths_of
from storage.errors import NoGeneration
from storage.records import Skipped
from storage.run_records import DocumentCounts, Forecast, StepForecast
from storage.workspace import Workspace, rehearsal
from tasks.chunk import chunk
from tasks.embed import windows_of
from tasks.extract import extraction_inputs
from tasks.load.sources import load

SAMPLE = 500  # passages
# Passages of 370 tokens, with the default embedding and no other model: measured on two busy cores.
PASSAGES_A_SECOND = 3.0
# Of a model that this workspace has not used yet.
SECONDS_A_CALL = 4.0
_RUNS_READ = 200
# The steps of an index run whose answers have a length, and whose models they ask.
_ROLES: dict[str, Role] = {
    "extract": "extract", "glean": "extract", "resolve": "resolve", "summarize": "summarize", "relate": "summarize",
    "report": "report",
}  # fmt: skip


@dataclass(frozen=True)
class _Pace:
    """What earlier runs say: what the models that the steps have now wrote, by step, the seconds of one of their calls,
    and how many passages a second a run without models did that read everything."""

    written: dict[str, Written]
    call: float
    passages: float


def _pace(runtime: Runtime) -> _Pace:
    written: dict[str, Written] = {}
    seconds, calls, passages = 0.0, 0, 0.0
    for run in runtime.workspace.database.runs.list(limit=_RUNS_READ):
        summary = json.loads(run.summary)
        whole = "chunks" in summary and "usage" not in summary and not summary["documents"]["unchanged"]
        if whole and not passages:
            passages = summary["chunks"] / max(summary["seconds"], 0.01)
        for row in summary.get("usage", ()):
            step = str(row["step"])
            if step not in _ROLES or row["model"] != runtime.models.name(_ROLES[step]):
                continue
            before = written.get(step, Written())
            tokens = before.output_tokens + row["output_tokens"]
            written[step] = Written(calls=before.calls + row["calls"], output_tokens=tokens)
            if "seconds" in row:
                seconds, calls = seconds + row["seconds"], calls + row["calls"]
    return _Pace(written, seconds / calls if calls else SECONDS_A_CALL, passages or PASSAGES_A_SECOND)


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
        plan = await _plan_offline(sources, options, runtime)
        return _forecast(plan, (), time.monotonic() - started, runtime)
    lengths = cache(partial(_lengths, runtime))  # read at the first call, if there is one
    models = runtime.models.rehearsed(lambda call: answer(call, lengths().rates, lengths().each))
    with rehearsal(runtime.workspace) as stage:
        settings = runtime.settings.model_copy(update={"workspace": stage.root, "runner": "local"})
        # Under its own name, but it embeds nothing: in a rehearsal nobody searches.
        unread = NoEmbedder(embedder.name)
        rehearsed = replace(runtime, settings=settings, workspace=stage, models=models, embedder=unread)
        report = await build_index(sources, options, rehearsed)
        if isinstance(embedder, ApiEmbedder) and report.published:
            _forecast_vectors(embedder, stage, models.meter)
    known = lengths().known if models.meter.rows() else frozenset()
    steps = tuple(
        StepForecast(
            step=step, model=model, calls=spent.calls, cached_calls=spent.cached_calls,
            input_tokens=spent.input_tokens, output_tokens=spent.output_tokens, cost_usd=spent.cost_usd,
            basis="history" if step in known else "rule",
        )
        for step, model, spent in models.meter.rows()
    )  # fmt: skip
    to_extract = sum(step.calls + step.cached_calls for step in steps if step.step == "extract")
    plan = _Plan(report.documents, report.skipped, report.chunks, to_extract)
    return _forecast(plan, steps, time.monotonic() - started, runtime)


async def _plan_offline(sources: Sequence[str | Path], options: IndexOptions, runtime: Runtime) -> _Plan:
    """The plan where no model is asked: there is nothing to rehearse."""
    changes = await sync(await load(sources), options.full, options.allow_removals, runtime)
    new = await chunk(changes.plan.put, runtime.settings.chunk_tokens, runtime.settings.chunk_overlap)
    anew = {document.id for document in changes.plan.put} | set(changes.plan.removed)
    stored, staying = dict[str, str](), 0
    if changes.generation is not None:
        with runtime.workspace.read() as generation:
            staying = sum(passage.document not in anew for passage in generation.documents.chunks())
            stored = {} if options.full else generation.extractions.inputs()
    author = runtime.authors["extract"]
    unread = sum(p.kind == "triples" or stored.get(p.id) != extraction_inputs(p, author) for p in new)
    return _Plan(changes.plan.counts, changes.loaded.skipped, staying + len(new), unread)


def _lengths(runtime: Runtime) -> AnswerLengths:
    """How long answers are; of extractions where none is known, as the stand-in's of a sample of stored passages."""
    try:
        with runtime.workspace.read() as generation:
            passages = [passage for passage in generation.documents.chunks() if passage.kind == "text"]
    except NoGeneration:
        passages = []
    tokens = [
        extraction_tokens(passage.title, passage.text) for passage in passages[:: max(1, len(passages) // SAMPLE)]
    ]
    return lengths_of(_pace(runtime).written, sum(tokens) / len(tokens) if tokens else 0.0)


def _forecast_vectors(embedder: ApiEmbedder, stage: Workspace, meter: Meter) -> None:
    """Enter what embedding the new passages will take."""
    with stage.read() as generation:
        done = {window.chunk for window in generation.vectors.windows()}
        new = [passage for passage in generation.documents.chunks() if passage.id not in done]
        windows = windows_of(new, embedder)
        stored = generation.vectors.have(embedder.name, [window.text_hash for window, _ in windows])
    texts = {window.text_hash: text for window, text in windows if window.text_hash not in stored}
    if texts:
        meter.record(STEP, embedder.name, embedder.forecast(texts))


def _forecast(plan: _Plan, steps: tuple[StepForecast, ...], seconds: float, runtime: Runtime) -> Forecast:
    """The plan with what it takes in sum. Time: reading, as the forecast itself did; then passages and calls at their
    rates, no faster than the limits of the server let them."""
    calls, settings, pace = sum(step.calls for step in steps), runtime.settings, _pace(runtime)
    tokens = sum(step.input_tokens + step.output_tokens for step in steps)
    waiting = max(
        calls * pace.call / settings.concurrency,
        60 * calls / (settings.rpm or float("inf")),
        60 * tokens / (settings.tpm or float("inf")),
    )
    rate = f"{pace.passages:.1f} passages a second"
    rate += f", {pace.call:.1f} s a call and {settings.concurrency} at once" if calls else ""
    costs = [step.cost_usd for step in steps]
    known = [cost for cost in costs if cost is not None]
    return Forecast(
        documents=plan.documents, skipped=plan.skipped, chunks=plan.chunks, chunks_to_extract=plan.to_extract,
        calls=calls, cached_calls=sum(step.cached_calls for step in steps),
        input_tokens=sum(step.input_tokens for step in steps), output_tokens=sum(step.output_tokens for step in steps),
        cost_usd=sum(known) if len(known) == len(costs) else None, steps=steps, seconds=seconds,
        run_seconds=seconds + plan.to_extract / pace.passages + waiting, rate=rate,
    )  # fmt: skip
