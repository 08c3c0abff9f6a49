"""The vector store that builds nothing: a vector is compared with all that are stored. The smallest of examples."""

import threading
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage.vectors import Hit, StoredVectors, Vector, WindowMatrix

# Numbers in all vectors that are held in memory: 61 MB, 40,000 windows of 384. Reading them takes .4 s and comparing
# them 4 ms. Chroma compares in 3, but its library takes a second to load, and 1.6 ms a window to build an index. Of
# more vectors DuckDB compares all.
HELD = 16_000_000


class ExactIndex:
    """Compares a vector with all that are stored: with few in memory, with many in the database of the generation."""

    def __init__(self, stored: "StoredVectors") -> None:
        self._stored = stored
        self._reading = threading.Lock()
        self._few: bool | None = None
        self._matrix: WindowMatrix | None = None

    def search(self, vector: "Vector", count: int, documents: Collection[str] | None) -> "list[Hit]":
        if not self._holds():
            return self._stored.nearest(vector, count, documents)
        with self._reading:
            self._matrix = self._matrix or self._stored.matrix()
        return self._matrix.nearest(vector, count, documents)

    def _holds(self) -> bool:
        if self._few is None:
            self._few = self._stored.numbers() <= HELD
        return self._few

    def close(self) -> None:
        """The database is not its own."""


class ExactStore:
    """Fulfils `storage.vectors.VectorStore`: the vectors themselves are the index."""

    def prepare(self) -> None:
        """There is nothing to ask."""

    def build(self, stored: "StoredVectors", base: "StoredVectors | None") -> None:
        """There is nothing to build."""

    def open(self, stored: "StoredVectors") -> ExactIndex:
        return ExactIndex(stored)

    def keep_only(self, numbers: Collection[int]) -> None:
        """A database goes with its generation."""
