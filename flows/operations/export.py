"""Export: a generation written to files that other programs read, in a folder of files and, last, what it holds.

`export.json` stands in the folder when the export is whole: a reader needs nothing else to know what is there.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, get_args

from storage.errors import UsageError
from storage.export import JsonRow, export
from storage.records import Record
from storage.workspace import Generation

Format = Literal["json", "graphml", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)
MANIFEST = "export.json"
VERSION = 1
_GRAPHS = ("graph.graphml", "graph-undirected.graphml")


class ExportReport(Record):
    """What was written where: each file with its number of rows (GraphML: of edges)."""

    folder: str
    format: Format
    generation: int
    files: dict[str, int]


def export_to(folder: Path, form: Format, generation: Generation) -> ExportReport:
    """Write the generation. The same content gives the same files; those of an earlier export there are replaced.

    Raises UsageError for a folder that holds anything else.
    """
    _make_room(folder)
    files = _WRITERS[form](folder, generation)
    manifest = {"version": VERSION, "format": form, "files": files}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return ExportReport(folder=str(folder), format=form, generation=generation.number, files=files)


def _make_room(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file.", "Name a folder; it is made where there is none.")
    folder.mkdir(parents=True, exist_ok=True)
    there = {path.name for path in folder.iterdir()}
    if not there:
        return
    earlier = _files_of(folder / MANIFEST) & there
    # First: a folder without it is not taken for a whole export.
    for name in (MANIFEST, *sorted(earlier)):
        (folder / name).unlink()


def _files_of(manifest: Path) -> set[str]:
    try:
        return set(json.loads(manifest.read_text(encoding="utf-8"))["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{manifest.parent} holds files that are no export.", "Name an empty folder, or one to be made."
        ) from error


def _write_json(folder: Path, generation: Generation) -> dict[str, int]:
    """A file of JSON Lines for each kind of record; one of documents can be indexed as it is."""
    found = export(generation)
    for kind, rows in found.items():
        _write_lines(folder / f"{kind}.jsonl", rows)
    return {f"{kind}.jsonl": len(rows) for kind, rows in found.items()}


def _write_lines(path: Path, rows: Iterable[JsonRow]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _write_graphml(folder: Path, generation: Generation) -> dict[str, int]:
    from tasks.graph_views import directed, undirected, write_graphml

    graph = generation.graph
    read = graph.entities(), graph.relations(), generation.communities.communities()
    made = dict(zip(_GRAPHS, (directed(*read), undirected(*read)), strict=True))
    for name, view in made.items():
        write_graphml(view, folder / name)
    return {name: view.number_of_edges() for name, view in made.items()}


def _write_parquet(folder: Path, generation: Generation) -> dict[str, int]:
    return generation.tables.write_parquet(folder)


_WRITERS = {"json": _write_json, "graphml": _write_graphml, "parquet": _write_parquet}
