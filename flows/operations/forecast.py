"""The forecast of an index run: the passages that it would read, times what a step takes for each.

What an extraction reads is counted by a tokenizer. All else is an average: of this workspace's own
runs where they asked the same model often enough, else of the project's scripted model. What the
cache holds is not looked up.
"""

import json
import time
from collections import Counter, defaultdict
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

# From so many calls on, what a model has taken before says more than the rule.
ENOUGH_CALLS = 20
RUNS_READ = 200


@dataclass(frozen=True)
class StepRate:
    """What a step takes: calls for each passage that is extracted, and tokens of a call."""

    calls: float
    input_tokens: float
    output_tokens: float
    known: bool = False


# Measured with the project's scripted model on the documentation of the project, passages of 370
# tokens.
RULE = {
    "extract": StepRate(1.0, 1700, 650),
    "resolve": StepRate(0.01, 700, 30),
    "summarize": StepRate(0.4, 670, 40),
    "relate": StepRate(0.01, 1300, 310),
    "report": StepRate(0.25, 1700, 390),
}


@dataclass(frozen=True)
class RunPlan:
    """What a run would read: the passages of the next generation, those of them to extract and to
    embed, and how many each further step goes by.
    """

    changes: SourceChanges
    passages: Sequence[Chunk]
    unread: Sequence[Chunk]
    new: Sequence[Chunk]
    changed: Mapping[str, int]


async def forecast(sources: Sequence[str | Path], options: IndexOptions, runtime: Runtime) -> Forecast:
    """Plan a run and say what it would take; calls no model and leaves the workspace as it is.

    Raises what the run would raise before its first call.
    """
    started = time.monotonic()
    runtime, _ = with_earlier_prompts(runtime, options.remake or options.full)
    plan, rates = await _plan(sources, options, runtime), _rates(runtime)
    made = [step for step, maker in runtime.makers.items() if not maker.is_offline]
    steps = [_step(step, plan, rates[step], runtime) for step in made]
    if isinstance(runtime.embedder, ApiEmbedder):
        steps.append(_embedding(plan, runtime.embedder, runtime))
    steps = [step for step in steps if step.calls]
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
    )


def _rates(runtime: Runtime) -> dict[str, StepRate]:
    """What each step takes, by the runs of this workspace that asked its model of now."""
    used = defaultdict[str, Counter[str]](Counter)
    for run in runtime.workspace.database.runs.list(limit=RUNS_READ):
        for row in json.loads(run.summary).get("usage", ()):
            maker = runtime.makers.get(row["step"])
            if maker is not None and row["model"] == runtime.models.name(maker.role):
                counted = ("calls", "input_tokens", "output_tokens")
                used[row["step"]].update({name: row.get(name, 0) for name in counted})
    read = used["extract"]["calls"]
    return {step: _rate(used[step], rule, read) for step, rule in RULE.items()}


def _rate(seen: Counter[str], rule: StepRate, passages: int) -> StepRate:
    calls = seen["calls"]
    if calls < ENOUGH_CALLS:
        return rule
    of_each = calls / passages if passages >= ENOUGH_CALLS else rule.calls
    tokens = seen["input_tokens"] / calls or rule.input_tokens
    return StepRate(of_each, tokens, seen["output_tokens"] / calls, known=True)


async def _plan(sources: Sequence[str | Path], options: IndexOptions, runtime: Runtime) -> RunPlan:
    settings = runtime.settings
    changes = await sync(await load(sources), options.full, options.allow_removals, runtime)
    new = list(await chunk(changes.plan.put, settings.chunk_tokens, settings.chunk_overlap))
    put = {document.id for document in changes.plan.put}
    authors, earlier = runtime.authors, runtime.authors
    stored, staying = dict[str, str](), list[Chunk]()
    if changes.generation is not None:
        with runtime.workspace.read() as generation:
            gone = put | set(changes.plan.removed)
            staying = [row for row in generation.documents.chunks() if row.document not in gone]
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
    return RunPlan(changes, [*staying, *new], unread, new, changed)


def _step(step: str, plan: RunPlan, rate: StepRate, runtime: Runtime) -> StepForecast:
    """Say what a step would take; of extractions the prompts are counted as they would be sent."""
    maker = runtime.makers[step]
    calls = round(rate.calls * plan.changed[step])
    tokens_in = calls * rate.input_tokens
    if step == "extract":
        passages = [passage for passage in plan.unread if passage.kind != "triples"]
        calls = len(passages) * (1 + runtime.extract.gleanings)
        prompts = (maker.module.messages({"title": it.title, "passage": it.text}) for it in passages)
        read = Counter(message.content for messages in prompts for message in messages)
        counts = zip(read.values(), count_tokens(list(read)), strict=True)
        of_all = sum(times * tokens for times, tokens in counts)
        tokens_in = of_all * (1 + runtime.extract.gleanings)
    tokens = round(tokens_in), round(calls * rate.output_tokens)
    lm = runtime.models.lm_or_none(maker.role)
    cost = lm.terms.price.cost(*tokens) if lm and lm.terms.price else None
    return StepForecast(
        step=step,
        model=runtime.models.name(maker.role),
        calls=calls,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        cost_usd=cost,
        basis="history" if rate.known else "rule",
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
