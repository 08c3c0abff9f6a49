"""Serves vectors from USearch: a folder with one HNSW graph in the folder of each generation.

A folder holds the graph, the id of the window of each of its keys, and a digest of both. It is
written aside, moved to its generation and not changed later. Readers map it into memory.
"""

import logging
import shutil
import threading
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from usearch.index import Index, MetricKind, ScalarKind

from storage.errors import StorageError
from storage.layout import Layout, sync_tree
from storage.system import sync
from storage.vector_store import REBUILD, ServerAddress
from storage.vectors import Hit, StoredVectors, Vector

_FOLDER = "usearch-"
_GRAPH, _WINDOWS, _DIGEST = "graph.usearch", "windows.npy", "DIGEST"
_PAGE = 5_000

logger = logging.getLogger(__name__)


class USearchIndex:
    """A graph, and the window of each key; one that was removed has none."""

    def __init__(self, graph: Index, windows: NDArray[np.bytes_]) -> None:
        self._graph = graph
        self.windows = windows
        self._searching = threading.Lock()  # A search takes a millisecond

    @classmethod
    def read(cls, folder: Path, to_change: bool = False) -> "USearchIndex":
        """Open a folder. Raises StorageError where it is not as it was written."""
        with _reported(folder, "read"):
            if (folder / _DIGEST).read_text(encoding="utf-8") != _digest(folder):
                # USearch does not notice, and may end the process
                raise StorageError(folder, "the vector index is damaged", REBUILD)
            graph = Index.restore(folder / _GRAPH, view=not to_change)
            return cls(graph, np.load(folder / _WINDOWS, mmap_mode=None if to_change else "r"))

    def search(self, vector: Vector, count: int) -> list[Hit]:
        with self._searching:
            found = self._graph.search(vector, count)
        pairs = zip(found.keys.tolist(), found.distances.tolist(), strict=True)
        return [Hit(self.windows[key].decode(), 1.0 - distance) for key, distance in pairs]

    def close(self) -> None:
        self._graph.reset()

    def add(self, stored: StoredVectors, windows: Collection[str] | None = None) -> None:
        """Add these windows (None: all)."""
        for page in stored.entries(_PAGE, windows):
            keys = len(self.windows) + np.arange(len(page), dtype=np.uint64)
            self._graph.add(keys, np.stack([entry.vector for entry in page]))
            names = np.array([entry.id.encode() for entry in page])
            self.windows = np.concatenate([self.windows, names])

    def remove(self, windows: Sequence[str]) -> None:
        names = np.array([window.encode() for window in windows], self.windows.dtype)
        gone = np.flatnonzero(np.isin(self.windows, names))
        self._graph.remove(gone)
        self.windows[gone] = b""

    def write(self, folder: Path) -> None:
        folder.mkdir()
        self._graph.save(folder / _GRAPH)
        np.save(folder / _WINDOWS, self.windows)
        (folder / _DIGEST).write_text(_digest(folder), encoding="utf-8")
        sync_tree(folder)


class USearchStore:
    """Implements `storage.vector_store.VectorStore` with a folder in that of each generation."""

    def __init__(self, root: Path) -> None:
        self._staging = Layout(root).staging  # The next run empties it

    def prepare(self) -> None:
        """A folder needs no preparation."""

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        """Change the base's graph; build anew where more than half would change."""
        earlier = list(stored.folder.glob(f"{_FOLDER}*"))
        folder = self._staging / f"{_FOLDER}{uuid4().hex[:8]}"
        try:
            with _reported(folder, "built"):
                index = _carried_over(stored, base) if base else None
                if index is None:
                    graph = Index(ndim=stored.size(), metric=MetricKind.Cos, dtype=ScalarKind.F32)
                    index = USearchIndex(graph, np.array([], dtype="S1"))
                    index.add(stored)
                index.write(folder)
                folder.rename(stored.folder / folder.name)
                sync(stored.folder)
        finally:
            for before in earlier:
                shutil.rmtree(before)

    def open(self, stored: StoredVectors) -> USearchIndex:
        folder = next(stored.folder.glob(f"{_FOLDER}*"), None)
        if folder is None:
            raise StorageError(stored.folder, "the vector index is missing", REBUILD)
        return USearchIndex.read(folder)

    def keep_only(self, numbers: Collection[int]) -> None:
        """A folder is removed with its generation."""


def _carried_over(stored: StoredVectors, base: StoredVectors) -> USearchIndex | None:
    """Return the base's index with the changes; None where it must be built anew."""
    was, now = ({(one.id, one.text_hash) for one in each.windows()} for each in (base, stored))
    folder = next(base.folder.glob(f"{_FOLDER}*"), None)
    if folder is None or base.model() != stored.model() or 2 * len(now - was) > len(now):
        return None
    try:
        index = USearchIndex.read(folder, to_change=True)
    except StorageError as error:
        logger.warning("The vector index %s is built anew: %s", folder, error)
        return None
    index.remove([window for window, _ in was - now])
    index.add(stored, [window for window, _ in now - was])
    # Removed keys slow a search: no more of them than of windows
    return index if len(index.windows) <= 2 * len(now) else None


@contextmanager
def _reported(folder: Path, done: str) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        problem = f"the vector index cannot be {done} ({error})"
        raise StorageError(folder, problem, REBUILD) from error


def _digest(folder: Path) -> str:
    total = 0
    for name in (_GRAPH, _WINDOWS):
        total = zlib.crc32(np.memmap(folder / name, mode="r").data, total)
    return f"{total:08x}\n"


def open_store(root: Path, server: ServerAddress | None) -> USearchStore:
    """Make the store of a workspace; it needs no server."""
    return USearchStore(root)
