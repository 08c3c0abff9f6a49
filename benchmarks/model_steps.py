"""How a model does each step that asks one: its form, its loops, what it copies, its language, what
it takes.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback
from pydantic_core import to_jsonable_python

from benchmarks.kept_rows import KeptRows
from benchmarks.runner import Cell, DataMissingError, Run, cell_text
from benchmarks.step_inputs import INPUTS, Material, fitted, inputs_of, materials
from benchmarks.step_marks import Case, Json, Marks, Outcome, StepReply, StepRow, figures, marks_of
from prompts.engine.errors import AnswerMalformed, AnswerTruncated, AnswerWithheld
from prompts.engine.models import Models
from prompts.engine.step import Step
from prompts.extract import Extract, Glean
from prompts.registry import forms, steps

QUICK_INPUTS = 5
# What the line of a step tells; the table at the end has the rest.
SHOWN = (
    "n",
    "first",
    "repaired",
    "refused",
    "failed",
    "looping",
    "copied",
    "foreign",
    "in",
    "out",
    "s",
    "quality",
)


class ReplyRecorder(BaseCallback):  # type: ignore[misc]  # DSPy's has no types
    """Keeps every call that DSPy makes and its reply, also those that a step refuses."""

    def __init__(self) -> None:
        self.replies: list[StepReply] = []
        self._asked: dict[str, str] = {}

    @property
    def tried_again(self) -> bool:
        """Whether a call went on from an earlier one, or repeated it; a step may make several that
        do not.
        """
        return any(
            later.startswith(earlier) for earlier, later in combinations(self._asked.values(), 2)
        )

    def on_lm_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
        """Keep what is asked."""
        turns = inputs["prompt"].messages
        self._asked[call_id] = "\n".join(part.text for turn in turns for part in turn.parts)

    def on_lm_end(self, call_id: str, outputs: Any, exception: Exception | None = None) -> None:
        """Keep the reply; a call that has none, since the server failed, was no try of the
        model's.
        """
        if outputs is None or exception is not None:
            self._asked.pop(call_id, None)
            return
        self.replies.append(
            StepReply(
                text=outputs.text or "",
                finish=str(outputs.finish_reason),
                tokens_in=outputs.usage.input_tokens or 0,
                tokens_out=outputs.usage.output_tokens or 0,
            )
        )


def measure_steps(run: Run, models: Models, model: str) -> None:
    """Ask every step, or those of --steps: a line as each is done, then the table."""
    many = QUICK_INPUTS if run.options.quick else run.limit or INPUTS
    chosen = chosen_steps(models, run.options.steps)
    given = materials(run, many)
    kept = KeptRows(run.workspace("steps") / "rows.jsonl", StepRow)
    table: dict[str, Mapping[str, Cell]] = {}
    for name, step in chosen.items():
        done = [asyncio.run(answered(name, step, material, model, kept)) for material in given]
        rows, marks = [row for row, _ in done], [mark for _, mark in done]
        table[name] = {**figures(step.step, rows, marks), "prompt": _prompt_hash(step)}
        told = (
            f"{column} {cell_text(table[name][column])}"
            for column in SHOWN
            if table[name][column] is not None
        )
        print(f"{name}: {', '.join(told)}", flush=True)
        problems = [row.problem for row in rows if row.outcome == "failed"]
        if problems:
            print(f"  {problems[0]}", flush=True)
        run.show(f"  {row.number} {row.outcome}: {row.problem or mark}" for row, mark in done)
    run.table(f"steps: {many} inputs each, {model}", table)


def chosen_steps(models: Models, wanted: Sequence[str] | None) -> dict[str, Step]:
    """The steps by name, each form of one that has several; a step's name chooses all its forms."""
    every: dict[str, Step] = {}
    groups: dict[str, list[str]] = {}
    for group in steps():
        for step in forms(group, models):
            if isinstance(step, Extract | Glean) and "Facts" in type(step).__name__:
                continue  # they need a schema, which these inputs have not
            own = step.instruction_names[0]
            name = own if own not in every else f"{own} {type(step).__name__}"
            every[name] = step
            groups.setdefault(group, []).append(name)
    unknown = [name for name in wanted or () if name not in every and name not in groups]
    if unknown:
        raise DataMissingError(f"There is no step {unknown[0]!r}. There are {', '.join(every)}.")
    names = [name for one in wanted or groups for name in groups.get(one, [one])]
    return {name: every[name] for name in names}


async def answered(
    name: str, step: Step, material: Material, model: str, kept: KeptRows[StepRow]
) -> tuple[StepRow, Marks]:
    """What a step makes of one input, from the file where this was asked before.

    A failure is a row; it is tried again when the command runs again.
    """
    try:
        case = case_of(name, step, fitted(step.step, material))
        asked = case.hash(model)
        row = kept.rows.get(asked)
        if row is None or row.outcome == "failed":
            row = await ask(case, asked)
            kept.add(row)
        return row, marks_of(case, row)
    # What cannot be asked or judged stands beside the others.
    except Exception as error:  # noqa: BLE001
        problem = f"{type(error).__name__}: {error}"[:500]
        number = material.number
        failed = StepRow(asked="", step=name, number=number, outcome="failed", problem=problem)
        return failed, Marks()


def case_of(name: str, step: Step, material: Material) -> Case:
    """An input of a step, with what the model reads."""
    inputs = inputs_of(step, material)
    read = tuple(message.content for message in step.module.messages(inputs))
    return Case(name, step, material, inputs, read)


async def ask(case: Case, asked: str) -> StepRow:
    """Ask the model once, as the product does."""
    recorder, started, before = ReplyRecorder(), time.monotonic(), _unread(case.step)
    outputs: dict[str, Json] = {}
    problem = ""
    try:
        with dspy.context(callbacks=[recorder], disable_history=True):
            prediction = await case.step.acall(**case.inputs)
        names = case.step.module.signature.output_fields
        outputs = {name: to_jsonable_python(prediction[name]) for name in names}
        outcome: Outcome = "repaired" if recorder.tried_again else "first"
    except (AnswerMalformed, AnswerTruncated, AnswerWithheld) as error:
        outcome, problem = "refused", str(error)
    except Exception as error:  # noqa: BLE001 -- a step that fails is a row, the others go on
        outcome, problem = "failed", f"{type(error).__name__}: {error}"
    return StepRow(
        asked=asked,
        step=case.name,
        number=case.material.number,
        outcome=outcome,
        replies=tuple(recorder.replies),
        outputs=outputs,
        problem=problem[:500],
        unread_lines=_unread(case.step) - before,
        seconds=time.monotonic() - started,
    )


def _unread(step: Step) -> int:
    """The lines of the step's answers that were left out so far."""
    rows = step.models.meter.rows()
    return sum(spent.unread_lines for name, _, spent in rows if name == step.step)


def _prompt_hash(step: Step) -> str:
    """The hash of the step's prompt; why there is none, where it cannot be made."""
    try:
        return step.module.prompt_hash
    except Exception as error:  # noqa: BLE001 -- the rows of the step tell the same
        return type(error).__name__
