"""`trellis status`, `generations` and `rollback`: what does a workspace hold?"""

import json
import re
from argparse import Namespace
from collections import defaultdict

from flows.cli.opening import runtime_of
from flows.cli.screen import Screen
from flows.cli.sizes import in_words, show_sizes
from flows.runtime import Runtime, open_caches
from flows.settings import Settings
from flows.usage import in_short
from prompts.engine.roles import ROLES
from storage.errors import NoGeneration, StorageError, UsageError
from storage.generations import GenerationInfo, Problem
from storage.layout import size_of
from storage.meta import UsageRow
from storage.records import Record
from storage.rooms import Generation
from storage.runs import RunRow
from storage.side import SidePart
from storage.sizes import Sizes, measure

LAST_RUNS = 5
SHOWN_DOCUMENTS = 20
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


class SourceView(Record):
    """A source and how many documents it gave."""

    source: str
    documents: int


class Status(Record):
    """What a workspace holds; `generation` is None where nothing is indexed yet.

    `usage` is what the models did for the run that published the current generation; `problems` is what is damaged or
    lost, with remedies.
    """

    workspace: str
    generation: int | None
    created: str | None
    counts: dict[str, int]
    size_bytes: int
    workspace_bytes: int
    sizes: Sizes | None
    caches: tuple[SidePart, ...]
    sources: tuple[SourceView, ...]
    documents: tuple[str, ...]
    settings: dict[str, object]
    models: dict[str, str]
    embedding: str
    usage: tuple[UsageRow, ...]
    runs: tuple[RunRow, ...]
    problems: tuple[Problem, ...] = ()


def status(options: Namespace, screen: Screen) -> int:
    """Show what is there; an empty workspace says how to begin."""
    runtime = runtime_of(options, reading=True)
    found = _status(runtime)
    if screen.as_json:
        screen.json(found)
    else:
        _show(found, screen)
    return 0


def generations(options: Namespace, screen: Screen) -> int:
    """List the generations, oldest first; what is damaged or lost is told on standard error."""
    workspace = runtime_of(options).workspace
    kept, problems = workspace.generations(), workspace.problems()
    for problem in problems:
        screen.note(f"{problem.message} {problem.remedy}")
    if screen.as_json:
        screen.json(kept)
        return 0
    if not kept and not problems:
        raise NoGeneration(workspace.root)
    for one in kept:
        counts = ", ".join(f"{one.counts.get(name, 0)} {name}" for name in ("documents", "entities", "relations"))
        mark = "  (current)" if one.current else ""
        mark += f"  (damaged: {one.damage})" if one.damage else ""
        screen.line(
            f"{one.number:>6}  {one.created or 'at an unknown time'}  {counts}, {in_words(one.size_bytes)}{mark}",
            style="bold" if one.current else "",
        )
    return 0


def rollback(options: Namespace, screen: Screen) -> int:
    """Switch, and say what is current now. Raises UnknownGeneration, WorkspaceLocked."""
    workspace = runtime_of(options).workspace
    before = next((one.number for one in workspace.generations() if one.current), None)
    workspace.rollback(options.generation)
    if screen.as_json:
        screen.json({"generation": options.generation, "before": before})
    else:
        screen.line(f"Generation {options.generation} is current (it was {before or 'none'}). Later ones are kept.")
    return 0


