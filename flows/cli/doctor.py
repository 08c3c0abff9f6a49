"""`trellis doctor` and `trellis prompt`: what works and what to change, and what a model is told for a step."""

import asyncio
import os
import tempfile
import time
from argparse import Namespace
from collections.abc import Sequence
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from flows.cli.screen import Screen
from flows.orchestration.local_server import check_server
from flows.runtime import Runtime, open_embedding, open_runtime
from flows.settings import Settings, load_settings
from flows.usage import masked
from prompts.doctor import ExaminedModel, examine
from prompts.engine.effort import GAINLESS, SPARED, Profile
from prompts.engine.errors import EngineError
from prompts.engine.models import OFFLINE
from prompts.engine.output_formats import unwrapped
from prompts.engine.step import Step
from prompts.registry import forms, instruction_names, steps
from storage.database import SCHEMA_VERSION
from storage.errors import StorageError, TrellisError, UsageError, did_you_mean
from storage.records import Record

# An examination is looked at by a person: a server that is down is reported after one more try.
ATTEMPTS = 2
SENTENCES = {"English": "The bridge opened in 1931.", "Chinese": "这座桥于1931年通车。"}
# A question, a passage that answers it and one that does not.
RANKED = ("When was the bridge opened?", ["The bridge opened in 1931.", "Rye bread is baked from flour."])
PREFECT_URL = "PREFECT_API_URL"
STRUCTURED = {"json_schema": "structured output: JSON schema", "json_object": "structured output: JSON only"}


class Check(Record):
    """What was tried once, what was seen of it, and where it failed what is wrong and what to do."""

    ok: bool
    seen: str
    problem: str = ""
    advice: str = ""


class Examination(Record):
    """What was found; `ok` where nothing failed, `offline` where no role has a model. `profile` is what the models can
    do, `profile_set` whether a setting says so."""

    ok: bool
    offline: bool
    profile: Profile
    profile_set: bool
    models: tuple[ExaminedModel, ...]
    embedding: Check
    reranker: Check | None
    workspace: Check
    prefect: Check


def doctor(options: Namespace, screen: Screen) -> int:
    """Examine and report; 1 where something failed."""
    settings = load_settings({"workspace": options.workspace})
    report = asyncio.run(examination(settings, os.environ.get(PREFECT_URL, "")))
    screen.result(report, lambda: _show(report, screen))
    return 0 if report.ok else 1


async def examination(settings: Settings, prefect_address: str) -> Examination:
    """Try everything once, side by side; what fails is a row, not an exception. Nothing is written that stays."""
    runtime = open_runtime(settings.model_copy(update={"max_attempts": min(settings.max_attempts, ATTEMPTS)}))
    models, embedding, reranker, workspace, prefect = await asyncio.gather(
        examine(runtime.models),
        asyncio.to_thread(_check_embedding, runtime),
        asyncio.to_thread(_check_reranker, runtime),
        asyncio.to_thread(_check_workspace, runtime),
        _check_prefect(prefect_address),
    )
    report = Examination(
        ok=all(row.ok for row in models)
        and all(check.ok for check in (embedding, reranker or embedding, workspace, prefect)),
        offline=all(row.structured == "offline" for row in models),
        profile=settings.profile_in_force(), profile_set=settings.profile != "auto",
        models=tuple(models), embedding=embedding, reranker=reranker, workspace=workspace, prefect=prefect,
    )  # fmt: skip
    # Servers and clients repeat what they were called with.
    return Examination.model_validate_json(masked(report.model_dump_json()))


