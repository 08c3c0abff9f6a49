"""Builds the next generation aside and publishes it in one step."""

import logging
import shutil
from collections.abc import Collection
from contextlib import AbstractContextManager, closing
from typing import Self
from uuid import uuid4

from storage.database import Database
from storage.documents import DocumentStore
from storage.errors import StorageError
from storage.facts import FactReader
from storage.graph import CommunityStore, EditStore, GraphStore
from storage.layout import (
    DATABASE,
    MANIFEST,
    Layout,
    Manifest,
    Pointer,
    WriterLock,
    sync_tree,
    write_atomically,
)
from storage.propositions import PropositionStore
from storage.provenance import ExtractionStore, MetaStore, ResolutionStore
from storage.records import utc_now
from storage.recovery import remove_old
from storage.system import sync
from storage.vector_store import VectorStore
from storage.vectors import StoredVectors, Window

logger = logging.getLogger(__name__)


class OpenGeneration:
    """The stores of a generation; a published one is read-only."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self.documents = DocumentStore(database)
        self.extractions = ExtractionStore(database)
        self.graph = GraphStore(database)
        self.communities = CommunityStore(database)
        self.resolutions = ResolutionStore(database)
        self.meta = MetaStore(database)
        self.edits = EditStore(database)
        self.facts = FactReader(database)
        self.propositions = PropositionStore(database)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()


class Staging(OpenGeneration):
    """The generation that a run is building; it holds the workspace's lock until it is closed.

    `number` is what it will have once published, `base_number` the generation that it is copied
    from (None: it starts empty). Closing without `publish` discards it. The caller has repaired the
    workspace.
    """

    def __init__(self, layout: Layout, lock: WriterLock, keep: int, store: VectorStore) -> None:
        self._layout = layout
        self._lock = lock
        self._keep = keep
        self._store = store
        self._published = False
        self._indexed: list[Window] = []
        pointer = layout.pointer()
        self.base_number = pointer.current
        self.number = pointer.last + 1
        layout.clear_leftovers()
        # Each run has another path: DuckDB and Chroma cache what a process has opened.
        self._folder = layout.staging / f"{self.number:06d}-{uuid4().hex[:8]}"
        self._folder.mkdir()
        if self.base_number is not None:
            # The base was checkpointed and is never written again, so a copy is whole.
            shutil.copyfile(layout.folder(self.base_number) / DATABASE, self._folder / DATABASE)
            super().__init__(Database.open(self._folder / DATABASE, read_only=False))
        else:
            super().__init__(Database.create(self._folder / DATABASE))
        self.vectors = StoredVectors(self._db, self.number)

    def transaction(self) -> AbstractContextManager[None]:
        return self._db.transaction()

    def build_index(self, afresh: bool = False) -> None:
        """Let the vector store index the windows, if they changed since the last call.

        `publish` calls this too. A failure is only logged, because searches then use the database.
        """
        windows = self.vectors.windows()
        if not windows or (windows == self._indexed and not afresh):
            return
        self._indexed = windows
        try:
            if afresh or self.base_number is None:
                self._store.build(self.vectors, None)
            else:
                path = self._layout.folder(self.base_number) / DATABASE
                with closing(Database.open(path)) as base:
                    self._store.build(self.vectors, StoredVectors(base, self.base_number))
        except StorageError as error:
            logger.warning("Vectors will be searched in the database, slower: %s", error)

    def publish(self, retire: Collection[int] = (), afresh: bool = False) -> int:
        """Make this the current generation, which is read-only from then on; return its number.

        `retire` are generations that nobody may open any more. `afresh` rewrites the database and
        the index, so that their files hold nothing of what was removed.
        """
        if self._published:
            problem = "this generation is published already"
            raise StorageError(self._folder, problem, "Begin another run.")
        layout, pointer = self._layout, self._layout.pointer()
        counts, forgotten = self.meta.counts(), tuple(self.documents.forgotten())
        self._db.execute("CHECKPOINT")
        self.build_index(afresh)
        self._db.close()
        if afresh:
            Database.rewrite(self._folder / DATABASE)
        manifest = Manifest(
            number=self.number,
            created=utc_now(),
            counts=counts,
            forgotten=forgotten,
            retired=tuple(sorted({*pointer.retired, *retire}.intersection(layout.folders()))),
            database_bytes=(self._folder / DATABASE).stat().st_size,
        )
        write_atomically(self._folder / MANIFEST, manifest.model_dump_json(indent=2) + "\n")
        sync_tree(self._folder)
        layout.generations.mkdir(exist_ok=True)
        self._folder.rename(layout.folder(self.number))  # This publishes it
        self._published = True
        try:
            sync(layout.generations)
            layout.point(Pointer(current=self.number, last=self.number, retired=manifest.retired))
            remove_old(layout, self._keep)
            self._store.keep_only(layout.published())
        except (OSError, StorageError) as error:
            # The generation is published; the next run, or `Workspace.clean`, tries again.
            logger.warning("What follows a publication could not all be done: %s", error)
        return self.number

    def close(self) -> None:
        """Discard what was not published, and release the lock."""
        super().close()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._lock.release()
