"""Serves the vectors of each generation from Chroma: a folder in the generation's folder, or a collection on a server.

One process builds a folder, closes it, and only then is it published, so that Chroma never has a writer beside readers.
Every folder has a path of its own: Chroma hands out cached data for a path that it has opened before. The `chromadb`
package takes a second to load, so it is imported when the first index is opened.

A collection is one that a user of Chroma can query: documents, metadata, and cosine as its distance; its own metadata
name the embedding model.

Chroma crashes its process where its files are damaged, and finds other windows where a flipped bit left them readable.
So a folder is sealed when it is built, with the length and checksum of each file, and one that is not as it was sealed
is not opened: 25 ms for 4,000 windows with their texts.
"""

import json
import logging
import math
import shutil
import sqlite3
import threading
import zlib
from base64 import b64encode
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar, cast
from urllib.parse import quote, unquote, urlsplit
from uuid import uuid4

from storage.errors import Damaged, NotPermitted, SettingsError, StorageError
from storage.exact_store import ExactIndex
from storage.faults import fault_in_words, faults_told, writable
from storage.layout import sync, sync_tree, write_atomically
from storage.vectors import REBUILD, Hit, ServerAddress, StoredVectors, Vector, VectorIndex, chunk_of, finds_enough

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection as ChromaCollection

T = TypeVar("T")

DATABASE = "chroma.sqlite3"
SEAL = "seal.json"
_PREFIX = "chroma-"
_UNFIT = "chroma-unfit"  # in place of a folder that finds too little, as where many thousand windows are the same
_COLLECTION = "windows"
_MODEL, _FORMAT = "embedding_model", "format"  # in a collection's metadata
_THIS_FORMAT = 2  # one without a number holds no documents
_RESERVED = ("#", "$", "chroma:")  # in front of a key of metadata
_GRAPH = "index_metadata.pickle"  # without it Chroma makes the other files of a graph anew when it opens them
# Every opening leaves a row in this table, to hold the lock of a transaction, and reads it never.
_LEAVE_AS_IT_IS = """
    CREATE TRIGGER IF NOT EXISTS sealed BEFORE INSERT ON acquire_write BEGIN SELECT RAISE(IGNORE); END
"""
_PATIENCE = 5.0  # seconds to learn whether the server is there
_LONGEST = 60.0  # seconds of one request
_LISTED = 100  # collections in one answer
# By itself Chroma writes its graph by the thousand, and adds the rest anew whenever the folder is opened, each time a
# little otherwise: two processes would find different windows.
_SYNC_THRESHOLD = 1
_PAGE = 5_000  # Chroma takes at most 5,461 rows in one call
_PANIC = "pyo3_runtime"
# Chroma counts the users of an opened path without a lock: two threads that open one path at once lose a count.
OPENING = threading.Lock()

logger = logging.getLogger(__name__)


class _FindsTooLittle(StorageError):
    """Nothing is damaged: an approximate index of these windows misses too many."""


class ChromaFolders:
    """The vector store that keeps a folder of Chroma's in each generation's folder.

    Folders are built in `scratch`, on the same disk, which the next run empties.
    """

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch

    def prepare(self) -> None:
        """There is nothing to ask."""

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        """Starts from a copy of the base's folder and applies the difference; from nothing where there is none, where
        it is damaged or finds too little then, or where more than half would change.

        One that finds too little even so is not kept: searches then compare all vectors.
        """
        before = index_folder(stored.folder)
        folder = self._scratch / f"{_PREFIX}{uuid4().hex[:8]}"
        (stored.folder / _UNFIT).unlink(missing_ok=True)
        try:
            if base is None or not _built_from(folder, base, stored):
                shutil.rmtree(folder, ignore_errors=True)
                with open_folder(folder, of_model=stored.model()) as index:
                    _fill(index, None, stored)
                seal(folder)
        except _FindsTooLittle:
            shutil.rmtree(folder)
            (stored.folder / _UNFIT).touch()
        else:
            # A path that was opened once is never used again.
            number = int(before.name.removeprefix(_PREFIX)) + 1 if before else 1
            sync_tree(folder)
            folder.rename(stored.folder / f"{_PREFIX}{number}")
        sync(stored.folder)
        if before is not None:
            shutil.rmtree(before)

    def open(self, stored: StoredVectors) -> VectorIndex:
        if (stored.folder / _UNFIT).exists():
            return ExactIndex(stored)
        return open_folder(index_folder(stored.folder) or stored.folder / f"{_PREFIX}1")

    def keep_only(self, numbers: Collection[int]) -> None:
        """A folder goes with its generation."""


