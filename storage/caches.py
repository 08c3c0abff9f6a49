"""Which answers of models and embeddings need not be made again?

A hit is marked as used at most once a minute: reading stays reading. Bounds are kept within a sixteenth.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from storage.sqlite import SideDatabase, Value

Clock = Callable[[], float]
Vector = NDArray[np.float32]

_FRESH = 60.0  # seconds
_SLACK = 16
_PAGE = 500


class _Bounded:
    """Keeps a table within its bytes: a process trims after each sixteenth of the bound that it has written."""

    def __init__(
        self, database: SideDatabase, table: Literal["model_answers", "embeddings"], limit: int, clock: Clock
    ) -> None:
        self.db = database
        self.clock = clock
        self._table = table
        self._limit = limit
        self._written = 0
        self._counting = threading.Lock()

    def touch(self, rowids: Sequence[int]) -> None:
        """Marks rows as used now."""
        if rowids:
            with self.db.transaction() as connection:
                connection.executemany(
                    f"UPDATE {self._table} SET used = ? WHERE rowid = ?", [(self.clock(), r) for r in rowids]
                )

    def wrote(self, size: int) -> None:
        with self._counting:
            self._written += size
            due = self._written * _SLACK >= self._limit
            if due:
                self._written = 0
        if due:
            self._trim()

    def _trim(self) -> None:
        with self.db.transaction() as connection:
            connection.execute(
                f"""
                DELETE FROM {self._table} WHERE rowid IN (
                    SELECT rowid FROM (
                        SELECT rowid, sum(bytes) OVER (ORDER BY used DESC, rowid DESC ROWS UNBOUNDED PRECEDING) AS total
                        FROM {self._table}
                    ) WHERE total > ?)
                """,
                (self._limit,),
            )


class ModelAnswerCache:
    """Model answers (JSON text) by the key of the call, at most `limit` bytes, the longest unused going first."""

    def __init__(self, database: SideDatabase, limit: int, clock: Clock) -> None:
        self._bounded = _Bounded(database, "model_answers", limit, clock)

    def get(self, key: str) -> str | None:
        found = self._bounded.db.rows("SELECT rowid, value, used FROM model_answers WHERE key = ?", (key,))
        if not found:
            return None
        rowid, value, used = found[0]
        if self._bounded.clock() - float(str(used)) > _FRESH:
            self._bounded.touch([int(str(rowid))])
        return str(value)

    def put(self, key: str, answer: str) -> None:
        """Stores an answer; the same key replaces."""
        size = len(key.encode()) + len(answer.encode())
        with self._bounded.db.transaction() as connection:
            connection.execute(
                "INSERT INTO model_answers (key, value, bytes, used) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (key) DO UPDATE SET value = excluded.value, bytes = excluded.bytes, used = excluded.used",
                (key, answer, size, self._bounded.clock()),
            )
        self._bounded.wrote(size)

    def remove(self, key: str) -> None:
        """Removes an answer where there is one."""
        self._delete([key])

    def remove_where(self, holds: Callable[[str], bool]) -> int:
        """Removes the answers of which this is true; returns how many. It reads them all."""
        last, removed = "", 0
        while page := self._bounded.db.rows(
            "SELECT key, value FROM model_answers WHERE key > ? ORDER BY key LIMIT ?", (last, _PAGE)
        ):
            found = [str(key) for key, value in page if holds(str(value))]
            self._delete(found)
            removed += len(found)
            last = str(page[-1][0])
        return removed

    def _delete(self, keys: Sequence[str]) -> None:
        with self._bounded.db.transaction() as connection:
            connection.executemany("DELETE FROM model_answers WHERE key = ?", [(key,) for key in keys])


class EmbeddingCache:
    """Vectors by model and text hash, at most `limit` bytes, the longest unused going first."""

    def __init__(self, database: SideDatabase, limit: int, clock: Clock) -> None:
        self._bounded = _Bounded(database, "embeddings", limit, clock)

    def get_many(self, model: str, hashes: Collection[str]) -> dict[str, Vector]:
        """Those that are there; the arrays are read-only."""
        found: dict[str, Vector] = {}
        stale: list[int] = []
        wanted = list(hashes)
        for start in range(0, len(wanted), _PAGE):
            page: list[Value] = [*wanted[start : start + _PAGE]]
            marks = ", ".join("?" for _ in page)
            sql = f"SELECT rowid, text_hash, value, used FROM embeddings WHERE model = ? AND text_hash IN ({marks})"
            for rowid, text_hash, value, used in self._bounded.db.rows(sql, [model, *page]):
                if isinstance(value, bytes):
                    found[str(text_hash)] = np.frombuffer(value, dtype="<f4")
                if self._bounded.clock() - float(str(used)) > _FRESH:
                    stale.append(int(str(rowid)))
        self._bounded.touch(stale)
        return found

    def remove(self, hashes: Collection[str]) -> int:
        """Removes the vectors of these texts, of whatever model; returns how many."""
        with self._bounded.db.transaction() as connection:
            before = connection.total_changes
            connection.executemany("DELETE FROM embeddings WHERE text_hash = ?", [(one,) for one in set(hashes)])
            return connection.total_changes - before

    def put_many(self, model: str, vectors: Mapping[str, Vector]) -> None:
        """Stores vectors; the same model and hash replaces."""
        now = self._bounded.clock()
        blobs = {text_hash: np.asarray(vector, dtype="<f4").tobytes() for text_hash, vector in vectors.items()}
        with self._bounded.db.transaction() as connection:
            connection.executemany(
                "INSERT INTO embeddings (model, text_hash, value, bytes, used) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (model, text_hash) DO UPDATE "
                "SET value = excluded.value, bytes = excluded.bytes, used = excluded.used",
                [(model, text_hash, blob, len(blob), now) for text_hash, blob in blobs.items()],
            )
        self._bounded.wrote(sum(len(blob) for blob in blobs.values()))
