"""Forecast an index run: the passages that it would read, times what a step takes for each.

The input of an extraction is counted by a tokenizer. All else is an average: of this workspace's
own runs where they asked the same model often enough, else of the project's scripted model. Calls
that the cache would answer are counted like all others.
"""

import time
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flows.index import IndexOptions
from flows.indexing.pace import (
    PASSAGES_A_SECOND,
    SECONDS_A_CALL,
    StepRate,
    model_speeds,
    step_rates,
)
from flows.indexing.source_changes import (
    SourceChanges,
    author_of,
    seen_before,
    sync,
    with_earlier_prompts,
)
from flows.runtime import Runtime
from prompts.engine.embedding_api import STEP, ApiEmbedder
from prompts.engine.messages import PICTURE_TOKENS
from prompts.engine.roles import SEES
from prompts.picture import DESCRIPTION_TOKENS, ReadPicture
from prompts.propositions import ListStatements
from prompts.text.tokens import count_tokens
from storage.records import Chunk
from storage.run_records import Forecast, StepForecast
from tasks.chunk import chunk
from tasks.embed import windows_of
from tasks.extract import extraction_inputs
from tasks.load.sources import load
from tasks.picture import described_before
from tasks.propositions import proposition_inputs


@dataclass(frozen=True)
class RunPlan:
    """What a run would do: `passages` of the next generation, of which `unread` are extracted and
    `new` embedded; `changed` is the number of passages that each step works on, `pictures` that of
    pictures to describe.
    """

    changes: SourceChanges
    passages: Sequence[Chunk]
    unread: Sequence[Chunk]
    new: Sequence[Chunk]
    changed: Mapping[str, int]
    pictures: int


async def forecast(
    sources: Sequence[str | Path], options: IndexOptions, runtime: Runtime
) -> Forecast:
    """Forecast a run; calls no model and writes nothing.

    Raises what the run would raise before its first call.
    """
    started = time.monotonic()
    runtime, _ = with_earlier_prompts(runtime, options.remake or options.full)
    plan, rates = await _plan(sources, options, runtime), step_rates(runtime)
    made = [step for step, maker in runtime.makers.items() if not maker.is_offline]
    steps = [_step(step, plan, rates[step], runtime) for step in made]
    if plan.pictures:
        steps.append(_pictures(plan, runtime))
    if isinstance(runtime.embedder, ApiEmbedder):
        steps.append(_embedding(plan, runtime.embedder, runtime))
    steps = [step for step in steps if step.calls]
    run_seconds, rate = _time(plan, [step for step in steps if step.step != STEP], runtime)
    known = [step.cost_usd for step in steps if step.cost_usd is not None]
    return Forecast(
        documents=plan.changes.plan.counts,
        skipped=plan.changes.loaded.skipped,
        chunks=len(plan.passages),
        chunks_to_extract=len(plan.unread),
        calls=sum(step.calls for step in steps),
        input_tokens=sum(step.input_tokens for step in steps),
        output_tokens=sum(step.output_tokens for step in steps),
        cost_usd=sum(known) if len(known) == len(steps) else None,
        steps=tuple(steps),
        seconds=time.monotonic() - started,
        run_seconds=run_seconds,
        rate=rate,
    )


def _time(plan: RunPlan, steps: Sequence[StepForecast], runtime: Runtime) -> tuple[float, str]:
    """Return the seconds that a run would take, and the speeds that they are computed from."""
    speeds = model_speeds(runtime)
    seconds = len(plan.unread) / PASSAGES_A_SECOND
    rates = [f"{PASSAGES_A_SECOND:g} passages a second"]
    for step in steps:
        if speed := speeds.get(step.model):
            seconds += (step.input_tokens + step.output_tokens) / speed
            rates.append(f"{step.model} {speed:.0f} tokens a second, as measured")
        else:
            seconds += step.calls * SECONDS_A_CALL
            rates.append(f"{step.model} not measured yet, {SECONDS_A_CALL:g} s a call by rule")
    return seconds, ", ".join(dict.fromkeys(rates))


