"""The workspace's own SQLite database, which outlives generations.

It holds memory, cached results of models and embedders, the history of runs, evaluations, watched
questions, and feedback.
"""

import json
import threading
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from storage.errors import StorageError
from storage.evaluations import EvaluationStore, FeedbackRows, RunningAnswers, WatchedQuestions
from storage.memory import Memory
from storage.records import Record
from storage.sqlite import Schema, SqliteFile

Clock = Callable[[], float]
Vector = NDArray[np.float32]

SCHEMA = Schema(
    "workspace_db",
    5,
    since=4,
    remedy=(
        "Put back a copy of it (an archive holds one), or move the file away: a new one is made. "
        "With it go memory, kept answers and vectors (models are paid again), evaluations, watched "
        "questions, feedback and the history of runs; the index stays."
    ),
    without="Nothing is remembered, and no kept answer or vector is used.",
)

_FRESH = 60.0  # seconds in which a second use is not noted
_SLACK = 16
_ANSWERS, _EMBEDDINGS = "answers", "embeddings "
_NAMED = "namespace = ? AND key IN (SELECT value FROM json_each(?))"


class Cache:
    """Values by namespace and key, at most about `limit` bytes together.

    What was used longest ago goes first; a process trims after each sixteenth that it wrote.
    """

    def __init__(self, file: SqliteFile, limit: int, clock: Clock) -> None:
        self._file = file
        self._limit = limit
        self._clock = clock
        self._written = 0
        self._counting = threading.Lock()

    def get(self, namespace: str, keys: Collection[str]) -> dict[str, bytes]:
        """Those that are there."""
        now, named = self._clock(), (namespace, json.dumps(list(keys)))
        sql = f"SELECT key, value, used FROM cache WHERE {_NAMED}"
        found = self._file.read(sql, _cached, named)
        if any(now - used > _FRESH for _, _, used in found):
            with self._file.transaction() as connection:
                connection.execute(f"UPDATE cache SET used = ? WHERE {_NAMED}", (now, *named))
        return {key: value for key, value, _ in found}

    def put(self, namespace: str, values: Mapping[str, bytes]) -> None:
        """Stores values; the same key replaces."""
        rows = [
            (key, namespace, value, len(value) + len(key.encode()), self._clock())
            for key, value in values.items()
        ]
        columns = "(key, namespace, value, bytes, used)"
        with self._file.transaction() as connection:
            sql = f"INSERT OR REPLACE INTO cache {columns} VALUES (?, ?, ?, ?, ?)"
            connection.executemany(sql, rows)
        with self._counting:
            self._written += sum(row[3] for row in rows)
            due = self._written * _SLACK >= self._limit
            self._written = 0 if due else self._written
        if due:
            with self._file.transaction() as connection:
                connection.execute(_TRIM, (self._limit,))

    def remove(self, namespace: str, keys: Collection[str]) -> int:
        """Removes these keys from all namespaces that begin so; returns how many there were."""
        with self._file.transaction() as connection:
            sql = (
                "DELETE FROM cache WHERE substr(namespace, 1, ?) = ? AND key IN (SELECT value FROM "
                "json_each(?))"
            )
            named = (len(namespace), namespace, json.dumps(list(keys)))
            return connection.execute(sql, named).rowcount

    def clear(self) -> None:
        with self._file.transaction() as connection:
            connection.execute("DELETE FROM cache")


_TRIM = """
    DELETE FROM cache WHERE rowid IN (SELECT rowid FROM (
        SELECT rowid, sum(bytes) OVER (
            ORDER BY used DESC, rowid DESC ROWS UNBOUNDED PRECEDING) AS total
        FROM cache) WHERE total > ?)
"""


def _cached(key: str, value: bytes, used: float) -> tuple[str, bytes, float]:
    return key, bytes(value), float(used)


