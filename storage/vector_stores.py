"""Which vector store serves a workspace: exact search, Chroma in a folder or on a server, or one of the user's own."""

from collections.abc import Collection
from importlib import import_module
from pathlib import Path

from storage.errors import SettingsError
from storage.exact_store import HELD, ExactStore
from storage.layout import Layout
from storage.vectors import ServerAddress, StoredVectors, StoreMaker, VectorIndex, VectorStore


class StoreBySize:
    """Exact search, which needs no index; where the vectors have more numbers together another store."""

    def __init__(self, larger: VectorStore, exact_up_to: int = HELD) -> None:
        self._larger = larger
        self._exact_up_to = exact_up_to

    def prepare(self) -> None:
        self._larger.prepare()

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        self._chosen(stored).build(stored, base)

    def open(self, stored: StoredVectors) -> VectorIndex:
        return self._chosen(stored).open(stored)

    def keep_only(self, numbers: Collection[int]) -> None:
        self._larger.keep_only(numbers)

    def _chosen(self, stored: StoredVectors) -> VectorStore:
        return self._larger if stored.numbers() > self._exact_up_to else ExactStore()


def _chroma(root: Path, server: ServerAddress | None) -> VectorStore:
    from storage.chroma import ChromaFolders

    return ChromaFolders(Layout(root).staging)


def _chroma_server(root: Path, server: ServerAddress | None) -> VectorStore:
    from storage.chroma import ChromaServer

    return ChromaServer(server or ServerAddress(""), Layout(root).identity_file)


VECTOR_STORES: dict[str, StoreMaker] = {
    "auto": lambda root, server: _chroma_server(root, server) if server else StoreBySize(_chroma(root, server)),
    "exact": lambda root, server: ExactStore(),
    "chroma": _chroma,
    "chroma-server": _chroma_server,
}


def open_vector_store(name: str, root: Path, server: ServerAddress | None = None) -> VectorStore:
    """The vector store of this name for a workspace: one of ours, or `package.module:name` of a `StoreMaker`.

    Raises SettingsError for a name that is none, or for the server's address.
    """
    return (VECTOR_STORES.get(name) or _imported(name))(root, server)


def _imported(name: str) -> StoreMaker:
    module, colon, attribute = name.partition(":")
    if not colon:
        raise SettingsError("vector_store", name, f"{', '.join(VECTOR_STORES)}, or package.module:name of one's own")
    try:
        maker: StoreMaker = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        expected = f"the place of a function that can be imported ({error})"
        raise SettingsError("vector_store", name, expected) from error
    return maker