async def _plan(sources: Sequence[str | Path], options: IndexOptions, runtime: Runtime) -> RunPlan:
    settings, reader = runtime.settings, ReadPicture(runtime.models)
    seen = seen_before(runtime, describes=not reader.is_offline, anew=options.full)
    loaded = await load(sources, runtime.models.cache, not reader.is_offline, seen)
    loaded, pictures = await described_before(loaded, reader)
    changes = await sync(loaded, options.full, options.allow_removals, runtime)
    new = list(await chunk(changes.plan.put, settings.chunk_tokens, settings.chunk_overlap))
    put = {document.id for document in changes.plan.put}
    authors, earlier = runtime.authors, runtime.authors
    extracted, listed, kept = dict[str, str](), dict[str, str](), list[Chunk]()
    if changes.generation is not None:
        with runtime.workspace.read() as generation:
            gone = put | set(changes.plan.removed)
            kept = [row for row in generation.documents.chunks() if row.document not in gone]
            extracted = {} if options.full else generation.extractions.inputs()
            listed = {} if options.full else generation.propositions.inputs()
            earlier = {step: author_of(step, generation.meta, runtime) for step in authors}
    passages = [*kept, *new]
    unread = [
        passage
        for passage in passages
        if extracted.get(passage.id) != extraction_inputs(passage, authors["extract"])
        or (passage.kind == "triples" and passage.document in put)
    ]
    # A step whose author has changed works on everything again.
    changed = {
        step: len(unread) if author == earlier[step] else len(passages)
        for step, author in authors.items()
    }
    if author := authors.get(ListStatements.step):
        texts = [passage for passage in passages if passage.kind != "triples"]
        unlisted = [it for it in texts if listed.get(it.id) != proposition_inputs(it, author)]
        changed[ListStatements.step] = len(unlisted)
    return RunPlan(changes, passages, unread, new, changed, pictures)


def _step(step: str, plan: RunPlan, rate: StepRate, runtime: Runtime) -> StepForecast:
    """Forecast a step; of extractions the prompts are counted as they would be sent."""
    maker = runtime.makers[step]
    calls = round(rate.calls * plan.changed[step])
    tokens_in = calls * rate.input_tokens
    if step == "extract":
        readings = 1 + runtime.extract.gleanings
        passages = [passage for passage in plan.unread if passage.kind != "triples"]
        calls = len(passages) * readings
        prompts = (
            maker.module.messages({"title": it.title, "passage": it.text}) for it in passages
        )
        # Most messages are the same in all prompts: each text is counted once.
        times = Counter(message.content for messages in prompts for message in messages)
        tokens = count_tokens(list(times))
        tokens_in = readings * sum(n * size for n, size in zip(times.values(), tokens, strict=True))
    used = round(tokens_in), round(calls * rate.output_tokens)
    lm = runtime.models.lm_or_none(maker.role)
    return StepForecast(
        step=step,
        model=runtime.models.name(maker.role),
        calls=calls,
        input_tokens=used[0],
        output_tokens=used[1],
        cost_usd=lm.terms.price.cost(*used) if lm and lm.terms.price else None,
        basis="history" if rate.known else "rule",
    )


def _pictures(plan: RunPlan, runtime: Runtime) -> StepForecast:
    """Forecast the descriptions of pictures: of each a few sentences."""
    lm = runtime.models.lm(SEES)
    used = plan.pictures * PICTURE_TOKENS, plan.pictures * DESCRIPTION_TOKENS
    return StepForecast(
        step=ReadPicture.step,
        model=lm.model,
        calls=plan.pictures,
        input_tokens=used[0],
        output_tokens=used[1],
        cost_usd=lm.terms.price.cost(*used) if lm.terms.price else None,
        basis="rule",
    )


def _embedding(plan: RunPlan, embedder: ApiEmbedder, runtime: Runtime) -> StepForecast:
    windows = windows_of(plan.new, embedder)
    stored: Container[str] = ()
    if plan.changes.generation is not None:
        with runtime.workspace.read() as generation:
            hashes = [window.text_hash for window, _ in windows]
            stored = generation.vectors.have(embedder.name, hashes)
    texts = {window.text_hash: text for window, text in windows if window.text_hash not in stored}
    spent = embedder.forecast(texts)
    return StepForecast(
        step=STEP,
        model=embedder.name,
        calls=spent.calls,
        input_tokens=spent.input_tokens,
        output_tokens=0,
        cost_usd=spent.cost_usd,
        basis="rule",
    )
