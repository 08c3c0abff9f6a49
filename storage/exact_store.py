"""The vector store that builds nothing: the database compares a vector with all that it holds."""

from collections.abc import Collection

from storage.vectors import Hit, StoredVectors, Vector


class ExactIndex:
    """Searches the database of a generation."""

    def __init__(self, stored: StoredVectors) -> None:
        self._stored = stored

    def search(self, vector: Vector, count: int) -> list[Hit]:
        return self._stored.nearest(vector, count)

    def close(self) -> None:
        """The generation closes its database itself."""


class ExactStore:
    """Fulfils `storage.vector_store.VectorStore` without an index."""

    def prepare(self) -> None:
        """There is nothing to ask."""

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        """There is nothing to build."""

    def open(self, stored: StoredVectors) -> ExactIndex:
        return ExactIndex(stored)

    def keep_only(self, numbers: Collection[int]) -> None:
        """The vectors go with the database of their generation."""
