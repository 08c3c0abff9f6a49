"""The sources: what the named files, folders and globs hold.

One reader per family of formats; a file that cannot be read is skipped with the reason, a row that is neither document
nor triple is a dead letter, and the rest goes on.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from storage.records import DeadLetter, Part, Record, Scalar, Skipped
from tasks.load.discover import Found, printable, resolve, walk
from tasks.load.markup import Page, read_html
from tasks.load.plain import Unreadable, decode, not_empty, pretty_stem, read_text, split_front_matter, title_of
from tasks.load.rows import Rows, collect, is_row, metadata_of, read_jsonl, readable_json
from tasks.load.tables import read_table, read_triples, render, triples_header

_LARGEST = 1 << 30


class Loaded(Record):
    """What was read: each source's canonical key, the parts in the order of sources and paths, and the rest."""

    sources: tuple[str, ...]
    parts: tuple[Part, ...]
    skipped: tuple[Skipped, ...]
    dead_letters: tuple[DeadLetter, ...]


def read_sources(sources: Sequence[str | Path]) -> Loaded:
    """Everything that the named sources hold.

    A source is a file, a folder (read with its sub-folders) or a glob pattern. Raises `SourceNotFound` before anything
    is read where one does not exist or a pattern matches nothing; an empty folder is fine.
    """
    named = resolve(sources)
    parts: list[Part] = []
    skipped: list[Skipped] = []
    dead: list[DeadLetter] = []
    for source in named:
        for file in walk(source, skipped):
            try:
                rows = read_file(file)
            except Unreadable as reason:
                skipped.append(Skipped(path=printable(file.path), reason=str(reason)))
                continue
            parts.extend(rows.parts)
            dead.extend(rows.dead_letters)
    return Loaded(
        sources=tuple(source.key for source in named),
        parts=tuple(parts),
        skipped=tuple(skipped),
        dead_letters=tuple(dead),
    )


def read_file(file: Found) -> Rows:
    """The parts and dead letters of one file; raises `Unreadable` with the reason to report."""
    name = PurePosixPath(file.id.lower())
    zipped = name.suffix == ".gz"
    ending = name.with_suffix("").suffix if zipped else name.suffix
    reader = (_PLAIN | ({} if zipped else _BINARY)).get(ending)
    if reader is None:
        shown = (ending + ".gz" if zipped else ending) or "(no extension)"
        raise Unreadable(f"unsupported type {shown}")
    data = _bytes(file.path, zipped)
    if not data.strip():
        raise Unreadable("empty")
    return reader(data, file)


def _bytes(path: str, zipped: bool) -> bytes:
    try:
        with gzip.open(path) if zipped else Path(path).open("rb") as stream:
            data = stream.read(_LARGEST + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Unreadable(f"broken gzip file ({error})") from error
    except OSError as error:
        raise Unreadable(f"unreadable ({error.strerror or error})") from error
    if len(data) > _LARGEST:
        raise Unreadable("larger than 1 GiB")
    return data


def _one(file: Found, text: str, title: str, metadata: dict[str, Scalar], pages: tuple[int, ...] = ()) -> Rows:
    """A file that is one document."""
    part = Part(
        document=file.id,
        source=file.source,
        path=printable(file.path),
        kind="text",
        title=title,
        text=not_empty(text),
        metadata=metadata,
        pages=pages,
    )
    return Rows(parts=(part,), dead_letters=())


def _markdown(data: bytes, file: Found) -> Rows:
    text, front = split_front_matter(read_text(data))
    return _one(file, text, title_of(text, pretty_stem(file.id), front), metadata_of(front))


def _text(data: bytes, file: Found) -> Rows:
    """Plain text; it is Markdown as soon as it has front matter."""
    text, front = split_front_matter(read_text(data))
    return _one(file, text, title_of(text, pretty_stem(file.id), front, headings=bool(front)), metadata_of(front))


def _html(data: bytes, file: Found) -> Rows:
    try:
        markup: str | bytes = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # The page may declare its encoding itself.
        markup = data if b"charset" in data[:2048].lower() else decode(data)
    return _paged(read_html(markup), file)


def _paged(page: Page, file: Found, pages: tuple[int, ...] = ()) -> Rows:
    title = page.title or title_of(page.text, pretty_stem(file.id), {})
    return _one(file, page.text, title, page.metadata, pages)


def _jsonl(data: bytes, file: Found) -> Rows:
    return read_jsonl(not_empty(decode(data)), file)


def _json(data: bytes, file: Found) -> Rows:
    """Rows where the file holds an object with text or a triple, or a list of such; else one readable document."""
    text = not_empty(decode(data))
    try:
        value = json.loads(text, strict=False)
        items = value if isinstance(value, list) else [value]
        if any(map(is_row, items)):
            return collect(enumerate(items, 1), file)
        # Figures stay as they are written.
        written = json.loads(text, strict=False, parse_float=str, parse_int=str)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"broken JSON ({error})") from error
    given = value.get("title") if isinstance(value, dict) else None
    title = given if isinstance(given, str) and given.strip() else pretty_stem(file.id)
    return _one(file, readable_json(written), title, {})


def _csv(data: bytes, file: Found) -> Rows:
    return _table(data, file, None)


def _tsv(data: bytes, file: Found) -> Rows:
    return _table(data, file, "\t")


def _table(data: bytes, file: Found, delimiter: str | None) -> Rows:
    rows = read_table(read_text(data), delimiter)
    names = triples_header(rows)
    if names:
        return read_triples(rows, names, file)
    return _one(file, render([cells for _, cells in rows]), pretty_stem(file.id), {})


def _pdf(data: bytes, file: Found) -> Rows:
    from tasks.load.pdf import read_pdf

    pdf = read_pdf(data)
    return _one(
        file, pdf.text, pdf.title or title_of(pdf.text, pretty_stem(file.id), {}, headings=False), {}, pdf.pages
    )


def _office(data: bytes, file: Found) -> Rows:
    from tasks.load.office import read_office

    page, pages = read_office(data, PurePosixPath(file.id.lower()).suffix)
    return _paged(page, file, pages)


Reader = Callable[[bytes, Found], Rows]
_PLAIN: dict[str, Reader] = {
    ".md": _markdown,
    ".markdown": _markdown,
    ".txt": _text,
    ".html": _html,
    ".htm": _html,
    ".csv": _csv,
    ".tsv": _tsv,
    ".json": _json,
    ".jsonl": _jsonl,
}
_BINARY: dict[str, Reader] = {".pdf": _pdf, ".docx": _office, ".pptx": _office, ".xlsx": _office}
