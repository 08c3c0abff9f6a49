"""Searches the vectors of a generation through the vector store that the settings name.

Where the index of that store is missing or damaged, the database compares all vectors instead.
"""

import logging
import threading
from collections.abc import Collection
from functools import cached_property
from importlib.metadata import entry_points
from pathlib import Path

from storage.database import Database
from storage.errors import SettingsError, StorageError
from storage.exact_store import ExactStore
from storage.vector_store import (
    ENTRY_POINTS,
    REBUILD,
    ServerAddress,
    StoreMaker,
    VectorIndex,
    VectorStore,
)
from storage.vectors import ChunkScore, StoredVectors, Vector

# The database compares up to so many numbers itself: 40,000 windows of 384 take 45 ms. Chroma takes
# 3 ms, but a second to load, and 1.6 ms a window to build its index.
EXACT_UP_TO = 16_000_000
_OURS = ("auto", "exact", "chroma", "chroma-server")
_WIDENING = 4
_PROBES, _NEIGHBOURS, _LEAST_RECALL = 10, 10, 0.9

logger = logging.getLogger(__name__)


class AutoStore:
    """Searches exactly up to `exact_up_to` numbers in all vectors, in Chroma folders beyond."""

    def __init__(self, root: Path, exact_up_to: int = EXACT_UP_TO) -> None:
        self._root = root
        self._exact_up_to = exact_up_to

    def prepare(self) -> None:
        """Neither store needs preparation."""

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        self._store_for(stored).build(stored, base)

    def open(self, stored: StoredVectors) -> VectorIndex:
        return self._store_for(stored).open(stored)

    def keep_only(self, numbers: Collection[int]) -> None:
        """An index is removed with the folder of its generation."""

    def _store_for(self, stored: StoredVectors) -> VectorStore:
        if stored.count() * stored.size() <= self._exact_up_to:
            return ExactStore()
        return open_vector_store("chroma", self._root)


def open_vector_store(name: str, root: Path, server: ServerAddress | None = None) -> VectorStore:
    """Make the vector store of this name for a workspace: one of ours, or of an entry point.

    Raises SettingsError for an unknown name or an unusable server address.
    """
    if name == "exact":
        return ExactStore()
    if name == "chroma-server" or (name == "auto" and server is not None):
        from storage.chroma import ChromaServer  # chromadb takes a second to load

        return ChromaServer(root, server or ServerAddress(""))
    if name == "auto":
        return AutoStore(root)
    if name == "chroma":
        from storage.chroma import ChromaFolders  # chromadb takes a second to load

        return ChromaFolders(root)
    found = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    if name not in found:
        raise SettingsError("vector_store", name, ", ".join([*_OURS, *sorted(found)]))
    try:
        maker: StoreMaker = found[name].load()
    except (ImportError, AttributeError) as error:
        expected = f"an entry point that can be loaded ({error})"
        if found[name].module.startswith("storage."):
            expected = f"it after `pip install 'trellis-rag[{name}]'` ({error})"
        raise SettingsError("vector_store", name, expected) from error
    return maker(root, server)


class VectorReader(StoredVectors):
    """The stored vectors of a published generation, searched through a vector store."""

    def __init__(self, database: Database, number: int, store: VectorStore) -> None:
        super().__init__(database, number)
        self._store: VectorStore | None = store
        self._index: VectorIndex | None = None
        self._opening = threading.Lock()

    def search(
        self, vector: Vector, k: int, documents: Collection[str] | None = None
    ) -> list[ChunkScore]:
        """Return the k chunks with the highest cosine, best first.

        With `documents` the database compares all their windows. Without, the store's index is
        searched, which may be approximate.
        """
        windows, size = self._shape
        if windows == 0 or k <= 0:
            return []
        if vector.shape != (size,):
            problem = f"a vector of shape {vector.shape} meets vectors of {size} numbers"
            remedy = f"Embed the question with {self.model()}, or index again with your model."
            raise StorageError(self._db.path, problem, remedy)
        found = self._from_index(vector, k) if documents is None else None
        return self.nearest_chunks(vector, k, documents) if found is None else found

    def _from_index(self, vector: Vector, k: int) -> list[ChunkScore] | None:
        """Search the index; None where it cannot be used or misses windows."""
        try:
            index = self._opened()
            return None if index is None else _best_chunks(index, vector, k, self._shape[0])
        except StorageError as error:
            logger.warning("Vectors are searched in the database instead, slower: %s", error)
            self.close()
            self._store = None
            return None

    def check(self) -> None:
        """Raise StorageError where the index cannot be opened or misses near windows.

        It must find nine in ten of the ten nearest windows of ten stored vectors.
        """
        index = self._opened() if self.count() else None
        if index is None:
            return
        found = wanted = 0
        for entry in next(self.entries(_PROBES)):
            exact = self.nearest(entry.vector, _NEIGHBOURS)
            hits = index.search(entry.vector, len(exact))
            # Any window as near as the last one counts: equal ones may come in any order.
            found += sum(hit.cosine >= exact[-1].cosine - 1e-5 for hit in hits)
            wanted += len(exact)
        if found < _LEAST_RECALL * wanted:
            remedy = f"{REBUILD} TRELLIS_VECTOR_STORE=exact compares all vectors."
            raise StorageError(self.folder, "the vector index finds too few near windows", remedy)

    def close(self) -> None:
        with self._opening:
            if self._index is not None:
                self._index.close()
            self._index = None

    @cached_property
    def _shape(self) -> tuple[int, int]:
        return self.count(), self.size()

    def _opened(self) -> VectorIndex | None:
        with self._opening:
            if self._index is None and self._store is not None:
                self._index = self._store.open(self)
            return self._index


def _best_chunks(
    index: VectorIndex, vector: Vector, k: int, windows: int
) -> list[ChunkScore] | None:
    """Return the k chunks of the best windows; None where the index misses windows."""
    count = 2 * k
    while True:
        hits = index.search(vector, min(count, windows))
        if len(hits) < min(count, windows):
            return None
        best: dict[str, float] = {}
        for hit in hits:
            best.setdefault(hit.chunk, round(hit.cosine, 5))  # The best come first
        if len(best) >= k or count >= windows:
            return sorted(best.items(), key=lambda item: (-item[1], item[0]))[:k]
        count *= _WIDENING
