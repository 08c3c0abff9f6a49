"""`trellis status`, `generations`, `rollback`, `clean`, `export`, `archive` and `restore`: what a workspace holds."""

import json
import logging
from argparse import Namespace
from pathlib import Path

from flows.cli.screen import Screen, runtime_of
from flows.operations.history import note
from flows.runtime import open_caches
from flows.service.reading import Status, workspace_status
from flows.usage import facts_of, in_short, size_in_words
from prompts.tailoring import from_toml
from storage.archive import read_archive, write_archive
from storage.errors import NoGeneration, StorageError, UsageError
from storage.export import export as export_rows
from storage.faults import faults_told
from storage.files import text_of_file
from storage.layout import size_of
from storage.workspace import Generation

# What people are shown first.
NOT_SET: tuple[object, ...] = (None, "", {})
HELD = {"generation", "created", "counts", "workspace_bytes", "sources", "documents"}
MANIFEST = "export.json"
EXPORT_VERSION = 1
_FOLDERS = ("cache_dir", "programs", "prompts", "pages")  # of the settings, beside the workspace

logger = logging.getLogger(__name__)


def status(options: Namespace, screen: Screen) -> None:
    """Show what is there; an empty workspace says how to begin."""
    state = workspace_status(runtime_of(options, reading=True))
    screen.result(state, lambda: _show_status(state, screen))


def _show_status(state: Status, screen: Screen) -> None:
    screen.line(f"Workspace {state.workspace}", style="bold")
    for problem in state.problems:
        screen.line(problem.message, style="red", indent=2)
        screen.line(problem.remedy, indent=4)
    if state.generation is None and not state.problems:
        screen.line("Nothing is indexed yet. Begin with: trellis index SOURCE (or try: trellis demo)", indent=2)
    screen.facts(facts_of(state, Status.model_fields.keys() - HELD), indent=2)
    screen.line("Settings", style="bold")
    shown = state.settings.keys() - {"roles", "workspace"}
    settings = [(name, str(value)) for name, value in state.settings.items() if name in shown and value not in NOT_SET]
    models = set(state.models.values())
    by_role = [(f"model of {role}", name) for role, name in state.models.items()]
    screen.facts(settings + (by_role if len(models) > 1 else [("model of every role", models.pop())]), indent=2)
    if state.usage:
        screen.line(f"Models used for generation {state.generation}", style="bold")
        used = [(row.step, f"{row.model}: {in_short(row)}, {row.seconds:.1f} s") for row in state.usage]
        screen.facts(used, indent=2)
    if state.runs:
        screen.line("Last runs", style="bold")
    for run in state.runs:
        summary = json.loads(run.summary)
        end = summary.get("error", f"generation {summary.get('generation')}")
        screen.line(f"{run.started}  {run.kind}  {run.state}  {end}", indent=2)


# --- generations -----------------------------------------------------------------------------------------------------


def generations(options: Namespace, screen: Screen) -> None:
    """List the generations, oldest first; what is damaged or lost is told on standard error."""
    workspace = runtime_of(options).workspace
    infos, problems = workspace.generations(), workspace.problems()
    for problem in problems:
        screen.note(f"{problem.message} {problem.remedy}")
    if not infos and not problems and not screen.as_json:
        raise NoGeneration(workspace.root)
    rows = [
        f"{info.number:>6}  {info.created or 'at an unknown time'}  "
        + ", ".join(f"{info.counts.get(name, 0)} {name}" for name in ("documents", "entities", "relations"))
        + f", {size_in_words(info.size_bytes)}{'  (current)' if info.current else ''}"
        + (f"  (damaged: {info.damage})" if info.damage else "")
        for info in infos
    ]
    screen.result(infos, lambda: screen.rows(rows, None, indent=0))


def rollback(options: Namespace, screen: Screen) -> None:
    """Switch, and say what is current now. Raises UnknownGeneration, WorkspaceLocked."""
    runtime = runtime_of(options)
    workspace = runtime.workspace
    before = next((info.number for info in workspace.generations() if info.current), None)
    workspace.rollback(options.generation)
    note("rollback", runtime, generation=options.generation)
    title = f"Generation {options.generation} is current. Later ones are kept."
    screen.result({"generation": options.generation, "before": before}, title, without=("generation",))


