"""A complete vector store of your own: it keeps every index in memory."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from storage.errors import StorageError
from storage.vector_store import REBUILD, ServerAddress
from storage.vectors import Hit, StoredVectors, Vector


@dataclass
class MemoryIndex:
    """The windows of one generation, and their vectors as rows of length 1."""

    windows: list[str]
    rows: np.ndarray
    searches: int = 0
    unreachable: int = 0  # windows that a search never finds, as in an approximate index

    def search(self, vector: Vector, count: int) -> list[Hit]:
        self.searches += 1
        cosines = self.rows @ (vector / np.linalg.norm(vector))
        reached = [place for place in np.argsort(-cosines) if place >= self.unreachable]
        return [Hit(self.windows[place], float(cosines[place])) for place in reached[:count]]

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class MemoryStore:
    """The indexes by the number of their generation."""

    indexes: dict[int, MemoryIndex] = field(default_factory=dict)
    prepared: int = 0

    def prepare(self) -> None:
        self.prepared += 1

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        entries = [entry for page in stored.entries(1_000) for entry in page]
        rows = np.stack([entry.vector for entry in entries])
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        self.indexes[stored.number] = MemoryIndex([entry.id for entry in entries], rows)

    def open(self, stored: StoredVectors) -> MemoryIndex:
        if stored.number not in self.indexes:
            raise StorageError("memory", "the index is gone", REBUILD)
        return self.indexes[stored.number]

    def keep_only(self, numbers: Collection[int]) -> None:
        kept = {number: index for number, index in self.indexes.items() if number in numbers}
        self.indexes = kept


STORES: defaultdict[Path, MemoryStore] = defaultdict(MemoryStore)


def open_store(root: Path, server: ServerAddress | None) -> MemoryStore:
    """Return the store of a workspace; an entry point of `trellis.vector_stores` names this."""
    return STORES[root]
