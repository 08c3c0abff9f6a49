"""Serves vectors from Chroma: a folder in each generation, or a collection for each on a server.

Chroma does not support readers while something is written. So a folder is built aside and closed
before it is moved to its generation, a collection is filled under another name, and neither is
changed later. Any user of Chroma can query both: they hold texts, metadata and cosine distances.
"""

import logging
import math
import shutil
import threading
from base64 import b64encode
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit
from uuid import uuid4

import chromadb
import httpx
import numpy as np
from chromadb.api.client import Client
from chromadb.api.collection_configuration import CreateCollectionConfiguration
from chromadb.config import Settings
from chromadb.errors import ChromaError

from storage.errors import SettingsError, StorageError
from storage.layout import Layout, sync_tree, write_atomically
from storage.system import sync
from storage.vector_store import REBUILD, ServerAddress
from storage.vectors import Hit, IndexEntry, Metadata, StoredVectors, Vector

_COLLECTION = "windows"
_FOLDER = "chroma-"  # and a number: Chroma caches a path that a process has opened before
_PAGE = 5_000  # Chroma takes at most 5,461 rows in one call
_RESERVED = ("#", "$", "chroma:")  # prefixes of Chroma's own metadata keys
_TIMEOUT = 5.0  # seconds
# By default Chroma writes its graph by the thousand and adds the rest at each opening, slightly
# differently each time: two processes would find different windows.
_INDEX: CreateCollectionConfiguration = {"hnsw": {"space": "cosine", "sync_threshold": 1}}
# Chroma shares state between clients of one path and counts them without a lock of its own.
_OPENING = threading.Lock()
# Chroma raises ValueError for settings and servers, AttributeError on a second attempt to open what
# it could not open.
_ERRORS = (ChromaError, httpx.HTTPError, ValueError, AttributeError)

logger = logging.getLogger(__name__)


class ChromaIndex:
    """An open collection. `place` names it in errors."""

    def __init__(self, place: str | Path, client: Client, collection: chromadb.Collection) -> None:
        self._place = place
        self._client = client
        self._collection = collection

    def close(self) -> None:
        with _OPENING:
            self._client.close()

    def search(self, vector: Vector, count: int) -> list[Hit]:
        with _reported(self._place):
            # Including metadata takes three times as long.
            found = self._collection.query(
                query_embeddings=[vector.tolist()], n_results=count, include=["distances"]
            )
        distances = found["distances"] or [[]]
        pairs = zip(found["ids"][0], distances[0], strict=True)
        return [Hit(window, 1.0 - distance) for window, distance in pairs]

    def fill(self, pages: Iterator[list[IndexEntry]], windows: int) -> None:
        """Add or replace entries. Raises StorageError unless the index then holds `windows`."""
        with _reported(self._place):
            for page in pages:
                self._collection.upsert(
                    ids=[entry.id for entry in page],
                    embeddings=np.stack([entry.vector for entry in page]),
                    documents=[entry.text for entry in page],
                    metadatas=[_accepted(entry.metadata) for entry in page],
                )
            held = self._collection.count()
        if held != windows:
            problem = f"the vector index holds {held} of {windows} windows"
            raise StorageError(self._place, problem, REBUILD)

    def remove(self, windows: Sequence[str]) -> None:
        with _reported(self._place):
            for start in range(0, len(windows), _PAGE):
                self._collection.delete(ids=list(windows[start : start + _PAGE]))


class ChromaFolders:
    """The vector store that keeps a Chroma folder in the folder of each generation."""

    def __init__(self, root: Path) -> None:
        self._staging = Layout(root).staging  # The next run empties it

    def prepare(self) -> None:
        """A folder needs no preparation."""

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        """Change a copy of the base's folder; build anew where more than half would change."""
        earlier = _folders(stored.folder)
        number = _number(earlier[-1]) + 1 if earlier else 1
        folder = self._aside()
        try:
            if base is None or not _carried_over(folder, stored, base):
                folder = self._aside()
                with closing(_open_folder(folder, stored.model())) as index:
                    index.fill(stored.entries(_PAGE), stored.count())
            sync_tree(folder)
            folder.rename(stored.folder / f"{_FOLDER}{number}")
            sync(stored.folder)
        finally:
            for before in earlier:
                # A reader that is just opening it makes files there again: the newest one is read.
                shutil.rmtree(before, ignore_errors=True)

    def _aside(self) -> Path:
        return self._staging / f"{_FOLDER}{uuid4().hex[:8]}"

    def open(self, stored: StoredVectors) -> ChromaIndex:
        folder = _newest(stored.folder)
        if folder is None:
            raise StorageError(stored.folder, "the vector index is missing", REBUILD)
        return _open_folder(folder)

    def keep_only(self, numbers: Collection[int]) -> None:
        """A folder is removed with its generation."""