class ChromaIndex:
    """An open collection of Chroma's, in a folder or on a server; `place` names it in errors."""

    def __init__(
        self, place: str | Path, client: "Client", collection: "ChromaCollection", errors: tuple[type[Exception], ...]
    ) -> None:
        self.place = place
        self._client = client
        self._collection = collection
        self._errors = errors

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with OPENING:
            self._client.close()

    def search(self, vector: Vector, count: int, documents: Collection[str] | None) -> list[Hit]:
        where = None if documents is None else {"document": {"$in": sorted(documents)}}
        with reported(self.place, self._errors):
            result = self._collection.query(
                query_embeddings=[vector.tolist()],
                n_results=count,
                where=where,  # type: ignore[arg-type]  # Chroma's own type does not accept its documented form
                include=["distances"],  # with metadata it takes three times as long
            )
        ids, distances = result["ids"], result["distances"]
        if distances is None:
            raise StorageError(self.place, "the vector index answered without distances", REBUILD)
        return [Hit(name, chunk_of(name), 1.0 - far) for name, far in zip(ids[0], distances[0], strict=True)]

    def remove(self, ids: Sequence[str]) -> None:
        with reported(self.place, self._errors):
            for page in _pages(ids):
                self._collection.delete(ids=list(page))

    def put(self, windows: Collection[str] | None, stored: StoredVectors) -> None:
        """Adds or replaces windows (by id; None: all)."""
        with reported(self.place, self._errors):
            for page in stored.entries(_PAGE, windows):
                self._collection.upsert(
                    ids=[entry.window.id for entry in page],
                    embeddings=stored.vectors_of([entry.window for entry in page]),
                    documents=[entry.text for entry in page],
                    metadatas=[_taken_by_chroma(entry.metadata) for entry in page],
                )

    def write_at_once(self) -> None:
        """From now on Chroma writes each change of the graph, as in a collection that is new; call it before any."""
        with reported(self.place, self._errors):
            self._collection.modify(configuration={"hnsw": {"sync_threshold": _SYNC_THRESHOLD}})

    @property
    def is_of_this_format(self) -> bool:
        return (self._collection.metadata or {}).get(_FORMAT) == _THIS_FORMAT

    def count(self) -> int:
        with reported(self.place, self._errors):
            return self._collection.count()


def open_folder(folder: Path, of_model: str | None = None) -> ChromaIndex:
    """An open folder of Chroma's; StorageError where it is missing or damaged, or may not be written.

    With `of_model` a new one, for vectors of that model.
    """
    # Chroma would make an empty index at a path that does not exist.
    if of_model is None:
        with faults_told(folder):
            if not (folder / DATABASE).is_file():
                raise StorageError(folder, "the vector index is missing", REBUILD)
        if not writable(folder / DATABASE):
            raise NotPermitted(folder, "Chroma opens its files for writing only")
        check_seal(folder)
    import chromadb
    from chromadb.config import Settings
    from chromadb.errors import ChromaError

    # A ValueError where this program has the folder open with settings of its own; an AttributeError, of what Chroma
    # clears away, where it could not begin.
    with OPENING, reported(folder, (ChromaError, ValueError, AttributeError)):
        # Declared as an interface that lacks `close`.
        client = cast(
            "Client", chromadb.PersistentClient(path=str(folder), settings=Settings(anonymized_telemetry=False))
        )
        try:
            collection = (
                new_collection(client, _COLLECTION, of_model)
                if of_model is not None
                else client.get_collection(_COLLECTION, embedding_function=None)
            )
        except ChromaError:
            client.close()
            raise
    return ChromaIndex(folder, client, collection, (ChromaError,))


def index_folder(generation: Path) -> Path | None:
    """The newest Chroma folder of a generation's folder."""
    folders = [f for f in generation.glob(f"{_PREFIX}*") if f.name.removeprefix(_PREFIX).isdecimal()]
    return max(folders, key=lambda f: int(f.name.removeprefix(_PREFIX)), default=None)


def new_collection(client: "Client", name: str, model: str) -> "ChromaCollection":
    """An empty collection for vectors of a model."""
    return client.create_collection(
        name, embedding_function=None, configuration={"hnsw": {"space": "cosine", "sync_threshold": _SYNC_THRESHOLD}},
        metadata={_MODEL: model, _FORMAT: _THIS_FORMAT},
    )  # fmt: skip


