"""What outlives generations: memory, caches and the history of runs."""

import time
from collections.abc import Callable
from pathlib import Path

from storage.caches import AnswerCache, EmbeddingCache, ModelAnswerCache
from storage.memory import Memory
from storage.records import Record
from storage.runs import RunHistory
from storage.sqlite import SideDatabase


class SideLimits(Record):
    """How large each part may grow; what was used longest ago goes first."""

    answers: int = 10_000
    model_answer_bytes: int = 1 << 30
    embedding_bytes: int = 1 << 30
    runs: int = 1_000


class SideStore:
    """One SQLite file, opened at the first use, for many processes and threads. `clock` gives seconds since 1970."""

    def __init__(self, path: Path, limits: SideLimits | None = None, clock: Callable[[], float] = time.time) -> None:
        limits = limits or SideLimits()
        self._db = SideDatabase(path)
        self.memory = Memory(self._db)
        self.answers = AnswerCache(self._db, limits.answers, clock)
        self.model_answers = ModelAnswerCache(self._db, limits.model_answer_bytes, clock)
        self.embeddings = EmbeddingCache(self._db, limits.embedding_bytes, clock)
        self.runs = RunHistory(self._db, limits.runs)

    def close(self) -> None:
        self._db.close()
