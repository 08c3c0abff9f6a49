"""Serves the vectors of each generation from a collection on a Chroma server, so that many machines need no copy.

Each generation has a collection of its own, named by the workspace and the number; it is filled before the generation
is published and never changed afterwards, so readers and a run that publishes do not meet. The database stays the
truth: a collection can be built again at any time.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit
from uuid import uuid4

from storage.chroma import ChromaIndex, new_collection, reported
from storage.errors import SettingsError, StorageError
from storage.layout import write_atomically
from storage.vectors import REBUILD, StoredVectors, check_recall

if TYPE_CHECKING:
    from chromadb.api.client import Client

_PATIENCE = 5.0  # seconds to learn whether the server is there
_LONGEST = 60.0  # seconds of one request
_PAGE = 100


class ChromaServer:
    """The vector store that keeps the collections of one workspace on one server.

    The file `identity` says which workspace: a path is another one on every machine.
    """

    def __init__(self, url: str, identity: Path) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.strip("/"):
            raise SettingsError("chroma_url", url, "an address such as http://localhost:8000")
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._secure = parts.scheme == "https"
        self._identity = identity

    def prepare(self) -> None:
        """Also gives a name to a workspace that has none."""
        self.check()
        if not self._identity.is_file():
            write_atomically(self._identity, f"{uuid4().hex[:12]}\n")

    def check(self) -> None:
        """Raises StorageError where no Chroma server answers at the address."""
        import httpx

        try:
            answer = httpx.get(f"{self.url}/api/v2/heartbeat", timeout=_PATIENCE)
            answer.raise_for_status()
            beats = "nanosecond heartbeat" in answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise self._absent(str(error)) from error
        if not beats:
            raise self._absent("another kind of server answers")

    def open(self, stored: StoredVectors) -> ChromaIndex:
        return self._open(self._name(stored.number))

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        """Uploads all windows, under another name, so that nobody ever reads a part of them."""
        name, aside = self._name(stored.number), f"{self._name(stored.number)}-new"
        windows = stored.windows()
        with self._connected() as client:
            _delete(client, {aside})
            new_collection(client, aside)
        with self._open(aside) as index:
            index.put(windows, stored)
            index.check_count(len(windows))
            check_recall(index, stored, "TRELLIS_VECTOR_STORE=exact compares all vectors in the database.")
        with self._connected() as client:
            _delete(client, {name})
            client.get_collection(aside, embedding_function=None).modify(name=name)

    def keep_only(self, numbers: Collection[int]) -> None:
        """Removes the workspace's collections of all other generations, and what dead runs have left."""
        kept, prefix = {self._name(number) for number in numbers}, self._prefix()
        with self._connected() as client:
            _delete(client, {name for name in _names(client) if name.startswith(prefix) and name not in kept})

    def _name(self, number: int) -> str:
        return f"{self._prefix()}{number:06d}"

    def _prefix(self) -> str:
        try:
            return f"trellis-{self._identity.read_text(encoding='utf-8').strip()}-"
        except FileNotFoundError as error:
            raise StorageError(self.url, "no generation of this workspace is on this server", REBUILD) from error

    def _open(self, name: str) -> ChromaIndex:
        client = self._connect()
        try:
            with reported(f"{self.url} {name}", _errors()):
                collection = client.get_collection(name, embedding_function=None)
        except StorageError:
            client.close()
            raise
        return ChromaIndex(f"{self.url} {name}", client, collection, _errors())

    @contextmanager
    def _connected(self) -> Iterator["Client"]:
        client = self._connect()
        try:
            with reported(self.url, _errors()):
                yield client
        finally:
            client.close()

    def _connect(self) -> "Client":
        import chromadb
        import httpx
        from chromadb.config import Settings

        self.check()
        with reported(self.url, _errors()):
            client = cast(
                "Client",  # declared as an interface that lacks `close`
                chromadb.HttpClient(
                    host=self._host, port=self._port, ssl=self._secure, settings=Settings(anonymized_telemetry=False)
                ),
            )
        # The package waits for ever, and has no setting for it.
        session = getattr(getattr(client, "_server", None), "_session", None)
        if isinstance(session, httpx.Client):
            session.timeout = httpx.Timeout(_LONGEST)
        return client

    def _absent(self, problem: str) -> StorageError:
        return StorageError(
            self.url, f"no Chroma server answers ({problem})",
            "Start it (`chroma run --path DIR --port PORT`), or unset TRELLIS_CHROMA_URL.",
        )  # fmt: skip


def _errors() -> tuple[type[Exception], ...]:
    import httpx
    from chromadb.errors import ChromaError

    # A ValueError is how the package reports a server that it cannot reach.
    return ChromaError, httpx.HTTPError, ValueError


def _names(client: "Client") -> list[str]:
    names: list[str] = []
    while page := client.list_collections(limit=_PAGE, offset=len(names)):
        names += [collection.name for collection in page]
    return names


def _delete(client: "Client", names: Collection[str]) -> None:
    for name in sorted(set(_names(client)) & set(names)):
        client.delete_collection(name)
