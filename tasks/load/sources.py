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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, TypeAlias

import networkx as nx
from pydantic import Field

from prompts.text.languages import language_of
from storage.documents import PartSummary
from storage.errors import DuplicateDocument, TooLittle, UsageError
from storage.faults import fault_of
from storage.files import open_file
from storage.records import DeadLetter, Document, Part, Record, Skipped, by_key
from tasks.load.discover import NamedSource, SourceFile, file_of, printable, resolve, walk
from tasks.load.elements import read_xml
from tasks.load.encodings import Unreadable, decode
from tasks.load.loaders import loaders, read_by
from tasks.load.mail import read_mail
from tasks.load.office import read_office
from tasks.load.pandoc import ARCHIVES, read_by_pandoc
from tasks.load.pdf import read_pdf
from tasks.load.pictures import MARKER, PICTURES, READER, Kept, PictureReader, read_picture
from tasks.load.remote import CHANGING, Arrival, Seen, arrivals, too_large
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

    `kept` are the parts that the index holds of remote objects that have not changed, which were
    not read; `addresses` are those of all remote objects. `figures` are the pictures that a model
    is to describe: JPEG by what stands for each in texts.
    """

    sources: tuple[str, ...]
    parts: tuple[Part, ...]
    skipped: tuple[Skipped, ...]
    dead_letters: tuple[DeadLetter, ...]
    kept: tuple[PartSummary, ...] = ()
    addresses: frozenset[str] = frozenset()
    figures: Mapping[str, bytes] = Field(default_factory=dict)


@step("load")
async def load(
    sources: Sequence[PathOrGraph],
    kept: Kept | None = None,
    describes: bool = False,
    seen: Seen | None = None,
) -> Loaded:
    """Read all that the named sources hold, in a thread; see `read_sources`.

    `kept` holds what was recognised in pictures; `describes`: a model will describe them.
    """
    reader = PictureReader(kept, describes)
    token = READER.set(reader)
    try:
        loaded = await asyncio.to_thread(read_sources, sources, seen)
    finally:
        READER.reset(token)
    return loaded.model_copy(update={"figures": reader.figures})


def read_sources(
    sources: Sequence[PathOrGraph], seen: Seen | None = None, most: int = MOST_DOCUMENTS
) -> Loaded:
    """Read all that the named sources hold, but for remote objects that have not changed since
    they were `seen`.

    A source is a file, a folder with its sub-folders, a glob pattern, an address, a file of
    addresses, or a NetworkX graph whose edges are triples. An empty folder is allowed. Raises
    `SourceNotFound`, before it reads, where a path does not exist or a pattern matches nothing;
    `SourceUnreachable` where a remote source cannot be listed; and `TooManyDocuments` as soon as it
    has read more than `most`.
    """
    named = resolve([source for source in sources if isinstance(source, str | Path)])
    graphs = {
        graph_file(source): source for source in sources if not isinstance(source, str | Path)
    }
    read: list[Rows] = []
    reading = _Reading(seen or Seen())
    count = 0
    for rows in (rows for source in named for rows in reading.rows_of(source)):
        read.append(rows)
        count += len(rows.parts)
        if count > most:
            raise TooManyDocuments(most)
    read += [read_graph(graph, file) for file, graph in graphs.items()]
    held = {part.document: part for part in reading.kept if part.kind == "text"}
    parts, duplicates = _first_texts((part for rows in read for part in rows.parts), held)
    return Loaded(
        sources=(*(printable(source.key) for source in named), *(file.source for file in graphs)),
        parts=parts,
        skipped=(*reading.skipped, *(note for rows in read for note in rows.skipped)),
        dead_letters=(*(letter for rows in read for letter in rows.dead_letters), *duplicates),
        kept=tuple(reading.kept),
        addresses=frozenset(reading.addresses),
    )


@dataclass
class _Reading:
    """Reads one source after the other, and collects what is not read."""

    seen: Seen
    skipped: list[Skipped] = field(default_factory=list)
    kept: list[PartSummary] = field(default_factory=list)
    addresses: set[str] = field(default_factory=set)

    def rows_of(self, source: NamedSource) -> Iterator[Rows]:
        """Yield the rows of each file of a source that can be read."""
        if source.is_remote:
            for arrival in arrivals(source, self.seen, largest_of, self.skipped):
                self.addresses.add(file_of(arrival.file.path))
                yield from self._arrived(arrival)
            return
        for file in walk(source, self.skipped):
            try:
                yield _read_or_explain(read_file, file)
            except Unreadable as reason:
                self._skip(file, str(reason))

    def _arrived(self, arrival: Arrival) -> Iterator[Rows]:
        file, note = arrival.file, arrival.note
        if arrival.problem:
            self._skip(file, arrival.problem)
        elif note and note.skipped:
            self._skip(file, note.skipped)
        elif note:
            self.kept += self.seen.held(file)
            yield Rows(parts=(), dead_letters=note.dead_letters)
        else:
            try:
                rows = _read_or_explain(partial(read_file, data=arrival.data), file)
            except Unreadable as reason:
                self.seen.add_skipped(arrival, str(reason))
                self._skip(file, str(reason))
            else:
                self.seen.add(arrival, rows.parts, rows.dead_letters)
                yield rows

    def _skip(self, file: SourceFile, reason: str) -> None:
        self.skipped.append(Skipped(path=printable(file.path), reason=reason))


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


def _first_texts(
    parts: Iterable[Part], held: Mapping[str, PartSummary]
) -> tuple[tuple[Part, ...], list[DeadLetter]]:
    """Keep the first text under each id; another text under the same id is a dead letter.

    `held` are the texts by id that the index keeps, which come first.
    """
    first: dict[str, Part] = {}
    kept, letters = [], []
    for part in parts:
        text: Part | PartSummary = part
        if part.kind == "text":
            text = held.get(part.document) or first.setdefault(part.document, part)
        if text.hash == part.hash or (isinstance(text, Part) and text.text == part.text):
            kept.append(part)
        else:
            error = f"document {part.document!r} has another text already, from {text.path}"
            remedy = "Give one of them another `id`, or leave one out, then index again."
            letters.append(DeadLetter(item=part.path, step="load", error=error, remedy=remedy))
    return tuple(kept), letters


def read_file(file: SourceFile, data: bytes | None = None) -> Rows:
    """Read the parts and dead letters of one file; raises `Unreadable` with the reason.

    `data` is the content of a remote one.
    """
    _, zipped, _ = _reader_of(file.format_name)
    fetched = None if data is None else io.BytesIO(data)
    return _read(_bytes(file.path, zipped, largest_of(file.format_name), fetched), file)


def largest_of(name: PurePosixPath) -> int:
    """Return how many bytes a file of this name, in small letters, may have.

    Raises `Unreadable` where its format is not supported.
    """
    return _LARGEST_FILE if _reader_of(name)[0] in _MAY_BE_LARGE else LARGEST_DOCUMENT


def _reader_of(name: PurePosixPath) -> tuple[str, bool, "Reader"]:
    """Return the ending of a file name in small letters, whether `.gz` follows it, and the reader
    of such files.
    """
    zipped = name.suffix == ".gz"
    ending = (name.with_suffix("").suffix if zipped else name.suffix) or name.name
    if (entry := loaders().get(ending)) and not zipped:
        return ending, zipped, lambda data, file: _page(read_by(entry, data, file.id), file)
    reader = _PLAIN.get(ending) or (None if zipped else _BINARY.get(ending))
    if reader is None:
        shown = (ending + ".gz" if zipped else name.suffix) or "(no extension)"
        raise Unreadable(f"unsupported type {shown}")
    return ending, zipped, reader


def _read(data: bytes, file: SourceFile) -> Rows:
    """Read what a file holds, by the ending of its id; raises `Unreadable`."""
    ending, _, reader = _reader_of(file.format_name)
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


def _bytes(path: str, zipped: bool, largest: int, fetched: BinaryIO | None) -> bytes:
    """Read a file, or what was fetched of it, and unpack it."""

    def read(file: BinaryIO) -> bytes:
        return _read_in_blocks(gzip.GzipFile(fileobj=file) if zipped else file, largest + 1)

    try:
        data = read(fetched) if fetched else read_unchanged(path, read)
    except UsageError as error:
        raise Unreadable("not a regular file") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Unreadable(f"broken gzip file ({error})") from error
    except OSError as error:
        if isinstance(fault_of(error, path), TooLittle):
            raise
        raise Unreadable(f"unreadable ({error.strerror or error})") from error
    if len(data) > largest:
        raise Unreadable(too_large(largest))
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
    raise Unreadable(CHANGING)


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
    plain = file.format_name.name.removesuffix(".gz").endswith((".txt", ".log"))
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
    is_tsv = ".tsv" in file.format_name.suffixes
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
    return _page(read_office(data, file.format_name.suffix), file)


def _converted(data: bytes, file: SourceFile) -> Rows:
    return _page(read_by_pandoc(data, str(file.format_name)), file)


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
        inner = file.model_copy(update={"id": f"{file.id}/{attached.name}", "served_as": ""})
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
    if _reader_of(file.format_name)[1]:
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
