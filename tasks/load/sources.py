"""Load: what the named files, folders and globs hold, as parts, and the documents that the parts
make up.

One reader per family of formats; a file that cannot be read is skipped with the reason, a row that
is neither document nor triple is a dead letter, and the rest goes on.
"""

import asyncio
import gzip
import io
import logging
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from prompts.text.languages import language_of
from storage.errors import DuplicateDocument, TooLittle, UsageError
from storage.faults import fault_of
from storage.files import open_file
from storage.records import DeadLetter, Document, Part, Record, Skipped, by_key
from tasks.load.discover import SourceFile, printable, resolve, walk
from tasks.load.encodings import Unreadable, decode
from tasks.load.office import read_office
from tasks.load.pdf import read_pdf
from tasks.load.rows import (
    MOST_DOCUMENTS,
    Rows,
    TooManyDocuments,
    collect,
    graph_file,
    parse_json,
    read_graph,
    read_jsonl,
    read_triples,
    readable_json,
    triples_header,
)
from tasks.load.tables import WrittenTables, markdown_tables, read_table, write_table
from tasks.load.text import (
    LARGEST_DOCUMENT,
    PageText,
    check_markup,
    not_empty,
    one_line,
    pretty_stem,
    read_html,
    read_text,
    split_front_matter,
    title_of,
)
from tasks.step import step

if TYPE_CHECKING:
    import networkx as nx

PathOrGraph: TypeAlias = "str | Path | nx.Graph"
JOINT = "\n\n"
_LINE_NUMBER = re.compile(r"^.*:\d+$")
log = logging.getLogger(__name__)
_LARGEST = 1 << 30
_IN_GRAPH = re.compile(rb"<(?:\w{1,99}:)?(?:node|edge)[\s/>]")
_MOST_IN_GRAPH = 600_000  # of GraphML: an edge takes some 1,600 bytes of memory
_BLOCK = 1 << 20
_READINGS = 3
# Of many documents, or with pictures.
_LARGE_OFTEN = (".jsonl", ".ndjson", ".pdf", ".docx", ".pptx", ".xlsx")


class Loaded(Record):
    """What was read: each source's canonical key, the parts in the order of sources and paths, and
    the rest.
    """

    sources: tuple[str, ...]
    parts: tuple[Part, ...]
    skipped: tuple[Skipped, ...]
    dead_letters: tuple[DeadLetter, ...]


@step("load")
async def load(sources: Sequence[PathOrGraph]) -> Loaded:
    """Read everything that the named sources hold; SourceNotFound before anything is read where one
    does not exist.
    """
    return await asyncio.to_thread(read_sources, sources)


def read_sources(sources: Sequence[PathOrGraph], most: int = MOST_DOCUMENTS) -> Loaded:
    """Everything that the named sources hold.

    A source is a file, a folder (read with its sub-folders), a glob pattern or a NetworkX graph:
    its edges are triples. Raises `SourceNotFound` before anything is read where a path does not
    exist or a pattern matches nothing; an empty folder is fine. Raises TooManyDocuments, as soon as
    it is so, where they hold more than `most`.
    """
    named = resolve([source for source in sources if isinstance(source, str | Path)])
    graphs = {
        graph_file(source): source for source in sources if not isinstance(source, str | Path)
    }
    read: list[Rows] = []
    skipped: list[Skipped] = []
    count = 0
    for source in named:
        for file in walk(source, skipped):
            try:
                read.append(read_file(file))
            except TooManyDocuments:
                raise
            except Unreadable as reason:
                skipped.append(Skipped(path=printable(file.path), reason=str(reason)))
            except (
                Exception
            ) as error:  # parsers promise no exception types: one file must not cost the others
                if isinstance(fault := fault_of(error, file.path), TooLittle):
                    # the file is as good as before: it must not count as gone
                    raise fault from error
                log.warning("%s cannot be read", printable(file.path), exc_info=True)
                reason_told = f"unreadable ({type(error).__name__}: {one_line(str(error))[:200]})"
                skipped.append(Skipped(path=printable(file.path), reason=reason_told))
            else:
                count += len(read[-1].parts)
                if count > most:
                    raise TooManyDocuments(most)
    read += [read_graph(graph, file) for file, graph in graphs.items()]
    parts, twice = _without_second_texts(part for rows in read for part in rows.parts)
    return Loaded(
        sources=(*(printable(source.key) for source in named), *(file.source for file in graphs)),
        parts=parts,
        skipped=tuple(skipped),
        dead_letters=(*(letter for rows in read for letter in rows.dead_letters), *twice),
    )


