"""Workspaces: their generations are opened for reading, written, switched and removed.

A run builds the next generation aside and publishes it in one step. So a reader sees whole
generations only, and a run that dies at any moment leaves the current one untouched.
"""

import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from storage.database import Database
from storage.errors import NoGeneration, StorageError, UnknownGeneration
from storage.exact_store import ExactStore
from storage.export import ItemReader
from storage.filters import FilterReader
from storage.graph import TraversalReader
from storage.layout import DATABASE, Layout, Lease, WriterLock, read_manifest, size_of
from storage.neo4j_files import Neo4jFiles
from storage.parquet_files import ParquetFiles
from storage.publication import PublishReport, publish
from storage.records import Record
from storage.recovery import damage, damage_and_remedy, mend, needs_repair, refuse_lost, remove_old
from storage.staging import OpenGeneration, Staging
from storage.uploads import remove_parts
from storage.vector_search import VectorReader, open_vector_store
from storage.vector_store import VectorStore
from storage.workspace_db import WorkspaceDatabase

_ATTEMPTS = 50
_PAUSE = 0.02  # seconds
_REPAIR = (
    "The next `trellis index` repairs it, or `trellis rollback N` with one of `trellis "
    "generations`."
)
_UNUSED = "Nothing uses it: delete its folder when you do not need it."


class Generation(OpenGeneration):
    """A published generation, open for reading from any thread. It is not removed until `close`."""

    def __init__(self, number: int, database: Database, store: VectorStore, lease: Lease) -> None:
        super().__init__(database)
        self.number = number
        self._lease = lease
        self.vectors = VectorReader(database, number, store)
        self.traversal = TraversalReader(database)
        self.items = ItemReader(database)
        self.filters = FilterReader(database)
        self.parquet = ParquetFiles(database)
        self.neo4j = Neo4jFiles(database)

    def read_everything(self) -> None:
        """Read all tables. Raises StorageError where one is damaged."""
        self._db.read_everything()

    def close(self) -> None:
        self.vectors.close()
        super().close()
        self._lease.release()


class GenerationInfo(Record):
    """A kept generation; `created` is a UTC time in ISO form.

    `damage` says what is wrong with its files, and is empty where it can be read. Time and counts
    of a damaged one may be unknown.
    """

    number: int
    created: str
    current: bool
    counts: dict[str, int]
    size_bytes: int
    damage: str = ""
    remedy: str = ""


class WorkspaceProblem(Record):
    """What is wrong with a workspace, and what to do."""

    message: str
    remedy: str


