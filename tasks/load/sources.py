"""Load: read files, folders, patterns and graphs as parts, and compose parts into documents.

Each family of formats has one reader. A file that cannot be read is skipped with its reason, a row
that is neither a document nor a triple becomes a dead letter, and the rest is read all the same.
"""

import asyncio
import gzip
import io
import logging
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, TypeAlias

import networkx as nx
from pydantic import Field

from prompts.text.languages import language_of
from storage.errors import DuplicateDocument, TooLittle, UsageError
from storage.faults import fault_of
from storage.files import open_file
from storage.records import DeadLetter, Document, Part, Record, Skipped, by_key
from tasks.load.discover import SourceFile, printable, resolve, walk
from tasks.load.elements import read_xml
from tasks.load.encodings import Unreadable, decode
from tasks.load.loaders import loaders, read_by
from tasks.load.mail import read_mail
from tasks.load.office import read_office
from tasks.load.pandoc import ARCHIVES, read_by_pandoc
from tasks.load.pdf import read_pdf
from tasks.load.pictures import MARKER, PICTURES, READER, Kept, PictureReader, read_picture
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
from tasks.load.source_code import ENDINGS
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
    shortened,
    split_front_matter,
    title_of,
)
from tasks.step import step

PathOrGraph: TypeAlias = str | Path | nx.Graph
JOINT = "\n\n"
log = logging.getLogger(__name__)
_LINE_NUMBER = re.compile(r"^(.*):(\d+)$")
_GRAPHML_ITEM = re.compile(rb"<(?:\w{1,99}:)?(?:node|edge)[\s/>]")
_MOST_GRAPHML_ITEMS = 600_000  # some 1,600 bytes of memory for each edge
_LARGEST_FILE = 1 << 30
_BLOCK = 1 << 20
_READINGS = 3
# Files of many documents, or with pictures, may exceed LARGEST_DOCUMENT.
_MAY_BE_LARGE = (
    *(".jsonl", ".ndjson", ".pdf", ".docx", ".pptx", ".xlsx", ".eml"),
    *ARCHIVES,
    *PICTURES,
)
_MOST_MESSAGES = 8  # messages that are attached to one another


class Loaded(Record):
    """What was read: the canonical keys of the sources, and the parts in their order.

    `figures` are the pictures that a model is to describe: JPEG by what stands for each in texts.
    """

    sources: tuple[str, ...]
    parts: tuple[Part, ...]
    skipped: tuple[Skipped, ...]
    dead_letters: tuple[DeadLetter, ...]
    figures: Mapping[str, bytes] = Field(default_factory=dict)


@step("load")
async def load(
    sources: Sequence[PathOrGraph], kept: Kept | None = None, describes: bool = False
) -> Loaded:
    """Read all that the named sources hold, in a thread; see `read_sources`.

    `kept` holds what was recognised in pictures; `describes`: a model will describe them.
    """
    reader = PictureReader(kept, describes)
    token = READER.set(reader)
    try:
        loaded = await asyncio.to_thread(read_sources, sources)
    finally:
        READER.reset(token)
    return loaded.model_copy(update={"figures": reader.figures})


def read_sources(sources: Sequence[PathOrGraph], most: int = MOST_DOCUMENTS) -> Loaded:
    """Read all that the named sources hold.

    A source is a file, a folder with its sub-folders, a glob pattern, or a NetworkX graph whose
    edges are triples. An empty folder is allowed. Raises `SourceNotFound`, before it reads, where
    a path does not exist or a pattern matches nothing, and `TooManyDocuments` as soon as it has
    read more than `most`.
    """
    named = resolve([source for source in sources if isinstance(source, str | Path)])
    graphs = {
        graph_file(source): source for source in sources if not isinstance(source, str | Path)
    }
    read: list[Rows] = []
    skipped: list[Skipped] = []
    count = 0
    for file in (file for source in named for file in walk(source, skipped)):
        try:
            read.append(_read_or_explain(read_file, file))
        except Unreadable as reason:
            skipped.append(Skipped(path=printable(file.path), reason=str(reason)))
            continue
        count += len(read[-1].parts)
        if count > most:
            raise TooManyDocuments(most)
    read += [read_graph(graph, file) for file, graph in graphs.items()]
    skipped += [note for rows in read for note in rows.skipped]
    parts, duplicates = _first_texts(part for rows in read for part in rows.parts)
    return Loaded(
        sources=(*(printable(source.key) for source in named), *(file.source for file in graphs)),
        parts=parts,
        skipped=(*skipped, *(one for rows in read for one in rows.skipped)),
        dead_letters=(*(letter for rows in read for letter in rows.dead_letters), *duplicates),
    )


