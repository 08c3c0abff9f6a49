"""How fast an index run goes: what each step takes of its model, and how many tokens a second the
model has done.

Both are learnt from the runs of this workspace. Of a model that it has not used yet, the first
passage's own call is timed before the others go out: its answer is kept, so that nothing is asked
twice.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from flows.runtime import Runtime, unheard
from prompts.engine.errors import EngineError, ModelMisconfigured
from prompts.engine.lm import ServedLM
from storage.records import Chunk

# Passages of 370 tokens, with the default embedding and no other model: measured on two busy cores.
PASSAGES_A_SECOND = 3.0
# Of a model whose speed nobody has measured.
SECONDS_A_CALL = 4.0
# From so many calls on, what a model has taken before says more than the rule.
ENOUGH_CALLS = 20
_RUNS_READ = 200


@dataclass(frozen=True)
class StepRate:
    """What a step takes: calls for each passage that is extracted, tokens of a call, and the
    seconds by which each call makes a run longer (None: not known)."""

    calls: float
    input_tokens: float
    output_tokens: float
    seconds: float | None = None
    known: bool = False

    @property
    def tokens(self) -> float:
        return self.input_tokens + self.output_tokens


# Measured with the project's scripted model on the documentation of the project, passages of 370 tokens.
_RULE = {
    "extract": StepRate(1.0, 1700, 650),
    "resolve": StepRate(0.01, 700, 30),
    "summarize": StepRate(0.4, 670, 40),
    "relate": StepRate(0.01, 1300, 310),
    "report": StepRate(0.25, 1700, 390),
}


@dataclass(frozen=True)
class Pace:
    """What steps take, the passages a second without models, and tokens a second by model, as
    measured: all that it read and wrote, in the time in which it had something to do."""

    rates: Mapping[str, StepRate]
    passages: float
    tokens: Mapping[str, float]

    def seconds(self, step: str, calls: float, tokens: float, runtime: Runtime) -> float:
        """How much longer a run is for so many calls of a step."""
        known, role = self.rates[step].seconds, runtime.makers[step].role
        if known is not None:
            return calls * known
        if speed := self.tokens.get(runtime.models.name(role)):
            return tokens / speed
        return calls * SECONDS_A_CALL / at_once(runtime, step)

    def in_words(self, steps: Iterable[str], runtime: Runtime) -> str:
        """The speeds that a forecast of these steps rests on."""
        models = dict.fromkeys(runtime.models.name(runtime.makers[step].role) for step in steps)
        told = [
            f"{model} {self.tokens[model]:.0f} tokens a second, as measured"
            if model in self.tokens
            else f"{model} not measured yet, {SECONDS_A_CALL:g} s a call by rule"
            for model in models
        ]
        return ", ".join([f"{self.passages:.1f} passages a second", *told])


def at_once(runtime: Runtime, step: str) -> int:
    """How many calls of a step count as answered at once: those of a provider. A server of one's
    own may answer one after the other."""
    lm = runtime.models.lm_or_none(runtime.makers[step].role)
    return 1 if lm is None or lm.terms.own_server else lm.terms.limits.concurrency


def pace_of(runtime: Runtime) -> Pace:
    """From what this workspace, and this process, have seen."""
    used, passages = defaultdict[str, Counter[str]](Counter), 0.0
    by_model = defaultdict[str, Counter[str]](Counter)
    for run in runtime.workspace.database.runs.list(limit=_RUNS_READ):
        summary = json.loads(run.summary)
        if run.kind == "index" and not passages and _is_a_whole_run_offline(summary):
            passages = summary["chunks"] / max(summary["seconds"], 0.01)
        for row in summary.get("usage", ()):
            _count(row, row["step"], row["model"], used, by_model, runtime)
    for step, model, spent in runtime.models.meter.rows():
        row = {name: getattr(spent, name) for name in _COUNTED}
        _count(row, step, model, used, by_model, runtime)
    read = used["extract"]["calls"] if "extract" in used else 0
    rates = {step: _rate(used[step], rule, read, runtime) if step in used else rule for step, rule in _RULE.items()}
    tokens = {
        model: (seen["input_tokens"] + seen["output_tokens"]) / seen["busy_seconds"]
        for model, seen in by_model.items()
        if seen["busy_seconds"] > 0
    }
    return Pace(rates, passages or PASSAGES_A_SECOND, tokens)


_COUNTED = ("calls", "input_tokens", "output_tokens", "seconds", "busy_seconds")


def _is_a_whole_run_offline(summary: Mapping[str, object]) -> bool:
    documents = summary.get("documents")
    unchanged = documents.get("unchanged") if isinstance(documents, dict) else 0
    return "chunks" in summary and "usage" not in summary and not unchanged


def _count(
    row: Mapping[str, float],
    step: str,
    model: str,
    used: Mapping[str, Counter[str]],
    by_model: Mapping[str, Counter[str]],
    runtime: Runtime,
) -> None:
    """Add a row of a ledger: to its step, where that has the same model now, and to its model."""
    amounts = {name: row.get(name, 0) for name in _COUNTED}
    maker = runtime.makers.get(step)
    if maker is not None and model == runtime.models.name(maker.role):
        used[step].update(amounts)
    if amounts["busy_seconds"]:  # earlier versions have not kept it
        by_model[model].update(amounts)


def _rate(seen: Counter[str], rule: StepRate, passages: float, runtime: Runtime) -> StepRate:
    calls = seen["calls"]
    if calls < ENOUGH_CALLS:
        return rule
    each = seen["busy_seconds"] or seen["seconds"] / runtime.settings.concurrency
    return StepRate(
        calls=calls / passages if passages >= ENOUGH_CALLS else rule.calls,
        input_tokens=seen["input_tokens"] / calls or rule.input_tokens,
        output_tokens=seen["output_tokens"] / calls,
        seconds=each / calls or None,
        known=True,
    )


# --- before a run -----------------------------------------------------------------------------------------------------


async def tell_expected_time(todo: Sequence[Chunk], runtime: Runtime) -> None:
    """Say how long a run will take that extracts these passages, and by which measured speed;
    nothing without a model, or where nobody listens.

    Where the speed is not known, the first passage is extracted alone.
    """
    lm = runtime.models.lm_or_none("extract")
    passages = [chunk for chunk in todo if chunk.kind != "triples"]
    if lm is None or not passages or runtime.tell is unheard:
        return
    model, pace = runtime.models.name("extract"), pace_of(runtime)
    timed = model not in pace.tokens and await _timed_alone(passages, lm, runtime)
    pace = pace_of(runtime) if timed else pace
    if model not in pace.tokens:
        return
    seconds = 0.0
    for step, maker in runtime.makers.items():
        if not maker.is_offline:
            rate = pace.rates[step]
            calls = rate.calls * len(passages)
            seconds += pace.seconds(step, calls, calls * rate.tokens, runtime)
    more = ""
    if timed:  # by one call alone
        seconds /= at_once(runtime, "extract")
        more = " of a call; less where the server answers several at once" if lm.terms.own_server else " of a call"
    speed = f"{pace.tokens[model]:.0f} tokens a second{more}"
    runtime.tell(f"{len(passages)} passages: {time_in_words(seconds)} at {speed}")


async def _timed_alone(passages: Sequence[Chunk], lm: ServedLM, runtime: Runtime) -> bool:
    """Extract the first passage before the others; whether there is a time now.

    Not where that would hold up the others for nothing: where all go out at once, or its answer is
    not kept.
    """
    terms = lm.terms
    at_once = 1 if terms.own_server else terms.limits.concurrency
    if terms.cache is None or len(passages) <= at_once:
        return False
    runtime.tell(f"Timing the first call to {runtime.models.name('extract')} …")
    try:
        await runtime.extract.run(passages[0].title, passages[0].text)
    except ModelMisconfigured:
        raise
    except EngineError:
        return False  # the passage's own turn tells
    return True


def time_in_words(seconds: float) -> str:
    """About how long, in the unit that fits."""
    if seconds < 100:
        return f"about {max(seconds, 1):.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 6000 else f"about {seconds / 3600:.1f} h"
