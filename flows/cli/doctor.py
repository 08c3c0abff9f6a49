"""`trellis doctor`: what works, what does not, and what to change."""

import asyncio
import re
from argparse import Namespace
from itertools import groupby

from flows.cli.screen import Screen
from flows.operations.doctor import EmbeddingCheck, Examination, ModelCheck, PrefectCheck, WorkspaceCheck, examination
from flows.runtime import open_runtime
from flows.settings import load_settings
from prompts.engine.models import OFFLINE
from prompts.engine.redact import MASK, redacted

# An examination is looked at by a person: a server that is down is reported after one more try.
ATTEMPTS = 2
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


def doctor(options: Namespace, screen: Screen) -> int:
    """Examine and report; 1 where something failed."""
    settings = load_settings({"workspace": options.workspace})
    brisk = settings.model_copy(update={"max_attempts": min(settings.max_attempts, ATTEMPTS)})
    found = without_keys(asyncio.run(examination(open_runtime(brisk))))
    if screen.as_json:
        screen.json(found)
    else:
        show(found, screen)
    return 0 if found.ok else 1


def without_keys(found: Examination) -> Examination:
    """The same with every key masked, and what any address holds before its host: Prefect's client repeats it."""
    return Examination.model_validate_json(_CREDENTIALS.sub(f"{MASK}@", redacted(found.model_dump_json())))


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


def _show_models(rows: tuple[ModelCheck, ...], screen: Screen) -> None:
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


def _answer_of(row: ModelCheck) -> tuple[object, ...]:
    return row.model == OFFLINE, row.model, row.address, row.role == "extract" and row.model != OFFLINE


def _form(row: ModelCheck) -> str:
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
