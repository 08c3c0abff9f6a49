"""The vector store without an index: the database compares a vector with all that it holds."""

from collections.abc import Collection

from storage.vectors import Hit, StoredVectors, Vector


class ExactIndex:
    """Searches the database of a generation."""

    def __init__(self, stored: StoredVectors) -> None:
        self._stored = stored

    def search(self, vector: Vector, count: int) -> list[Hit]:
        return self._stored.nearest(vector, count)

    def close(self) -> None:
        """The generation closes its database."""


class ExactStore:
    """Implements `storage.vector_store.VectorStore` without an index."""

    def prepare(self) -> None:
        """Nothing has to be ready."""

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        """Nothing has to be built."""

    def open(self, stored: StoredVectors) -> ExactIndex:
        return ExactIndex(stored)

    def keep_only(self, numbers: Collection[int]) -> None:
        """The vectors are removed with the database of their generation."""
