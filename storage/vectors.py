"""Which chunks lie nearest to a vector?

The database is the truth: vectors by model and text hash, and the windows of each chunk. Chroma serves searches from a
copy of it; where that copy is missing or damaged, the database answers, slower but exactly.
"""

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from storage.chroma import REBUILD, Hit, Vector, VectorIndex, Window
from storage.database import Column, Database, selection
from storage.errors import NotPermitted, StorageError

ChunkScore = tuple[str, float]

_DECIMALS = 5  # beyond these, Chroma and the database differ
_LONGEST_FILTER = 1_000  # documents; Chroma's own database refuses some tens of thousands
_WIDENING = 4

logger = logging.getLogger(__name__)


class VectorReader:
    """Vectors, windows and search. `open_index` opens what serves the windows, if there is anything."""

    def __init__(self, database: Database, open_index: Callable[[], VectorIndex] | None = None) -> None:
        self._db = database
        self._open_index = open_index
        self._index: VectorIndex | None = None
        self._opening = threading.Lock()

    def model(self) -> str | None:
        """The model of the windows' vectors, or None where nothing is embedded."""
        found = self._db.strings("SELECT DISTINCT model FROM windows ORDER BY model LIMIT 1")
        return found[0] if found else None

    def have(self, model: str, hashes: Collection[str]) -> set[str]:
        """Those of the text hashes that have a vector of this model."""
        where, parameters = selection("text_hash", hashes)
        sql = f"SELECT text_hash FROM vectors WHERE model = ? AND {where}"
        return set(self._db.strings(sql, [model, *parameters]))

    def get(self, model: str, hashes: Collection[str]) -> dict[str, Vector]:
        """The vectors of these text hashes; those without one are left out."""
        where, parameters = selection("text_hash", hashes)
        found = self._db.arrays(
            f"SELECT text_hash, vector FROM vectors WHERE model = ? AND {where}", [model, *parameters]
        )
        return {str(h): np.asarray(v, dtype=np.float32) for h, v in zip(*found.values(), strict=True)}

    def windows(self, chunks: Collection[str] | None = None) -> list[Window]:
        """By id."""
        where, parameters = selection("chunk", chunks)
        sql = f"SELECT id, chunk, document, text_hash FROM windows WHERE {where} ORDER BY id"
        return self._db.records(Window, sql, parameters)

    def search(self, vector: Vector, k: int, documents: Collection[str] | None = None) -> list[ChunkScore]:
        """The k chunks (of these documents; None: of all) with the greatest cosine, that of their best window.

        Highest first, equal ones by id; fewer than k where there are fewer. Approximate, as HNSW is.
        """
        total = self._reachable(vector, k, documents)
        if total == 0:
            return []
        if documents is None or len(documents) <= _LONGEST_FILTER:
            index = self._served()
            if index is not None:
                try:
                    return self._search_index(index, vector, k, documents, total)
                except StorageError as error:
                    self._set_aside(error)
        return self.exact_search(vector, k, documents)

    def exact_search(self, vector: Vector, k: int, documents: Collection[str] | None = None) -> list[ChunkScore]:
        """The same as `search`, exactly, from the database alone."""
        if self._reachable(vector, k, documents) == 0:
            return []
        where, parameters = selection("w.document", documents)
        rows = self._db.rows(
            f"""
            SELECT w.chunk, round(max(list_cosine_similarity(v.vector, ?::FLOAT[])), {_DECIMALS}) AS cosine
            FROM windows AS w JOIN vectors AS v ON v.model = w.model AND v.text_hash = w.text_hash
            WHERE {where} GROUP BY w.chunk ORDER BY cosine DESC, w.chunk LIMIT {int(k)}
            """,
            [vector.astype(float).tolist(), *parameters],
        )
        return [(str(chunk), round(float(str(cosine)), _DECIMALS)) for chunk, cosine in rows]

    def close(self) -> None:
        with self._opening:
            if self._index is not None:
                self._index.close()
                self._index = None

    def _reachable(self, vector: Vector, k: int, documents: Collection[str] | None) -> int:
        where, parameters = selection("document", documents)
        total = self._db.number(f"SELECT count(*) FROM windows WHERE {where}", parameters)
        if total == 0 or k <= 0:
            return 0
        size = self._db.number(
            "SELECT len(vector) FROM vectors WHERE model = (SELECT model FROM windows LIMIT 1) LIMIT 1"
        )
        if vector.shape != (size,):
            remedy = f"Embed the question with {self.model()}, or index again with your model."
            raise StorageError(
                self._db.path, f"a vector of shape {vector.shape} meets vectors of {size} numbers", remedy
            )
        return total

    def _search_index(
        self, index: VectorIndex, vector: Vector, k: int, documents: Collection[str] | None, total: int
    ) -> list[ChunkScore]:
        count = min(2 * k, total)
        while True:
            hits = index.query(vector, count, documents)
            if len(hits) < count:
                problem = f"the vector index found {len(hits)} of {count} windows"
                raise StorageError(index.place, problem, REBUILD)
            best = _best_by_chunk(hits)
            # Equals of the last one may lie beyond what was asked for: the order among equals is by id.
            complete = len(best) >= k and best[k - 1][1] > round(hits[-1].cosine, _DECIMALS)
            if complete or count == total:
                return best[:k]
            count = min(count * _WIDENING, total)

    def _served(self) -> VectorIndex | None:
        with self._opening:
            if self._index is None and self._open_index is not None:
                try:
                    self._index = self._open_index()
                except NotPermitted as error:
                    # On a disk that is meant to be read-only this is no fault.
                    self._open_index = None
                    logger.info("Vectors are searched in the database: %s", error.message)
                except StorageError as error:
                    self._open_index = None
                    logger.warning("Vectors are searched in the database instead, slower: %s", error)
            return self._index

    def _set_aside(self, error: StorageError) -> None:
        logger.warning("Vectors are searched in the database instead, slower: %s", error)
        self.close()
        self._open_index = None


