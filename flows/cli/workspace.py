"""The content and the upkeep of a workspace: `trellis status`, `generations`, `rollback`, `clean`,
`export`, `archive`, `restore` and `publish`.
"""

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows.cli.common import COMMON, Common
from flows.cli.options import AsOf, Count
from flows.cli.running import command
from flows.cli.screen import Screen
from flows.operations.export import MANIFEST, ExportFormat, export_generation
from flows.operations.history import note
from flows.operations.upkeep import clean_workspace, restore_archive
from flows.runtime import Runtime
from flows.service.reading import Status, workspace_status
from flows.usage import facts_of, in_short, size_in_words
from storage.archive import write_archive
from storage.errors import NoGeneration
from storage.publication import PublishReport
from storage.workspace import GenerationInfo

FIRST = {"copy_of", "generation", "created", "counts", "workspace_bytes", "sources", "documents"}
NOT_SHOWN = {"roles", "workspace"}  # settings that are shown elsewhere
NOT_SET: tuple[object, ...] = (None, "", {})
FOLDERS = ("cache_dir", "programs", "prompts", "pages")  # settings outside the workspace


@command
def status(*, common: Common = COMMON) -> None:
    """Show the workspace; without an index say how to begin."""
    screen = common.screen
    state = workspace_status(common.runtime(reading=True))
    screen.result(state, lambda: _show_status(state, screen))


def _show_status(state: Status, screen: Screen) -> None:
    screen.title(f"Workspace {state.workspace}")
    for problem in state.problems:
        screen.line(problem.message, style="red", indent=2)
        screen.line(problem.remedy, indent=4)
    if state.generation is None and not state.problems:
        begin = "Begin with: trellis index SOURCE (or try: trellis demo)"
        screen.line(f"Nothing is indexed yet. {begin}", indent=2)
    screen.facts(facts_of(state, Status.model_fields.keys() - FIRST), indent=2)
    screen.title("Settings")
    rows = [
        (name, str(value))
        for name, value in state.settings.items()
        if name not in NOT_SHOWN and value not in NOT_SET
    ]
    models = set(state.models.values())
    if len(models) == 1:
        rows.append(("model of every role", models.pop()))
    else:
        rows += [(f"model of {role}", name) for role, name in state.models.items()]
    screen.facts(rows, indent=2)
    if state.usage:
        screen.title(f"Models used for generation {state.generation}")
        used = [
            (row.step, f"{row.model}: {in_short(row)}, {row.seconds:.1f} s") for row in state.usage
        ]
        screen.facts(used, indent=2)
    if state.runs:
        screen.title("Last runs")
    for run in state.runs:
        summary = json.loads(run.summary)
        end = summary.get("error", f"generation {summary.get('generation')}")
        screen.line(f"{run.started}  {run.kind}  {run.state}  {end}", indent=2)


@command
def generations(*, common: Common = COMMON) -> None:
    """List the generations, oldest first, with notes on damaged and lost ones."""
    screen, workspace = common.screen, common.runtime().workspace
    infos, problems = workspace.generations(), workspace.problems()
    for problem in problems:
        screen.note(f"{problem.message} {problem.remedy}")
    if not infos and not problems and not screen.as_json:
        raise NoGeneration(workspace.root)
    screen.result(infos, lambda: screen.rows([_generation(info) for info in infos], indent=0))


def _generation(info: GenerationInfo) -> str:
    kinds = ("documents", "entities", "relations")
    counts = ", ".join(f"{info.counts.get(kind, 0)} {kind}" for kind in kinds)
    current = "  (current)" if info.current else ""
    damage = f"  (damaged: {info.damage})" if info.damage else ""
    created = info.created or "at an unknown time"
    size = size_in_words(info.size_bytes)
    return f"{info.number:>6}  {created}  {counts}, {size}{current}{damage}"


