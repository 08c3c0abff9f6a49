"""The SQLite file of what outlives generations: memory, caches of model answers and embeddings, the history of runs."""

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from storage.memory import Memory
from storage.records import Record
from storage.sqlite import SqliteFile, Value

Clock = Callable[[], float]
Vector = NDArray[np.float32]

_FRESH = 60.0  # seconds
_SLACK = 16
_PAGE = 500


class _Bounded:
    """Keeps a table within its bytes: a process trims after each sixteenth of the bound that it has written."""

    def __init__(
        self, database: SqliteFile, table: Literal["model_answers", "embeddings"], limit: int, clock: Clock
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

    def __init__(self, database: SqliteFile, limit: int, clock: Clock) -> None:
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

    def __init__(self, database: SqliteFile, limit: int, clock: Clock) -> None:
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


class RunRow(Record):
    """A run that ended; times are UTC in ISO form, `summary` is JSON text."""

    kind: str
    started: str
    finished: str
    state: str
    summary: str = "{}"


class RunHistory:
    """The last `limit` runs."""

    def __init__(self, database: SqliteFile, limit: int) -> None:
        self._db = database
        self._limit = limit

    def append(self, run: RunRow) -> None:
        with self._db.transaction() as connection:
            connection.execute(
                "INSERT INTO runs (kind, started, finished, state, summary) VALUES (?, ?, ?, ?, ?)",
                (run.kind, run.started, run.finished, run.state, run.summary),
            )
            connection.execute("DELETE FROM runs WHERE id <= (SELECT max(id) FROM runs) - ?", (self._limit,))

    def list(self, limit: int = 50, kind: str | None = None) -> list[RunRow]:
        """The newest first, of one kind (None: of any)."""
        parameters: list[Value] = [kind, kind, limit]
        rows = self._db.rows(
            "SELECT kind, started, finished, state, summary FROM runs "
            "WHERE ? IS NULL OR kind = ? ORDER BY id DESC LIMIT ?",
            parameters,
        )
        return [RunRow.model_validate(dict(zip(RunRow.model_fields, row, strict=True))) for row in rows]


class DatabaseLimits(Record):
    """How large each part may grow; what was used longest ago goes first."""

    model_answer_bytes: int = 1 << 30
    embedding_bytes: int = 1 << 30
    runs: int = 1_000
    memory: int = 10_000


class DatabasePart(Record):
    """What one part holds; a bound that it does not have is None."""

    name: str
    rows: int
    size_bytes: int
    most_rows: int | None
    most_bytes: int | None


# Each part's table, and what its bytes are counted by.
_PARTS = (
    ("memory", "memory", "length(CAST(title AS BLOB)) + length(CAST(content AS BLOB))"),
    ("model answers", "model_answers", "bytes"),
    ("embeddings", "embeddings", "bytes"),
    ("runs", "runs", "length(CAST(summary AS BLOB))"),
)


class WorkspaceDatabase:
    """One SQLite file, opened at the first use, for many processes and threads. `clock` gives seconds since 1970.

    `reading`: who only reads goes on without it where the file cannot be written.
    """

    def __init__(
        self, path: Path, limits: DatabaseLimits | None = None, clock: Callable[[], float] = time.time,
        reading: bool = False,
    ) -> None:  # fmt: skip
        limits = limits or DatabaseLimits()
        self._db = SqliteFile(path, reading=reading)
        self._limits = limits
        self.memory = Memory(self._db, limits.memory)
        self.model_answers = ModelAnswerCache(self._db, limits.model_answer_bytes, clock)
        self.embeddings = EmbeddingCache(self._db, limits.embedding_bytes, clock)
        self.runs = RunHistory(self._db, limits.runs)

    def parts(self) -> list[DatabasePart]:
        """What each part holds, and what bounds it; nothing where there is no file yet, or it cannot be used."""
        if not self._db.is_there():
            return []
        limits = self._limits
        rows = {"memory": limits.memory, "runs": limits.runs}
        sizes = {"model answers": limits.model_answer_bytes, "embeddings": limits.embedding_bytes}
        found = []
        for name, table, counted in _PARTS:
            number, size = self._db.rows(f"SELECT count(*), coalesce(sum({counted}), 0) FROM {table}")[0]
            found.append(
                DatabasePart(
                    name=name, rows=int(str(number)), size_bytes=int(str(size)), most_rows=rows.get(name),
                    most_bytes=sizes.get(name),
                )
            )  # fmt: skip
        return found

    def holes(self) -> int:
        """Bytes of the file that hold nothing; `compact` gives them back."""
        if not self._db.is_there():
            return 0
        free, size = (int(str(self._db.rows(f"PRAGMA {name}")[0][0])) for name in ("freelist_count", "page_size"))
        return free * size

    def forget_caches(self) -> None:
        """Removes all that can be had again by asking models or the embedder again."""
        with self._db.transaction() as connection:
            for table in ("model_answers", "embeddings"):
                connection.execute(f"DELETE FROM {table}")

    def compact(self) -> None:
        """Writes the file anew: nothing of what was removed is left in it."""
        self._db.compact()

    def close(self) -> None:
        self._db.close()
