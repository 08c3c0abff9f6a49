"""A vector store of one's own that keeps every index in memory: all that such a store has to do."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from storage.errors import StorageError
from storage.vectors import REBUILD, Hit, ServerAddress, StoredVectors, Vector, Window


@dataclass
class MemoryStore:
    """Keeps every index in a dictionary; all that a vector store of one's own has to do."""

    indexes: dict[int, "MemoryIndex"] = field(default_factory=dict)
    prepared: int = 0

    def prepare(self) -> None:
        self.prepared += 1

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        windows = stored.windows()
        rows = stored.vectors_of(windows)
        self.indexes[stored.number] = MemoryIndex(windows, rows / np.linalg.norm(rows, axis=1, keepdims=True))

    def open(self, stored: StoredVectors) -> "MemoryIndex":
        if stored.number not in self.indexes:
            raise StorageError("memory", "the index is gone", REBUILD)
        return self.indexes[stored.number]

    def keep_only(self, numbers: Collection[int]) -> None:
        self.indexes = {number: index for number, index in self.indexes.items() if number in numbers}


@dataclass
class MemoryIndex:
    windows: list[Window]
    rows: np.ndarray
    searches: int = 0
    unreachable: int = 0  # as in a graph that no path leads through

    def search(self, vector: Vector, count: int, documents: Collection[str] | None) -> list[Hit]:
        self.searches += 1
        cosines = self.rows @ (vector / np.linalg.norm(vector))
        reached = [i for i in np.argsort(-cosines) if i >= self.unreachable]
        inside = [i for i in reached if documents is None or self.windows[i].document in documents]
        return [
            Hit(window=self.windows[i].id, chunk=self.windows[i].chunk, cosine=float(cosines[i]))
            for i in inside[:count]
        ]

    def close(self) -> None:
        pass


STORES: defaultdict[Path, MemoryStore] = defaultdict(MemoryStore)


def open_store(root: Path, server: ServerAddress | None) -> MemoryStore:
    """The store of a workspace: what the setting `TRELLIS_VECTOR_STORE=module:open_store` calls."""
    return STORES[root]
