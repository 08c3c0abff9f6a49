"""Stores the vectors of chunks in the database, and finds the chunks nearest to a vector through a vector store.

The database is the truth: vectors by model and text hash, and the windows of each chunk. A `VectorStore` serves
searches from an index of them; where its index is missing or damaged, the database answers, slower but exactly. Which
store that is: `storage/vector_stores.py`.
"""

import json
import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from storage.database import Column, Database, Store, selection
from storage.errors import NotPermitted, StorageError
from storage.exact_store import ExactIndex
from storage.records import Record, Scalar

if TYPE_CHECKING:
    import httpx

Vector = NDArray[np.float32]
ChunkScore = tuple[str, float]

REBUILD = "`trellis clean --vectors` builds it anew from the database; nothing else is lost."
# Of some documents: the database compares as many windows in 10 ms, of 384 numbers each. More go through the index.
FEW = 5_000

_DECIMALS = 5  # beyond these, an index and the database differ
_LONGEST_FILTER = 1_000  # documents; Chroma's own database refuses some tens of thousands
_WIDENING = 4
_LEAST_RECALL = 0.9
_PROBES = 10
_NEIGHBOURS = 10

logger = logging.getLogger(__name__)


class Window(Record):
    """A stretch of a chunk short enough for the embedding model; `text_hash` names its vector.

    The id is `CHUNK#START-END`, with the characters of the chunk that it holds; in older generations `CHUNK#NUMBER`.
    """

    id: str
    chunk: str
    document: str
    text_hash: str

    def span(self, length: int) -> tuple[int, int]:
        """The characters of a chunk of this length that it holds; all where the id does not say."""
        start, _, end = self.id.rpartition("#")[2].partition("-")
        return (int(start), int(end)) if start.isdecimal() and end.isdecimal() else (0, length)


class IndexEntry(Record):
    """A window as an index may hold it for people who look into it: its text, and what is known of it."""

    window: Window
    text: str
    metadata: dict[str, str | int | float | bool]


def chunk_of(window: str) -> str:
    """The chunk that a window is a stretch of, by its id."""
    return window.rpartition("#")[0]


class Hit(NamedTuple):
    """A window that a search found. Plain: a question makes some hundreds of them."""

    window: str
    chunk: str
    cosine: float


@dataclass(frozen=True, slots=True)
class WindowMatrix:
    """Windows by id, their chunks and documents, and their vectors as rows of length 1."""

    windows: Sequence[str]
    chunks: Sequence[str]
    documents: Sequence[str]
    rows: NDArray[np.float32]

    def nearest(self, vector: Vector, count: int, documents: Collection[str] | None) -> list[Hit]:
        """The `count` windows (of these documents; None: of all) of the greatest cosine, highest first, equal ones by
        id."""
        cosines = np.round(np.vecdot(self.rows, vector / np.linalg.norm(vector)).astype(float), _DECIMALS)
        if documents is not None:
            allowed = frozenset(documents)
            cosines[[document not in allowed for document in self.documents]] = -np.inf
        least = np.partition(cosines, -count)[-count] if 0 < count < len(cosines) else -np.inf
        near = np.flatnonzero((cosines >= least) & (cosines > -np.inf))
        order = near[np.argsort(-cosines[near], kind="stable")][:count]
        chosen = zip(order.tolist(), cosines[order].tolist(), strict=True)
        return [Hit(self.windows[place], self.chunks[place], cosine) for place, cosine in chosen]


class VectorIndex(Protocol):
    """The open index of one generation; it is used by many threads at once."""

    def search(self, vector: Vector, count: int, documents: Collection[str] | None) -> list[Hit]:
        """The `count` windows (of these documents; None: of all) of the greatest cosine, highest first.

        It may be approximate. Raises StorageError where the index cannot be used.
        """
        ...

    def close(self) -> None: ...


class VectorStore(Protocol):
    """Serves the vectors of a workspace's generations; nothing happens before it is used."""

    def prepare(self) -> None:
        """Before a run begins: StorageError where an index could not be built, so that no work is lost."""
        ...

    def build(self, stored: "StoredVectors", base: "StoredVectors | None") -> None:
        """Makes the index of a generation hold exactly its windows (at least one), wholly or not at all.

        `base` is an earlier generation, whose index may be copied and changed. An index that was there is replaced;
        readers that have it open go on with it. StorageError where that fails.
        """
        ...

    def open(self, stored: "StoredVectors") -> VectorIndex:
        """The index of a generation; StorageError with a remedy where it is missing or damaged."""
        ...

    def keep_only(self, numbers: Collection[int]) -> None:
        """Removes the indexes of all other generations that lie outside their folders."""
        ...


