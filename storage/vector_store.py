"""The protocol of a vector store: what a class needs to take Chroma's place.

A store of your own is one new file with a `VectorStore`, its `VectorIndex`, and a function that
makes the store (`StoreMaker`). A package offers that function as an entry point, and the setting
`TRELLIS_VECTOR_STORE` names it:

    [project.entry-points."trellis.vector_stores"]
    milvus = "my_package.milvus_store:open_store"

`storage/exact_store.py` is the smallest example, `storage/usearch_store.py` one with folders,
`storage/pgvector_store.py` one with a server (`storage/server_store.py` has what these share).
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
        """Return the `count` windows with the highest cosine, exactly or approximately.

        The best come first. Raises StorageError where the index cannot be used.
        """
        ...

    def close(self) -> None: ...


class VectorStore(Protocol):
    """Serves the vectors of a workspace's generations. Making the object does nothing else."""

    def prepare(self) -> None:
        """Raise StorageError where no index could be built; a run calls this before it begins."""
        ...

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        """Make the index of a generation hold exactly its windows (at least one).

        `base` is the generation before it, whose index may be copied and changed. An index that is
        there is replaced; readers that have it open go on with it. Raises StorageError where the
        index cannot be made; then there is none.
        """
        ...

    def open(self, stored: StoredVectors) -> VectorIndex:
        """Open the index of a generation. Raises StorageError where it is missing or damaged."""
        ...

    def keep_only(self, numbers: Collection[int]) -> None:
        """Remove the indexes of all other generations that lie outside of their folders."""
        ...


@dataclass(frozen=True)
class ServerAddress:
    """The address of a store's server, the tenant and database on it, and the access token."""

    url: str
    tenant: str = "default_tenant"
    database: str = "default_database"
    token: str | None = field(default=None, repr=False)


# Makes a store for a workspace's folder and the server in the settings (None: no server is set).
StoreMaker = Callable[[Path, ServerAddress | None], VectorStore]
