"""What was forgotten leaves the uploads of a workspace: a file goes, and of a file of rows the
rows.

A row keeps its line, so that rows without an id are called as before.
"""

import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from unicodedata import normalize

from storage.faults import faults_told
from storage.records import Part
from storage.uploads import remove_upload, replace_upload, upload_folder, uploaded_files
from tasks.load.discover import SourceFile, printable
from tasks.load.encodings import decode
from tasks.load.rows import collect, parse_json, read_triples, triples_header
from tasks.load.sources import read_file
from tasks.load.tables import read_table
from tasks.load.text import Unreadable

# Whether what a part of a file says was forgotten.
Gone = Callable[[Part], bool]
_ROWS = (".jsonl", ".json", ".csv", ".tsv", ".graphml")


def forget_uploads(names: Iterable[str], gone: Gone, workspace: Path) -> tuple[str, ...]:
    """Remove the uploaded files of these names, and from all others what is `gone`; the files that
    were changed.

    What cannot be read is removed by its name alone. A file of rows goes where no row is left.
    """
    named, changed = {normalize("NFC", name) for name in names}, []
    for file in _files(workspace):
        if normalize("NFC", file.id) in named and not _holds_others(file, gone):
            remove_upload(workspace, Path(file.path))
            changed.append(file.id)
        elif _is_of_rows(file) and _without(file, gone, workspace):
            changed.append(file.id)
    return tuple(changed)


def uploaded_rows(workspace: Path) -> set[str]:
    """The ids of all documents in uploaded files of rows, indexed or not."""
    files = (file for file in _files(workspace) if _is_of_rows(file))
    return {part.document for file in files for part in _parts(file)}


def _files(workspace: Path) -> Iterator[SourceFile]:
    folder = upload_folder(workspace)
    for path in uploaded_files(workspace):
        name = printable(path.relative_to(folder).as_posix())
        yield SourceFile(source=printable(str(folder)), path=str(path), id=name)


def _is_of_rows(file: SourceFile) -> bool:
    return file.id.removesuffix(".gz").lower().endswith(_ROWS)


def _parts(file: SourceFile) -> tuple[Part, ...]:
    with faults_told(file.path):
        Path(file.path).open("rb").close()  # what may not be read may hold anything
    try:
        return read_file(file).parts
    except Exception:  # noqa: BLE001 -- parsers promise no exception types; what is not read is in no index
        return ()


def _holds_others(file: SourceFile, gone: Gone) -> bool:
    """Whether a file that is named as a document holds others too: then it is one of rows, and only
    they go.
    """
    parts = _parts(file)
    return any(map(gone, parts)) and not all(map(gone, parts))


def _without(file: SourceFile, gone: Gone, workspace: Path) -> bool:
    """Take what is gone out of a file of rows; whether there was any."""
    parts = _parts(file)
    if not any(map(gone, parts)):
        return False
    path = Path(file.path)
    if all(map(gone, parts)):
        remove_upload(workspace, path)
        return True
    data = path.read_bytes()
    zipped = path.suffix == ".gz"
    ending = Path(file.id.lower().removesuffix(".gz")).suffix
    left = _REWRITERS[ending](gzip.decompress(data) if zipped else data, _Rows(file, gone))
    replace_upload(workspace, path, gzip.compress(left) if zipped else left)
    return True


@dataclass(frozen=True)
class _Rows:
    """The rows of one file, each by itself."""

    file: SourceFile
    gone: Gone

    def goes(self, row: object, line: int) -> bool:
        """Whether a row is gone."""
        return any(map(self.gone, collect([(line, row)], self.file).parts))


def _of_lines(data: bytes, rows: _Rows) -> bytes:
    lines = decode(data).removeprefix("\ufeff").split("\n")
    for number, line in enumerate(lines, 1):
        try:
            row = parse_json(line) if line.strip() else None
        except Unreadable:
            continue
        if row is not None and rows.goes(row, number):
            lines[number - 1] = ""
    return "\n".join(lines).encode()


def _of_a_list(data: bytes, rows: _Rows) -> bytes:
    value = parse_json(decode(data))
    listed = value if isinstance(value, list) else [value]
    left = [row for place, row in enumerate(listed, 1) if not rows.goes(row, place)]
    return json.dumps(left, ensure_ascii=False).encode()


def _of_a_table(data: bytes, rows: _Rows) -> bytes:
    text = decode(data)
    delimiter = "\t" if ".tsv" in rows.file.id.lower() else None
    table = read_table(text, delimiter)
    names, lines = triples_header(table) or [], text.split("\n")
    for (before, _), (line, cells) in pairwise(table):
        if any(map(rows.gone, read_triples([table[0], (line, cells)], names, rows.file).parts)):
            lines[before:line] = [""] * (line - before)
    return "\n".join(lines).encode()


def _of_a_graph(data: bytes, rows: _Rows) -> bytes:
    import networkx as nx

    graph = nx.read_graphml(io.BytesIO(data), force_multigraph=True)
    for source, target, key, edge in list(graph.edges(keys=True, data=True)):
        row = {"s": "a", "p": "b", "o": "c", "document": edge.get("document")}
        if rows.goes(row, 1):
            graph.remove_edge(source, target, key)
            graph.remove_nodes_from([node for node in {source, target} if not graph.degree(node)])
    out = io.BytesIO()
    nx.write_graphml(graph, out)
    return out.getvalue()


_REWRITERS: dict[str, Callable[[bytes, _Rows], bytes]] = {
    ".jsonl": _of_lines,
    ".json": _of_a_list,
    ".csv": _of_a_table,
    ".tsv": _of_a_table,
    ".graphml": _of_a_graph,
}
