"""`trellis status`, `generations`, `rollback`, `clean`, `export`, `archive` and `restore`: what a workspace holds."""

import json
import logging
import re
from argparse import Namespace
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from flows.cli.screen import Screen, runtime_of
from flows.operations.export import MANIFEST, export_to
from flows.runtime import Runtime, open_caches
from flows.settings import Settings
from flows.usage import in_short
from prompts.engine.models import ROLES
from storage.archive import read_archive, write_archive
from storage.errors import NoGeneration, StorageError, UsageError
from storage.generations import (
    Generation,
    GenerationInfo,
    GenerationSize,
    WorkspaceProblem,
    WorkspaceSizes,
    measure_sizes,
)
from storage.layout import size_of
from storage.meta import UsageRow
from storage.records import Record
from storage.side import RunRow, SidePart

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
    sizes: WorkspaceSizes | None
    caches: tuple[SidePart, ...]
    sources: tuple[SourceView, ...]
    documents: tuple[str, ...]
    settings: dict[str, object]
    models: dict[str, str]
    embedding: str
    usage: tuple[UsageRow, ...]
    runs: tuple[RunRow, ...]
    problems: tuple[WorkspaceProblem, ...] = ()


def status(options: Namespace, screen: Screen) -> int:
    """Show what is there; an empty workspace says how to begin."""
    runtime = runtime_of(options, reading=True)
    found = _status(runtime)
    screen.result(found, lambda: _show_status(found, screen))
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
            f"{one.number:>6}  {one.created or 'at an unknown time'}  {counts}, {size_in_words(one.size_bytes)}{mark}",
            style="bold" if one.current else "",
        )
    return 0