def _without_second_texts(parts: Iterable[Part]) -> tuple[tuple[Part, ...], list[DeadLetter]]:
    """The parts without each text under an id that another text was read under before: these are
    dead letters.
    """
    first: dict[str, Part] = {}
    kept, twice = [], []
    for part in parts:
        text = first.setdefault(part.document, part) if part.kind == "text" else part
        if text.text == part.text:
            kept.append(part)
        else:
            error = f"document {part.document!r} has another text already, from {text.path}"
            remedy = "Give one of them another `id`, or leave one out, then index again."
            twice.append(DeadLetter(item=part.path, step="load", error=error, remedy=remedy))
    return tuple(kept), twice


def read_file(file: SourceFile) -> Rows:
    """The parts and dead letters of one file; raises `Unreadable` with the reason to report."""
    name = PurePosixPath(file.id.lower())
    zipped = name.suffix == ".gz"
    ending = (name.with_suffix("").suffix if zipped else name.suffix) or name.name
    reader = (_PLAIN | ({} if zipped else _BINARY)).get(ending)
    if reader is None:
        shown = (ending + ".gz" if zipped else name.suffix) or "(no extension)"
        raise Unreadable(f"unsupported type {shown}")
    data = _bytes(file.path, zipped, _LARGEST if ending in _LARGE_OFTEN else LARGEST_DOCUMENT)
    if not data.strip():
        raise Unreadable("empty")
    if told := _other_kind(data, ending):
        raise Unreadable(told)
    return reader(data, file)


# What a file is by its first bytes, and the endings that promise it.
_OFFICE = {
    ".docx": b"word/document.xml",
    ".pptx": b"ppt/presentation.xml",
    ".xlsx": b"xl/workbook.xml",
}
_SIGNED = (
    (b"%PDF-", "a PDF file", (".pdf",)),
    (b"PK\x03\x04", "a zip archive", tuple(_OFFICE)),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old or encrypted office file", tuple(_OFFICE)),
    (b"{\\rtf", "a Rich Text file", ()),
    (b"\x89PNG", "a PNG picture", ()),
    (b"\xff\xd8\xff", "a JPEG picture", ()),
    (b"\x1f\x8b", "a gzip file", ()),
)


def _other_kind(data: bytes, ending: str) -> str:
    """What the report says where a file is of another kind than its ending promises, or nothing."""
    for begins, kind, endings in _SIGNED:
        if data.startswith(begins) and ending not in endings:
            fitting = [one for one in endings if _OFFICE.get(one, begins) in data]
            remedy = f"name it {fitting[0]}" if fitting else "convert it to text"
            return f"{kind} under the name of {ending}: {remedy}"
    return ""


def _bytes(path: str, zipped: bool, largest: int) -> bytes:
    def read(file: BinaryIO) -> bytes:
        return _read_in_blocks(gzip.GzipFile(fileobj=file) if zipped else file, largest + 1)

    try:
        data = read_unchanged(path, read)
    except UsageError as error:
        raise Unreadable("not a regular file") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Unreadable(f"broken gzip file ({error})") from error
    except OSError as error:
        if isinstance(fault_of(error, path), TooLittle):
            raise
        raise Unreadable(f"unreadable ({error.strerror or error})") from error
    if len(data) > largest:
        larger = (
            "1 GiB"
            if largest == _LARGEST
            else "100 MB: divide it, or make it JSON Lines of smaller documents"
        )
        raise Unreadable(f"larger than {larger}")
    return data


def read_unchanged(path: str, read: Callable[[BinaryIO], bytes]) -> bytes:
    """What `read` takes from a file. It reads again where the file has changed meanwhile, for it
    may have got the beginning of one version and the end of another.

    Raises `Unreadable` where the file changes each time.
    """
    for _ in range(_READINGS):
        with open_file(path) as file:
            before = os.fstat(file.fileno())
            data = read(file)
            after = os.fstat(file.fileno())
        same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
        if same or not stat.S_ISREG(after.st_mode):  # what is handed over can be read once only
            return data
    raise Unreadable("it is being written: index again when that is done")


def _read_in_blocks(stream: BinaryIO | gzip.GzipFile, most: int) -> bytes:
    """At most so many bytes; `read(most)` would take the memory for all of them before it reads
    one.
    """
    data = bytearray()
    while len(data) < most and (block := stream.read(min(_BLOCK, most - len(data)))):
        data += block
    return bytes(data)


# --- one reader per family of formats -------------------------------------------------------------


def _page(page: PageText, file: SourceFile, headings: bool = True) -> Rows:
    """A file that is one document; its title has a place of its own beside the metadata."""
    part = Part(
        document=file.id,
        source=file.source,
        path=printable(file.path),
        kind="text",
        title=page.title or title_of(page.text, pretty_stem(file.id), page.metadata, headings),
        text=not_empty(page.text),
        metadata={key: value for key, value in page.metadata.items() if key != "title"},
        pages=page.pages,
        tables=page.tables or markdown_tables(page.text),
    )
    return Rows(parts=(part,), dead_letters=())


