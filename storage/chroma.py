"""Serves the vectors of each generation from a folder of Chroma's, which lies in the generation's folder.

One process builds a folder, closes it, and only then is it published, so that Chroma never has a writer beside readers.
Every folder has a path of its own: Chroma hands out cached data for a path that it has opened before. The `chromadb`
package takes a second to load, so it is imported when the first index is opened.

Chroma crashes its process where its files are damaged, and finds other windows where a flipped bit left them readable.
So a folder is sealed when it is built, with the length and checksum of each file, and the seal is compared before each
opening: 2 ms for 600 windows, 0.2 s for 100,000, where Chroma's own opening takes 0.1 and 2.6 s.
"""

import logging
import shutil
import sqlite3
import threading
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, cast
from uuid import uuid4

from pydantic import ValidationError

from storage.errors import Damaged, NotPermitted, StorageError
from storage.faults import fault_in_words, faults_told, writable
from storage.layout import sync, sync_tree
from storage.records import Record
from storage.vectors import (
    LEAST_RECALL,
    REBUILD,
    ExactIndex,
    Hit,
    StoredVectors,
    Vector,
    VectorIndex,
    Window,
    measured_recall,
)

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection as ChromaCollection

T = TypeVar("T")

DATABASE = "chroma.sqlite3"
SEAL = "seal.json"
_PREFIX = "chroma-"
_UNFIT = "chroma-unfit"  # beside a folder that finds too little, as where many thousand windows are the same
_COLLECTION = "windows"
_GRAPH = "index_metadata.pickle"  # without it Chroma makes the other files of a graph anew when it opens them
_BLOCK = 1 << 20
# Every opening leaves a row in this table, to hold the lock of a transaction, and reads it never.
_LEAVE_AS_IT_IS = """
    CREATE TRIGGER IF NOT EXISTS sealed BEFORE INSERT ON acquire_write BEGIN SELECT RAISE(IGNORE); END
"""
_PAGE = 5_000  # Chroma takes at most 5,461 rows in one call
# While Chroma takes windows no other thread runs: 130 ms for 600 of them. From 1,000 on it writes its graph to files,
# where one large page keeps the whole graph in them.
_FEW = 1_000
_FEW_AT_ONCE = 128
_PANIC = "pyo3_runtime"
# Chroma counts the users of an opened path without a lock: two threads that open one path at once lose a count.
OPENING = threading.Lock()

logger = logging.getLogger(__name__)


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

        What finds too little even so is not used: searches then compare all vectors.
        """
        windows, before = stored.windows(), index_folder(stored.folder)
        folder = self._scratch / f"{_PREFIX}{uuid4().hex[:8]}"
        recall = 0.0 if base is None else _built_from(folder, base, stored, windows)
        if recall < LEAST_RECALL:
            shutil.rmtree(folder, ignore_errors=True)
            with open_folder(folder, create=True) as index:
                index.put(windows, stored)
                index.check_count(len(windows))
                recall = measured_recall(index, stored)
            seal(folder)
        (stored.folder / _UNFIT).unlink(missing_ok=True)
        if recall < LEAST_RECALL:
            logger.info("Chroma found %.0f%% of the nearest windows: all are compared instead.", 100 * recall)
            (stored.folder / _UNFIT).touch()
        sync_tree(folder)
        # A path that was opened once is never used again.
        number = int(before.name.removeprefix(_PREFIX)) + 1 if before else 1
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        with OPENING:
            self._client.close()

    def search(self, vector: Vector, count: int, documents: Collection[str] | None) -> list[Hit]:
        where = None if documents is None else {"document": {"$in": sorted(documents)}}
        with reported(self.place, self._errors):
            found = self._collection.query(
                query_embeddings=[vector.tolist()],
                n_results=count,
                where=where,  # type: ignore[arg-type]  # Chroma's own type does not accept its documented form
                include=["metadatas", "distances"],
            )
        metadatas, distances = found["metadatas"], found["distances"]
        if metadatas is None or distances is None:
            raise StorageError(self.place, "the vector index answered without distances", REBUILD)
        rows = zip(found["ids"][0], metadatas[0], distances[0], strict=True)
        return [Hit(window=i, chunk=str(m["chunk"]), cosine=1.0 - d) for i, m, d in rows]

    def remove(self, ids: Sequence[str]) -> None:
        with reported(self.place, self._errors):
            for page in _pages(ids):
                self._collection.delete(ids=list(page))

    def put(self, windows: Sequence[Window], stored: StoredVectors) -> None:
        """Adds or replaces windows."""
        with reported(self.place, self._errors):
            for page in _pages(windows, _FEW_AT_ONCE if len(windows) < _FEW else _PAGE):
                self._collection.upsert(
                    ids=[w.id for w in page],
                    embeddings=stored.vectors_of(page),
                    metadatas=[{"chunk": w.chunk, "document": w.document, "hash": w.text_hash} for w in page],
                )

    def check_count(self, count: int) -> None:
        """Raises StorageError unless the index holds so many windows."""
        with reported(self.place, self._errors):
            held = self._collection.count()
        if held != count:
            raise StorageError(self.place, f"the vector index holds {held} of {count} windows", REBUILD)


class _SealedFile(Record):
    size: int
    crc32: int


class _Seal(Record):
    """Another version of Chroma may change its files when it opens them: the seal holds for the one that built them."""

    chroma: str
    files: dict[str, _SealedFile]


def open_folder(folder: Path, create: bool = False) -> ChromaIndex:
    """An open folder of Chroma's; StorageError where it is missing or damaged, or may not be written."""
    # Chroma would make an empty index at a path that does not exist.
    if not create:
        with faults_told(folder):
            if not (folder / DATABASE).is_file():
                raise StorageError(folder, "the vector index is missing", REBUILD)
        if not writable(folder / DATABASE):
            raise NotPermitted(folder, "Chroma opens its files for writing only")
        check_seal(folder)
    import chromadb
    from chromadb.config import Settings
    from chromadb.errors import ChromaError

    with OPENING, reported(folder, (ChromaError,)):
        # Declared as an interface that lacks `close`.
        client = cast(
            "Client", chromadb.PersistentClient(path=str(folder), settings=Settings(anonymized_telemetry=False))
        )
        try:
            collection = (
                new_collection(client, _COLLECTION)
                if create
                else client.get_collection(_COLLECTION, embedding_function=None)
            )
        except ChromaError:
            client.close()
            raise
    return ChromaIndex(folder, client, collection, (ChromaError,))


