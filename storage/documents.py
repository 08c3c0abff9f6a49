"""Documents with their parts, chunks and the terms of each chunk.

A document's text holds the texts of its parts, and a part of triples holds each triple's words:
neither is stored twice. A part whose text is no slice of its document's is stored as it is.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, cast
from unicodedata import normalize

from pydantic import TypeAdapter

from storage.columns import Columns
from storage.database import (
    CHUNKS_IN_ORDER,
    Selection,
    SparseCounts,
    Store,
    names_of,
    selection,
    sparse_counts,
)
from storage.errors import UnknownDocument
from storage.records import Chunk, Document, DocumentText, Part, Record, Table, Triple, by_key

_AT_ONCE = 5_000  # documents whose rows are made at one time


def as_spelt(names: Sequence[str], known: Collection[str]) -> list[str]:
    """The known ids that these names mean; a name of which none is known stays as it is.

    An id keeps the form that its file has on the disk: macOS writes é as two signs, keyboards as
    one.
    """
    if all(name in known for name in names):
        return list(names)
    composed = {normalize("NFC", one): one for one in known}
    return [name if name in known else composed.get(normalize("NFC", name), name) for name in names]


_PART = (
    "document, source, path, kind, title, start_at, end_at, own_text, triples, metadata, pages, "
    "tables"
)
_TABLES = TypeAdapter(tuple[Table, ...])


def _part_rows(document: Document) -> Iterator[tuple[object, ...]]:
    """The rows of a document's parts: `_PART`, the place among them, and the hash."""
    cursor = 0
    for ordinal, part in enumerate(document.parts):
        start = document.text.find(part.text, cursor)
        cursor = start + len(part.text) if start >= 0 else cursor
        place = (start, cursor, None) if start >= 0 else (0, 0, part.text)
        metadata = json.dumps(part.metadata, ensure_ascii=False)
        tables = _TABLES.dump_json(part.tables).decode()
        named = (part.document, part.source, part.path, part.kind, part.title)
        yield (
            *named,
            *place,
            _triples_to_json(part),
            metadata,
            part.pages,
            tables,
            ordinal,
            part.hash,
        )


def _part(row: Sequence[Any], document_text: str) -> Part:
    """The part of a row of `_PART`."""
    document, source, path, kind, title, start, end, own_text, triples, metadata, pages, tables = (
        row
    )
    text = document_text[start:end] if own_text is None else own_text
    return Part(
        document=document,
        source=source,
        path=path,
        kind=kind,
        title=title,
        text=text,
        triples=_triples_from_json(triples, text),
        metadata=json.loads(metadata),
        pages=tuple(pages),
        tables=_TABLES.validate_json(tables),
    )


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


_FORGOTTEN_TEXTS = "forgotten_texts"  # in meta: the document of each text's hash, as JSON
_WITH_PLACES = ("mentions", "relation_mentions", "claim_mentions")
_OF_A_CHUNK = (
    "postings",
    "extractions",
    "mentions",
    "relation_mentions",
    "claim_mentions",
    "windows",
)


def _found_first(where: Selection) -> Selection:
    """The same condition on documents, so that DuckDB unpacks the texts of those alone.

    Of 100,000 documents it would unpack all: 50 ms, in place of 8.
    """
    condition, parameters = where
    return f"rowid IN (SELECT rowid FROM documents WHERE {condition})", parameters


class PartSummary(Record):
    """What a sync compares: a part without its text."""

    document: str
    source: str
    path: str
    kind: str
    hash: str


class DocumentSummary(Record):
    """A document without its text: `characters` and `pages` say how long that is (0: no pages)."""

    id: str
    title: str
    language: str
    characters: int
    pages: int


