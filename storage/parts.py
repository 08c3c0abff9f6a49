"""How does a document's part become a slice of the document's text, and a slice a part again?

A document's text holds the texts of its parts, and a part of triples holds each triple's words: neither is stored
twice. What does not fit that form (a text that is no slice) is stored as it is, so that every part comes back equal.
"""

import json
from typing import Literal

from storage.errors import StorageError
from storage.records import Document, Part, Record, Scalar, Triple

_BETWEEN_PARTS = 2  # the blank line


class StoredPart(Record):
    """A row of the table `parts`."""

    document: str
    ordinal: int
    source: str
    path: str
    kind: Literal["text", "triples"]
    title: str
    hash: str
    start: int
    end: int
    own_text: str | None
    triples: str
    metadata: str
    pages: tuple[int, ...]


def to_stored(document: Document) -> list[StoredPart]:
    """One row for each part, in order."""
    rows, cursor = [], 0
    for ordinal, part in enumerate(document.parts):
        start = cursor if document.text.startswith(part.text, cursor) else document.text.find(part.text)
        end = start + len(part.text)
        if start >= 0:
            cursor = end + _BETWEEN_PARTS
        rows.append(
            StoredPart(
                document=document.id,
                ordinal=ordinal,
                source=part.source,
                path=part.path,
                kind=part.kind,
                title=part.title,
                hash=part.hash,
                start=max(start, 0),
                end=end if start >= 0 else 0,
                own_text=None if start >= 0 else part.text,
                triples=_triples_to_json(part),
                metadata=json.dumps(part.metadata, ensure_ascii=False),
                pages=part.pages,
            )
        )
    return rows


def from_stored(row: StoredPart, document_text: str) -> Part:
    """The part that `to_stored` was given, equal in every field."""
    text = document_text[row.start : row.end] if row.own_text is None else row.own_text
    return Part(
        document=row.document,
        source=row.source,
        path=row.path,
        kind=row.kind,
        title=row.title,
        text=text,
        triples=_triples_from_json(row.triples, text),
        metadata=metadata_from_json(row.metadata),
        pages=row.pages,
    )


def metadata_from_json(stored: str) -> dict[str, Scalar]:
    """What was stored with `json.dumps`."""
    found = json.loads(stored)
    if not isinstance(found, dict):
        raise StorageError("metadata", f"{stored!r} is not an object")
    return found


def _triples_to_json(part: Part) -> str:
    if part.text == "\n".join(triple.rendered() for triple in part.triples):
        return json.dumps([[len(t.s), len(t.p), len(t.o), t.weight] for t in part.triples])
    return json.dumps([[t.s, t.p, t.o, t.weight] for t in part.triples], ensure_ascii=False)


def _triples_from_json(stored: str, text: str) -> tuple[Triple, ...]:
    triples, cursor = [], 0
    for s, p, o, weight in json.loads(stored):
        if isinstance(s, str):
            triples.append(Triple(s=s, p=p, o=o, weight=weight))
            continue
        # The lengths, not the marks, tell the fields apart: a name may hold " -[" itself.
        subject = text[cursor : cursor + s]
        cursor += s + len(" -[")
        predicate = text[cursor : cursor + p]
        cursor += p + len("]-> ")
        triples.append(Triple(s=subject, p=predicate, o=text[cursor : cursor + o], weight=weight))
        cursor += o + len("\n")
    return tuple(triples)
