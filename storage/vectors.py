"""Keeps the vectors of chunks in the database of a generation.

The database is the truth: the vectors by model and text hash, and the windows of each chunk. Every
index of a vector store is built from it and can be built again; without one the database compares
all vectors itself, slower but exactly.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.database import Column, Database, Store, selection
from storage.errors import StorageError
from storage.records import Record, Scalar

Vector = NDArray[np.float32]
ChunkScore = tuple[str, float]
Metadata = dict[str, str | int | float | bool]

_DECIMALS = 5  # beyond these, an index and the database differ
_OUR_METADATA = ("document", "chunk", "title", "heading", "path", "language", "kind")


class Window(Record):
    """A stretch of a chunk short enough for the embedding model; `text_hash` names its vector.

    The id is `CHUNK#START-END`, with the characters of the chunk that it holds.
    """

    id: str
    chunk: str
    document: str
    text_hash: str


class Hit(NamedTuple):
    """A window that a search found. A plain tuple: a question makes some hundreds of them."""

    window: str
    cosine: float

    @property
    def chunk(self) -> str:
        """The chunk that the window is a stretch of: its id says so."""
        return self.window.rpartition("#")[0]


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A window as an index holds it: its vector, its text, and what is known of it."""

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
        """The generation's folder; an index may lie in it, and is removed with it."""
        return self._db.path.parent

    def model(self) -> str | None:
        """The model of the windows' vectors, or None where nothing is embedded."""
        models = self._db.strings("SELECT model FROM windows LIMIT 1")
        return models[0] if models else None

    def have(self, model: str, hashes: Collection[str]) -> set[str]:
        """The text hashes among these that have a vector of this model."""
        where, parameters = selection("text_hash", hashes)
        sql = f"SELECT text_hash FROM vectors WHERE model = ? AND {where}"
        return set(self._db.strings(sql, [model, *parameters]))

    def get(self, model: str, hashes: Collection[str]) -> dict[str, Vector]:
        """The vectors of these text hashes; those without one are left out."""
        where, parameters = selection("text_hash", hashes)
        sql = f"SELECT text_hash, vector FROM vectors WHERE model = ? AND {where}"
        found = self._db.arrays(sql, [model, *parameters]).values()
        return {str(h): np.asarray(v, dtype=np.float32) for h, v in zip(*found, strict=True)}

    def windows(self, chunks: Collection[str] | None = None) -> list[Window]:
        """The windows of these chunks (None: of all), by id."""
        return self._db.select(Window, "windows", "id", selection("chunk", chunks))

    def count(self) -> int:
        """How many windows there are."""
        return self._db.number("SELECT count(*) FROM windows")

    def size(self) -> int:
        """How many numbers a vector has; 0 where there is none."""
        sql = """
            SELECT coalesce(max(len(vector)), 0)::BIGINT FROM (SELECT vector FROM vectors
                WHERE model = (SELECT model FROM windows LIMIT 1) LIMIT 1)
        """
        return self._db.number(sql)

    def entries(
        self, page: int, windows: Collection[str] | None = None
    ) -> Iterator[list[IndexEntry]]:
        """What an index holds of these windows (by id; None: of all), by id, a page at a time.

        The metadata are the document's own, and over them ours: the document, its title and path,
        and the place in it.
        """
        ids = sorted(windows) if windows is not None else [window.id for window in self.windows()]
        for at in range(0, len(ids), page):
            where, parameters = selection("w.id", ids[at : at + page])
            rows = self._db.mappings(f"{_ENTRIES} WHERE {where} ORDER BY w.id", parameters)
            vectors = self.get(self.model() or "", {str(row["text_hash"]) for row in rows})
            yield [_entry(row, vectors[str(row["text_hash"])]) for row in rows]

    def digests(self) -> dict[str, int]:
        """A number for each window that changes when anything of its entry does."""
        rows = self._db.rows(f"SELECT e.id, hash(e) FROM ({_ENTRIES}) AS e")
        return {str(window): int(str(digest)) for window, digest in rows}

    def nearest(
        self, vector: Vector, count: int, documents: Collection[str] | None = None
    ) -> list[Hit]:
        """The `count` windows of the greatest cosine, by comparing all; equal ones by id."""
        return [Hit(*row) for row in self._compared("w.id", vector, count, documents)]

    def nearest_chunks(
        self, vector: Vector, count: int, documents: Collection[str] | None = None
    ) -> list[ChunkScore]:
        """The same of chunks: a chunk's cosine is that of its best window."""
        return self._compared("w.chunk", vector, count, documents)

    def _compared(
        self, name: str, vector: Vector, count: int, documents: Collection[str] | None
    ) -> list[tuple[str, float]]:
        """Compares all windows: DuckDB takes 45 ms for 40,000 of 384 numbers."""
        where, parameters = selection("w.document", documents)
        of_these = (
            "true"
            if documents is None
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
        rows = self._db.rows(sql, values)
        return [(str(name), float(str(best))) for name, best in rows]

    def put(self, model: str, vectors: Mapping[str, Vector]) -> None:
        """Stores vectors by text hash.

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
        rows = np.empty(len(vectors), dtype=object)
        for place, vector in enumerate(vectors.values()):
            rows[place] = np.ascontiguousarray(vector, dtype=np.float32)
        columns: dict[str, Column] = {
            "model": [model] * len(vectors),
            "text_hash": list(vectors),
            "vector": rows,
        }
        with self._db.transaction():
            where, parameters = selection("text_hash", vectors)
            self._db.execute(
                f"DELETE FROM vectors WHERE model = ? AND {where}", [model, *parameters]
            )
            self._db.insert("vectors", columns)

    def put_windows(self, model: str, windows: Sequence[Window]) -> None:
        """Stores windows whose vectors are stored; one with the same id is replaced."""
        last = {window.id: window for window in windows}
        with self._db.transaction():
            self._db.delete("windows", "id", list(last))
            more: dict[str, Column] = {"model": [model] * len(last)}
            self._db.insert_records(
                "windows", list(last.values()), tuple(Window.model_fields), more
            )

    def remove_windows(self) -> None:
        """Removes all windows; a removed chunk's windows go by themselves."""
        self._db.delete("windows", "id", None)

    def drop_unused(self) -> None:
        """Removes the vectors that no window uses."""
        used = "SELECT 1 FROM windows AS w WHERE w.model = v.model AND w.text_hash = v.text_hash"
        self._db.execute(f"DELETE FROM vectors AS v WHERE NOT EXISTS ({used})")


# A document may have several parts; a window stands in the one that holds its chunk's beginning.
_ENTRIES = """
    SELECT w.id, w.chunk, w.document, w.text_hash, w.model, c.text, c.start_at, c.title, c.heading,
           c.language, c.kind, d.metadata,
           (SELECT first(p.path ORDER BY p.start_at > c.start_at, -p.start_at) FROM parts AS p
            WHERE p.document = w.document) AS path
    FROM windows AS w JOIN chunks AS c ON c.id = w.chunk JOIN documents AS d ON d.id = w.document
"""


def _entry(row: Mapping[str, object], vector: Vector) -> IndexEntry:
    name, text, begins = str(row["id"]), str(row["text"]), int(str(row["start"]))
    start, end = _span(name, len(text))
    own: dict[str, Scalar] = json.loads(str(row["metadata"]))
    metadata: Metadata = {field: value for field, value in own.items() if value is not None}
    metadata |= {field: str(row[field]) for field in _OUR_METADATA if row[field]}
    metadata |= {"start": begins + start, "end": begins + end}
    return IndexEntry(name, vector, text[start:end], metadata)


def _span(window: str, length: int) -> tuple[int, int]:
    """The characters of its chunk that a window holds; all, where its id does not say."""
    start, _, end = window.rpartition("#")[2].partition("-")
    return (int(start), int(end)) if start.isdecimal() and end.isdecimal() else (0, length)