@dataclass(frozen=True)
class ServerAddress:
    """Where a store's server is, the tenant and database on it, and the token that it asks for.

    `bound` holds a client's replies to so many seconds, each as a whole; without it a byte in time is enough.
    """

    url: str
    tenant: str = "default_tenant"
    database: str = "default_database"
    token: str | None = field(default=None, repr=False)
    bound: "Callable[[httpx.Client, float], None]" = field(default=lambda client, seconds: None, repr=False)


# Makes a store of the workspace's folder and of the server in the settings (None: none is set).
StoreMaker = Callable[[Path, ServerAddress | None], VectorStore]


class StoredVectors(Store):
    """The vectors and windows of one generation in its database, which every index is built from."""

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
        """Those of the text hashes that have a vector of this model."""
        where, parameters = selection("text_hash", hashes)
        sql = f"SELECT text_hash FROM vectors WHERE model = ? AND {where}"
        return set(self._db.strings(sql, [model, *parameters]))

    def get(self, model: str, hashes: Collection[str]) -> dict[str, Vector]:
        """The vectors of these text hashes; those without one are left out."""
        where, parameters = selection("text_hash", hashes)
        arrays = self._db.arrays(
            f"SELECT text_hash, vector FROM vectors WHERE model = ? AND {where}", [model, *parameters]
        )
        return {str(h): np.asarray(v, dtype=np.float32) for h, v in zip(*arrays.values(), strict=True)}

    def windows(self, chunks: Collection[str] | None = None) -> list[Window]:
        """By id."""
        return self._db.select(Window, "windows", "id", selection("chunk", chunks))

    def count(self, documents: Collection[str] | None = None) -> int:
        """How many windows there are (of these documents; None: of all)."""
        where, parameters = selection("document", documents)
        return self._db.number(f"SELECT count(*) FROM windows WHERE {where}", parameters)

    def size(self) -> int:
        """Of how many numbers a vector is; 0 where there is none."""
        sql = "SELECT len(vector) FROM vectors WHERE model = (SELECT model FROM windows LIMIT 1) LIMIT 1"
        return self._db.number(sql) if self.count() else 0

    def numbers(self) -> int:
        """In the vectors of all windows together."""
        return self.count() * self.size()

    def sample(self, count: int) -> list[Window]:
        """Some windows, always the same: hashes have no order of their own."""
        return self._db.select(Window, "windows", f"text_hash, id LIMIT {int(count)}")

    def vectors_of(self, windows: Sequence[Window]) -> NDArray[np.float32]:
        """The vectors of these windows, one row for each; their lengths are as the embedding model gave them."""
        vectors = self.get(self.model() or "", {w.text_hash for w in windows})
        return np.stack([vectors[w.text_hash] for w in windows])

    def entries(self, page: int, windows: Collection[str] | None = None) -> Iterator[list[IndexEntry]]:
        """These windows (by id; None: all) with what they hold, so many at a time, by id.

        The metadata are the document's own, and ours over them: the document, its title and path, and the place in it.
        """
        ids = sorted(windows) if windows is not None else [window.id for window in self.windows()]
        for at in range(0, len(ids), page):
            where, parameters = selection("w.id", ids[at : at + page])
            rows = self._db.mappings(f"{_ENTRIES} WHERE {where} ORDER BY w.id", parameters)
            yield [_entry(row) for row in rows]

    def digests(self) -> dict[str, int]:
        """A number for each window that changes when anything of its entry does."""
        return {str(row[0]): int(str(row[1])) for row in self._db.rows(f"SELECT e.id, hash(e) FROM ({_ENTRIES}) AS e")}

    def nearest(self, vector: Vector, count: int, documents: Collection[str] | None = None) -> list[Hit]:
        """The `count` windows of the greatest cosine, by comparing all; highest first, equal ones by id."""
        where, parameters = selection("w.document", documents)
        sql = f"""
            SELECT w.id AS "window", w.chunk AS chunk, round(v.cosine::DOUBLE, {_DECIMALS}) AS cosine
            FROM (SELECT model, text_hash, list_cosine_similarity(vector, ?::FLOAT[]) AS cosine FROM vectors
                  WHERE model = (SELECT model FROM windows LIMIT 1)) AS v
            JOIN windows AS w ON v.model = w.model AND v.text_hash = w.text_hash
            WHERE {where} ORDER BY cosine DESC, w.id LIMIT {int(count)}
        """
        return list(map(Hit._make, self._db.rows(sql, [vector.astype(float).tolist(), *parameters])))

    def matrix(self) -> WindowMatrix:
        """All windows with their vectors."""
        ordered = "windows AS w JOIN vectors AS v ON v.model = w.model AND v.text_hash = w.text_hash ORDER BY w.id"
        named = self._db.arrays(f"SELECT w.id, w.chunk, w.document FROM {ordered}").values()
        windows, chunks, documents = (column.tolist() for column in named)
        numbers = self._db.arrays(f"SELECT unnest(vector) AS number FROM (SELECT vector FROM {ordered})")["number"]
        rows = np.asarray(numbers, dtype=np.float32).reshape(len(windows), -1)
        return WindowMatrix(windows, chunks, documents, rows / np.linalg.norm(rows, axis=1, keepdims=True))

    def put(self, model: str, vectors: Mapping[str, Vector]) -> None:
        """Stores vectors by text hash; StorageError for one that is not finite, is zero or has another length."""
        if not vectors:
            return
        stored = self._db.rows("SELECT len(vector) FROM vectors WHERE model = ? LIMIT 1", [model])
        size = stored[0][0] if stored else len(next(iter(vectors.values())))
        for text_hash, vector in vectors.items():
            if vector.shape != (size,) or not np.isfinite(vector).all() or not vector.any():
                problem = f"the vector of {text_hash} is not {size} finite numbers, some of them not zero"
                raise StorageError(model, problem, "Check the embedding model.")
        rows = np.empty(len(vectors), dtype=object)
        for place, vector in enumerate(vectors.values()):
            rows[place] = np.ascontiguousarray(vector, dtype=np.float32)
        with self._db.transaction():
            where, parameters = selection("text_hash", vectors)
            self._db.execute(f"DELETE FROM vectors WHERE model = ? AND {where}", [model, *parameters])
            columns: dict[str, Column] = {"model": [model] * len(vectors), "text_hash": list(vectors), "vector": rows}
            self._db.insert("vectors", columns)

    def put_windows(self, model: str, windows: Sequence[Window]) -> None:
        """Stores windows, whose vectors of this model are stored; one with the same id is replaced."""
        last = {w.id: w for w in windows}
        with self._db.transaction():
            self._db.delete("windows", "id", list(last))
            fields = tuple(Window.model_fields)
            self._db.insert_records("windows", list(last.values()), fields, {"model": [model] * len(last)})

    def remove_windows(self) -> None:
        """Removes all windows; a removed chunk's windows go by themselves."""
        self._db.delete("windows", "id", None)

    def drop_unused(self) -> None:
        """Removes the vectors that no window uses."""
        used = "EXISTS (SELECT 1 FROM windows AS w WHERE w.model = v.model AND w.text_hash = v.text_hash)"
        self._db.execute(f"DELETE FROM vectors AS v WHERE NOT {used}")