def _check_embedding(runtime: Runtime) -> Check:
    """One vector of each language that the embedder says it reads."""
    # Without the cache: a vector that is stored proves nothing of the server.
    embedder = open_embedding(runtime.settings, None)
    read = [language for language, text in SENTENCES.items() if embedder.reads(text)]
    started = time.monotonic()
    try:
        vectors = embedder.embed([SENTENCES[language] for language in read])
    except EngineError as error:
        return Check(ok=False, seen=embedder.name, problem=error.message, advice=error.remedy)
    if not vectors.shape[1]:
        return Check(ok=True, seen=f"{embedder.name}: texts are found by their words and the graph")
    others = "" if len(read) > 1 else "; other scripts are found by their words"
    took = f"{vectors.shape[1]} dimensions, {time.monotonic() - started:.2f} s, reads {' and '.join(read)}{others}"
    return Check(ok=True, seen=f"{embedder.name}: {took}")


def _check_reranker(runtime: Runtime) -> Check | None:
    """What it makes of two passages; None where no reranker is set."""
    started = time.monotonic()
    try:
        if runtime.reranker is None:
            return None
        right, wrong = runtime.reranker.scores(*RANKED)
    except EngineError as error:
        return Check(ok=False, seen=runtime.settings.reranker, problem=error.message, advice=error.remedy)
    seen = f"{runtime.reranker.name}: an answer scores {right:.3g}, another text {wrong:.3g}"
    return Check(ok=True, seen=f"{seen}, {time.monotonic() - started:.2f} s")


def _check_workspace(runtime: Runtime) -> Check:
    root = runtime.workspace.root.absolute()
    number: int | None = None
    problem, advice = "", ""
    try:
        number = runtime.workspace.current()
        _try_writing(root)
        problems = runtime.workspace.examined()
        problem = " ".join(fault.message for fault in problems)
        advice = " ".join(dict.fromkeys(fault.remedy for fault in problems))
    except TrellisError as error:
        problem, advice = error.message, error.remedy
    except OSError as error:
        problem = f"{error.filename or root}: {error.strerror}"
        advice = "Give this user the right to read and write the folder, or name another with --workspace."
    holds = "nothing is indexed yet" if number is None else f"generation {number}"
    seen = f"{root}: {holds}, format {SCHEMA_VERSION}{'' if problem else ', can be written'}"
    return Check(ok=not problem, seen=seen, problem=problem, advice=advice)


def _try_writing(root: Path) -> None:
    """Raises OSError where the folder, or the first one above it that exists, takes no file."""
    place = next(folder for folder in (root, *root.parents) if folder.exists())
    with tempfile.TemporaryFile(dir=place):
        pass


async def _check_prefect(address: str) -> Check:
    problem = advice = ""
    if address:
        try:
            await check_server(address)
        except StorageError as error:
            problem, advice = error.message, error.remedy
    at = address or f"no server is configured ({PREFECT_URL}): a recorded run starts its own"
    return Check(ok=not problem, seen=f"{at}, version {version('prefect')}", problem=problem, advice=advice)


def _show(report: Examination, screen: Screen) -> None:
    screen.line("Models", style="bold")
    if report.offline:
        screen.line("ok    every step runs offline: no model, no key, no network (TRELLIS_LM names a model)", indent=2)
    # Roles with one model and one form were asked once, and share a line.
    for _, group in groupby(sorted(() if report.offline else report.models, key=_call), key=_call):
        row, *others = group
        roles = ", ".join(member.role for member in (row, *others))
        seen = [f"{row.model} · {roles}"]
        if row.model != OFFLINE:
            figures = f"{row.seconds:.2f} s, {row.input_tokens} tokens in, {row.output_tokens} out"
            seen.append(f"{row.address or 'no address'} · {figures} · {_form(row)}")
        _show_check(row.ok, seen, row.problem, row.advice, screen)
    if not report.offline:
        _show_profile(report, screen)
    rows = {
        "Embedding": report.embedding, "Reranker": report.reranker, "Workspace": report.workspace,
        "Prefect": report.prefect,
    }  # fmt: skip
    for title, check in rows.items():
        if check is None:
            continue
        screen.line(title, style="bold")
        _show_check(check.ok, [check.seen], check.problem, [check.advice] if check.advice else [], screen)
    screen.line("Everything works." if report.ok else "Something does not work: see above.", style="bold")


