"""The forecast of an index run: the passages that it would read, times what a step takes for each.

What an extraction reads is counted by a tokenizer; all else is an average: of this workspace's own runs where they
asked the same model often enough, else of the project's scripted model. What the cache holds is not looked up.
"""

import json
import time
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flows.index import IndexOptions
from flows.indexing.source_changes import SourceChanges, author_of, sync, with_earlier_prompts
from flows.runtime import Runtime
from prompts.engine.embedding_api import STEP, ApiEmbedder
from prompts.text.tokens import count_tokens
from storage.records import Chunk
from storage.run_records import Forecast, StepForecast
from tasks.chunk import chunk
from tasks.embed import windows_of
from tasks.extract import extraction_inputs
from tasks.load.sources import load

# Passages of 370 tokens, with the default embedding and no other model: measured on two busy cores.
PASSAGES_A_SECOND = 3.0
# Of a model that this workspace has not used yet.
SECONDS_A_CALL = 4.0
# From so many calls on, what a model has taken before says more than the rule.
ENOUGH_CALLS = 20
_RUNS_READ = 200


@dataclass(frozen=True)
class _Rate:
    """What a step takes: calls for each passage that is extracted, tokens of a call, and its seconds."""

    calls: float
    input_tokens: float
    output_tokens: float
    seconds: float = SECONDS_A_CALL
    known: bool = False


# Measured with the project's scripted model on the documentation of the project, passages of 370 tokens.
_RULE = {
    "extract": _Rate(1.0, 1700, 650), "resolve": _Rate(0.01, 700, 30), "summarize": _Rate(0.4, 670, 40),
    "relate": _Rate(0.01, 1300, 310), "report": _Rate(0.25, 1700, 390),
}  # fmt: skip


@dataclass(frozen=True)
class _Plan:
    """What a run would read: the passages of the next generation, those of them to extract and to embed, and those that
    each further step goes by."""

    changes: SourceChanges
    passages: Sequence[Chunk]
    unread: Sequence[Chunk]
    new: Sequence[Chunk]
    changed: Mapping[str, int]


async def forecast(sources: Sequence[str | Path], options: IndexOptions, runtime: Runtime) -> Forecast:
    """The plan of a run and what it would take; calls no model and leaves the workspace as it is.

    Raises what the run would raise before its first call.
    """
    started = time.monotonic()
    runtime, _ = with_earlier_prompts(runtime, options.remake or options.full)
    plan, (rates, pace) = await _plan(sources, options, runtime), _rates(runtime)
    made = (step for step, maker in runtime.makers.items() if not maker.is_offline)
    steps = [_step(step, plan, rates[step], runtime) for step in made]
    if isinstance(runtime.embedder, ApiEmbedder):
        steps.append(_embedding(plan, runtime.embedder, runtime))
    steps, seconds = [step for step in steps if step.calls], time.monotonic() - started
    calls, settings = sum(step.calls for step in steps), runtime.settings
    tokens = sum(step.input_tokens + step.output_tokens for step in steps)
    asked = [step for step in steps if step.step in rates]
    each = sum(step.calls * rates[step.step].seconds for step in asked) / max(1, sum(step.calls for step in asked))
    # No faster than the limits of the server let them.
    waiting = max(
        calls * each / settings.concurrency,
        60 * calls / (settings.rpm or float("inf")),
        60 * tokens / (settings.tpm or float("inf")),
    )
    rate = f"{pace:.1f} passages a second"
    rate += f", {each:.1f} s a call and {settings.concurrency} at once" if calls else ""
    known = [step.cost_usd for step in steps if step.cost_usd is not None]
    return Forecast(
        documents=plan.changes.plan.counts, skipped=plan.changes.loaded.skipped, chunks=len(plan.passages),
        chunks_to_extract=len(plan.unread), calls=calls, cached_calls=0,
        input_tokens=sum(step.input_tokens for step in steps), output_tokens=sum(step.output_tokens for step in steps),
        cost_usd=sum(known) if len(known) == len(steps) else None, steps=tuple(steps), seconds=seconds,
        run_seconds=seconds + len(plan.unread) / pace + waiting, rate=rate,
    )  # fmt: skip


