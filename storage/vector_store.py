"""What a vector store is: the six methods that a class needs to take Chroma's place.

A store of one's own is one new file with a `VectorStore`, its `VectorIndex`, and a function that
makes the store (`StoreMaker`). A package offers that function as an entry point, and the setting
`TRELLIS_VECTOR_STORE` names it:

    [project.entry-points."trellis.vector_stores"]
    qdrant = "my_package.qdrant_store:open_store"

`storage/exact_store.py` is the smallest example, `storage/chroma.py` the one that is in use.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from storage.vectors import Hit, StoredVectors, Vector

ENTRY_POINTS = "trellis.vector_stores"
# The remedy where an index is missing or damaged.
REBUILD = "`trellis clean --vectors` builds it anew from the database; nothing else is lost."


class VectorIndex(Protocol):
    """The open index of one generation. Many threads use it at once."""

    def search(self, vector: Vector, count: int) -> list[Hit]:
        """The `count` windows of the greatest cosine, highest first; it may be approximate.

        Raises StorageError where the index cannot be used.
        """
        ...

    def close(self) -> None: ...


class VectorStore(Protocol):
    """Serves the vectors of a workspace's generations. Nothing happens before it is used."""

    def prepare(self) -> None:
        """Raises StorageError where no index could be built; a run asks before it begins."""
        ...

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        """Makes the index of a generation hold exactly its windows (at least one).

        `base` is the generation before it, whose index may be copied and changed. An index that was
        there is replaced; readers that have it open go on with it. Raises StorageError where the
        index cannot be made; then there is none.
        """
        ...

    def open(self, stored: StoredVectors) -> VectorIndex:
        """Opens the index of a generation; StorageError where it is missing or damaged."""
        ...

    def keep_only(self, numbers: Collection[int]) -> None:
        """Removes the indexes of all other generations that lie outside of their folders."""
        ...


@dataclass(frozen=True)
class ServerAddress:
    """Where a store's server is, the tenant and database on it, and the token that it asks for."""

    url: str
    tenant: str = "default_tenant"
    database: str = "default_database"
    token: str | None = field(default=None, repr=False)


# Makes a store for a workspace's folder, and for the server in the settings (None: none is set).
StoreMaker = Callable[[Path, ServerAddress | None], VectorStore]