@contextmanager
def reported(place: str | Path, errors: tuple[type[Exception], ...]) -> Iterator[None]:
    """Chroma's errors as a StorageError about this place."""
    try:
        yield
    except BaseException as error:
        # A panic of its Rust code is no Exception, and its class is nowhere to be imported from.
        if not isinstance(error, errors) and type(error).__module__ != _PANIC:
            raise
        cause = error.__context__ if isinstance(error, AttributeError) and error.__context__ else error
        words = str(cause).splitlines()[0] if str(cause) else type(cause).__name__
        # A server speaks of its own disk.
        fault = fault_in_words(words, place, REBUILD) if isinstance(place, Path) else None
        raise fault or StorageError(place, f"the vector index cannot be used ({words})", REBUILD) from error


def _built_from(folder: Path, base: StoredVectors, stored: StoredVectors) -> bool:
    """Whether a changed copy of the base's folder serves the windows."""
    built_on, was, now = index_folder(base.folder), base.digests(), stored.digests()
    changed = [window for window, digest in now.items() if was.get(window) != digest]
    if built_on is None or len(changed) > len(now) / 2:
        return False
    try:
        shutil.copytree(built_on, folder)
        with open_folder(folder) as index:
            if not index.is_of_this_format:
                return False
            index.write_at_once()
            index.remove(sorted(was.keys() - now.keys()))
            _fill(index, changed, stored)
        seal(folder)
    except _FindsTooLittle:
        return False
    except (StorageError, shutil.Error, sqlite3.Error, OSError) as error:
        logger.warning("The vector index %s cannot be carried over and is built anew: %s", built_on, error)
        return False
    return True


def _fill(index: ChromaIndex, windows: Collection[str] | None, stored: StoredVectors) -> None:
    """Puts these windows into the index; StorageError unless it holds all then, and finds enough of them."""
    index.put(windows, stored)
    if (held := index.count()) != (count := stored.count()):
        raise StorageError(index.place, f"the vector index holds {held} of {count} windows", REBUILD)
    if not finds_enough(index, stored):  # as where many thousand windows are the same
        remedy = "TRELLIS_VECTOR_STORE=exact compares all vectors in the database."
        raise _FindsTooLittle(index.place, "its index finds too few of the nearest windows", remedy)


def _taken_by_chroma(metadata: dict[str, str | int | float | bool]) -> dict[str, str | int | float | bool]:
    """Without the keys that Chroma keeps for itself and the numbers that are none: it would refuse, or drop, all."""
    return {
        key: value
        for key, value in metadata.items()
        if key and not key.startswith(_RESERVED) and not (isinstance(value, float) and not math.isfinite(value))
    }


def _pages(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(rows), _PAGE):
        yield rows[start : start + _PAGE]


# --- the seal --------------------------------------------------------------------------------------------------------


def seal(folder: Path) -> None:
    """Seals a folder that Chroma has closed; opening it no longer changes its database."""
    with faults_told(folder):
        with closing(sqlite3.connect(folder / DATABASE)) as connection, connection:
            connection.execute(_LEAVE_AS_IT_IS)
        graphs = [path.parent for path in sorted(folder.glob(f"*/{_GRAPH}"))]
        paths = [folder / DATABASE, *(path for graph in graphs for path in sorted(graph.iterdir()))]
        files = {str(path.relative_to(folder)): _described(path) for path in paths}
        (folder / SEAL).write_text(json.dumps({"files": files}) + "\n", encoding="utf-8")


def check_seal(folder: Path) -> None:
    """Raises Damaged where there is no seal, or a file is not as it was sealed."""
    with faults_told(folder, REBUILD):
        try:
            files = dict(json.loads((folder / SEAL).read_bytes())["files"])
        except (FileNotFoundError, ValueError, LookupError, TypeError) as error:
            raise Damaged(folder, f"{SEAL} is missing or damaged", REBUILD) from error
        for name, file in files.items():
            if not (folder / name).is_file() or _described(folder / name) != file:
                raise Damaged(folder, f"{name} is not as it was built", REBUILD)


def _described(path: Path) -> dict[str, int]:
    crc = 0
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            crc = zlib.crc32(block, crc)
    return {"size": path.stat().st_size, "crc32": crc}


# --- on a server -----------------------------------------------------------------------------------------------------


