"""The forecast of an index run: the passages that it would read, times what a step takes for each.

What an extraction reads is counted by a tokenizer; all else is an average: of this workspace's own runs where they
asked the same model often enough, else of the project's scripted model; the time is that of the measured speed
(`flows/indexing/pace.py`). What the cache holds is not looked up.
"""

import time
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flows.index import IndexOptions
from flows.indexing.pace import StepRate, pace_of
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
    plan, pace = await _plan(sources, options, runtime), pace_of(runtime)
    made = (step for step, maker in runtime.makers.items() if not maker.is_offline)
    steps = [_step(step, plan, pace.rates[step], runtime) for step in made]
    if isinstance(runtime.embedder, ApiEmbedder):
        steps.append(_embedding(plan, runtime.embedder, runtime))
    steps, seconds = [step for step in steps if step.calls], time.monotonic() - started
    calls, settings = sum(step.calls for step in steps), runtime.settings
    tokens = sum(step.input_tokens + step.output_tokens for step in steps)
    asked = [step for step in steps if step.step in pace.rates]
    # No faster than the limits of the server let them.
    waiting = max(
        sum(pace.seconds(step.step, step.calls, step.input_tokens + step.output_tokens, runtime) for step in asked),
        60 * calls / (settings.rpm or float("inf")),
        60 * tokens / (settings.tpm or float("inf")),
    )
    known = [step.cost_usd for step in steps if step.cost_usd is not None]
    return Forecast(
        documents=plan.changes.plan.counts, skipped=plan.changes.loaded.skipped, chunks=len(plan.passages),
        chunks_to_extract=len(plan.unread), calls=calls, cached_calls=0,
        input_tokens=sum(step.input_tokens for step in steps), output_tokens=sum(step.output_tokens for step in steps),
        cost_usd=sum(known) if len(known) == len(steps) else None, steps=tuple(steps), seconds=seconds,
        run_seconds=seconds + len(plan.unread) / pace.passages + waiting,
        rate=pace.in_words([step.step for step in asked], runtime),
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


def _step(step: str, plan: _Plan, rate: StepRate, runtime: Runtime) -> StepForecast:
    """What a step would take; of extractions the prompts are counted as they would be sent."""
    maker = runtime.makers[step]
    calls = round(rate.calls * plan.changed[step])
    tokens_in = calls * rate.input_tokens
    if step == "extract":
        passages = [passage for passage in plan.unread if passage.kind != "triples"]
        calls = len(passages) * (1 + runtime.extract.gleanings)
        prompts = (maker.module.messages({"title": it.title, "passage": it.text}) for it in passages)
        read = Counter(message.content for messages in prompts for message in messages)
        of_all = sum(many * read[text] for text, many in zip(read, count_tokens(list(read)), strict=True))
        tokens_in = of_all * (1 + runtime.extract.gleanings)
    tokens = round(tokens_in), round(calls * rate.output_tokens)
    lm = runtime.models.lm_or_none(maker.role)
    cost = lm.terms.price.cost(*tokens) if lm and lm.terms.price else None
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