class DocumentStore(Store):
    """Documents, their parts, their chunks, and the terms of these."""

    def ids(self) -> list[str]:
        return self._db.strings("SELECT id FROM documents ORDER BY id")

    def summaries(self, text: str = "") -> list[DocumentSummary]:
        """By id, those whose id or title holds the text, in whatever case; no text is read."""
        sql = """
            SELECT id, title, language, length(text)::BIGINT AS characters,
                   len(pages)::BIGINT AS pages FROM documents
            WHERE contains(lower(id), lower(?)) OR contains(lower(title), lower(?)) ORDER BY id
        """
        return self._db.records(DocumentSummary, sql, [text, text])

    def hashes(self) -> dict[str, str]:
        """`Document.hash` of every document, without reading their texts."""
        rows = self._db.rows("SELECT id, hash FROM documents ORDER BY id")
        return {str(document): str(digest) for document, digest in rows}

    def parts(self) -> list[PartSummary]:
        """All parts without their texts, by document and order."""
        return self._db.select(PartSummary, "parts", "document, ordinal")

    def document(self, document: str) -> Document:
        """The document that the name means. Raises UnknownDocument, which names the nearest ids."""
        return self.documents(self.named([document]))[0]

    def named(self, names: Sequence[str]) -> list[str]:
        """The ids that the names mean (`as_spelt`)."""
        where, parameters = selection("id", names)
        found = self._db.strings(f"SELECT id FROM documents WHERE {where}", parameters)
        return as_spelt(names, found if len(found) == len({*names}) else self.ids())

    def documents(self, ids: Collection[str] | None = None) -> list[Document]:
        """In the order of their ids. Raises UnknownDocument for an id that is not there."""
        where, parameters = _found_first(selection("id", ids))
        columns = "id, title, text, language, metadata, pages"
        sql = f"SELECT {columns} FROM documents WHERE {where} ORDER BY id"
        stored = {str(row["id"]): row for row in self._db.mappings(sql, parameters)}
        self._require(ids or (), stored)
        parts = self._parts({name: str(row["text"]) for name, row in stored.items()})
        return [
            Document(
                id=name,
                title=str(row["title"]),
                text=str(row["text"]),
                language=str(row["language"]),
                parts=tuple(parts.get(name, ())),
                metadata=json.loads(str(row["metadata"])),
                pages=tuple(cast("list[int]", row["pages"])),
            )
            for name, row in stored.items()
        ]

    def texts(self, ids: Collection[str] | None = None) -> list[DocumentText]:
        """The texts alone, in the order of the ids. Raises UnknownDocument too."""
        where, parameters = _found_first(selection("id", ids))
        rows = self._db.rows(f"SELECT id, text, pages FROM documents WHERE {where}", parameters)
        self._require(ids or (), [str(row[0]) for row in rows])
        return [
            DocumentText(id=str(name), text=str(text), pages=tuple(cast("list[int]", pages)))
            for name, text, pages in sorted(rows)
        ]

    def _require(self, ids: Collection[str], there: Collection[str]) -> None:
        for unknown in sorted(set(ids) - set(there)):
            raise UnknownDocument(unknown, get_close_matches(unknown, self.ids(), n=3))

    def chunks(
        self, ids: Collection[str] | None = None, documents: Collection[str] | None = None
    ) -> list[Chunk]:
        """The chunks with these ids, of these documents (None: any), by document and ordinal."""
        by_id, first = selection("id", ids)
        by_document, second = selection("document", documents)
        where = f"{by_id} AND {by_document}", first + second
        columns = self._db.columns(names_of(Chunk), "chunks", "document, ordinal", where)
        return list(Columns(Chunk, columns))

    def chunk_ids(self) -> set[str]:
        """The ids of all chunks, without reading their texts."""
        return set(self._db.strings("SELECT id FROM chunks"))

    def forgotten(self) -> list[str]:
        """Ids that stay out until they are indexed by name again."""
        return self._db.strings("SELECT document FROM forgotten ORDER BY document")

    def forgotten_texts(self) -> dict[str, str]:
        """The texts that stay out under any id: `Part.text_hash` → the forgotten document."""
        values = self._db.strings("SELECT value FROM meta WHERE key = ?", [_FORGOTTEN_TEXTS])
        return dict(json.loads(values[0])) if values else {}

    def _parts(self, texts: dict[str, str]) -> dict[str, list[Part]]:
        where, parameters = selection("document", texts)
        sql = f"SELECT {_PART} FROM parts WHERE {where} ORDER BY document, ordinal"
        rows = self._db.rows(sql, parameters)
        return by_key((str(row[0]), _part(row, texts[str(row[0])])) for row in rows)

    def put_documents(self, documents: Sequence[Document]) -> None:
        """Stores documents; one with the same id is replaced, and no longer forgotten.

        Its chunks stay until `put_chunks` replaces them.
        """
        with self._db.transaction():
            ids = [d.id for d in documents]
            self._come_back(documents)
            self._db.delete("documents", "id", ids)
            self._db.delete("parts", "document", ids)
            metadata = [json.dumps(d.metadata, ensure_ascii=False) for d in documents]
            fields = ("id", "title", "text", "language", "hash", "pages")
            self._db.insert_records("documents", documents, fields, {"metadata": metadata})
            for start in range(0, len(documents), _AT_ONCE):
                some = documents[start : start + _AT_ONCE]
                rows = [row for document in some for row in _part_rows(document)]
                columns = (*_PART.split(", "), "ordinal", "hash")
                self._db.insert_rows("parts", columns, rows)

    def put_chunks(self, chunks: Sequence[Chunk], documents: Collection[str] | None = None) -> None:
        """Replaces all chunks of the named documents (default: of those that occur in `chunks`).

        A chunk whose id is there before and after keeps its postings, extraction and windows; the
        others lose theirs. Where its text stands at another place now, what was extracted from it
        moves along.
        """
        owners = set(documents or ()) | {c.document for c in chunks}
        staying = {c.id: c.start for c in chunks}
        where, parameters = selection("document", owners)
        rows = self._db.rows(f"SELECT id, start_at FROM chunks WHERE {where}", parameters)
        before = {str(c): int(str(start)) for c, start in rows}
        moved = {
            c: start - before[c] for c, start in staying.items() if before.get(c, start) != start
        }
        with self._db.transaction():
            self._drop_chunks([c for c in before if c not in staying])
            self._move(moved)
            self._db.delete("chunks", "document", owners)
            self._db.insert_records("chunks", chunks, names_of(Chunk))

    def remove_documents(self, ids: Collection[str]) -> None:
        """Removes documents, their parts and chunks, and all that came of those chunks alone."""
        with self._db.transaction():
            where, parameters = selection("document", ids)
            chunks = self._db.strings(f"SELECT id FROM chunks WHERE {where}", parameters)
            self._drop_chunks(chunks)
            self._db.delete("documents", "id", ids)
            self._db.delete("parts", "document", ids)

    def forget(self, document: str, texts: Collection[str] = ()) -> None:
        """Keeps an id and the hashes of its texts out from now on; it removes nothing."""
        with self._db.transaction():
            known = self.forgotten_texts()
            self.unforget(document)
            self._db.insert_rows("forgotten", ("document",), [(document,)])
            self._keep_texts(known | dict.fromkeys(texts, document))

    def unforget(self, document: str) -> None:
        """Lets an id and its texts in again."""
        with self._db.transaction():
            self._db.delete("forgotten", "document", [document])
            known = self.forgotten_texts()
            if document in known.values():
                others = {text: owner for text, owner in known.items() if owner != document}
                self._keep_texts(others)

    def _come_back(self, documents: Sequence[Document]) -> None:
        out = set(self.forgotten())
        if out:
            texts = self.forgotten_texts()
            parts = [part for document in documents for part in document.parts]
            back = {part.document for part in parts if not part.by_line}
            back |= {texts.get(part.text_hash, "") for part in parts}
            for document in back & out:
                self.unforget(document)

    def _keep_texts(self, texts: dict[str, str]) -> None:
        self._db.delete("meta", "key", [_FORGOTTEN_TEXTS])
        row = (_FORGOTTEN_TEXTS, json.dumps(texts, ensure_ascii=False))
        self._db.insert_rows("meta", ("key", "value"), [row])

    def _move(self, chunks: Mapping[str, int]) -> None:
        """Shifts the places of what was extracted from chunks by so many characters."""
        for table in _WITH_PLACES if chunks else ():
            self._db.execute(
                f"""
                UPDATE {table} SET start_at = start_at + moved.shift, end_at = end_at + moved.shift
                FROM (SELECT unnest(?::VARCHAR[]) AS chunk, unnest(?::INTEGER[]) AS shift) AS moved
                WHERE {table}.chunk = moved.chunk
                """,
                [list(chunks), list(chunks.values())],
            )

    def _drop_chunks(self, ids: Collection[str]) -> None:
        self._db.delete("chunks", "id", ids)
        for table in _OF_A_CHUNK:
            self._db.delete(table, "chunk", ids)

    # --- terms ---

    def postings(self) -> SparseCounts:
        """How often each chunk (by document and ordinal) holds each term (sorted)."""
        terms = "SELECT DISTINCT term FROM postings ORDER BY term"
        return sparse_counts(
            self._db, CHUNKS_IN_ORDER, terms, "SELECT chunk, term, tf FROM postings"
        )

    def chunks_with_postings(self) -> set[str]:
        return set(self._db.strings("SELECT DISTINCT chunk FROM postings"))

    def put_postings(self, postings: Mapping[str, Mapping[str, int]]) -> None:
        """Stores the term counts of each chunk, replacing what it had."""
        with self._db.transaction():
            self._db.delete("postings", "chunk", list(postings))
            rows = [
                (chunk, term, tf)
                for chunk, counts in postings.items()
                for term, tf in counts.items()
            ]
            self._db.insert_rows("postings", ("chunk", "term", "tf"), rows)