def index_folder(generation: Path) -> Path | None:
    """The newest Chroma folder of a generation's folder."""
    found = [f for f in generation.glob(f"{_PREFIX}*") if f.name.removeprefix(_PREFIX).isdecimal()]
    return max(found, key=lambda f: int(f.name.removeprefix(_PREFIX)), default=None)


def new_collection(client: "Client", name: str) -> "ChromaCollection":
    """An empty collection for unit vectors."""
    return client.create_collection(name, embedding_function=None, configuration={"hnsw": {"space": "cosine"}})


@contextmanager
def reported(place: str | Path, errors: tuple[type[Exception], ...]) -> Iterator[None]:
    """Chroma's errors as a StorageError about this place."""
    try:
        yield
    except BaseException as error:
        # A panic of its Rust code is no Exception, and its class is nowhere to be imported from.
        if not isinstance(error, errors) and type(error).__module__ != _PANIC:
            raise
        words = str(error).splitlines()[0] if str(error) else type(error).__name__
        # A server speaks of its own disk.
        fault = fault_in_words(words, place, REBUILD) if isinstance(place, Path) else None
        raise fault or StorageError(place, f"the vector index cannot be used ({words})", REBUILD) from error


def _built_from(folder: Path, base: StoredVectors, stored: StoredVectors, windows: Sequence[Window]) -> float:
    """The recall of a changed copy of the base's folder; 0 where none can be made."""
    built_on, there = index_folder(base.folder), {w.id: w for w in base.windows()}
    changed = [w for w in windows if there.get(w.id) != w]
    if built_on is None or len(changed) > len(windows) / 2:
        return 0.0
    try:
        shutil.copytree(built_on, folder, copy_function=_copy)
        with open_folder(folder) as index:
            index.remove(sorted(there.keys() - {w.id for w in windows}))
            index.put(changed, stored)
            index.check_count(len(windows))
            recall = measured_recall(index, stored)
        seal(folder)
    except (StorageError, shutil.Error, sqlite3.Error, OSError) as error:
        logger.warning("The vector index %s cannot be carried over and is built anew: %s", built_on, error)
        return 0.0
    return recall


def _copy(source: str, target: str) -> str:
    # Without a seal a reader's opening may touch the database while it is copied: SQLite's own copy waits for a whole
    # state, but is not the same file.
    if Path(source).name != DATABASE or Path(source).with_name(SEAL).is_file():
        return str(shutil.copy2(source, target))
    there, here = sqlite3.connect(f"{Path(source).absolute().as_uri()}?mode=ro", uri=True), sqlite3.connect(target)
    try:
        there.backup(here)
    finally:
        there.close()
        here.close()
    return target


def _pages(rows: Sequence[T], size: int = _PAGE) -> Iterator[Sequence[T]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


# --- the seal --------------------------------------------------------------------------------------------------------


def seal(folder: Path) -> None:
    """Seals a folder that Chroma has closed; opening it no longer changes its database."""
    with faults_told(folder):
        with closing(sqlite3.connect(folder / DATABASE)) as connection, connection:
            connection.execute(_LEAVE_AS_IT_IS)
        found = _Seal(chroma=version("chromadb"), files={name: _described(folder / name) for name in _sealed(folder)})
        (folder / SEAL).write_text(found.model_dump_json() + "\n", encoding="utf-8")


def check_seal(folder: Path) -> None:
    """Raises Damaged where a file is not as it was sealed.

    Where there is no seal, or another version of Chroma's, only the database is examined, by SQLite's own check.
    """
    with faults_told(folder, REBUILD):
        sealed = _read(folder)
        if sealed is None or sealed.chroma != version("chromadb"):
            _quick_check(folder)
            return
        for name, file in sealed.files.items():
            if _described(folder / name) != file:
                raise Damaged(folder, f"{name} is not as it was built", REBUILD)


def _read(folder: Path) -> _Seal | None:
    try:
        return _Seal.model_validate_json((folder / SEAL).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def _sealed(folder: Path) -> list[str]:
    graphs = [path.parent for path in sorted(folder.glob(f"*/{_GRAPH}"))]
    files = [path for graph in graphs for path in sorted(graph.iterdir())]
    return [DATABASE, *(str(path.relative_to(folder)) for path in files)]


def _described(path: Path) -> _SealedFile:
    size, crc = 0, 0
    try:
        with path.open("rb") as stream:
            while block := stream.read(_BLOCK):
                size, crc = size + len(block), zlib.crc32(block, crc)
    except FileNotFoundError:
        return _SealedFile(size=-1, crc32=0)
    return _SealedFile(size=size, crc32=crc)


def _quick_check(folder: Path) -> None:
    address = f"{(folder / DATABASE).absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != ("ok",):
        raise Damaged(folder, f"{DATABASE} is malformed", REBUILD)
