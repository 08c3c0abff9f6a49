"""What vector stores on servers share: which index is whose, and which one is read.

Each index gets a name of its own, `trellis_WORKSPACE_GENERATION_RANDOM`, and the file INDEX in the
generation's folder tells which one is read. So nobody reads half an index, readers go on with the
index that they have open, and workspaces that share a server do not mix. The file IDENTITY holds
the workspace's name on servers: its path differs between machines.
"""

import math
import re
from collections.abc import Collection
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from storage.errors import StorageError
from storage.layout import Layout, write_atomically
from storage.vector_store import REBUILD, VectorIndex
from storage.vectors import Metadata, StoredVectors

_NAMES_ITS_INDEX = "INDEX"


class IndexServer(Protocol):
    """A server of indexes. Each method raises StorageError where it cannot do its part."""

    def check(self) -> None:
        """Raise StorageError where no index could be made."""
        ...

    def make(self, name: str, stored: StoredVectors) -> None:
        """Make a new index that holds all windows."""
        ...

    def open(self, name: str) -> VectorIndex:
        """Open an index. Raises StorageError where it is missing."""
        ...

    def names(self) -> list[str]:
        """Return the names of all indexes, also those of other programs."""
        ...

    def remove(self, name: str) -> None: ...


class ServerStore:
    """Implements `storage.vector_store.VectorStore` with the indexes of a server."""

    def __init__(self, root: Path, server: IndexServer) -> None:
        self._layout = Layout(root)
        self.server = server

    def prepare(self) -> None:
        """Check the server, and name a workspace that has no name on servers yet."""
        self.server.check()
        if not self._layout.identity_file.is_file():
            write_atomically(self._layout.identity_file, f"{uuid4().hex[:12]}\n")

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        """Make an index under a new name, then let the generation name it.

        `keep_only` removes the earlier one.
        """
        file = stored.folder / _NAMES_ITS_INDEX
        name = f"{self._prefix()}{stored.number:06d}_{uuid4().hex[:8]}"
        try:
            self.server.make(name, stored)
        except BaseException:
            file.unlink(missing_ok=True)  # The index before may be one of other windows
            raise
        write_atomically(file, f"{name}\n")

    def open(self, stored: StoredVectors) -> VectorIndex:
        name = _index_of(stored.folder)
        if name is None:
            raise StorageError(stored.folder, "the vector index is missing", REBUILD)
        return self.server.open(name)

    def keep_only(self, numbers: Collection[int]) -> None:
        """Remove the workspace's other indexes, also those that killed runs left behind."""
        if self._layout.identity_file.is_file():
            kept = {_index_of(self._layout.folder(number)) for number in numbers}
            for name in self.server.names():
                if name.startswith(self._prefix()) and name not in kept:
                    self.server.remove(name)

    def _prefix(self) -> str:
        identity = self._layout.identity_file.read_text(encoding="utf-8").strip()
        return f"trellis_{identity}_"


def _index_of(generation: Path) -> str | None:
    file = generation / _NAMES_ITS_INDEX
    return file.read_text(encoding="utf-8").strip() if file.is_file() else None


def in_json(metadata: Metadata) -> Metadata:
    """Leave out numbers that JSON does not have: those that are not finite."""
    return {
        key: value
        for key, value in metadata.items()
        if not isinstance(value, float) or math.isfinite(value)
    }


def without_credentials(url: str) -> str:
    """Return an address as errors may show it: without user, password and query."""
    return re.sub(r"(?<=//)[^/]*@|\?.*", "", url)
