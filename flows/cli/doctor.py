"""`trellis doctor` and `prompt`: the examination of the installation, and the prompts of steps."""

import asyncio
import os
from collections.abc import Sequence
from itertools import groupby

from flows.cli.common import COMMON, Common
from flows.cli.running import command
from flows.cli.screen import Screen
from flows.operations.doctor import PREFECT_URL, Examination, examination
from flows.runtime import Runtime
from prompts.doctor import ExaminedModel
from prompts.engine.adapter import unwrapped
from prompts.engine.models import OFFLINE
from prompts.engine.step import Step
from prompts.registry import forms, instruction_names, steps
from storage.errors import UsageError, did_you_mean

STRUCTURED = {
    "json_schema": "structured output: JSON schema",
    "json_object": "structured output: JSON only",
}


@command
def doctor(*, common: Common = COMMON) -> int:
    """Examine the installation; return 1 if something failed."""
    screen = common.screen
    report = asyncio.run(examination(common.settings(), os.environ.get(PREFECT_URL, "")))
    screen.result(report, lambda: _show(report, screen))
    return 0 if report.ok else 1


def _show(report: Examination, screen: Screen) -> None:
    screen.title("Models")
    if report.offline:
        offline = "every step runs offline: no model, no key, no network (TRELLIS_LM names a model)"
        _show_check(True, [offline], screen)
    else:
        # Roles with the same model and probe were tested by one call, and share a line.
        for _, group in groupby(sorted(report.models, key=_call), key=_call):
            _show_models(list(group), screen)
        _show_profile(report, screen)
    checks = {
        "Embedding": report.embedding,
        "Reranker": report.reranker,
        "Workspace": report.workspace,
        "Prefect": report.prefect,
    }
    for title, check in checks.items():
        if check is not None:
            screen.title(title)
            advice = f"→ {check.advice}" if check.advice else ""
            _show_check(check.ok, [check.seen, check.problem, advice], screen)
    screen.title("Everything works." if report.ok else "Something does not work: see above.")


def _show_models(rows: Sequence[ExaminedModel], screen: Screen) -> None:
    """Show one call and the roles that it tested."""
    row = rows[0]
    asked = f" (step {row.step})" if row.step else ""
    lines = [f"{row.model} · {', '.join(member.role for member in rows)}{asked}"]
    if row.model != OFFLINE:
        tokens = f"{row.input_tokens} tokens in, {row.output_tokens} out"
        figures = f"{row.seconds:.2f} s, {tokens}"
        lines.append(f"{row.address or 'no address'} · {figures} · {_form(row)}")
    _show_check(row.ok, [*lines, row.problem, *(f"→ {line}" for line in row.advice)], screen)


def _show_profile(report: Examination, screen: Screen) -> None:
    """Show the profile, its origin, and the steps that use no model."""
    origin = (
        "as TRELLIS_PROFILE says"
        if report.profile_set
        else "by the models' names; TRELLIS_PROFILE sets another"
    )
    spared = ", ".join(report.spared)
    saved = f"no model is asked to {spared} (TRELLIS_HELPER_STEPS asks)" if spared else ""
    screen.title("Profile")
    _show_check(True, [f"{report.profile} ({origin})", saved], screen)


def _call(row: ExaminedModel) -> tuple[bool, str, str, str]:
    return row.model == OFFLINE, row.model, row.address, row.step


def _form(row: ExaminedModel) -> str:
    if not row.ok and row.structured == "unknown":
        return "structured output unknown"
    if row.role == "extract":
        return "lines of text: needs no structured output"
    none = "no structured output: answers are checked and repaired"
    return STRUCTURED.get(row.structured, none)


def _show_check(ok: bool, lines: Sequence[str], screen: Screen) -> None:
    first, *others = lines
    screen.line(f"{'ok  ' if ok else 'FAIL'}  {first}", style="" if ok else "red", indent=2)
    screen.rows([line for line in others if line], indent=8)


@command
def prompt(step: str | None = None, /, *, own: bool = False, common: Common = COMMON) -> None:
    """Print the prompt of a step, or the names of all steps.

    Args:
        step: A step's name; without it, all names.
        own: Only the instruction, which a file of yours can replace.
    """
    screen, runtime = common.screen, common.runtime()
    known = instruction_names()
    if step is not None and step not in known:
        near = did_you_mean(step, known)
        remedy = f"{near}The steps are: {', '.join(known)}."
        raise UsageError(f"There is no step {step!r}.", remedy)
    if step is None:
        chosen = [_forms_in_force(name, runtime)[0] for name in steps()]
        lines = [_step_line(each, runtime) for each in chosen]
    else:
        chosen = _forms_in_force(step, runtime)
        lines = [_own(step, chosen)] if own else _messages(chosen)
    views = [_view(each) for each in chosen]
    screen.result(views, lambda: screen.exactly("".join(f"{line}\n" for line in lines)))


def _forms_in_force(name: str, runtime: Runtime) -> list[Step]:
    """Build a step with the settings in force, once for each form of its output."""
    settings, tailoring = runtime.settings, runtime.settings.tailoring
    instances = forms(
        name,
        runtime.models,
        tailoring=tailoring,
        language=tailoring.language,
        gleanings=settings.gleanings,
        schema=settings.graph_schema,
    )
    asked = settings.claims, bool(settings.graph_schema)
    fitting = [step for step in instances if _claims_and_facts(step) == asked]
    return fitting or instances


def _claims_and_facts(step: Step) -> tuple[bool, bool]:
    """Return whether a form of a step finds claims, and facts of a schema."""
    name = type(step).__name__
    return name.endswith("WithClaims"), "Facts" in name


def _step_line(step: Step, runtime: Runtime) -> str:
    replaced = runtime.models.instructions.keys() & set(step.instruction_names)
    model = f"role {step.role} ({runtime.models.name(step.role)})"
    return f"{step.step:12} {model}{', your instruction' if replaced else ''}"


def _own(name: str, chosen: Sequence[Step]) -> str:
    """Return the instruction of a step. Raises UsageError if its forms have different ones."""
    if len(chosen) > 1:
        each = ", ".join(step.instruction_names[0] for step in chosen)
        raise UsageError(
            f"The step {name} has an instruction for each of its forms.", f"Name one: {each}."
        )
    return unwrapped(str(chosen[0].module.signature.instructions))


def _messages(chosen: Sequence[Step]) -> list[str]:
    return [
        f"--- {message.role}\n{message.content}"
        for step in chosen
        for message in step.module.prompt
    ]


def _view(step: Step) -> dict[str, object]:
    """Return a step's prompt for programs; `replaced` says whether the instruction is a user's.

    Inputs that change from call to call are shown as their names in angle brackets.
    """
    own = step.models.instructions.keys() & set(step.instruction_names)
    return {
        "step": step.step,
        "signature": step.task.__name__,
        "role": step.role,
        "model": step.models.name(step.role),
        "replaced": bool(own),
        "hash": step.module.prompt_hash,
        "instruction": unwrapped(str(step.module.signature.instructions)),
        "messages": [
            {"role": message.role, "content": message.content} for message in step.module.prompt
        ],
    }