def clean(options: Namespace, screen: Screen) -> None:
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
        workspace.database.running_answers.remove_where(lambda _: True)
    for store in (workspace.database, caches)[: len(places)]:
        store.compact()
    freed = max(before - sum(map(size_of, places)), 0)
    result = {
        "removed": removed, "freed_bytes": freed, "kept": [info.number for info in workspace.generations()],
    }  # fmt: skip
    gone = f"generations {', '.join(map(str, removed))}" if removed else "no generation"
    screen.result(result, f"Removed {gone}; freed {size_in_words(freed)}", without=("removed", "freed_bytes"))


def archive(options: Namespace, screen: Screen) -> None:
    """Write the archive, and name what stays behind; an index run may go on meanwhile."""
    runtime = runtime_of(options)
    report = write_archive(runtime.workspace.root, Path(options.file))
    screen.result(report, "Archived", without=("left_out",))
    if not screen.as_json:
        root, settings = runtime.workspace.root, runtime.settings
        behind = [str(root / name) for name in report.left_out]
        behind += [f"{path} ({name})" for name in _FOLDERS if (path := getattr(settings, name)) is not None]
        screen.rows([f"stays behind, copy it yourself: {place}" for place in behind], None, style="yellow")


def restore(options: Namespace, screen: Screen) -> None:
    """Make a workspace of the archive, and its vector indexes anew."""
    runtime = runtime_of(options)
    workspace = runtime.workspace
    report = read_archive(Path(options.file), workspace.root, from_toml)
    note("restore", runtime, generation=report.generation, generations=len(report.generations))
    for number in report.generations:
        try:
            workspace.rebuild_vectors(number)
        except StorageError as error:
            logger.warning("Vectors of generation %d will be searched in the database, slower: %s", number, error)
    screen.result(report, f"Restored {workspace.root}: see `trellis status`")


# --- export ----------------------------------------------------------------------------------------------------------


def export(options: Namespace, screen: Screen) -> None:
    """Write the generation as files that other programs read, and say what is there now: each file with its number of
    rows (GraphML: of edges).

    The same content gives the same files; those of an earlier export there are replaced. `export.json` comes last: a
    folder that has it holds a whole export. Raises UsageError for a folder that holds anything else.
    """
    folder = Path(options.folder)
    with runtime_of(options).workspace.read(options.as_of) as generation, faults_told(folder):
        _make_room(folder)
        files = _WRITERS[options.format](folder, generation)
        manifest = {"version": EXPORT_VERSION, "format": options.format, "files": files}
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        report = {"folder": str(folder), "format": options.format, "generation": generation.number, "files": files}
    screen.result(report, f"Generation {generation.number} is in {folder}; {MANIFEST} lists the files")


def _make_room(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file.", "Name a folder; it is made where there is none.")
    folder.mkdir(parents=True, exist_ok=True)
    names = {path.name for path in folder.iterdir()}
    if not names:
        return
    try:
        earlier = set(json.loads(text_of_file(folder / MANIFEST))["files"]) & names
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{folder} holds files that are no export.", "Name an empty folder, or one to be made."
        ) from error
    for name in (MANIFEST, *sorted(earlier)):  # first the manifest: without it nobody takes the folder for an export
        (folder / name).unlink()


def _write_json(folder: Path, generation: Generation) -> dict[str, int]:
    """A file of JSON Lines for each kind of record; one of documents can be indexed as it is."""
    kinds = export_rows(generation)
    for kind, rows in kinds.items():
        with (folder / f"{kind}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return {f"{kind}.jsonl": len(rows) for kind, rows in kinds.items()}


def _write_graphml(folder: Path, generation: Generation) -> dict[str, int]:
    from tasks.graph_views import directed, undirected, write_graphml

    graph = generation.graph
    read = graph.entities(), graph.relations(), generation.communities.communities()
    views = {"graph.graphml": directed(*read), "graph-undirected.graphml": undirected(*read)}
    for name, view in views.items():
        write_graphml(view, folder / name)
    return {name: view.number_of_edges() for name, view in views.items()}


_WRITERS = {"json": _write_json, "graphml": _write_graphml}
