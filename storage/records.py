"""The records that steps take and return, and storage keeps.

Offsets (`start`, `end`) count code points in the stored text of a document, end exclusive, so that
`document.text[start:end]` is the quoted string. Ids are content hashes with a prefix (`chk_`,
`ent_`, `rel_`, `clm_`, `com_`).
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict

K = TypeVar("K")
V = TypeVar("V")


def content_id(prefix: str, *parts: str) -> str:
    """Return a stable id: `prefix_` and 16 hexadecimal digits of SHA-256 over the parts."""
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{prefix}_{digest[:16]}"


def by_key(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Group values by key, keys and values in the order of the pairs."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def utc_now() -> str:
    """Return the time in UTC and ISO form, as all records hold times."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Record(BaseModel):
    """Base of all records: immutable, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Scalar = str | int | float | bool | None


# A source may hold millions of these, and pydantic records take three times the memory.


@dataclass(frozen=True, slots=True)
class Triple:
    """One imported fact; `weight` counts how often it was asserted."""

    s: str
    p: str
    o: str
    weight: float = 1.0

    def rendered(self) -> str:
        return f"{self.s} -[{self.p}]-> {self.o}"


Span = tuple[int, int]  # start and end in code points, end exclusive


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a table. A cell is its place in the text of the part, or None where it is empty.

    `name` is the caption above the table, or empty. `header` is the place of the line with the
    names of the columns, if there is one.
    """

    name: str
    columns: tuple[str, ...]
    header: Span | None
    rows: tuple[tuple[Span | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Recognized:
    """A piece of text that was recognised in a picture; the offsets count in the text of the part.

    `box` is left, top, right and bottom as shares of the width and height of the page, or of the
    picture in a document whose pages are not drawn (`page` is None where it has none).
    `confidence` is 0-1.
    """

    start: int
    end: int
    page: int | None
    box: tuple[float, float, float, float]
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one source says about one document: a text, or triples, one per line of `text`.

    `pages` holds the offset in `text` of each page (empty where the format has no pages), `tables`
    the tables in it, `recognized` what was read in pictures.
    """

    document: str
    source: str
    path: str
    kind: Literal["text", "triples"]
    title: str
    text: str
    triples: tuple[Triple, ...] = ()
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    pages: tuple[int, ...] = ()
    tables: tuple[Table, ...] = ()
    recognized: tuple[Recognized, ...] = ()

    @property
    def hash(self) -> str:
        """Changes if and only if something changes that readers of the document see."""
        weights = [t.weight for t in self.triples]
        extra = f"{sorted(self.metadata.items())!r}{self.pages!r}{weights!r}"
        return content_id("prt", self.kind, self.title, self.text, extra)

    @property
    def text_hash(self) -> str:
        return content_id("txt", self.text)

    @property
    def by_line(self) -> bool:
        """Whether the document is a row without an id, named by its line."""
        return self.document.endswith(f"#{self.path.rpartition(':')[2]}")


class Skipped(Record):
    """Something in a source or a model's answer that was not read, and why."""

    path: str
    reason: str


class DeadLetter(Record):
    """Failed work that can be tried again; `item` is a chunk id or a `file:line`."""

    item: str
    step: str
    error: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentText:
    """A document's text and the offsets of its pages, to check quotations with."""

    id: str
    text: str
    pages: tuple[int, ...] = ()

    def page_of(self, offset: int) -> int | None:
        """Return the page (from 1) of an offset, or None where the document has no pages."""
        return sum(1 for start in self.pages if start <= offset) or None if self.pages else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document(DocumentText):
    """A stored document: all its parts, text parts first, joined by a blank line."""

    title: str
    language: str
    parts: tuple[Part, ...]
    metadata: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        return content_id("doc", *(part.hash for part in self.parts))

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of the first part. The text begins with it, so their places hold in both."""
        return self.parts[0].tables if self.parts else ()

    @property
    def recognized(self) -> tuple[Recognized, ...]:
        """What was recognised in pictures of the first part; as with tables, its places hold."""
        return self.parts[0].recognized if self.parts else ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a document.

    `heading` is the path of headings above it ("Guide > Setup"), or empty.
    """

    id: str
    document: str
    ordinal: int
    start: int
    end: int
    text: str
    tokens: int
    language: str
    title: str
    heading: str = ""
    kind: Literal["text", "triples"] = "text"
