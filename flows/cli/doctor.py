"""`trellis doctor` and `trellis prompt`: what works and what to change, and what a model is told for a step."""

import asyncio
import difflib
import re
from argparse import Namespace
from collections.abc import Sequence
from itertools import groupby

from flows.cli.screen import Screen
from flows.operations.doctor import EmbeddingCheck, Examination, PrefectCheck, WorkspaceCheck, examination
from flows.runtime import Runtime, open_runtime
from flows.settings import load_settings
from prompts.engine.doctor import Examined
from prompts.engine.key_masking import MASK, mask_keys
from prompts.engine.models import OFFLINE
from prompts.engine.output_formats import unwrapped
from prompts.engine.step import Step
from prompts.registry import build, steps
from storage.errors import UsageError
from storage.records import Record

# An examination is looked at by a person: a server that is down is reported after one more try.
ATTEMPTS = 2
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


def doctor(options: Namespace, screen: Screen) -> int:
    """Examine and report; 1 where something failed."""
    settings = load_settings({"workspace": options.workspace})
    brisk = settings.model_copy(update={"max_attempts": min(settings.max_attempts, ATTEMPTS)})
    found = without_keys(asyncio.run(examination(open_runtime(brisk))))
    screen.result(found, lambda: show(found, screen))
    return 0 if found.ok else 1


def without_keys(found: Examination) -> Examination:
    """The same with every key masked, and what any address holds before its host: Prefect's client repeats it."""
    return Examination.model_validate_json(_CREDENTIALS.sub(f"{MASK}@", mask_keys(found.model_dump_json())))


def show(found: Examination, screen: Screen) -> None:
    """The report for people."""
    screen.line("Models", style="bold")
    if found.offline:
        screen.line("ok    every step runs offline: no model, no key, no network (TRELLIS_LM names a model)", indent=2)
    else:
        _show_models(found.models, screen)
    screen.line("Embedding", style="bold")
    _verdict(found.embedding, _embedding(found.embedding), screen)
    screen.line("Workspace", style="bold")
    _verdict(found.workspace, _workspace(found.workspace), screen)
    screen.line("Prefect", style="bold")
    address = found.prefect.address or "no server is configured (PREFECT_API_URL): a recorded run starts its own"
    _verdict(found.prefect, f"{address}, version {found.prefect.version}", screen)
    screen.line("Everything works." if found.ok else "Something does not work: see above.", style="bold")


def _show_models(rows: tuple[Examined, ...], screen: Screen) -> None:
    """A line for each answer that was asked for: roles with one model and one form share it."""
    for _, group in groupby(sorted(rows, key=_answer_of), key=_answer_of):
        same = list(group)
        row, roles = same[0], ", ".join(one.role for one in same)
        if row.model == OFFLINE:
            screen.line(f"ok    offline · {roles}", indent=2)
            continue
        figures = f"{row.seconds:.2f} s, {row.input_tokens} tokens in, {row.output_tokens} out"
        screen.line(f"{_mark(row.ok)}  {row.model} · {roles}", style="" if row.ok else "red", indent=2)
        screen.line(f"{row.address or 'no address'} · {figures} · {_form(row)}", indent=8)
        _tell(row.problem, row.advice, screen)


def _answer_of(row: Examined) -> tuple[object, ...]:
    return row.model == OFFLINE, row.model, row.address, row.role == "extract" and row.model != OFFLINE


def _form(row: Examined) -> str:
    if not row.ok and row.structured == "unknown":
        return "structured output unknown"
    if row.role == "extract":
        return "lines of text: needs no structured output"
    return {"json_schema": "structured output: JSON schema", "json_object": "structured output: JSON only"}.get(
        row.structured, "no structured output: answers are checked and repaired"
    )


def _embedding(row: EmbeddingCheck) -> str:
    if not row.dimension:
        return f"{row.name}: texts are found by their words and the graph" if row.ok else row.name
    others = "" if len(row.reads) > 1 else "; other scripts are found by their words"
    return f"{row.name}: {row.dimension} dimensions, {row.seconds:.2f} s, reads {' and '.join(row.reads)}{others}"


def _workspace(row: WorkspaceCheck) -> str:
    holds = "nothing is indexed yet" if row.generation is None else f"generation {row.generation}"
    return f"{row.folder}: {holds}, format {row.format}{', can be written' if row.ok else ''}"


def _verdict(row: EmbeddingCheck | WorkspaceCheck | PrefectCheck, text: str, screen: Screen) -> None:
    screen.line(f"{_mark(row.ok)}  {text}", style="" if row.ok else "red", indent=2)
    _tell(row.problem, (row.advice,) if row.advice else (), screen)


def _tell(problem: str, advice: tuple[str, ...], screen: Screen) -> None:
    if problem:
        screen.line(problem, indent=8)
    for one in advice:
        screen.line(f"→ {one}", indent=8)


def _mark(ok: bool) -> str:
    return "ok  " if ok else "FAIL"


class Turn(Record):
    """One message of a prompt."""

    role: str
    content: str


class PromptView(Record):
    """A step's prompt: its role and model, its instruction, and all messages; `replaced`: the instruction is a user's.

    Inputs that differ from call to call stand as their names in angle brackets. Where a step writes in several forms,
    there is a view of each, by `signature`.
    """

    step: str
    signature: str
    role: str
    model: str
    replaced: bool
    hash: str
    instruction: str
    messages: tuple[Turn, ...]


def prompt(options: Namespace, screen: Screen) -> int:
    """Print the prompt of a step, or the names of all steps."""
    runtime = open_runtime(load_settings({"workspace": options.workspace}))
    known = steps()
    if options.step is None:
        _list(runtime, screen)
        return 0
    if options.step not in known:
        near = difflib.get_close_matches(options.step, known, n=3)
        meant = f"Nearest: {', '.join(near)}. " if near else ""
        raise UsageError(f"There is no step {options.step!r}.", f"{meant}The steps are: {', '.join(known)}.")
    views = [_view(made) for made in built(options.step, runtime)]
    if screen.as_json:
        screen.json(views)
    elif options.own:
        screen.exactly(f"{views[0].instruction}\n")
    else:
        for view in views:
            screen.exactly("".join(f"--- {turn.role}\n{turn.content}\n" for turn in view.messages))
    return 0


def built(name: str, runtime: Runtime) -> list[Step]:
    """The step as the settings make it; one for each form that it writes in."""
    settings = runtime.settings
    tailoring = settings.tailoring
    found = [
        build(
            one, models=runtime.models, tailoring=tailoring, language=tailoring.language, gleanings=settings.gleanings
        )
        for one in steps()[name]
    ]
    with_claims = [one for one in found if type(one).__name__.endswith("WithClaims")]
    if with_claims:
        return with_claims if settings.claims else [one for one in found if one not in with_claims]
    return found


def _view(step: Step) -> PromptView:
    messages: Sequence[Turn] = [Turn(role=one.role, content=one.content) for one in step.prompt]
    return PromptView(
        step=step.step, signature=step.task.__name__, role=step.role, model=step.models.name(step.role),
        replaced=step.step in step.models.instructions, hash=step.prompt_hash,
        instruction=unwrapped(str(step.signature.instructions)), messages=tuple(messages),
    )  # fmt: skip


def _list(runtime: Runtime, screen: Screen) -> None:
    views = [_view(made) for name in steps() for made in built(name, runtime)[:1]]
    if screen.as_json:
        screen.json(views)
        return
    for view in views:
        mine = ", your instruction" if view.replaced else ""
        screen.line(f"{view.step:12} role {view.role} ({view.model}){mine}")
