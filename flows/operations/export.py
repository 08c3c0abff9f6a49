"""Export a generation for other programs.

JSON Lines and Parquet hold all records; GraphML, Neo4j's files and the notes of Obsidian the graph.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from flows.operations.obsidian import write_vault
from storage.errors import UsageError
from storage.export import export as export_rows
from storage.faults import faults_told
from storage.files import text_of_file
from storage.records import Record
from storage.workspace import Generation
from tasks.graph_views import directed, undirected, write_graphml

ExportFormat = Literal["json", "parquet", "graphml", "neo4j", "obsidian"]
MANIFEST = "export.json"
EXPORT_VERSION = 1


class ExportReport(Record):
    """The files of an export, each with its number of rows (GraphML: of edges).

    Files in a folder of the export are counted together, under its name.
    """

    folder: str
    format: ExportFormat
    generation: int
    files: dict[str, int]


def export_generation(generation: Generation, folder: Path, form: ExportFormat) -> ExportReport:
    """Write the generation into a folder, in place of an earlier export there.

    The same content gives the same files. `export.json` is written last: a folder that has it holds
    a whole export. Raises UsageError for a folder that holds anything else.
    """
    with faults_told(folder):
        _make_room(folder)
        files = _WRITERS[form](folder, generation)
        manifest = {"version": EXPORT_VERSION, "format": form, "files": files}
        text = json.dumps(manifest, indent=1) + "\n"
        (folder / MANIFEST).write_text(text, encoding="utf-8")
    counts = Counter[str]()
    for name, rows in files.items():
        inner, slash, _ = name.partition("/")
        counts[inner + slash] += 1 if slash else rows
    return ExportReport(
        folder=str(folder), format=form, generation=generation.number, files=dict(counts)
    )


def _make_room(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file.", "Name a folder; it is made where there is none.")
    folder.mkdir(parents=True, exist_ok=True)
    # What the manifest names is removed only if it is found here: it may name files elsewhere.
    names = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }
    if not names:
        return
    try:
        earlier = set(json.loads(text_of_file(folder / MANIFEST))["files"]) & names
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{folder} holds files that are no export.", "Name an empty folder, or one to be made."
        ) from error
    # The manifest goes first: without it nobody takes the folder for an export.
    for name in (MANIFEST, *sorted(earlier)):
        (folder / name).unlink()


def _write_json(folder: Path, generation: Generation) -> dict[str, int]:
    """Write a file of JSON Lines for each kind of record; `documents.jsonl` can be indexed."""
    kinds = export_rows(generation)
    for kind, rows in kinds.items():
        with (folder / f"{kind}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return {f"{kind}.jsonl": len(rows) for kind, rows in kinds.items()}


def _write_graphml(folder: Path, generation: Generation) -> dict[str, int]:
    """Write the graph with the directions of its relations, and without them."""
    graph = generation.graph
    read = graph.entities(), graph.relations(), generation.communities.communities()
    views = {"graph.graphml": directed(*read), "graph-undirected.graphml": undirected(*read)}
    for name, view in views.items():
        write_graphml(view, folder / name)
    return {name: view.number_of_edges() for name, view in views.items()}


_WRITERS: Mapping[ExportFormat, Callable[[Path, Generation], dict[str, int]]] = {
    "json": _write_json,
    "graphml": _write_graphml,
    "parquet": lambda folder, generation: generation.parquet.write(folder),
    "neo4j": lambda folder, generation: generation.neo4j.write(folder),
    "obsidian": write_vault,
}
