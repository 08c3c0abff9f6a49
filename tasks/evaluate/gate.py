"""The gate of an evaluation: measures may fall only by a margin against the last accepted one."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from pydantic import Field, ValidationError

from storage.errors import UsageError
from storage.evaluation_records import EvaluationResult, GateCheck
from storage.files import text_of_file
from storage.records import Record
from tasks.evaluate.compare import values_of
from tasks.evaluate.measures import measures_named

_FORM = 'A gate is: [[gate]], measure = "f1", system = "mix", margin = 0.02.'


class GateRule(Record):
    """A measure of a system may fall by `margin`, in its own unit; a cost may rise by it."""

    measure: str
    system: str
    margin: float = Field(ge=0)


class GateFile(Record):
    """The content of a gate's file."""

    gate: tuple[GateRule, ...] = Field(min_length=1)


def read_gate(path: Path) -> tuple[GateRule, ...]:
    """Read the rules of a TOML file; UsageError for a broken file or an unknown measure."""
    try:
        rules = GateFile.model_validate(tomllib.loads(text_of_file(path))).gate
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise UsageError(f"The gate {path} cannot be read: {error}", _FORM) from error
    measures_named([rule.measure for rule in rules])
    return rules


def check_gate(
    rules: Sequence[GateRule], result: EvaluationResult, accepted: Sequence[EvaluationResult]
) -> tuple[GateCheck, ...]:
    """Check each rule against the last accepted evaluation that has the rule's measure and system.

    Only questions of both evaluations count. UsageError where none is comparable: a gate that
    compares with nothing would let everything pass.
    """
    now, texts = values_of(result.scores), _texts(result)
    checks = []
    for rule, measure in zip(rules, measures_named([rule.measure for rule in rules]), strict=True):
        own = now[rule.measure][rule.system]
        for other in reversed(accepted):
            before = values_of(other.scores)[rule.measure][rule.system]
            same = {name for name, text in _texts(other).items() if texts.get(name) == text}
            if shared := sorted(own.keys() & before.keys() & same):
                break
        else:
            raise UsageError(
                f"No accepted evaluation has {rule.measure} of {rule.system!r} on these questions, "
                "or this lacks it.",
                "Evaluate that system by that measure, and accept the result that is to be kept: "
                "--accept.",
            )
        value, earlier = fmean(own[name] for name in shared), fmean(before[name] for name in shared)
        fall = earlier - value if measure.more_is_better else value - earlier
        checks.append(
            GateCheck(
                measure=rule.measure,
                system=rule.system,
                margin=rule.margin,
                value=value,
                before=earlier,
                accepted=other.evaluation.number,
                holds=fall <= rule.margin + 1e-9,
            )
        )
    return tuple(checks)


def _texts(result: EvaluationResult) -> dict[str, str]:
    return {question.id: question.question for question in result.evaluation.questions}


def in_words(check: GateCheck) -> str:
    """Describe a check as a sentence without a full stop."""
    change = f"{check.before:.4g} to {check.value:.4g}"
    outcome = "within" if check.holds else "more than"
    return (
        f"{check.measure} of {check.system} went from {change} since evaluation {check.accepted}, "
        f"{outcome} the margin of {check.margin:g}"
    )
