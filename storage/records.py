"""What travels through Trellis: the records that steps take and return, and storage keeps.

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
    """A stable id: `prefix_` and 16 hexadecimal digits of SHA-256 over the parts."""
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{prefix}_{digest[:16]}"


def by_key(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The values of each key, keys and values in the order in which they come."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def utc_now() -> str:
    """The moment, in UTC and ISO form: how all records hold their times."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Record(BaseModel):
    """Base of all records: immutable, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Scalar = str | int | float | bool | None


# What a source holds, of which there may be millions, is plain: records of pydantic take three
# times the memory.


@dataclass(frozen=True, slots=True)
class Triple:
    """One imported fact; `weight` counts how often it was asserted."""

    s: str
    p: str
    o: str
    weight: float = 1.0

    def rendered(self) -> str:
        return f"{self.s} -[{self.p}]-> {self.o}"


Span = tuple[int, int]  # from the first code point to behind the last


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a table. A cell is the place where it stands in a part's text; None: it is empty.

    `name` is what the text says above the table, or empty. `header` is the place of the line that
    names the columns, None where the text has no such line.
    """

    name: str
    columns: tuple[str, ...]
    header: Span | None
    rows: tuple[tuple[Span | None, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one source says about one document: a text, or triples, one a line in `text`.

    `pages` holds the offset in `text` at which each page starts (empty where the format has no
    pages), `tables` the tables that stand in it.
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

    @property
    def hash(self) -> str:
        """Changes when, and only when, what readers of the document see changes."""
        extra = (
            repr(sorted(self.metadata.items()))
            + repr(self.pages)
            + repr([t.weight for t in self.triples])
        )
        return content_id("prt", self.kind, self.title, self.text, extra)

    @property
    def text_hash(self) -> str:
        """Of the text alone, whatever it is called."""
        return content_id("txt", self.text)

    @property
    def by_line(self) -> bool:
        """Whether the document is a row without an id, called by its line of today."""
        return self.document.endswith(f"#{self.path.rpartition(':')[2]}")


class Skipped(Record):
    """Something that was not read, in a source or in a model's answer: where, and why."""

    path: str
    reason: str


class DeadLetter(Record):
    """Work that failed and is kept; `item` is a chunk id or a `file:line`."""

    item: str
    step: str
    error: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentText:
    """What a quotation is compared with: a document's text, and where its pages begin."""

    id: str
    text: str
    pages: tuple[int, ...] = ()

    def page_of(self, offset: int) -> int | None:
        """The page (from 1) that holds an offset, or None where the document has no pages."""
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
        """The tables of the first part, with which the text begins: places in one are places in the
        other.
        """
        return self.parts[0].tables if self.parts else ()


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