def _read_or_explain(read: Callable[[SourceFile], Rows], file: SourceFile) -> Rows:
    """Read a file; raises `Unreadable` where that fails for a reason that is the file's own."""
    try:
        return read(file)
    except (TooManyDocuments, Unreadable):
        raise
    except Exception as error:  # Parsers promise no types; one file must not cost the others.
        if isinstance(fault := fault_of(error, file.path), TooLittle):
            raise fault from error  # The file must not count as removed.
        log.warning("%s cannot be read", printable(file.path), exc_info=True)
        what = f"{type(error).__name__}: {one_line(str(error))[:200]}"
        raise Unreadable(f"unreadable ({what})") from error


def _first_texts(parts: Iterable[Part]) -> tuple[tuple[Part, ...], list[DeadLetter]]:
    """Keep the first text under each id; another text under the same id is a dead letter."""
    first: dict[str, Part] = {}
    kept, letters = [], []
    for part in parts:
        text = first.setdefault(part.document, part) if part.kind == "text" else part
        if text.text == part.text:
            kept.append(part)
        else:
            error = f"document {part.document!r} has another text already, from {text.path}"
            remedy = "Give one of them another `id`, or leave one out, then index again."
            letters.append(DeadLetter(item=part.path, step="load", error=error, remedy=remedy))
    return tuple(kept), letters


def read_file(file: SourceFile) -> Rows:
    """Read the parts and dead letters of one file; raises `Unreadable` with the reason."""
    ending, zipped, _ = _reader_of(file.id)
    largest = _LARGEST_FILE if ending in _MAY_BE_LARGE else LARGEST_DOCUMENT
    return _read(_bytes(file.path, zipped, largest), file)


def _reader_of(name: str) -> tuple[str, bool, "Reader"]:
    """Return the ending of a file name, whether `.gz` follows it, and the reader of such files."""
    path = PurePosixPath(name.lower())
    zipped = path.suffix == ".gz"
    ending = (path.with_suffix("").suffix if zipped else path.suffix) or path.name
    if (entry := loaders().get(ending)) and not zipped:
        return ending, zipped, lambda data, file: _page(read_by(entry, data, file.id), file)
    reader = _PLAIN.get(ending) or (None if zipped else _BINARY.get(ending))
    if reader is None:
        shown = (ending + ".gz" if zipped else path.suffix) or "(no extension)"
        raise Unreadable(f"unsupported type {shown}")
    return ending, zipped, reader


def _read(data: bytes, file: SourceFile) -> Rows:
    """Read what a file holds, by the ending of its id; raises `Unreadable`."""
    ending, _, reader = _reader_of(file.id)
    if not data.strip():
        raise Unreadable("empty")
    if ending not in loaders() and (mismatch := _mismatch(data, ending)):
        raise Unreadable(mismatch)
    return reader(data, file)


# The first bytes of a file, what they show it to be, and the endings that it may have.
_OFFICE = {
    ".docx": b"word/document.xml",
    ".pptx": b"ppt/presentation.xml",
    ".xlsx": b"xl/workbook.xml",
}
_ZIPPED = _OFFICE | ARCHIVES
_SIGNATURES = (
    (b"%PDF-", "a PDF file", (".pdf",)),
    (b"PK\x03\x04", "a zip archive", tuple(_ZIPPED)),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old or encrypted office file", tuple(_OFFICE)),
    (b"{\\rtf", "a Rich Text file", (".rtf",)),
    (b"\x89PNG", "a PNG picture", PICTURES),
    (b"\xff\xd8\xff", "a JPEG picture", (".jpg", *PICTURES)),
    (b"\x1f\x8b", "a gzip file", ()),
)


def _mismatch(data: bytes, ending: str) -> str:
    """Return how the content contradicts the file's ending, or an empty text."""
    for signature, kind, endings in _SIGNATURES:
        if data.startswith(signature) and ending not in endings:
            fitting = [one for one in endings if _ZIPPED.get(one, signature) in data]
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
        remedy = "100 MB: divide it, or make it JSON Lines of smaller documents"
        raise Unreadable(f"larger than {'1 GiB' if largest == _LARGEST_FILE else remedy}")
    return data