def _show_profile(report: Examination, screen: Screen) -> None:
    """The profile, where it is from, and the steps that it spares at medium effort."""
    origin = "as TRELLIS_PROFILE says" if report.profile_set else "by the models' names; TRELLIS_PROFILE sets another"
    spared = ", ".join(sorted(SPARED[report.profile]["medium"]))
    screen.line("Profile", style="bold")
    screen.line(f"ok    {report.profile} ({origin})", indent=2)
    if spared:
        screen.line(f"no model is asked to {spared}: {GAINLESS}", indent=8)


def _call(row: ExaminedModel) -> tuple[bool, str, str, bool]:
    return row.model == OFFLINE, row.model, row.address, row.role == "extract" and row.model != OFFLINE


def _form(row: ExaminedModel) -> str:
    if not row.ok and row.structured == "unknown":
        return "structured output unknown"
    if row.role == "extract":
        return "lines of text: needs no structured output"
    return STRUCTURED.get(row.structured, "no structured output: answers are checked and repaired")


def _show_check(ok: bool, seen: Sequence[str], problem: str, advice: Sequence[str], screen: Screen) -> None:
    screen.line(f"{'ok  ' if ok else 'FAIL'}  {seen[0]}", style="" if ok else "red", indent=2)
    screen.rows([*seen[1:], *filter(None, [problem]), *(f"→ {line}" for line in advice)], None, indent=8)


# --- prompt ----------------------------------------------------------------------------------------------------------


def prompt(options: Namespace, screen: Screen) -> None:
    """Print the prompt of a step, or the names of all steps."""
    runtime = open_runtime(load_settings({"workspace": options.workspace}))
    known = instruction_names()
    if options.step is not None and options.step not in known:
        near = did_you_mean(options.step, known)
        raise UsageError(f"There is no step {options.step!r}.", f"{near}The steps are: {', '.join(known)}.")
    chosen = [built(name, runtime)[0] for name in steps()] if options.step is None else built(options.step, runtime)
    lines = [f"--- {message.role}\n{message.content}" for step in chosen for message in step.module.prompt]
    if options.step is None:
        own = runtime.models.instructions
        lines = [
            f"{step.step:12} role {step.role} ({runtime.models.name(step.role)})"
            f"{', your instruction' if own.keys() & set(step.instruction_names) else ''}"
            for step in chosen
        ]
    elif options.own and len(chosen) > 1:
        each = ", ".join(step.instruction_names[0] for step in chosen)
        raise UsageError(f"The step {options.step} has an instruction for each of its forms.", f"Name one: {each}.")
    elif options.own:
        lines = [unwrapped(str(chosen[0].module.signature.instructions))]
    views = list(map(_prompt_view, chosen))
    screen.result(views, lambda: screen.exactly("".join(f"{line}\n" for line in lines)))


def _prompt_view(step: Step) -> dict[str, object]:
    """A step's prompt: its role and model, its instruction, and all messages; `replaced`: the instruction is a user's.

    Inputs that differ from call to call stand as their names in angle brackets. Where a step writes in several forms,
    there is a view of each, by `signature`.
    """
    return {
        "step": step.step, "signature": step.task.__name__, "role": step.role, "model": step.models.name(step.role),
        "replaced": not step.models.instructions.keys().isdisjoint(step.instruction_names),
        "hash": step.module.prompt_hash,
        "instruction": unwrapped(str(step.module.signature.instructions)),
        "messages": [{"role": message.role, "content": message.content} for message in step.module.prompt],
    }  # fmt: skip


def built(name: str, runtime: Runtime) -> list[Step]:
    """The step as the settings make it; one for each form that it writes in."""
    settings, tailoring = runtime.settings, runtime.settings.tailoring
    given = {"tailoring": tailoring, "language": tailoring.language, "gleanings": settings.gleanings}
    instances = forms(name, runtime.models, **given)
    with_claims = [step for step in instances if type(step).__name__.endswith("WithClaims")]
    if with_claims and settings.claims:
        return with_claims
    return [step for step in instances if step not in with_claims]