class ModelAnswerCache:
    """Model answers (JSON text) by the key of the call."""

    def __init__(self, file: SqliteFile, cache: Cache) -> None:
        self._file = file
        self._cache = cache

    def get(self, key: str) -> str | None:
        value = self._cache.get(_ANSWERS, [key]).get(key)
        return None if value is None else value.decode(errors="replace")

    def put(self, key: str, answer: str) -> None:
        """Stores an answer; the same key replaces."""
        self._cache.put(_ANSWERS, {key: answer.encode()})

    def remove(self, key: str) -> None:
        """Removes an answer where there is one."""
        self._cache.remove(_ANSWERS, [key])

    def remove_where(self, holds: Callable[[str], bool]) -> int:
        """Removes the answers of which this is true; returns how many. It reads them all."""
        return self._file.delete_where("cache", "value", holds, f"namespace = '{_ANSWERS}'")


class EmbeddingCache:
    """Vectors by model and text hash."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def get_many(self, model: str, hashes: Collection[str]) -> dict[str, Vector]:
        """Those that are there; the arrays are read-only."""
        values = self._cache.get(_EMBEDDINGS + model, hashes)
        return {text_hash: np.frombuffer(value, dtype="<f4") for text_hash, value in values.items()}

    def put_many(self, model: str, vectors: Mapping[str, Vector]) -> None:
        """Stores vectors; the same model and hash replaces."""
        blobs = {
            text_hash: np.asarray(vector, dtype="<f4").tobytes()
            for text_hash, vector in vectors.items()
        }
        self._cache.put(_EMBEDDINGS + model, blobs)

    def remove(self, hashes: Collection[str]) -> int:
        """Removes the vectors of these texts, of whatever model; returns how many."""
        return self._cache.remove(_EMBEDDINGS, hashes)


class RunRow(Record):
    """A run that ended; times are UTC in ISO form, `summary` is JSON text."""

    kind: str
    started: str
    finished: str
    state: str
    summary: str = "{}"


class RunHistory:
    """The last `limit` runs."""

    def __init__(self, file: SqliteFile, limit: int = 1_000) -> None:
        self._file = file
        self._limit = limit

    def append(self, run: RunRow) -> None:
        with self._file.transaction() as connection:
            sql = f"INSERT INTO runs ({_RUN}) VALUES (?, ?, ?, ?, ?)"
            row = (run.kind, run.started, run.finished, run.state, run.summary)
            connection.execute(sql, row)
            sql = "DELETE FROM runs WHERE id <= (SELECT max(id) FROM runs) - ?"
            connection.execute(sql, (self._limit,))

    def list(self, limit: int = 50) -> list[RunRow]:
        """The newest first."""
        sql = f"SELECT {_RUN} FROM runs ORDER BY id DESC LIMIT ?"
        return self._file.read(sql, _run, [limit])


_RUN = ", ".join(RunRow.model_fields)


def _run(*row: str) -> RunRow:
    return RunRow(**dict(zip(RunRow.model_fields, row, strict=True)))


class WorkspaceDatabase:
    """One SQLite file, opened at the first use, for many processes and threads.

    `clock` gives seconds since 1970. `reading`: who only reads goes on without the file where it
    cannot be written or is damaged.
    """

    def __init__(
        self,
        path: Path,
        *,
        cache_bytes: int = 2 << 30,
        clock: Clock = time.time,
        reading: bool = False,
    ) -> None:
        self._file = SqliteFile(path, SCHEMA, reading)
        self._cache = Cache(self._file, cache_bytes, clock)
        self.memory = Memory(self._file)
        self.model_answers = ModelAnswerCache(self._file, self._cache)
        self.embeddings = EmbeddingCache(self._cache)
        self.runs = RunHistory(self._file)
        self.running_answers = RunningAnswers(self._file)
        self.watched = WatchedQuestions(self._file)
        self.feedback = FeedbackRows(self._file)
        self.evaluations = EvaluationStore(self._file)

    def forget_caches(self) -> None:
        """Removes all that can be had again by asking models or the embedder again."""
        self._cache.clear()

    def compact(self) -> None:
        """Writes the file anew: nothing of what was removed is left in it."""
        self._file.compact()

    def prepare(self) -> None:
        """Opens the file, or makes it: StorageError where it cannot be used."""
        self._file.made()

    @property
    def fault(self) -> StorageError | None:
        """What a reader goes on without it for."""
        return self._file.fault

    def check(self) -> None:
        """Reads the file from end to end; Damaged where its parts do not belong together."""
        self._file.check()

    def close(self) -> None:
        self._file.close()