async def _plan(sources: Sequence[str | Path], options: IndexOptions, runtime: Runtime) -> _Plan:
    changes = await sync(await load(sources), options.full, options.allow_removals, runtime)
    new = list(await chunk(changes.plan.put, runtime.settings.chunk_tokens, runtime.settings.chunk_overlap))
    put = {document.id for document in changes.plan.put}
    authors, earlier = runtime.authors, runtime.authors
    stored, staying = dict[str, str](), list[Chunk]()
    if changes.generation is not None:
        with runtime.workspace.read() as generation:
            gone = put | set(changes.plan.removed)
            staying = [passage for passage in generation.documents.chunks() if passage.document not in gone]
            stored = {} if options.full else generation.extractions.inputs()
            earlier = {step: author_of(step, generation.meta, runtime) for step in authors}
    unread = [
        passage
        for passage in (*staying, *new)
        if stored.get(passage.id) != extraction_inputs(passage, authors["extract"])
        or (passage.kind == "triples" and passage.document in put)
    ]
    # Where another author makes what a step makes, it is made anew of everything.
    every = len(staying) + len(new)
    changed = {step: len(unread) if author == earlier[step] else every for step, author in authors.items()}
    return _Plan(changes, [*staying, *new], unread, new, changed)


def _step(step: str, plan: _Plan, rate: _Rate, runtime: Runtime) -> StepForecast:
    """What a step would take; of extractions the prompts are counted as they would be sent."""
    maker = runtime.makers[step]
    calls = round(rate.calls * plan.changed[step])
    tokens_in = calls * rate.input_tokens
    if step == "extract":
        passages = [passage for passage in plan.unread if passage.kind != "triples"]
        calls = len(passages) * (1 + runtime.extract.gleanings)
        prompts = (maker.module.messages({**maker.fixed, "title": it.title, "passage": it.text}) for it in passages)
        read = Counter(message.content for messages in prompts for message in messages)
        of_all = sum(many * read[text] for text, many in zip(read, count_tokens(list(read)), strict=True))
        tokens_in = of_all * (1 + runtime.extract.gleanings)
    tokens = round(tokens_in), round(calls * rate.output_tokens)
    client = runtime.models.client(maker.role)
    cost = client.price.cost(*tokens) if client and client.price else None
    return StepForecast(
        step=step, model=runtime.models.name(maker.role), calls=calls, cached_calls=0, input_tokens=tokens[0],
        output_tokens=tokens[1], cost_usd=cost, basis="history" if rate.known else "rule",
    )  # fmt: skip


def _embedding(plan: _Plan, embedder: ApiEmbedder, runtime: Runtime) -> StepForecast:
    windows = windows_of(plan.new, embedder)
    hashes = [window.text_hash for window, _ in windows]
    stored: Container[str] = ()
    if plan.changes.generation is not None:
        with runtime.workspace.read() as generation:
            stored = generation.vectors.have(embedder.name, hashes)
    texts = {window.text_hash: text for window, text in windows if window.text_hash not in stored}
    spent = embedder.forecast(texts)
    return StepForecast(
        step=STEP, model=embedder.name, calls=spent.calls, cached_calls=0, input_tokens=spent.input_tokens,
        output_tokens=0, cost_usd=spent.cost_usd, basis="rule",
    )  # fmt: skip


def _rates(runtime: Runtime) -> tuple[dict[str, _Rate], float]:
    """What each step takes, and the passages a second of a run without models, from what this workspace has seen."""
    totals, pace = dict[str, Counter[str]](), 0.0
    for run in runtime.workspace.database.runs.list(limit=_RUNS_READ):
        summary = json.loads(run.summary)
        indexed = run.kind == "index" and "chunks" in summary
        if indexed and not pace and "usage" not in summary and not summary["documents"]["unchanged"]:
            pace = summary["chunks"] / max(summary["seconds"], 0.01)
        for row in summary.get("usage", ()):
            maker = runtime.makers.get(row["step"])
            if maker is not None and row["model"] == runtime.models.name(maker.role):
                amounts = {name: row.get(name, 0) for name in ("calls", "input_tokens", "output_tokens", "seconds")}
                totals.setdefault(row["step"], Counter()).update(amounts)
    passages = totals.get("extract", Counter())["calls"]
    rates = dict(_RULE)
    for step, seen in totals.items():
        calls = seen["calls"]
        if calls >= ENOUGH_CALLS:
            often = calls / passages if passages >= ENOUGH_CALLS else rates[step].calls
            tokens = seen["input_tokens"] / calls or rates[step].input_tokens, seen["output_tokens"] / calls
            rates[step] = _Rate(often, *tokens, seen["seconds"] / calls or SECONDS_A_CALL, known=True)
    return rates, pace or PASSAGES_A_SECOND