@command
def rollback(generation: Count, /, *, common: Common = COMMON) -> None:
    """Make another generation the current one. Raises UnknownGeneration, WorkspaceLocked.

    Args:
        generation: A number that `trellis generations` lists.
    """
    runtime = common.runtime()
    infos = runtime.workspace.generations()
    before = next((info.number for info in infos if info.current), None)
    runtime.workspace.rollback(generation)
    note("rollback", runtime, generation=generation)
    common.screen.result(
        {"generation": generation, "before": before},
        f"Generation {generation} is current. Later ones are kept.",
        without=("generation",),
    )


@command
def clean(
    *,
    keep: Count | None = None,
    caches: bool = False,
    vectors: bool = False,
    common: Common = COMMON,
) -> None:
    """Clean up and show how much that freed. Raises WorkspaceLocked, NoGeneration.

    Args:
        keep: The number of generations to keep (default: the setting).
        caches: Also remove the caches of models' answers and of vectors, and the answers of
            interrupted evaluations.
        vectors: Rebuild the current vector index from the database.
    """
    report = clean_workspace(common.runtime(), keep=keep, caches=caches, vectors=vectors)
    numbers = ", ".join(map(str, report.removed))
    gone = f"generations {numbers}" if numbers else "no generation"
    title = f"Removed {gone}; freed {size_in_words(report.freed_bytes)}"
    common.screen.result(report, title, without=("removed", "freed_bytes"))


@command
def archive(
    file: Annotated[Path, Parameter(metavar="FILE")], /, *, common: Common = COMMON
) -> None:
    """Write the archive, also during an index run, and name the folders outside it.

    Args:
        file: A new file: .tar.gz or .tar.
    """
    screen, runtime = common.screen, common.runtime()
    report = write_archive(runtime.workspace.root, file)
    screen.result(report, "Archived")
    _warn_of_folders(runtime, screen, "in the archive")


def _warn_of_folders(runtime: Runtime, screen: Screen, where: str) -> None:
    """Name the folders that the settings name outside of the workspace."""
    for name in () if screen.as_json else FOLDERS:
        if (path := getattr(runtime.settings, name)) is not None:
            screen.warn(f"not {where}, copy it yourself: {path} ({name})")


@command
def restore(
    file: Annotated[Path, Parameter(metavar="FILE")], /, *, common: Common = COMMON
) -> None:
    """Restore the workspace of an archive and rebuild its vector indexes.

    Args:
        file: A file that `trellis archive` wrote.
    """
    runtime = common.runtime()
    report = restore_archive(file, runtime)
    common.screen.result(report, f"Restored {runtime.workspace.root}: see `trellis status`")


@command
def publish(
    address: Annotated[str, Parameter(metavar="ADDRESS")],
    /,
    *,
    keep: Count | None = None,
    common: Common = COMMON,
) -> None:
    """Publish the current generation and say what that took.

    Args:
        address: s3://BUCKET/PREFIX, file:///FOLDER, or another address of fsspec.
        keep: Remove all but the newest N publications there, and the files that only they hold.
    """
    screen, runtime = common.screen, common.runtime()
    report = runtime.workspace.publish(address, keep)
    note("publish", runtime, **report.model_dump(exclude={"files", "size_bytes", "uploaded"}))
    title = (
        f"Generation {report.generation} is publication {report.publication} at {address}; "
        f"{report.uploaded} of {report.files} files uploaded "
        f"({size_in_words(report.uploaded_bytes)})"
    )
    screen.result(report, title, without=PublishReport.model_fields.keys() - {"removed"})
    _warn_of_folders(runtime, screen, "published")


@command
def export(
    folder: Annotated[Path, Parameter(metavar="DIR")],
    /,
    *,
    form: Annotated[ExportFormat, Parameter(name="--format")] = "json",
    as_of: AsOf = None,
    common: Common = COMMON,
) -> None:
    """Write a generation as files for other programs.

    Args:
        folder: A new folder, or one with an earlier export, which is replaced.
        form: Default json. json and parquet hold every record, the others the graph.
    """
    with common.runtime().workspace.read(as_of) as generation:
        report = export_generation(generation, folder, form)
    common.screen.result(
        report, f"Generation {report.generation} is in {folder}; {MANIFEST} lists the files"
    )