class VectorWriter(VectorReader):
    """Adds writing. Every call is one transaction, or part of the one that is open. Searches are exact."""

    def put(self, model: str, vectors: Mapping[str, Vector]) -> None:
        """Stores vectors by text hash; StorageError for one that is not finite, is zero or has another length."""
        if not vectors:
            return
        sizes = [
            int(str(r[0])) for r in self._db.rows("SELECT len(vector) FROM vectors WHERE model = ? LIMIT 1", [model])
        ]
        size = sizes[0] if sizes else len(next(iter(vectors.values())))
        for text_hash, vector in vectors.items():
            if vector.shape != (size,) or not np.isfinite(vector).all() or not vector.any():
                problem = f"the vector of {text_hash} is not {size} finite numbers, some of them not zero"
                raise StorageError(model, problem, "Check the embedding model.")
        rows = np.empty(len(vectors), dtype=object)
        for place, vector in enumerate(vectors.values()):
            rows[place] = np.ascontiguousarray(vector, dtype=np.float32)
        with self._db.transaction():
            self._delete(model, vectors)
            columns: dict[str, Column] = {"model": [model] * len(vectors), "text_hash": list(vectors), "vector": rows}
            self._db.insert("vectors", columns)

    def put_windows(self, model: str, windows: Sequence[Window]) -> None:
        """Stores windows; one with the same id is replaced. A generation is served by one model: raises StorageError
        where windows of another are stored, or where a window's vector is missing."""
        stored = self.model()
        if stored not in (None, model):
            raise StorageError(
                self._db.path, f"its windows are embedded by {stored}, not {model}", "Remove those windows first."
            )
        hashes = {w.text_hash for w in windows}
        missing = hashes - self.have(model, hashes)
        if missing:
            raise StorageError(
                self._db.path, f"no vector of {model} for text {min(missing)}", "Store the vectors first."
            )
        last = {w.id: w for w in windows}
        with self._db.transaction():
            self._db.delete("windows", "id", list(last))
            fields = tuple(Window.model_fields)
            self._db.insert_records("windows", list(last.values()), fields, {"model": [model] * len(last)})

    def remove_windows(self, chunks: Collection[str] | None = None) -> None:
        """Removes the windows of these chunks (None: all); a removed chunk's windows go by themselves."""
        self._db.delete("windows", "chunk", chunks)

    def drop_unused(self, keep: Collection[str] = ()) -> None:
        """Removes the vectors that no window uses and whose text hash is not among `keep`."""
        used = "EXISTS (SELECT 1 FROM windows AS w WHERE w.model = v.model AND w.text_hash = v.text_hash)"
        kept, parameters = selection("text_hash", keep)
        self._db.execute(f"DELETE FROM vectors AS v WHERE NOT {used} AND NOT ({kept})", parameters)

    def _delete(self, model: str, hashes: Collection[str]) -> None:
        where, parameters = selection("text_hash", hashes)
        self._db.execute(f"DELETE FROM vectors WHERE model = ? AND {where}", [model, *parameters])


def _best_by_chunk(hits: Sequence[Hit]) -> list[ChunkScore]:
    best: dict[str, float] = {}
    for hit in hits:
        best[hit.chunk] = max(best.get(hit.chunk, -1.0), round(hit.cosine, _DECIMALS))
    return sorted(best.items(), key=lambda item: (-item[1], item[0]))
