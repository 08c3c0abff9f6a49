"""Documents with their parts, chunks and the terms of each chunk.

A part is stored as a slice of its document's text where it is one, and triples as lengths in the
text of their part, so that no text is stored twice.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from unicodedata import normalize

from pydantic import TypeAdapter

from storage.columns import Columns
from storage.database import (
    CHUNKS_IN_ORDER,
    Row,
    Selection,
    SparseCounts,
    Store,
    field_names,
    selection,
    sparse_counts,
)
from storage.errors import UnknownDocument
from storage.records import (
    Chunk,
    Document,
    DocumentText,
    Part,
    Recognized,
    Record,
    Table,
    Triple,
    by_key,
)

_BATCH = 5_000  # documents whose parts become rows at one time
_PART = (
    "document, source, path, kind, title, start_at, end_at, own_text, triples, metadata, pages, "
    "tables"
)
_TABLES = TypeAdapter(tuple[Table, ...])


_RECOGNIZED = ("document", "part", "start_at", "end_at", "page", "box", "confidence")


def as_spelt(names: Sequence[str], known: Collection[str]) -> list[str]:
    """Return each name as the known id spells it, and an unknown name as it is.

    An id has the Unicode form of its file's name: macOS writes é as two characters, keyboards as
    one.
    """
    if all(name in known for name in names):
        return list(names)
    composed = {normalize("NFC", one): one for one in known}
    return [name if name in known else composed.get(normalize("NFC", name), name) for name in names]


def _part_rows(document: Document) -> Iterator[tuple[object, ...]]:
    """Yield the columns of `_PART`, the ordinal and the hash of each part."""
    cursor = 0
    for ordinal, part in enumerate(document.parts):
        start = document.text.find(part.text, cursor)
        cursor = start + len(part.text) if start >= 0 else cursor
        yield (
            part.document,
            part.source,
            part.path,
            part.kind,
            part.title,
            *((start, cursor, None) if start >= 0 else (0, 0, part.text)),
            _triples_to_json(part),
            json.dumps(part.metadata, ensure_ascii=False),
            part.pages,
            _TABLES.dump_json(part.tables).decode(),
            ordinal,
            part.hash,
        )


def _recognized_rows(documents: Sequence[Document]) -> Iterator[tuple[object, ...]]:
    """Yield the columns of `_RECOGNIZED`; `part` is the ordinal of the part."""
    for document in documents:
        for ordinal, part in enumerate(document.parts):
            for it in part.recognized:
                yield (part.document, ordinal, it.start, it.end, it.page, it.box, it.confidence)


def _part(row: Row, document_text: str, recognized: Sequence[Recognized] = ()) -> Part:
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
        recognized=tuple(recognized),
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
        # The lengths separate the fields, not the marks: a name may itself contain " -[".
        subject = text[cursor : cursor + s]
        cursor += s + len(" -[")
        predicate = text[cursor : cursor + p]
        cursor += p + len("]-> ")
        triples.append(Triple(s=subject, p=predicate, o=text[cursor : cursor + o], weight=weight))
        cursor += o + len("\n")
    return tuple(triples)


_FORGOTTEN_TEXTS = "forgotten_texts"  # a key of meta: JSON of text hash → document
_WITH_PLACES = (
    "mentions",
    "relation_mentions",
    "claim_mentions",
    "fact_mentions",
    "propositions",
)
_OF_A_CHUNK = (
    *_WITH_PLACES,
    "left_out_facts",
    "postings",
    "extractions",
    "proposition_inputs",
    "windows",
)


def _by_rowid(where: Selection) -> Selection:
    """Find documents by row first: DuckDB then unpacks the texts of these alone."""
    condition, parameters = where
    return f"rowid IN (SELECT rowid FROM documents WHERE {condition})", parameters


class PartSummary(Record):
    """A part without its text, as a sync compares it."""

    document: str
    source: str
    path: str
    kind: str
    hash: str


class DocumentSummary(Record):
    """A document without its text; `pages` is 0 where the format has none.

    `date` is the metadata field "date" or else "year"; None where the document has neither.
    """

    id: str
    title: str
    language: str
    characters: int
    pages: int
    date: str | None = None


class DocumentStore(Store):
    """Documents, their parts, their chunks, and the terms of these."""

    def ids(self) -> list[str]:
        return self._db.strings("SELECT id FROM documents ORDER BY id")

    def summaries(self, text: str = "") -> list[DocumentSummary]:
        """Return the documents whose id or title contains the text in any case, by id."""
        sql = """
            SELECT id, title, language, length(text)::BIGINT AS characters,
                   len(pages)::BIGINT AS pages,
                   coalesce(json_extract_string(metadata, '$.date'),
                            json_extract_string(metadata, '$.year')) AS date FROM documents
            WHERE contains(lower(id), lower(?)) OR contains(lower(title), lower(?)) ORDER BY id
        """
        return self._db.records(DocumentSummary, sql, [text, text])

    def hashes(self) -> dict[str, str]:
        """Return `Document.hash` of every document by id, without reading texts."""
        return dict(self._db.rows("SELECT id, hash FROM documents ORDER BY id"))

    def parts(self) -> list[PartSummary]:
        """Return all parts without their texts, by document and order."""
        return self._db.select(PartSummary, "parts", "document, ordinal")

    def document(self, document: str) -> Document:
        """Return one document. Raises UnknownDocument, which names the nearest ids."""
        return self.documents(self.named([document]))[0]

    def named(self, names: Sequence[str]) -> list[str]:
        """Return the ids that the names stand for; see `as_spelt`."""
        where, parameters = selection("id", names)
        found = self._db.strings(f"SELECT id FROM documents WHERE {where}", parameters)
        return as_spelt(names, found if len(found) == len({*names}) else self.ids())

    def documents(self, ids: Collection[str] | None = None) -> list[Document]:
        """Return documents by id. Raises UnknownDocument."""
        where, parameters = _by_rowid(selection("id", ids))
        columns = "id, title, text, language, metadata, pages"
        sql = f"SELECT {columns} FROM documents WHERE {where} ORDER BY id"
        rows = self._db.rows(sql, parameters)
        texts = {row[0]: row[2] for row in rows}
        self._require(ids or (), texts)
        parts = self._parts(texts)
        return [
            Document(
                id=document,
                title=title,
                text=text,
                language=language,
                parts=tuple(parts.get(document, ())),
                metadata=json.loads(metadata),
                pages=tuple(pages),
            )
            for document, title, text, language, metadata, pages in rows
        ]

    def texts(self, ids: Collection[str] | None = None) -> list[DocumentText]:
        """Return the texts of documents by id. Raises UnknownDocument."""
        where, parameters = _by_rowid(selection("id", ids))
        sql = f"SELECT id, text, pages FROM documents WHERE {where} ORDER BY id"
        rows = self._db.rows(sql, parameters)
        self._require(ids or (), [row[0] for row in rows])
        return [
            DocumentText(id=document, text=text, pages=tuple(pages))
            for document, text, pages in rows
        ]

    def _require(self, ids: Collection[str], found: Collection[str]) -> None:
        for unknown in sorted(set(ids) - set(found)):
            raise UnknownDocument(unknown, get_close_matches(unknown, self.ids(), n=3))

    def _parts(self, texts: Mapping[str, str]) -> dict[str, list[Part]]:
        where, parameters = selection("document", texts)
        sql = f"SELECT {_PART} FROM parts WHERE {where} ORDER BY document, ordinal"
        rows = self._db.rows(sql, parameters)
        read = self._recognized(texts)
        numbered = by_key((row[0], row) for row in rows)
        return {
            document: [
                _part(row, texts[document], read.get((document, ordinal), ()))
                for ordinal, row in enumerate(group)
            ]
            for document, group in numbered.items()
        }

    def _recognized(self, documents: Collection[str]) -> dict[tuple[str, int], list[Recognized]]:
        """Return what was recognised in the parts of documents, by document and ordinal."""
        if not self._db.has_table("recognized"):  # in a generation of an earlier version
            return {}
        where, parameters = selection("document", documents)
        order = "document, part, start_at, end_at"
        sql = f"SELECT {', '.join(_RECOGNIZED)} FROM recognized WHERE {where} ORDER BY {order}"
        return by_key(
            ((document, part), Recognized(start, end, page, tuple(box), confidence))
            for document, part, start, end, page, box, confidence in self._db.rows(sql, parameters)
        )

    def _delete(self, ids: Collection[str]) -> None:
        """Remove documents with their parts."""
        self._db.delete("documents", "id", ids)
        self._db.delete("parts", "document", ids)
        self._db.delete("recognized", "document", ids)

    def chunks(
        self, ids: Collection[str] | None = None, documents: Collection[str] | None = None
    ) -> list[Chunk]:
        """Return the chunks with these ids of these documents (None: any), in their order."""
        by_id, first = selection("id", ids)
        by_document, second = selection("document", documents)
        where = f"{by_id} AND {by_document}", first + second
        columns = self._db.columns(field_names(Chunk), "chunks", "document, ordinal", where)
        return list(Columns(Chunk, columns))

    def chunk_ids(self) -> set[str]:
        return set(self._db.strings("SELECT id FROM chunks"))

    def forgotten(self) -> list[str]:
        """Return the ids that are kept out until they are indexed by name again."""
        return self._db.strings("SELECT document FROM forgotten ORDER BY document")

    def forgotten_texts(self) -> dict[str, str]:
        """Return the texts that are kept out under any id: `Part.text_hash` → document."""
        values = self._db.strings("SELECT value FROM meta WHERE key = ?", [_FORGOTTEN_TEXTS])
        return dict(json.loads(values[0])) if values else {}

    def put_documents(self, documents: Sequence[Document]) -> None:
        """Store documents in place of those with the same ids, which are no longer forgotten.

        Their chunks stay until `put_chunks` replaces them.
        """
        with self._db.transaction():
            ids = [d.id for d in documents]
            self._readmit(documents)
            self._delete(ids)
            metadata = [json.dumps(d.metadata, ensure_ascii=False) for d in documents]
            fields = ("id", "title", "text", "language", "hash", "pages")
            self._db.insert_records("documents", documents, fields, {"metadata": metadata})
            columns = (*_PART.split(", "), "ordinal", "hash")
            for start in range(0, len(documents), _BATCH):
                batch = documents[start : start + _BATCH]
                rows = [row for document in batch for row in _part_rows(document)]
                self._db.insert_rows("parts", columns, rows)
            self._db.insert_rows("recognized", _RECOGNIZED, list(_recognized_rows(documents)))

    def put_chunks(self, chunks: Sequence[Chunk], documents: Collection[str] | None = None) -> None:
        """Replace all chunks of these documents and of those that the chunks belong to.

        A chunk whose id remains keeps its postings, extraction and windows. Where its start has
        changed, the places of what was extracted are shifted with it.
        """
        owners = set(documents or ()) | {c.document for c in chunks}
        starts = {c.id: c.start for c in chunks}
        where, parameters = selection("document", owners)
        sql = f"SELECT id, start_at FROM chunks WHERE {where}"
        before: dict[str, int] = dict(self._db.rows(sql, parameters))
        shifts = {
            chunk: starts[chunk] - start
            for chunk, start in before.items()
            if starts.get(chunk, start) != start
        }
        with self._db.transaction():
            self._drop_chunks([chunk for chunk in before if chunk not in starts])
            self._shift(shifts)
            self._db.delete("chunks", "document", owners)
            self._db.insert_records("chunks", chunks, field_names(Chunk))

    def remove_documents(self, ids: Collection[str]) -> None:
        with self._db.transaction():
            where, parameters = selection("document", ids)
            chunks = self._db.strings(f"SELECT id FROM chunks WHERE {where}", parameters)
            self._drop_chunks(chunks)
            self._delete(ids)

    def forget(self, document: str, texts: Collection[str] = ()) -> None:
        """Keep an id and the hashes of its texts out from now on; this removes nothing."""
        with self._db.transaction():
            known = self.forgotten_texts()
            self.unforget(document)
            self._db.insert_rows("forgotten", ("document",), [(document,)])
            self._put_forgotten_texts(known | dict.fromkeys(texts, document))

    def unforget(self, document: str) -> None:
        with self._db.transaction():
            self._db.delete("forgotten", "document", [document])
            known = self.forgotten_texts()
            if document in known.values():
                others = {text: owner for text, owner in known.items() if owner != document}
                self._put_forgotten_texts(others)

    def _readmit(self, documents: Sequence[Document]) -> None:
        forgotten = set(self.forgotten())
        if forgotten:
            texts = self.forgotten_texts()
            parts = [part for document in documents for part in document.parts]
            back = {part.document for part in parts if not part.by_line}
            back |= {texts.get(part.text_hash, "") for part in parts}
            for document in back & forgotten:
                self.unforget(document)

    def _put_forgotten_texts(self, texts: Mapping[str, str]) -> None:
        self._db.delete("meta", "key", [_FORGOTTEN_TEXTS])
        row = (_FORGOTTEN_TEXTS, json.dumps(texts, ensure_ascii=False))
        self._db.insert_rows("meta", ("key", "value"), [row])

    def _shift(self, shifts: Mapping[str, int]) -> None:
        """Shift the places of what was extracted from chunks by these numbers of characters."""
        for table in _WITH_PLACES if shifts else ():
            self._db.execute(
                f"""
                UPDATE {table} SET start_at = start_at + moved.shift, end_at = end_at + moved.shift
                FROM (SELECT unnest(?::VARCHAR[]) AS chunk, unnest(?::INTEGER[]) AS shift) AS moved
                WHERE {table}.chunk = moved.chunk
                """,
                [list(shifts), list(shifts.values())],
            )

    def _drop_chunks(self, ids: Collection[str]) -> None:
        self._db.delete("chunks", "id", ids)
        for table in _OF_A_CHUNK:
            self._db.delete(table, "chunk", ids)

    # --- terms ---

    def postings(self) -> SparseCounts:
        """Count how often each chunk (by document and ordinal) holds each term (sorted)."""
        terms = "SELECT DISTINCT term FROM postings ORDER BY term"
        pairs = "SELECT chunk, term, tf FROM postings"
        return sparse_counts(self._db, CHUNKS_IN_ORDER, terms, pairs)

    def chunks_with_postings(self) -> set[str]:
        return set(self._db.strings("SELECT DISTINCT chunk FROM postings"))

    def put_postings(self, postings: Mapping[str, Mapping[str, int]]) -> None:
        with self._db.transaction():
            self._db.delete("postings", "chunk", list(postings))
            rows = [
                (chunk, term, tf)
                for chunk, counts in postings.items()
                for term, tf in counts.items()
            ]
            self._db.insert_rows("postings", ("chunk", "term", "tf"), rows)