class ChromaServer:
    """The vector store that keeps a collection for each generation of one workspace on one server, for many machines.

    It is filled before the generation is published and never changed afterwards, so readers and a run that publishes do
    not meet.
    The file `identity` says which workspace: a path is another one on every machine.
    """

    def __init__(self, server: ServerAddress, identity: Path) -> None:
        url = server.url
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.strip("/"):
            raise SettingsError("chroma_url", url, "an address such as http://localhost:8000")
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._secure = parts.scheme == "https"
        self._server = server
        self._headers = {}
        if server.token:
            self._headers = {"x-chroma-token": server.token, "Authorization": f"Bearer {server.token}"}
        elif parts.username:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers = {"Authorization": f"Basic {b64encode(user.encode()).decode()}"}
        self._identity = identity

    def prepare(self) -> None:
        """Also gives a name to a workspace that has none."""
        self.check()
        if not self._identity.is_file():
            write_atomically(self._identity, f"{uuid4().hex[:12]}\n")

    def check(self) -> None:
        """Raises StorageError where no Chroma server answers at the address, or not for this tenant and database."""
        import httpx

        tenant, database = self._server.tenant, self._server.database
        path = f"api/v2/tenants/{quote(tenant, safe='')}/databases/{quote(database, safe='')}"
        try:
            with httpx.Client(timeout=_PATIENCE, headers=self._headers) as client:
                self._server.bound(client, _PATIENCE)
                answer = client.get(f"{self.url}/{path}")
            if answer.status_code in {401, 403}:
                raise StorageError(
                    self.url, f"the Chroma server refuses this user (HTTP {answer.status_code})",
                    "Set TRELLIS_CHROMA_API_KEY, or USER:PASSWORD@ in TRELLIS_CHROMA_URL."
                )  # fmt: skip
            is_chromas = answer.headers.get("content-type", "").startswith("application/json")
            if answer.status_code in {400, 404} and is_chromas:
                raise StorageError(
                    self.url, f"the tenant {tenant!r} has no database {database!r} there ({answer.text[:200]})",
                    "Make them with chromadb.AdminClient, or correct TRELLIS_CHROMA_TENANT and TRELLIS_CHROMA_DATABASE."
                )  # fmt: skip
            answer.raise_for_status()
        except httpx.HTTPError as error:
            raise StorageError(
                self.url, f"no Chroma server answers ({error})",
                "Start it (`chroma run --path DIR --port PORT`), or unset TRELLIS_CHROMA_URL."
            ) from error  # fmt: skip

    def open(self, stored: StoredVectors) -> ChromaIndex:
        return self._open(self._name(stored.number))

    def build(self, stored: StoredVectors, base: StoredVectors | None) -> None:
        """Uploads all windows, under another name, so that nobody ever reads a part of them."""
        name, aside = self._name(stored.number), f"{self._name(stored.number)}-new"
        with self._connected() as client:
            _delete(client, {aside})
            new_collection(client, aside, stored.model() or "")
        with self._open(aside) as index:
            _fill(index, None, stored)
        with self._connected() as client:
            _delete(client, {name})
            client.get_collection(aside, embedding_function=None).modify(name=name)

    def keep_only(self, numbers: Collection[int]) -> None:
        """Removes the workspace's collections of all other generations, and what dead runs have left."""
        names, prefix = {self._name(number) for number in numbers}, self._prefix()
        with self._connected() as client:
            _delete(client, {name for name in _names(client) if name.startswith(prefix) and name not in names})

    def _name(self, number: int) -> str:
        return f"{self._prefix()}{number:06d}"

    def _prefix(self) -> str:
        try:
            return f"trellis-{self._identity.read_text(encoding='utf-8').strip()}-"
        except FileNotFoundError as error:
            raise StorageError(self.url, "no generation of this workspace is on this server", REBUILD) from error

    def _open(self, name: str) -> ChromaIndex:
        place, client = f"{self.url} {name}", self._connect()
        try:
            with reported(place, _errors()):
                return ChromaIndex(place, client, client.get_collection(name, embedding_function=None), _errors())
        except StorageError:
            client.close()
            raise

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
                    host=self._host,
                    port=self._port,
                    ssl=self._secure,
                    headers=self._headers,
                    tenant=self._server.tenant,
                    database=self._server.database,
                    settings=Settings(anonymized_telemetry=False),
                ),
            )
        # The package waits for ever, and has no setting for it.
        session = getattr(getattr(client, "_server", None), "_session", None)
        if isinstance(session, httpx.Client):
            session.timeout = httpx.Timeout(_LONGEST)
            self._server.bound(session, _LONGEST)
        return client


def _errors() -> tuple[type[Exception], ...]:
    import httpx
    from chromadb.errors import ChromaError

    # A ValueError is how the package reports a server that it cannot reach.
    return ChromaError, httpx.HTTPError, ValueError


def _names(client: "Client") -> list[str]:
    names: list[str] = []
    while page := client.list_collections(limit=_LISTED, offset=len(names)):
        names += [collection.name for collection in page]
    return names


def _delete(client: "Client", names: Collection[str]) -> None:
    for name in sorted(set(_names(client)) & set(names)):
        client.delete_collection(name)