def read_unchanged(path: str, read: Callable[[BinaryIO], bytes]) -> bytes:
    """Read a file by `read`, and again where it has changed meanwhile, so that versions never mix.

    Raises `Unreadable` where the file changes each time.
    """
    for _ in range(_READINGS):
        with open_file(path) as file:
            before = os.fstat(file.fileno())
            data = read(file)
            after = os.fstat(file.fileno())
        same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
        if same or not stat.S_ISREG(after.st_mode):  # A pipe can be read only once.
            return data
    raise Unreadable("it is being written: index again when that is done")


def _read_in_blocks(stream: BinaryIO | gzip.GzipFile, most: int) -> bytes:
    """Read at most `most` bytes; `stream.read(most)` would allocate all of them at once."""
    data = bytearray()
    while len(data) < most and (block := stream.read(min(_BLOCK, most - len(data)))):
        data += block
    return bytes(data)


# --- one reader per family of formats ---


def _page(page: PageText, file: SourceFile, headings: bool = True) -> Rows:
    """Return a file that is one document, whose title may be a heading in its text."""
    path = printable(file.path)
    words = MARKER.sub("", page.text)
    part = Part(
        document=file.id,
        source=file.source,
        path=path,
        kind="text",
        title=page.title or title_of(words, pretty_stem(file.id), page.metadata, headings),
        text=not_empty(page.text),
        metadata={key: value for key, value in page.metadata.items() if key != "title"},
        pages=page.pages,
        tables=page.tables or markdown_tables(page.text),
        recognized=page.recognized,
    )
    notes = [Skipped(path=f"{path} (in part)", reason=reason) for reason in page.unread]
    return Rows(parts=(part,), dead_letters=(), skipped=tuple(notes))


def _text(data: bytes, file: SourceFile) -> Rows:
    """Read Markdown, or plain text; with front matter, plain text counts as Markdown."""
    text, front = split_front_matter(read_text(data))
    plain = file.id.lower().removesuffix(".gz").endswith((".txt", ".log"))
    return _page(PageText(text=text, title="", metadata=front), file, bool(front) or not plain)


def _json(data: bytes, file: SourceFile) -> Rows:
    """Read rows where the JSON holds a text or a triple, alone or in a list; else one document."""
    text = not_empty(decode(data))
    value = parse_json(text)
    rows = collect(enumerate(value if isinstance(value, list) else [value], 1), file)
    if rows.parts:
        return rows
    own_title = value.get("title") if isinstance(value, dict) else None
    title = own_title if isinstance(own_title, str) and own_title.strip() else pretty_stem(file.id)
    del value  # It takes as much memory as the next one.
    return _written(readable_json(parse_json(text, figures=str)), title, file)


def _jsonl(data: bytes, file: SourceFile) -> Rows:
    return read_jsonl(not_empty(decode(data)), file)


def _table(data: bytes, file: SourceFile) -> Rows:
    is_tsv = ".tsv" in PurePosixPath(file.id.lower()).suffixes
    rows = read_table(read_text(data), "\t" if is_tsv else None)
    if names := triples_header(rows):
        return read_triples(rows, names, file)
    return _written(write_table([cells for _, cells in rows]), pretty_stem(file.id), file)


def _written(written: WrittenTables, title: str, file: SourceFile) -> Rows:
    text = "\n".join(written.lines)
    return _page(PageText(text=text, title=title, tables=tuple(written.tables)), file)


def _graphml(data: bytes, file: SourceFile) -> Rows:
    check_markup(data)
    if sum(1 for _ in _GRAPHML_ITEM.finditer(data)) > _MOST_GRAPHML_ITEMS:
        raise Unreadable(
            f"more than {_MOST_GRAPHML_ITEMS:,} nodes and edges: divide it, or make it JSON Lines"
        )
    try:
        return read_graph(nx.read_graphml(io.BytesIO(data), force_multigraph=True), file)
    except (SyntaxError, LookupError, TypeError, ValueError, nx.NetworkXException) as error:
        raise Unreadable(f"broken GraphML ({error})") from error


def _office(data: bytes, file: SourceFile) -> Rows:
    return _page(read_office(data, PurePosixPath(file.id.lower()).suffix), file)


def _converted(data: bytes, file: SourceFile) -> Rows:
    return _page(read_by_pandoc(data, file.id), file)


def _restructured(data: bytes, file: SourceFile) -> Rows:
    """Read reStructuredText by pandoc; where it is missing or gives up, as plain text."""
    try:
        return _converted(data, file)
    except Unreadable:
        return _text(data, file)