def _status(runtime: Runtime) -> Status:
    workspace = runtime.workspace
    infos = {info.number: info for info in workspace.generations()}
    problems = workspace.problems()
    info: GenerationInfo | None = next((one for one in infos.values() if one.current and not one.damage), None)
    current = next((one.number for one in infos.values() if one.current), None)
    sources: tuple[SourceView, ...] = ()
    documents: tuple[str, ...] = ()
    usage: tuple[UsageRow, ...] = ()
    if info is not None:
        try:
            with workspace.read(info.number) as generation:
                sources, documents = _sources(generation), tuple(generation.documents.ids())
                usage = tuple(generation.meta.usage())
        except StorageError as error:
            if error.message not in {problem.message for problem in problems}:
                problems.append(Problem(message=error.message, remedy=error.remedy))
    return Status(
        workspace=str(workspace.root.absolute()), generation=current, created=info.created if info else None,
        counts=info.counts if info else {}, size_bytes=info.size_bytes if info else 0,
        workspace_bytes=size_of(workspace.root), sizes=measure(workspace) if workspace.root.is_dir() else None,
        caches=_caches_elsewhere(runtime), sources=sources, documents=documents,
        settings=_in_force(runtime.settings), models={role: runtime.models.name(role) for role in ROLES},
        embedding=runtime.embedder.name, usage=usage, problems=tuple(problems),
        # Looking must not make a folder where there is none.
        runs=tuple(workspace.side.runs.list(LAST_RUNS)) if workspace.root.is_dir() else (),
    )  # fmt: skip


def _caches_elsewhere(runtime: Runtime) -> tuple[SidePart, ...]:
    """What a cache folder of its own holds; nothing where there is none."""
    folder = runtime.settings.cache_dir
    if folder is None or not folder.is_dir():
        return ()
    return tuple(part for part in open_caches(runtime.settings, runtime.workspace, reading=True).parts() if part.rows)


def _sources(generation: Generation) -> tuple[SourceView, ...]:
    given: dict[str, set[str]] = defaultdict(set)
    for part in generation.documents.parts():
        given[part.source].add(part.document)
    return tuple(SourceView(source=source, documents=len(ids)) for source, ids in sorted(given.items()))


def _in_force(settings: Settings) -> dict[str, object]:
    """The settings as JSON values: keys hidden, and what a URL holds before its host."""
    text = settings.model_dump_json()
    hidden = json.loads(_CREDENTIALS.sub("**********@", text))
    if not isinstance(hidden, dict):
        raise UsageError("The settings are no table.", "docs/settings.md lists them.")
    return hidden


def _show(found: Status, screen: Screen) -> None:
    screen.line(f"Workspace {found.workspace}", style="bold")
    for problem in found.problems:
        screen.line(problem.message, style="red", indent=2)
        screen.line(problem.remedy, indent=4)
    if found.generation is None and not found.problems:
        screen.line("Nothing is indexed yet. Begin with: trellis index SOURCE (or try: trellis demo)", indent=2)
    elif found.generation is not None:
        counts = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in found.counts.items() if number)
        screen.facts(
            [
                ("generation", f"{found.generation}, published {found.created or 'at an unknown time'}"),
                ("holds", counts),
                *_list("sources", [f"{one.source} ({one.documents} documents)" for one in found.sources]),
                *_list("documents", list(found.documents)),
            ],
            indent=2,
        )
    if found.sizes is not None:
        show_sizes(found.sizes, found.caches, screen)
    screen.line("Settings", style="bold")
    models = set(found.models.values())
    by_role = [(f"model of {role}", name) for role, name in found.models.items()]
    rows = [
        (name, "not set" if value is None or (isinstance(value, dict) and not any(value.values())) else str(value))
        for name, value in found.settings.items()
        if name not in ("roles", "workspace")
    ]
    screen.facts(rows + (by_role if len(models) > 1 else [("model of every role", models.pop())]), indent=2)
    if found.usage:
        screen.line(f"Models used for generation {found.generation}", style="bold")
        screen.facts(
            [(row.step, f"{row.model}: {in_short(row)}, {row.seconds:.1f} s") for row in found.usage], indent=2
        )
    if found.runs:
        screen.line("Last runs", style="bold")
    for run in found.runs:
        screen.line(f"{run.started}  {run.kind}  {run.state}  {_told(run.summary)}", indent=2)


def _list(name: str, values: list[str]) -> list[tuple[str, str]]:
    shown = values[:SHOWN_DOCUMENTS]
    if len(values) > len(shown):
        shown.append(f"and {len(values) - len(shown)} more")
    return [(name if place == 0 else "", value) for place, value in enumerate(shown)]


def _told(summary: str) -> str:
    values = json.loads(summary)
    return str(values["error"]) if "error" in values else f"generation {values.get('generation')}"