class VectorReader(StoredVectors):
    """Adds search through the vector store."""

    def __init__(self, database: Database, number: int, store: VectorStore) -> None:
        super().__init__(database, number)
        self._store: VectorStore | None = store
        self._index: VectorIndex | None = None
        self._exact: ExactIndex | None = None
        self._opening = threading.Lock()

    def search(self, vector: Vector, k: int, documents: Collection[str] | None = None) -> list[ChunkScore]:
        """The k chunks (of these documents; None: of all) with the greatest cosine, that of their best window.

        Highest first, equal ones by id; fewer than k where there are fewer. Through the vector store's index, which may
        be approximate; few windows, and those of few documents, are all compared.
        """
        total = self._reachable(vector, k, documents)
        few = documents is not None and (total <= FEW or len(documents) > _LONGEST_FILTER)
        if total == 0:
            return []
        try:
            index = None if few else self._opened()
            scores = _best_chunks(index, vector, k, documents, total) if index is not None else None
        except StorageError as error:
            # On a disk that is meant to be read-only it is no fault that Chroma cannot write.
            level = logging.INFO if isinstance(error, NotPermitted) else logging.WARNING
            logger.log(level, "Vectors are searched in the database instead, slower: %s", error)
            self.close()
            self._store = scores = None
        return self.exact_search(vector, k, documents) if scores is None else scores

    def exact_search(self, vector: Vector, k: int, documents: Collection[str] | None = None) -> list[ChunkScore]:
        """The same as `search`, exactly, from the database alone."""
        total = self._reachable(vector, k, documents)
        with self._opening:
            index = self._exact = self._exact or ExactIndex(self)
        return (_best_chunks(index, vector, k, documents, total) if total else None) or []

    def check(self) -> None:
        """StorageError where the store's index cannot be opened, or does not find what the database holds."""
        if self.count() and (index := self._opened()) and not finds_enough(index, self):
            raise StorageError(self.folder, "the vector index finds too few of the nearest windows", REBUILD)

    def close(self) -> None:
        with self._opening:
            if self._index is not None:
                self._index.close()
            self._index = self._exact = None  # each knows this reader, which would else go with the garbage collector

    def _reachable(self, vector: Vector, k: int, documents: Collection[str] | None) -> int:
        whole, size = self._whole
        total = 0 if k <= 0 else whole if documents is None else self.count(documents)
        if total and vector.shape != (size,):
            remedy = f"Embed the question with {self.model()}, or index again with your model."
            raise StorageError(
                self._db.path, f"a vector of shape {vector.shape} meets vectors of {size} numbers", remedy
            )
        return total

    @cached_property
    def _whole(self) -> tuple[int, int]:
        """How many windows there are, and of how many numbers a vector: what is published does not change."""
        return self.count(), self.size()

    def _opened(self) -> VectorIndex | None:
        with self._opening:
            if self._index is None and self._store is not None:
                self._index = self._store.open(self)
            return self._index