def rollback(options: Namespace, screen: Screen) -> int:
    """Switch, and say what is current now. Raises UnknownGeneration, WorkspaceLocked."""
    workspace = runtime_of(options).workspace
    before = next((one.number for one in workspace.generations() if one.current), None)
    workspace.rollback(options.generation)
    screen.result(
        {"generation": options.generation, "before": before},
        lambda: screen.line(
            f"Generation {options.generation} is current (it was {before or 'none'}). Later ones are kept."
        ),
    )
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
                problems.append(WorkspaceProblem(message=error.message, remedy=error.remedy))
    return Status(
        workspace=str(workspace.root.absolute()), generation=current, created=info.created if info else None,
        counts=info.counts if info else {}, size_bytes=info.size_bytes if info else 0,
        workspace_bytes=size_of(workspace.root), sizes=measure_sizes(workspace) if workspace.root.is_dir() else None,
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


def _show_status(found: Status, screen: Screen) -> None:
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
        screen.line(f"{run.started}  {run.kind}  {run.state}  {_run_in_words(run.summary)}", indent=2)


def _list(name: str, values: list[str]) -> list[tuple[str, str]]:
    shown = values[:SHOWN_DOCUMENTS]
    if len(values) > len(shown):
        shown.append(f"and {len(values) - len(shown)} more")
    return [(name if place == 0 else "", value) for place, value in enumerate(shown)]


def _run_in_words(summary: str) -> str:
    values = json.loads(summary)
    return str(values["error"]) if "error" in values else f"generation {values.get('generation')}"


def size_in_words(number: int) -> str:
    """Bytes as MB or GB."""
    return f"{number / 1e6:.1f} MB" if number < 1e9 else f"{number / 1e9:.2f} GB"


def show_sizes(found: WorkspaceSizes, caches: Sequence[SidePart], screen: Screen) -> None:
    """What each part of a workspace takes (`caches`: of a cache folder), what bounds it, what a clean-up frees."""
    screen.line("On disk", style="bold")
    rows = [(f"generation {one.number}", _generation_size(one)) for one in found.generations]
    rows += [(part.name, _part_size(part)) for part in found.side]
    rows += [(f"{part.name} (cache folder)", _part_size(part)) for part in caches]
    rows += [
        ("the file of these", f"{size_in_words(found.side_bytes)}, {size_in_words(found.holes_bytes)} of it empty"),
        ("left by runs", size_in_words(found.leftover_bytes)),
        *([("set aside", size_in_words(found.set_aside_bytes))] if found.set_aside_bytes else []),
        ("all of it", size_in_words(found.total_bytes)),
        ("`trellis clean`", f"frees about {size_in_words(found.freed_bytes)}"),
    ]
    screen.facts(rows, indent=2)


def _generation_size(one: GenerationSize) -> str:
    notes = [word for word, holds in (("current", one.current), ("read now", one.read), ("old", one.goes)) if holds]
    return ", ".join([size_in_words(one.size_bytes), *notes])


def _part_size(part: SidePart) -> str:
    most = f"{part.most_rows} rows" if part.most_rows else size_in_words(part.most_bytes or 0)
    return f"{part.rows} rows, {size_in_words(part.size_bytes)} (at most {most})"


def clean(options: Namespace, screen: Screen) -> int:
    """Clean up, and say what it freed. Raises WorkspaceLocked while a run is writing, NoGeneration."""
    runtime = runtime_of(options)
    workspace, caches = runtime.workspace, open_caches(runtime.settings, runtime.workspace)
    places = {workspace.root, runtime.settings.cache_dir or workspace.root}
    before = sum(map(size_of, places))
    removed = workspace.clean(options.keep)
    if options.vectors:
        workspace.rebuild_vectors()
    if options.caches:
        caches.forget_caches()
    for store in (workspace.side, caches)[: len(places)]:
        store.compact()
    freed = max(before - sum(map(size_of, places)), 0)
    if screen.as_json:
        screen.json({"removed": removed, "freed_bytes": freed})
        return 0
    gone = f"generations {', '.join(map(str, removed))}" if removed else "no generation"
    screen.line(f"Removed {gone}; freed {size_in_words(freed)}", style="bold green")
    kept = [f"{one.number}{' (damaged)' if one.damage else ''}" for one in workspace.generations()]
    screen.line(f"kept: {', '.join(kept)}", indent=2)
    if aside := workspace.set_aside():
        screen.line(f"set aside, never published: {', '.join(map(str, aside))}", indent=2, style="yellow")
    return 0


logger = logging.getLogger(__name__)


def archive(options: Namespace, screen: Screen) -> int:
    """Write the archive; an index run may go on meanwhile."""
    report = write_archive(runtime_of(options).workspace.root, Path(options.file))
    if screen.as_json:
        screen.json(report)
    else:
        kept = ", ".join(map(str, report.generations))
        screen.line(f"Generations {kept} are in {report.file}, {size_in_words(report.size_bytes)}", style="bold green")
    return 0


def restore(options: Namespace, screen: Screen) -> int:
    """Make a workspace of the archive, and its vector indexes anew."""
    workspace = runtime_of(options).workspace
    report = read_archive(Path(options.file), workspace.root)
    for number in report.generations:
        try:
            workspace.rebuild_vectors(number)
        except StorageError as error:
            logger.warning("Vectors of generation %d will be searched in the database, slower: %s", number, error)
    if screen.as_json:
        screen.json(report)
    else:
        screen.line(f"Restored {workspace.root} as it was on {report.created}", style="bold green")
        screen.line(f"generation {report.generation} is current; see `trellis status`", indent=2)
    return 0


def export(options: Namespace, screen: Screen) -> int:
    """Write the generation into the folder, and say what is there now."""
    with runtime_of(options).workspace.read(options.as_of) as generation:
        report = export_to(Path(options.folder), options.format, generation)
    if screen.as_json:
        screen.json(report)
        return 0
    what = "edges" if report.format == "graphml" else "rows"
    screen.line(f"Generation {report.generation} is in {report.folder}", style="bold green")
    screen.facts([(name, f"{rows} {what}") for name, rows in report.files.items()], indent=2)
    screen.line(f"{MANIFEST} lists the files", indent=2, style="dim")
    return 0