def _folders(generation: Path) -> list[Path]:
    """Return the indexes of a generation, the newest last."""
    return sorted(generation.glob(f"{_FOLDER}[0-9]*"), key=_number)


def _number(folder: Path) -> int:
    return int(folder.name.removeprefix(_FOLDER))


def _newest(generation: Path) -> Path | None:
    return next(reversed(_folders(generation)), None)


def _open_folder(folder: Path, new_for: str | None = None) -> ChromaIndex:
    """Open a folder, or make one for vectors of the model `new_for`."""
    with _OPENING, _reported(folder):
        client = _closable(
            chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
        )
        try:
            if new_for is None:
                collection = client.get_collection(_COLLECTION, embedding_function=None)
            else:
                collection = _new_collection(client, _COLLECTION, new_for)
        except BaseException:
            client.close()
            raise
    return ChromaIndex(folder, client, collection)


def _carried_over(folder: Path, stored: StoredVectors, base: StoredVectors) -> bool:
    """Copy the base's index to the folder and change it; False where it must be built anew."""
    earlier, was, now = _newest(base.folder), base.digests(), stored.digests()
    changed = [window for window, digest in now.items() if was.get(window) != digest]
    if earlier is None or len(changed) > len(now) / 2:
        return False
    try:
        shutil.copytree(earlier, folder)
        with closing(_open_folder(folder)) as index:
            index.remove(sorted(was.keys() - now.keys()))
            index.fill(stored.entries(_PAGE, changed), len(now))
    except (StorageError, shutil.Error) as error:
        logger.warning("The vector index %s is built anew: %s", earlier, error)
        return False
    return True


def _closable(client: object) -> Client:
    """Narrow the type: Chroma's functions return `Client` but declare a type without `close`."""
    assert isinstance(client, Client)  # noqa: S101 -- for the type
    return client


def _new_collection(client: Client, name: str, model: str) -> chromadb.Collection:
    return client.create_collection(
        name, embedding_function=None, configuration=_INDEX, metadata={"embedding_model": model}
    )


def _accepted(metadata: Metadata) -> Metadata:
    """Leave out what Chroma refuses: its own keys and numbers that are not finite."""
    return {
        key: value
        for key, value in metadata.items()
        if key
        and not key.startswith(_RESERVED)
        and not (isinstance(value, float) and not math.isfinite(value))
    }


@contextmanager
def _reported(place: str | Path) -> Iterator[None]:
    """Turn Chroma's errors into a StorageError about this place."""
    try:
        yield
    except BaseException as error:
        # A panic of Chroma's Rust code is no Exception, and its class cannot be imported.
        if not isinstance(error, _ERRORS) and type(error).__name__ != "PanicException":
            raise
        words = (str(error).splitlines() or [type(error).__name__])[0]
        raise StorageError(place, f"the vector index cannot be used ({words})", REBUILD) from error


# --- on a server -----------------------------------------------------------------------------