# A document may have several parts; a window stands in the one that holds its chunk's first character.
_ENTRIES = """
    SELECT w.id, w.chunk, w.document, w.text_hash, w.model, c.text, c.start_at, c.title, c.heading, c.language, c.kind,
           d.metadata,
           (SELECT first(p.path ORDER BY p.start_at > c.start_at, -p.start_at) FROM parts AS p
            WHERE p.document = w.document) AS path
    FROM windows AS w JOIN chunks AS c ON c.id = w.chunk JOIN documents AS d ON d.id = w.document
"""


_METADATA = ("document", "chunk", "title", "heading", "path", "language", "kind")


def _entry(row: Mapping[str, object]) -> IndexEntry:
    window = Window.model_validate({name: row[name] for name in Window.model_fields})
    text, begins = str(row["text"]), int(str(row["start"]))
    start, end = window.span(len(text))
    own: dict[str, Scalar] = json.loads(str(row["metadata"]))
    ours = {name: str(row[name]) for name in _METADATA if row[name]}
    metadata = {name: value for name, value in own.items() if value is not None} | ours
    return IndexEntry(
        window=window, text=text[start:end], metadata=metadata | {"start": begins + start, "end": begins + end}
    )


def finds_enough(index: VectorIndex, stored: StoredVectors) -> bool:
    """Whether an index finds at least nine in ten of the ten nearest windows of ten stored vectors.

    Whatever is as near as the tenth counts, for the order of equals is free.
    """
    matches = wanted = 0
    for vector in stored.vectors_of(stored.sample(_PROBES)):
        exact = stored.nearest(vector, _NEIGHBOURS)
        least = exact[-1].cosine - 10**-_DECIMALS
        hits = index.search(vector, len(exact), None)
        matches += len({hit.window for hit in hits if round(hit.cosine, _DECIMALS) >= least})
        wanted += len(exact)
    return matches >= _LEAST_RECALL * wanted


def _best_chunks(
    index: VectorIndex, vector: Vector, k: int, documents: Collection[str] | None, total: int
) -> list[ChunkScore] | None:
    """The k chunks of the best windows; None where the index finds fewer windows than there are."""
    count = min(2 * k, total)
    while True:
        hits = index.search(vector, count, documents)
        if len(hits) < count:
            return None
        best: dict[str, float] = {}
        for hit in hits:
            best.setdefault(hit.chunk, round(hit.cosine, _DECIMALS))  # the highest come first
        ranked = sorted(best.items(), key=lambda item: (-item[1], item[0]))
        # Equals of the last one may lie beyond what was asked for: the order among equals is by id.
        complete = len(ranked) >= k and ranked[k - 1][1] > round(hits[-1].cosine, _DECIMALS)
        if complete or count == total:
            return ranked[:k]
        count = min(count * _WIDENING, total)
