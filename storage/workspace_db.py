"""The workspace's SQLite database, which outlives generations.

It holds memory, cached answers of models and vectors of embedders, notes on remote objects, the
history of runs, evaluations, watched questions, feedback, and conversations.
"""

import json
import threading
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from storage.conversations import Conversations
from storage.errors import StorageError
from storage.evaluations import EvaluationStore, FeedbackRows, RunningAnswers, WatchedQuestions
from storage.memory import Memory
from storage.records import DeadLetter, Record
from storage.sqlite import Schema, SqliteFile

Clock = Callable[[], float]
Vector = NDArray[np.float32]

SCHEMA = Schema(
    "workspace_db",
    6,
    since=4,
    remedy=(
        "Put back a copy of it (an archive holds one), or move the file away: a new one is made. "
        "With it go memory, kept answers and vectors (models are paid again), evaluations, watched "
        "questions, feedback, conversations and the history of runs; the index stays."
    ),
    without="Nothing is remembered, and no kept answer or vector is used.",
)

_FRESH = 60.0  # seconds in which a further use of a value is not recorded
_TRIMS = 16  # how often a process trims the cache while it writes as much as the cache may hold
_MOST_RUNS = 1_000
_ANSWERS, _EMBEDDINGS, _OBJECTS = "answers", "embeddings ", "objects"
_NAMED = "namespace = ? AND key IN (SELECT value FROM json_each(?))"


class Cache:
    """About `limit` bytes of values by namespace and key; the least recently used go first."""

    def __init__(self, file: SqliteFile, limit: int, clock: Clock) -> None:
        self._file = file
        self._limit = limit
        self._clock = clock
        self._written = 0
        self._counting = threading.Lock()

    def get(self, namespace: str, keys: Collection[str]) -> dict[str, bytes]:
        now, named = self._clock(), (namespace, json.dumps(list(keys)))
        sql = f"SELECT key, value, used FROM cache WHERE {_NAMED}"
        found = self._file.read(sql, _cached, named)
        if any(now - used > _FRESH for _, _, used in found):
            with self._file.transaction() as connection:
                connection.execute(f"UPDATE cache SET used = ? WHERE {_NAMED}", (now, *named))
        return {key: value for key, value, _ in found}

    def put(self, namespace: str, values: Mapping[str, bytes]) -> None:
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
            due = self._written * _TRIMS >= self._limit
            self._written = 0 if due else self._written
        if due:
            with self._file.transaction() as connection:
                connection.execute(_TRIM, (self._limit,))

    def remove(self, namespace: str, keys: Collection[str]) -> int:
        """Remove these keys from all namespaces that begin with this; return how many."""
        sql = """
            DELETE FROM cache
            WHERE substr(namespace, 1, ?) = ? AND key IN (SELECT value FROM json_each(?))
        """
        named = (len(namespace), namespace, json.dumps(list(keys)))
        with self._file.transaction() as connection:
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
    """Answers of models (JSON text) by the key of the call."""

    def __init__(self, file: SqliteFile, cache: Cache) -> None:
        self._file = file
        self._cache = cache

    def get(self, key: str) -> str | None:
        value = self._cache.get(_ANSWERS, [key]).get(key)
        return None if value is None else value.decode(errors="replace")

    def put(self, key: str, answer: str) -> None:
        self._cache.put(_ANSWERS, {key: answer.encode()})

    def remove(self, key: str) -> None:
        self._cache.remove(_ANSWERS, [key])

    def remove_where(self, holds: Callable[[str], bool]) -> int:
        """Remove the answers for which `holds` is true, reading all; return how many."""
        return self._file.delete_where("cache", "value", holds, f"namespace = '{_ANSWERS}'")


class EmbeddingCache:
    """Vectors by model and text hash."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def get_many(self, model: str, hashes: Collection[str]) -> dict[str, Vector]:
        """Return the vectors of those hashes that are there, as read-only arrays."""
        values = self._cache.get(_EMBEDDINGS + model, hashes)
        return {text_hash: np.frombuffer(value, dtype="<f4") for text_hash, value in values.items()}

    def put_many(self, model: str, vectors: Mapping[str, Vector]) -> None:
        blobs = {
            text_hash: np.asarray(vector, dtype="<f4").tobytes()
            for text_hash, vector in vectors.items()
        }
        self._cache.put(_EMBEDDINGS + model, blobs)

    def remove(self, hashes: Collection[str]) -> int:
        """Remove the vectors of these texts for all models; return how many."""
        return self._cache.remove(_EMBEDDINGS, hashes)


class ObjectNote(Record):
    """What was found in one version of a remote object.

    `held` is the digest of the parts that the index holds of it (see `tasks/load/remote.py`),
    `skipped` the reason if it could not be read.
    """

    version: str
    held: str
    skipped: str = ""
    dead_letters: tuple[DeadLetter, ...] = ()


class ObjectNotes:
    """Notes on remote objects by key. A lost note costs fetching its object once more."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def get_many(self, keys: Collection[str]) -> dict[str, ObjectNote]:
        values = self._cache.get(_OBJECTS, keys)
        return {key: ObjectNote.model_validate_json(value) for key, value in values.items()}

    def put_many(self, notes: Mapping[str, ObjectNote]) -> None:
        values = {key: note.model_dump_json().encode() for key, note in notes.items()}
        self._cache.put(_OBJECTS, values)


class RunRow(Record):
    """A run that ended; times are UTC in ISO form, `summary` is JSON text."""

    kind: str
    started: str
    finished: str
    state: str
    summary: str = "{}"


class RunHistory:
    """The last 1,000 runs."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def append(self, run: RunRow) -> None:
        with self._file.transaction() as connection:
            sql = f"INSERT INTO runs ({_RUN}) VALUES (?, ?, ?, ?, ?)"
            row = (run.kind, run.started, run.finished, run.state, run.summary)
            connection.execute(sql, row)
            sql = "DELETE FROM runs WHERE id <= (SELECT max(id) FROM runs) - ?"
            connection.execute(sql, (_MOST_RUNS,))

    def list(self, limit: int = 50) -> list[RunRow]:
        """Return the newest runs, the last one first."""
        sql = f"SELECT {_RUN} FROM runs ORDER BY id DESC LIMIT ?"
        return self._file.read(sql, _run, [limit])


_RUN = ", ".join(RunRow.model_fields)


def _run(*row: str) -> RunRow:
    return RunRow(**dict(zip(RunRow.model_fields, row, strict=True)))


class WorkspaceDatabase:
    """The stores of one `SqliteFile`; `clock` gives seconds since 1970."""

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
        self.objects = ObjectNotes(self._cache)
        self.runs = RunHistory(self._file)
        self.running_answers = RunningAnswers(self._file)
        self.watched = WatchedQuestions(self._file)
        self.feedback = FeedbackRows(self._file)
        self.evaluations = EvaluationStore(self._file)
        self.conversations = Conversations(self._file)

    def forget_caches(self) -> None:
        """Remove what models and embedders can give again."""
        self._cache.clear()

    def compact(self) -> None:
        self._file.compact()

    def prepare(self) -> None:
        self._file.connect()

    @property
    def fault(self) -> StorageError | None:
        return self._file.fault

    def check(self) -> None:
        self._file.check()

    def close(self) -> None:
        self._file.close()