class ChromaServer:
    """The vector store that keeps a collection per generation on a server, for many machines.

    The file IDENTITY holds the workspace's name on the server: its path differs between machines.
    """

    def __init__(self, root: Path, server: ServerAddress) -> None:
        parts = urlsplit(server.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.strip("/"):
            expected = "an address such as http://localhost:8000"
            raise SettingsError("chroma_url", server.url, expected)
        self._url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._server = server
        self._headers: dict[str, str] = {}
        if server.token:
            bearer = f"Bearer {server.token}"
            self._headers = {"x-chroma-token": server.token, "Authorization": bearer}
        elif parts.username:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers = {"Authorization": f"Basic {b64encode(user.encode()).decode()}"}
        self._identity = Layout(root).identity_file

    def prepare(self) -> None:
        """Check that the server answers, and name a workspace that has no name on it yet."""
        self._check()
        if not self._identity.is_file():
            write_atomically(self._identity, f"{uuid4().hex[:12]}\n")

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        """Upload all windows under another name, so that nobody reads a part of them."""
        name = self._name(stored.number)
        aside = f"{name}-new"
        with self._client() as client:
            _delete(client, {name, aside})
            _new_collection(client, aside, stored.model() or "")
        with closing(self._open(aside)) as index:
            index.fill(stored.entries(_PAGE), stored.count())
        with self._client() as client:
            client.get_collection(aside, embedding_function=None).modify(name=name)

    def open(self, stored: StoredVectors) -> ChromaIndex:
        return self._open(self._name(stored.number))

    def keep_only(self, numbers: Collection[int]) -> None:
        """Remove the workspace's other collections, also those that killed runs left behind."""
        kept, ours = {self._name(number) for number in numbers}, self._prefix()
        with self._client() as client:
            _delete(client, {name for name in _names(client) if name.startswith(ours)} - kept)

    def _prefix(self) -> str:
        if not self._identity.is_file():
            raise StorageError(self._url, "no generation of this workspace is there", REBUILD)
        return f"trellis-{self._identity.read_text(encoding='utf-8').strip()}-"

    def _name(self, number: int) -> str:
        return f"{self._prefix()}{number:06d}"

    def _open(self, name: str) -> ChromaIndex:
        place, client = f"{self._url} {name}", self._connect()
        try:
            with _reported(place):
                collection = client.get_collection(name, embedding_function=None)
        except BaseException:
            client.close()
            raise
        return ChromaIndex(place, client, collection)

    @contextmanager
    def _client(self) -> Iterator[Client]:
        with self._connect() as client, _reported(self._url):
            yield client

    def _connect(self) -> Client:
        self._check()
        with _reported(self._url):
            return _closable(
                chromadb.HttpClient(
                    host=self._host,
                    port=self._port,
                    ssl=self._url.startswith("https"),
                    headers=self._headers,
                    tenant=self._server.tenant,
                    database=self._server.database,
                    settings=Settings(anonymized_telemetry=False),
                )
            )

    def _check(self) -> None:
        """Raise StorageError where no server answers, or has no such tenant and database.

        Chroma's own client would wait for ever.
        """
        tenant, database = self._server.tenant, self._server.database
        path = f"tenants/{quote(tenant, safe='')}/databases/{quote(database, safe='')}"
        try:
            answer = httpx.get(
                f"{self._url}/api/v2/{path}", headers=self._headers, timeout=_TIMEOUT
            )
            if answer.status_code in {401, 403}:
                problem = f"the Chroma server refuses this user (HTTP {answer.status_code})"
                remedy = "Set TRELLIS_CHROMA_API_KEY, or USER:PASSWORD@ in TRELLIS_CHROMA_URL."
                raise StorageError(self._url, problem, remedy)
            is_chromas = answer.headers.get("content-type", "").startswith("application/json")
            if answer.status_code in {400, 404} and is_chromas:
                raise StorageError(
                    self._url,
                    f"the tenant {tenant!r} has no database {database!r} there "
                    f"({answer.text[:200]})",
                    "Make them with chromadb.AdminClient, or correct TRELLIS_CHROMA_TENANT and "
                    "TRELLIS_CHROMA_DATABASE.",
                )
            answer.raise_for_status()
        except httpx.HTTPError as error:
            problem = f"no Chroma server answers ({error})"
            remedy = "Start it (`chroma run --path DIR --port PORT`), or unset TRELLIS_CHROMA_URL."
            raise StorageError(self._url, problem, remedy) from error


def _names(client: Client) -> list[str]:
    names: list[str] = []
    while page := client.list_collections(limit=100, offset=len(names)):
        names += [collection.name for collection in page]
    return names


def _delete(client: Client, names: Collection[str]) -> None:
    for name in sorted({*_names(client)} & {*names}):
        client.delete_collection(name)
