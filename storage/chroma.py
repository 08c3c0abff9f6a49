"""How does Chroma serve the vectors of one generation, and how is its folder built, copied and checked?

One process builds a folder, closes it, and only then is it published, so that Chroma never has a writer beside readers.
Every folder has a path of its own: Chroma hands out cached data for a path that it has opened before. The `chromadb`
package takes a second to load, so it is imported when the first index is opened.
"""

import logging
import shutil
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from storage.errors import NotPermitted, StorageError
from storage.faults import fault_in_words, faults_told, writable
from storage.records import Record
from storage.seal import DATABASE, SEAL, check_seal, seal

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection as ChromaCollection

T = TypeVar("T")
Vector = NDArray[np.float32]
FetchVectors = Callable[[Sequence[str]], Mapping[str, Vector]]

_COLLECTION = "windows"
_PAGE = 5_000  # Chroma takes at most 5,461 rows in one call
# While Chroma takes windows no other thread runs: 130 ms for 600 of them. From 1,000 on it writes its graph to files,
# where one large page keeps the whole graph in them.
_FEW = 1_000
_FEW_AT_ONCE = 128
_PROBE = 10
_PANIC = "pyo3_runtime"
REBUILD = "`trellis clean --vectors` builds it anew from the database; nothing else is lost."
# Chroma counts the users of an opened path without a lock: two threads that open one path at once lose a count.
OPENING = threading.Lock()

logger = logging.getLogger(__name__)


class Window(Record):
    """A stretch of a chunk short enough for the embedding model; `text_hash` names its vector."""

    id: str
    chunk: str
    document: str
    text_hash: str


class Hit(Record):
    """A window that Chroma found."""

    window: str
    chunk: str
    cosine: float


class VectorIndex:
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

    def query(self, vector: Vector, count: int, documents: Collection[str] | None) -> list[Hit]:
        """The nearest `count` windows (fewer where there are fewer), of these documents (None: of all)."""
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

    def windows(self) -> dict[str, Window]:
        """All windows of the index by id."""
        windows: dict[str, Window] = {}
        with reported(self.place, self._errors):
            for offset in range(0, self._collection.count(), _PAGE):
                page = self._collection.get(limit=_PAGE, offset=offset, include=["metadatas"])
                for i, m in zip(page["ids"], page["metadatas"] or (), strict=True):
                    windows[i] = Window(
                        id=i, chunk=str(m["chunk"]), document=str(m["document"]), text_hash=str(m["hash"])
                    )
        return windows

    def remove(self, ids: Sequence[str]) -> None:
        with reported(self.place, self._errors):
            for page in _pages(ids):
                self._collection.delete(ids=list(page))

    def put(self, windows: Sequence[Window], fetch: FetchVectors) -> None:
        """Adds or replaces windows; `fetch` gives the vectors of text hashes."""
        with reported(self.place, self._errors):
            for page in _pages(windows, _FEW_AT_ONCE if len(windows) < _FEW else _PAGE):
                vectors = fetch([w.text_hash for w in page])
                self._collection.upsert(
                    ids=[w.id for w in page],
                    embeddings=np.stack([vectors[w.text_hash] for w in page]),
                    metadatas=[{"chunk": w.chunk, "document": w.document, "hash": w.text_hash} for w in page],
                )

    def check(self, windows: Sequence[Window], fetch: FetchVectors) -> None:
        """Raises StorageError unless the index holds as many windows and finds as many as it is asked for.

        Counting is not enough: with its graph files lost, Chroma still counts every window but finds hardly any.
        """
        with reported(self.place, self._errors):
            count = self._collection.count()
        probe = windows[0].text_hash
        found = self.query(fetch([probe])[probe], min(_PROBE, len(windows)), None)
        if count != len(windows) or len(found) < min(_PROBE, len(windows)):
            raise StorageError(self.place, f"the vector index holds {count} of {len(windows)} windows", REBUILD)


class ChromaIndex(VectorIndex):
    """An open Chroma folder."""

    def __init__(self, folder: Path, create: bool = False) -> None:
        # Chroma would make an empty index at a path that does not exist.
        if not create:
            with faults_told(folder):
                if not (folder / DATABASE).is_file():
                    raise StorageError(folder, "the vector index is missing", REBUILD)
            if not writable(folder / DATABASE):
                raise NotPermitted(folder, "Chroma opens its files for writing only")
            check_seal(folder, REBUILD)
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
        super().__init__(folder, client, collection, (ChromaError,))


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
        fault = fault_in_words(words, place, REBUILD)
        raise fault or StorageError(place, f"the vector index cannot be used ({words})", REBUILD) from error


def build(
    folder: Path, base: Path | None, before: Sequence[Window], windows: Sequence[Window], fetch: FetchVectors
) -> None:
    """Makes a Chroma folder that holds exactly these windows (at least one).

    Starts from a copy of `base`, which was made of `before`, and applies the difference; from nothing where there is no
    base, where it is damaged, or where more than half would change.
    """
    if base is not None and _build_from(folder, base, before, windows, fetch):
        return
    shutil.rmtree(folder, ignore_errors=True)
    with ChromaIndex(folder, create=True) as index:
        index.put(windows, fetch)
        index.check(windows, fetch)
    seal(folder)


def _build_from(
    folder: Path, base: Path, before: Sequence[Window], windows: Sequence[Window], fetch: FetchVectors
) -> bool:
    there = {w.id: w for w in before}
    changed = [w for w in windows if there.get(w.id) != w]
    if len(changed) > len(windows) / 2:
        return False
    try:
        shutil.copytree(base, folder, copy_function=_copy)
        with ChromaIndex(folder) as index:
            index.remove(sorted(there.keys() - {w.id for w in windows}))
            index.put(changed, fetch)
            index.check(windows, fetch)
        seal(folder)
    except (StorageError, shutil.Error, sqlite3.Error, OSError) as error:
        logger.warning("The vector index %s cannot be carried over and is built anew: %s", base, error)
        return False
    return True


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