def _text(data: bytes, file: SourceFile) -> Rows:
    """Markdown or plain text, which is read as Markdown as soon as it has front matter."""
    text, front = split_front_matter(read_text(data))
    plain = file.id.lower().removesuffix(".gz").endswith((".txt", ".log"))
    return _page(PageText(text=text, title="", metadata=front), file, bool(front) or not plain)


def _json(data: bytes, file: SourceFile) -> Rows:
    """Rows where the file holds an object with text or a triple, or a list of such; else one
    readable document.
    """
    text = not_empty(decode(data))
    value = parse_json(text)
    rows = collect(enumerate(value if isinstance(value, list) else [value], 1), file)
    if rows.parts:
        return rows
    own_title = value.get("title") if isinstance(value, dict) else None
    title = own_title if isinstance(own_title, str) and own_title.strip() else pretty_stem(file.id)
    del value
    # Figures stay as they are written.
    return _written(readable_json(parse_json(text, figures=str)), title, file)


def _jsonl(data: bytes, file: SourceFile) -> Rows:
    return read_jsonl(not_empty(decode(data)), file)


def _table(data: bytes, file: SourceFile) -> Rows:
    rows = read_table(
        read_text(data), "\t" if ".tsv" in PurePosixPath(file.id.lower()).suffixes else None
    )
    names = triples_header(rows)
    if names:
        return read_triples(rows, names, file)
    return _written(write_table([cells for _, cells in rows]), pretty_stem(file.id), file)


def _written(written: WrittenTables, title: str, file: SourceFile) -> Rows:
    text = "\n".join(written.lines)
    return _page(PageText(text=text, title=title, tables=tuple(written.tables)), file)


def _graphml(data: bytes, file: SourceFile) -> Rows:
    import networkx as nx

    check_markup(data)
    if sum(1 for _ in _IN_GRAPH.finditer(data)) > _MOST_IN_GRAPH:
        raise Unreadable(
            f"more than {_MOST_IN_GRAPH:,} nodes and edges: divide it, or make it JSON Lines"
        )
    try:
        return read_graph(nx.read_graphml(io.BytesIO(data), force_multigraph=True), file)
    except (SyntaxError, LookupError, TypeError, ValueError, nx.NetworkXException) as error:
        raise Unreadable(f"broken GraphML ({error})") from error


Reader = Callable[[bytes, SourceFile], Rows]
_PLAIN: dict[str, Reader] = {
    **dict.fromkeys((".md", ".markdown", ".txt", ".log", ".rst", "readme"), _text),
    **dict.fromkeys((".html", ".htm", ".xhtml"), lambda data, file: _page(read_html(data), file)),
    **dict.fromkeys((".csv", ".tsv"), _table),
    ".json": _json,
    **dict.fromkeys((".jsonl", ".ndjson"), _jsonl),
    ".graphml": _graphml,
}
_BINARY: dict[str, Reader] = {
    ".pdf": lambda data, file: _page(read_pdf(data), file, headings=False),
    **dict.fromkeys(
        (".docx", ".pptx", ".xlsx"),
        lambda data, file: _page(read_office(data, PurePosixPath(file.id.lower()).suffix), file),
    ),
}


# --- documents ------------------------------------------------------------------------------------


def compose(parts: Iterable[Part]) -> list[Document]:
    """One document per id, sorted by id: text first, then triples by source and place, joined by
    blank lines.

    The same text twice under one id is one part; another text under it raises `DuplicateDocument`.
    Title, metadata and pages are the first part's; `language` is the script's that dominates (zh,
    ja, ko, en for Latin letters, und).
    """
    grouped = by_key((part.document, part) for part in parts)
    return [_document(name, sorted(grouped[name], key=_order)) for name in sorted(grouped)]


def _order(part: Part) -> tuple[bool, str, str, int]:
    place, _, line = (
        part.path.rpartition(":") if _LINE_NUMBER.match(part.path) else (part.path, "", "0")
    )
    return part.kind == "triples", part.source, place, int(line)


def _document(name: str, parts: list[Part]) -> Document:
    texts = [part for part in parts if part.kind == "text"]
    for other in texts[1:]:
        if other.text != texts[0].text:
            raise DuplicateDocument(name, texts[0].path, other.path)
    # The same triples count once, whether one file was named twice or a copy of it stands in
    # another source.
    by_file = {part.path: part for part in reversed(parts) if part.kind == "triples"}
    triples = list({part.hash: part for part in by_file.values()}.values())[::-1]
    chosen = (*texts[:1], *triples)
    text = JOINT.join(part.text for part in chosen)
    first = chosen[0]
    # The first part begins the text, so that its page offsets hold in the whole.
    return Document(
        id=name,
        title=first.title,
        text=text,
        language=language_of(text),
        parts=chosen,
        metadata=first.metadata,
        pages=first.pages,
    )
