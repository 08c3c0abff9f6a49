"""Keeps the vectors of chunks in the database of a generation.

The database is the truth: every index of a vector store is built from it and can be built again.
Without an index the database compares all vectors, which is slower but exact.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.database import Column, Database, Store, field_names, selection
from storage.errors import StorageError
from storage.records import Record, Scalar

Vector = NDArray[np.float32]
ChunkScore = tuple[str, float]
Metadata = dict[str, str | int | float | bool]

_DECIMALS = 5  # beyond these, an index and the database differ
_OUR_METADATA = ("document", "chunk", "title", "heading", "path", "language", "kind")
# A document may have several parts; a window is in the one that holds the beginning of its chunk.
_ENTRIES = """
    SELECT w.id, w.chunk, w.document, w.text_hash, w.model, c.text, c.start_at, c.title, c.heading,
           c.language, c.kind, d.metadata,
           (SELECT first(p.path ORDER BY p.start_at > c.start_at, -p.start_at) FROM parts AS p
            WHERE p.document = w.document) AS path
    FROM windows AS w JOIN chunks AS c ON c.id = w.chunk JOIN documents AS d ON d.id = w.document
"""


class Window(Record):
    """A stretch of a chunk short enough for the embedding model; `text_hash` names its vector.

    The id is `CHUNK#START-END`, with the place of its characters in the chunk; that of a
    proposition, whose own text has the vector, is `CHUNK#HASH:START-END`.
    """

    id: str
    chunk: str
    document: str
    text_hash: str


class Hit(NamedTuple):
    """A window that a search found."""

    window: str
    cosine: float

    @property
    def chunk(self) -> str:
        return self.window.rpartition("#")[0]


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """What an index holds of a window."""

    id: str
    vector: Vector
    text: str
    metadata: Metadata


class StoredVectors(Store):
    """The vectors and windows of one generation in its database."""

    def __init__(self, database: Database, number: int) -> None:
        super().__init__(database)
        self.number = number

    @property
    def folder(self) -> Path:
        """The generation's folder, where an index may lie; it is removed with the generation."""
        return self._db.path.parent

    def model(self) -> str | None:
        """Return the embedding model of the windows, or None where nothing is embedded."""
        models = self._db.strings("SELECT model FROM windows LIMIT 1")
        return models[0] if models else None

    def have(self, model: str, hashes: Collection[str]) -> set[str]:
        """Return those of the text hashes that have a vector of this model."""
        where, parameters = selection("text_hash", hashes)
        sql = f"SELECT text_hash FROM vectors WHERE model = ? AND {where}"
        return set(self._db.strings(sql, [model, *parameters]))

    def get(self, model: str, hashes: Collection[str]) -> dict[str, Vector]:
        """Return the vectors of these text hashes, without those that are not stored."""
        where, parameters = selection("text_hash", hashes)
        sql = f"SELECT text_hash, vector FROM vectors WHERE model = ? AND {where}"
        found = self._db.arrays(sql, [model, *parameters]).values()
        return {str(h): np.asarray(v, dtype=np.float32) for h, v in zip(*found, strict=True)}

    def windows(self, chunks: Collection[str] | None = None) -> list[Window]:
        return self._db.select(Window, "windows", "id", selection("chunk", chunks))

    def count(self) -> int:
        return self._db.number("SELECT count(*) FROM windows")

    def size(self) -> int:
        """Return the length of a vector; 0 where there is none."""
        sql = """
            SELECT coalesce(max(len(vector)), 0)::BIGINT FROM (SELECT vector FROM vectors
                WHERE model = (SELECT model FROM windows LIMIT 1) LIMIT 1)
        """
        return self._db.number(sql)

    def entries(
        self, page: int, windows: Collection[str] | None = None
    ) -> Iterator[list[IndexEntry]]:
        """Yield pages of the entries of these windows (None: of all), by id.

        The metadata are those of the document and, over them, the place of the window.
        """
        ids = sorted(windows) if windows is not None else [window.id for window in self.windows()]
        for at in range(0, len(ids), page):
            where, parameters = selection("w.id", ids[at : at + page])
            rows = self._db.mappings(f"{_ENTRIES} WHERE {where} ORDER BY w.id", parameters)
            vectors = self.get(self.model() or "", {row["text_hash"] for row in rows})
            yield [_entry(row, vectors[row["text_hash"]]) for row in rows]

    def digests(self) -> dict[str, int]:
        """Return for each window a number that changes whenever its entry does."""
        return dict(self._db.rows(f"SELECT e.id, hash(e) FROM ({_ENTRIES}) AS e"))

    def nearest(self, vector: Vector, count: int) -> list[Hit]:
        """Return the `count` windows with the highest cosine of all; equal ones come by id."""
        return [Hit(*row) for row in self._compared("w.id", vector, count, None)]

    def nearest_chunks(
        self, vector: Vector, count: int, documents: Collection[str] | None = None
    ) -> list[ChunkScore]:
        """The same for chunks: a chunk's cosine is that of its best window."""
        return self._compared("w.chunk", vector, count, documents)

    def _compared(
        self, name: str, vector: Vector, count: int, documents: Collection[str] | None
    ) -> list[tuple[str, float]]:
        """Compare all windows: DuckDB takes 45 ms for 40,000 of 384 numbers."""
        where, parameters = selection("w.document", documents)
        of_these = (
            "true"
            if documents is None and not self._db.is_part
            else f"text_hash IN (SELECT text_hash FROM windows AS w WHERE {where})"
        )
        sql = f"""
            SELECT {name} AS name, round(max(v.cosine)::DOUBLE, {_DECIMALS}) AS best
            FROM (SELECT text_hash, list_cosine_similarity(vector, ?::FLOAT[]) AS cosine
                  FROM vectors
                  WHERE model = (SELECT model FROM windows LIMIT 1) AND {of_these}) AS v
            JOIN windows AS w ON v.text_hash = w.text_hash
            WHERE {where} GROUP BY name ORDER BY best DESC, name LIMIT ?
        """
        values = [vector.astype(float).tolist(), *parameters, *parameters, max(count, 0)]
        return [(name, cosine) for name, cosine in self._db.rows(sql, values)]

    def put(self, model: str, vectors: Mapping[str, Vector]) -> None:
        """Store vectors by text hash.

        Raises StorageError for one that is not finite, is zero or has another length.
        """
        if not vectors:
            return
        stored = self._db.rows("SELECT len(vector) FROM vectors WHERE model = ? LIMIT 1", [model])
        size = stored[0][0] if stored else len(next(iter(vectors.values())))
        for text_hash, vector in vectors.items():
            if vector.shape != (size,) or not np.isfinite(vector).all() or not vector.any():
                problem = f"the vector of {text_hash} is not {size} finite numbers, some not zero"
                raise StorageError(model, problem, "Check the embedding model.")
        columns: dict[str, Column] = {
            "model": [model] * len(vectors),
            "text_hash": list(vectors),
            "vector": [np.ascontiguousarray(v, dtype=np.float32) for v in vectors.values()],
        }
        where, parameters = selection("text_hash", vectors)
        delete = f"DELETE FROM vectors WHERE model = ? AND {where}"
        with self._db.transaction():
            self._db.execute(delete, [model, *parameters])
            self._db.insert("vectors", columns)

    def put_windows(self, model: str, windows: Sequence[Window]) -> None:
        """Store windows of stored vectors in place of those with the same ids."""
        last = {window.id: window for window in windows}
        models = [model] * len(last)
        with self._db.transaction():
            self._db.delete("windows", "id", list(last))
            self._db.insert_records(
                "windows", list(last.values()), field_names(Window), {"model": models}
            )

    def remove_windows(self) -> None:
        """Remove all windows. (Those of a removed chunk are removed with it.)"""
        self._db.delete("windows", "id", None)

    def drop_unused(self) -> None:
        used = "SELECT 1 FROM windows AS w WHERE w.model = v.model AND w.text_hash = v.text_hash"
        self._db.execute(f"DELETE FROM vectors AS v WHERE NOT EXISTS ({used})")


def _entry(row: Mapping[str, Any], vector: Vector) -> IndexEntry:
    start, end = _span(row["id"], len(row["text"]))
    own: dict[str, Scalar] = json.loads(row["metadata"])
    metadata: Metadata = {field: value for field, value in own.items() if value is not None}
    metadata |= {field: row[field] for field in _OUR_METADATA if row[field]}
    metadata |= {"start": row["start"] + start, "end": row["start"] + end}
    return IndexEntry(row["id"], vector, row["text"][start:end], metadata)


def _span(window: str, length: int) -> tuple[int, int]:
    """Return the place of a window in its chunk: all of it for the ids of earlier versions."""
    start, _, end = window.rpartition("#")[2].rpartition(":")[2].partition("-")
    return (int(start), int(end)) if start.isdecimal() and end.isdecimal() else (0, length)
