"""Chooses the vector store that the settings name; another store is one class and one line here."""

from collections.abc import Callable, Collection
from pathlib import Path

from storage.chroma import ChromaFolders
from storage.chroma_server import ChromaServer
from storage.errors import SettingsError
from storage.layout import Layout
from storage.vectors import EXACT_UP_TO, ExactIndex, StoredVectors, VectorIndex, VectorStore

# A store is made of the workspace's folder and of the address in the settings (None: none is set).
StoreMaker = Callable[[Path, str | None], VectorStore]


class ExactStore:
    """Compares all vectors in the database; there is nothing to build."""

    def prepare(self) -> None:
        """There is nothing to ask."""

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        """The database is the index."""

    def open(self, stored: StoredVectors) -> VectorIndex:
        return ExactIndex(stored)

    def keep_only(self, numbers: Collection[int]) -> None:
        """There is nothing beside the database."""


class StoreBySize:
    """Exact search in the database for few windows, another store from there on."""

    def __init__(self, larger: VectorStore, exact_up_to: int = EXACT_UP_TO) -> None:
        self._larger = larger
        self._exact_up_to = exact_up_to

    def prepare(self) -> None:
        self._larger.prepare()

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        if stored.count() > self._exact_up_to:
            self._larger.build(stored, base)

    def open(self, stored: StoredVectors) -> VectorIndex:
        return self._larger.open(stored) if stored.count() > self._exact_up_to else ExactIndex(stored)

    def keep_only(self, numbers: Collection[int]) -> None:
        self._larger.keep_only(numbers)


def _chroma(root: Path, url: str | None) -> VectorStore:
    return ChromaFolders(Layout(root).staging)


def _chroma_server(root: Path, url: str | None) -> VectorStore:
    return ChromaServer(url or "", Layout(root).identity_file)


def _exact(root: Path, url: str | None) -> VectorStore:
    return ExactStore()


def _auto(root: Path, url: str | None) -> VectorStore:
    return _chroma_server(root, url) if url else StoreBySize(_chroma(root, url))


VECTOR_STORES: dict[str, StoreMaker] = {
    "auto": _auto,
    "exact": _exact,
    "chroma": _chroma,
    "chroma-server": _chroma_server,
}


def open_vector_store(name: str, root: Path, url: str | None = None) -> VectorStore:
    """The vector store of this name for a workspace; SettingsError for a name that is none, or for its address."""
    if name not in VECTOR_STORES:
        raise SettingsError("vector_store", name, ", ".join(VECTOR_STORES))
    return VECTOR_STORES[name](root, url)
