"""What outlives generations: memory, caches and the history of runs."""

import time
from collections.abc import Callable
from pathlib import Path

from storage.caches import EmbeddingCache, ModelAnswerCache
from storage.memory import Memory
from storage.records import Record
from storage.runs import RunHistory
from storage.sqlite import SideDatabase


class SideLimits(Record):
    """How large each part may grow; what was used longest ago goes first."""

    model_answer_bytes: int = 1 << 30
    embedding_bytes: int = 1 << 30
    runs: int = 1_000
    memory: int = 10_000


class SidePart(Record):
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


class SideStore:
    """One SQLite file, opened at the first use, for many processes and threads. `clock` gives seconds since 1970.

    `reading`: who only reads goes on without it where the file cannot be written.
    """

    def __init__(
        self, path: Path, limits: SideLimits | None = None, clock: Callable[[], float] = time.time,
        reading: bool = False,
    ) -> None:  # fmt: skip
        limits = limits or SideLimits()
        self._db = SideDatabase(path, reading=reading)
        self._limits = limits
        self.memory = Memory(self._db, limits.memory)
        self.model_answers = ModelAnswerCache(self._db, limits.model_answer_bytes, clock)
        self.embeddings = EmbeddingCache(self._db, limits.embedding_bytes, clock)
        self.runs = RunHistory(self._db, limits.runs)

    def parts(self) -> list[SidePart]:
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
                SidePart(
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