class Workspace:
    """A folder of state. Nothing is created before the first write.

    `store` serves the vectors (None: the default one). With `reading`, the workspace's database is
    replaced by an empty one where it cannot be written or is damaged.
    """

    def __init__(
        self,
        root: Path,
        keep_generations: int = 5,
        store: VectorStore | None = None,
        reading: bool = False,
    ) -> None:
        self.root = root
        self.keep_generations = keep_generations
        self._layout = Layout(root)
        self._store = store or open_vector_store("auto", root)
        self.database = WorkspaceDatabase(self._layout.database_file, reading=reading)
        self.evaluations = self.database.evaluations

    def current(self) -> int | None:
        """Return the number of the generation that readers open; None where none is published.

        Raises StorageError where generations were published and all are gone.
        """
        number = self._layout.pointer().current
        if number is None:
            refuse_lost(self._layout)
        return number

    def changed(self, generation: Generation) -> bool:
        return self.current() != generation.number

    def generations(self) -> list[GenerationInfo]:
        """List the published generations, ascending, also damaged ones."""
        current = self.current()
        return [self._info(number, number == current) for number in self._layout.published()]

    def retired(self) -> list[int]:
        """List the retired generations that are still there because somebody reads them."""
        return sorted(set(self._layout.folders()) - set(self._layout.published()))

    def problems(self) -> list[WorkspaceProblem]:
        """List what is wrong; this writes nothing and reads no table."""
        layout, problems = self._layout, []
        if layout.folders() and layout.stated() != layout.pointer():
            state = "older than the generations" if layout.stated() else "missing or damaged"
            message = f"{layout.pointer_file}: it is {state}."
            problems.append(WorkspaceProblem(message=message, remedy=_REPAIR))
        for info in self.generations():
            if info.damage:
                remedy = _REPAIR if info.current else _UNUSED
                message = f"Generation {info.number} is damaged: {info.damage}."
                problems.append(WorkspaceProblem(message=message, remedy=info.remedy or remedy))
        return problems

    def examined(self) -> list[WorkspaceProblem]:
        """List `problems` and what reading everything reveals.

        This reads the current generation, its vector index and the workspace's database.
        """
        problems, number = self.problems(), self.current()
        checks = [self.database.check]
        with ExitStack() as stack:
            if number is not None and not damage_and_remedy(self._layout.folder(number), number)[0]:
                generation = stack.enter_context(self.read(number))
                checks += [generation.read_everything, generation.vectors.check]
            for check in checks:
                try:
                    check()
                except StorageError as error:
                    problems.append(WorkspaceProblem(message=error.message, remedy=error.remedy))
        return problems

    def read(self, number: int | None = None) -> Generation:
        """Open a generation (None: the current one). Raises NoGeneration or UnknownGeneration."""
        for _ in range(_ATTEMPTS):
            published = self._layout.published()
            wanted = self._current() if number is None else number
            if number is not None and number not in published:
                refuse_lost(self._layout)
                raise UnknownGeneration(number, published)
            lease = Lease.take(self._layout.folder(wanted))
            if lease is not None and wanted in self._layout.published():
                return self._open(wanted, lease)
            if lease is not None:
                lease.release()
            # It is being removed: soon another one is current, or the number is gone.
            time.sleep(_PAUSE)
        raise StorageError(self.root, "its current generation cannot be held for reading")

    def part(self, number: int, documents: Collection[str]) -> Generation:
        """Open what a generation that is being read holds of these documents (`Database.part`)."""
        folder = self._layout.folder(number)
        lease = Lease.take(folder)
        if lease is None:
            raise UnknownGeneration(number, self._layout.published())
        try:
            database = Database.part(folder / DATABASE, documents)
        except BaseException:
            lease.release()
            raise
        return Generation(number, database, ExactStore(), lease)

    def recover(self, from_nothing: bool = False) -> None:
        """Repair CURRENT where it is wrong, and remove leftovers of uploads. A run begins so.

        With `from_nothing`, the run may begin empty where no generation can be read. Raises
        WorkspaceLocked where a repair is needed while another run writes, and StorageError where a
        person has to decide.
        """
        self._layout.refuse_copy()
        remove_parts(self.root)
        if needs_repair(self._layout):
            with self._locked():
                mend(self._layout, from_nothing)

    def write(self) -> Staging:
        """Begin the next generation as a copy of the newest sound one.

        Raises WorkspaceLocked while another run writes, ReadOnlyWorkspace for a copy.
        """
        self._layout.refuse_copy()
        lock = WriterLock(self._layout.lock_file)
        try:
            mend(self._layout, from_nothing=True)
            self._store.prepare()  # Fail now, not after an hour of work
            self.database.prepare()
            return Staging(self._layout, lock, self.keep_generations, self._store)
        except BaseException:
            lock.release()
            raise

    def rollback(self, number: int) -> None:
        """Make a kept generation current. Later ones are kept, and their numbers not used again."""
        with self._locked():
            published = self._layout.published()
            if number not in published:
                raise UnknownGeneration(number, published)
            folder = self._layout.folder(number)
            if problem := damage(folder, number, whole=True):
                remedy = "Name another (see `trellis generations`)."
                raise StorageError(folder, f"this generation is damaged: {problem}", remedy)
            self._layout.point(self._layout.pointer().model_copy(update={"current": number}))

    def clean(self, keep: int | None = None) -> list[int]:
        """Remove the generations beyond `keep` (None: `keep_generations`) that nobody reads.

        Damaged ones are kept and do not count. Returns the removed numbers.
        """
        remove_parts(self.root)
        with self._locked():
            mend(self._layout)
            self._layout.clear_leftovers()
            removed = remove_old(self._layout, keep or self.keep_generations)
            self._store.keep_only(self._layout.published())
            return removed

    def rebuild_vectors(self, number: int | None = None) -> int:
        """Rebuild the vector index of a generation from its database; return its number of windows.

        Open readers go on with the index that they have.
        """
        with self._locked(), self.read(number) as generation:
            self._store.prepare()
            self._layout.clear_leftovers()
            count = generation.vectors.count()
            if count:
                self._store.build(generation.vectors, None)
            return count

    def _info(self, number: int, current: bool) -> GenerationInfo:
        folder = self._layout.folder(number)
        problem, remedy = damage_and_remedy(folder, number)
        manifest = read_manifest(folder) if not remedy else None
        return GenerationInfo(
            number=number,
            created=manifest.created if manifest else "",
            current=current,
            counts=manifest.counts if manifest else {},
            size_bytes=size_of(folder),
            damage=problem,
            remedy=remedy,
        )

    def _current(self) -> int:
        current = self.current()
        if current is None:
            raise NoGeneration(self.root)
        return current

    def _open(self, number: int, lease: Lease) -> Generation:
        folder = self._layout.folder(number)
        try:
            database = Database.open(folder / DATABASE)
        except BaseException:
            lease.release()
            raise
        return Generation(number, database, self._store, lease)

    def publish(self, address: str, keep: int | None = None) -> PublishReport:
        """Publish the current generation at an address, where `keep` publications stay (None: all).

        Raises NoGeneration, ReadOnlyWorkspace, UsageError for an address without a driver.
        """
        self._layout.refuse_copy()
        with self.read() as generation:
            return publish(self.root, generation.number, address, keep)

    @property
    def origin(self) -> str | None:
        """The address of what this workspace is a copy of; None where it is none."""
        return self._layout.origin()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._layout.refuse_copy()
        if not self._layout.folders():
            self._current()  # Raises, so that no lock file is made in an empty workspace
        lock = WriterLock(self._layout.lock_file)
        try:
            yield
        finally:
            lock.release()