def _code(data: bytes, file: SourceFile) -> Rows:
    return _page(PageText(text=read_text(data), title=shortened(file.id)), file)


def _mail(data: bytes, file: SourceFile) -> Rows:
    """Read a message and what is attached to it, each as a document of its own."""
    page, attachments = read_mail(data)
    rows = [_page(page, file)]
    skipped = list[Skipped]()
    for number, attached in enumerate(attachments, 1):
        place = printable(f"{file.path}:{number}")
        inner = file.model_copy(update={"id": f"{file.id}/{attached.name}"})
        try:
            read = _read_or_explain(partial(_attached, attached.data), inner)
        except Unreadable as reason:
            skipped.append(Skipped(path=place, reason=f"{attached.name}: {reason}"))
            continue
        parts = [
            replace(
                part, path=place, metadata={**page.metadata, **part.metadata, "message": file.id}
            )
            for part in read.parts
        ]
        rows.append(read.model_copy(update={"parts": tuple(parts)}))
        # No part stands at these places: parts there would count as unread.
        skipped += (
            Skipped(path=f"{place}.{one.path.rpartition(':')[2]}", reason=one.reason)
            for one in read.skipped
        )
    return Rows(
        parts=tuple(part for read in rows for part in read.parts),
        dead_letters=tuple(letter for read in rows for letter in read.dead_letters),
        skipped=tuple(skipped),
    )


def _attached(data: bytes, file: SourceFile) -> Rows:
    """Read an attachment, whose id holds those of the messages around it."""
    if file.id.lower().count(".eml/") > _MOST_MESSAGES:
        raise Unreadable(f"attached to more than {_MOST_MESSAGES} messages, one in the other")
    if _reader_of(file.id)[1]:
        raise Unreadable("compressed: unpack it")
    return _read(data, file)


def _picture(data: bytes, file: SourceFile) -> Rows:
    return _page(read_picture(data, file.id), file, headings=False)


Reader = Callable[[bytes, SourceFile], Rows]
_PLAIN: dict[str, Reader] = {
    **dict.fromkeys((".md", ".markdown", ".txt", ".log", "readme"), _text),
    ".rst": _restructured,
    **dict.fromkeys((".html", ".htm", ".xhtml"), lambda data, file: _page(read_html(data), file)),
    **dict.fromkeys((".csv", ".tsv"), _table),
    ".json": _json,
    **dict.fromkeys((".jsonl", ".ndjson"), _jsonl),
    ".graphml": _graphml,
    ".xml": lambda data, file: _page(read_xml(data, file.id), file),
    ".eml": _mail,
    **dict.fromkeys((".tex", ".rtf", ".ipynb"), _converted),
    **dict.fromkeys(ENDINGS, _code),
}
_BINARY: dict[str, Reader] = {
    ".pdf": lambda data, file: _page(read_pdf(data), file, headings=False),
    **dict.fromkeys(_OFFICE, _office),
    **dict.fromkeys(ARCHIVES, _converted),
    **dict.fromkeys(PICTURES, _picture),
}


# --- documents ---


def compose(parts: Iterable[Part]) -> list[Document]:
    """Compose one document per id, sorted by id: its text, then its triples by source and place.

    Blank lines join the parts; equal parts count once. Title, metadata and pages are those of the
    first part. Raises `DuplicateDocument` where an id has two texts.
    """
    grouped = by_key((part.document, part) for part in parts)
    return [_document(name, sorted(grouped[name], key=_order)) for name in sorted(grouped)]


def _order(part: Part) -> tuple[bool, str, str, int]:
    numbered = _LINE_NUMBER.match(part.path)
    place, line = numbered.groups() if numbered else (part.path, "0")
    return part.kind == "triples", part.source, place, int(line)


def _document(name: str, parts: list[Part]) -> Document:
    texts = [part for part in parts if part.kind == "text"]
    for other in texts[1:]:
        if other.text != texts[0].text:
            raise DuplicateDocument(name, texts[0].path, other.path)
    # Equal triples count once, whether their file was named twice or copied.
    by_file = {part.path: part for part in reversed(parts) if part.kind == "triples"}
    triples = {part.hash: part for part in by_file.values()}
    chosen = (*texts[:1], *reversed(triples.values()))
    text = JOINT.join(part.text for part in chosen)
    first = chosen[0]
    return Document(
        id=name,
        title=first.title,
        text=text,
        language=language_of(text),
        parts=chosen,
        metadata=first.metadata,
        pages=first.pages,  # Its text stands first, so they hold in the whole.
    )
