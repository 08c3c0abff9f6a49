"""The speed of the models of an index run, and the time that a run takes.

The calls and tokens of a step are averages of this workspace's runs with the same model, or, with
too few calls, of the project's scripted model. A speed counts all tokens, read and written, in the
time during which calls were running.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from flows.runtime import Runtime

# Measured on two busy cores with passages of 370 tokens and the default embedding alone.
PASSAGES_A_SECOND = 3.0
# Of a model whose speed is not measured yet.
SECONDS_A_CALL = 4.0
ENOUGH_CALLS = 20  # from which averages of this workspace count
RUNS_READ = 200


@dataclass(frozen=True)
class StepRate:
    """The calls of a step for each extracted passage, and the tokens of a call."""

    calls: float
    input_tokens: float
    output_tokens: float
    known: bool = False


# Measured with the scripted model on the project's documentation, in passages of 370 tokens.
RULE = {
    "extract": StepRate(1.0, 1700, 650),
    "propositions": StepRate(1.0, 900, 500),
    "resolve": StepRate(0.01, 700, 30),
    "summarize": StepRate(0.4, 670, 40),
    "relate": StepRate(0.01, 1300, 310),
    "report": StepRate(0.25, 1700, 390),
}
_COUNTED = ("calls", "input_tokens", "output_tokens", "busy_seconds")


def _ledger(runtime: Runtime) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Yield step, model and amounts of the runs of this workspace, including this one."""
    for step, model, spent in runtime.models.meter.rows():
        yield step, model, {name: getattr(spent, name) for name in _COUNTED}
    for run in runtime.workspace.database.runs.list(limit=RUNS_READ):
        for row in json.loads(run.summary).get("usage", ()):
            yield row["step"], row["model"], {name: row.get(name, 0) for name in _COUNTED}


def step_rates(runtime: Runtime) -> dict[str, StepRate]:
    """Return the rate of each step with its current model."""
    used = defaultdict[str, Counter[str]](Counter)
    for step, model, amounts in _ledger(runtime):
        maker = runtime.makers.get(step)
        if maker is not None and model == runtime.models.name(maker.role):
            used[step].update(amounts)
    read = used["extract"]["calls"]
    return {step: _rate(used[step], rule, read) for step, rule in RULE.items()}


def _rate(seen: Counter[str], rule: StepRate, passages: int) -> StepRate:
    calls = seen["calls"]
    if calls < ENOUGH_CALLS:
        return rule
    of_each = calls / passages if passages >= ENOUGH_CALLS else rule.calls
    tokens = seen["input_tokens"] / calls or rule.input_tokens
    return StepRate(of_each, tokens, seen["output_tokens"] / calls, known=True)


def model_speeds(runtime: Runtime) -> dict[str, float]:
    """Return the tokens a second of each model that has been asked."""
    used = defaultdict[str, Counter[str]](Counter)
    for _, model, amounts in _ledger(runtime):
        if amounts["busy_seconds"]:
            used[model].update(amounts)
    return {
        model: (seen["input_tokens"] + seen["output_tokens"]) / seen["busy_seconds"]
        for model, seen in used.items()
    }


def expected_time(passages: int, runtime: Runtime) -> str:
    """Return in words how long a run takes for so many passages, and at which speed.

    The text is empty if the speed of the extraction model is unknown.
    """
    speeds, rates = model_speeds(runtime), step_rates(runtime)
    name = runtime.models.name("extract")
    if not (speed := speeds.get(name)):
        return ""
    seconds = 0.0
    for step, maker in runtime.makers.items():
        if not maker.is_offline:
            rate = rates[step]
            tokens = passages * rate.calls * (rate.input_tokens + rate.output_tokens)
            seconds += tokens / (speeds.get(runtime.models.name(maker.role)) or speed)
    return f"{time_in_words(seconds)} at {speed:.0f} tokens a second of {name}, as measured"


def time_in_words(seconds: float) -> str:
    """Return about how long, in seconds, minutes or hours."""
    if seconds < 100:
        return f"about {max(seconds, 1):.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 6000 else f"about {seconds / 3600:.1f} h"
