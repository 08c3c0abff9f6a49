"""Serves vectors from Qdrant: a collection for each generation on a server, or in this process.

The points hold texts and metadata, so other programs can query and filter them too. Without a
server the client's own local mode searches, which holds all vectors in memory and compares them
all; it is filled from the database, because on the disk it allows a single reader.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit
from uuid import NAMESPACE_URL, uuid4, uuid5

import httpx
from qdrant_client import QdrantClient
from qdrant_client.http.exceptions import ApiException
from qdrant_client.models import Distance, PointStruct, VectorParams

from storage.errors import SettingsError, StorageError
from storage.server_store import ServerStore, in_json, without_credentials
from storage.vector_store import REBUILD, ServerAddress, VectorStore
from storage.vectors import Hit, StoredVectors, Vector

_NUMBERS = 500_000  # of vectors in one request: 10 MB, a third of what the server accepts
_TIMEOUT = 60  # seconds
_REMEDY = "Start it, or correct TRELLIS_VECTOR_URL and TRELLIS_VECTOR_API_KEY."
# ValueError: what is wrong with a collection in local mode.
_ERRORS = (ApiException, httpx.HTTPError, ValueError)


class QdrantIndex:
    """A collection. `place` names it in errors."""

    def __init__(self, place: str, client: QdrantClient, name: str) -> None:
        self._place = place
        self._client = client
        self._name = name

    def search(self, vector: Vector, count: int) -> list[Hit]:
        with _reported(self._place, "the vector index cannot be used", REBUILD):
            found = self._client.query_points(
                self._name, query=vector.tolist(), limit=count, with_payload=["window"]
            )
        return [Hit(point.payload["window"], point.score) for point in found.points]

    def close(self) -> None:
        self._client.close()

    def fill(self, stored: StoredVectors) -> None:
        """Make the collection. Raises StorageError unless it then holds all windows."""
        with _reported(self._place, "the vector index cannot be built", REBUILD):
            cosine = VectorParams(size=stored.size(), distance=Distance.COSINE)
            self._client.create_collection(self._name, vectors_config=cosine)
            for page in stored.entries(max(1, _NUMBERS // stored.size())):
                points = [
                    PointStruct(
                        id=str(uuid5(NAMESPACE_URL, entry.id)),
                        vector=entry.vector.tolist(),
                        payload={**in_json(entry.metadata), "window": entry.id, "text": entry.text},
                    )
                    for entry in page
                ]
                self._client.upsert(self._name, points, wait=True)
            held, windows = self._client.count(self._name, exact=True).count, stored.count()
        if held != windows:
            problem = f"the vector index holds {held} of {windows} windows"
            raise StorageError(self._place, problem, REBUILD)


class QdrantServer:
    """Implements `storage.server_store.IndexServer`."""

    def __init__(self, server: ServerAddress) -> None:
        parts = urlsplit(server.url)
        self._url = without_credentials(server.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise SettingsError("vector_url", self._url, "an address such as http://localhost:6333")
        self._key = server.token or unquote(parts.password or parts.username or "") or None

    def check(self) -> None:
        self.names()

    def make(self, name: str, stored: StoredVectors) -> None:
        with self._client() as client:
            QdrantIndex(f"{self._url} {name}", client, name).fill(stored)

    def open(self, name: str) -> QdrantIndex:
        with self._client() as client:
            if not client.collection_exists(name):
                raise StorageError(f"{self._url} {name}", "the vector index is missing", REBUILD)
        return QdrantIndex(f"{self._url} {name}", self._connect(), name)

    def names(self) -> list[str]:
        with self._client() as client:
            return [collection.name for collection in client.get_collections().collections]

    def remove(self, name: str) -> None:
        with self._client() as client:
            client.delete_collection(name)

    @contextmanager
    def _client(self) -> Iterator[QdrantClient]:
        with _reported(self._url, "no Qdrant server does this", _REMEDY):
            client = self._connect()
            try:
                yield client
            finally:
                client.close()

    def _connect(self) -> QdrantClient:
        return QdrantClient(
            url=self._url, api_key=self._key, timeout=_TIMEOUT, check_compatibility=False
        )


class QdrantInProcess:
    """The vector store that fills the client's local mode whenever a generation is opened."""

    def prepare(self) -> None:
        """Nothing has to be ready."""

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        """Nothing has to be built."""

    def open(self, stored: StoredVectors) -> QdrantIndex:
        index = QdrantIndex(
            f"Qdrant in memory, {uuid4().hex[:8]}", QdrantClient(":memory:"), "windows"
        )
        index.fill(stored)
        return index

    def keep_only(self, numbers: Collection[int]) -> None:
        """An index goes with its reader."""


def open_store(root: Path, server: ServerAddress | None) -> VectorStore:
    """Make the store of a workspace: on a server where one is set."""
    return QdrantInProcess() if server is None else ServerStore(root, QdrantServer(server))


@contextmanager
def _reported(place: str, problem: str, remedy: str) -> Iterator[None]:
    try:
        yield
    except _ERRORS as error:
        words = (str(error).splitlines() or [type(error).__name__])[0]
        raise StorageError(place, f"{problem} ({words})", remedy) from error
