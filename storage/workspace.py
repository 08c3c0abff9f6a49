"""Workspaces and their generations: opened for reading, written, switched, rehearsed, measured and removed.

Readers follow one small file, CURRENT; a run builds the next generation aside and replaces that file at the very end.
So a reader sees one whole generation or another, and a run that dies at any moment leaves the current one untouched.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol

from storage.communities import CommunityReader
from storage.database import Database
from storage.documents import DocumentReader, PostingReader
from storage.errors import NoGeneration, StorageError, UnknownGeneration, WorkspaceFormatError
from storage.export import TableReader
from storage.filters import FilterReader
from storage.graph import EditReader, GraphReader, TraversalReader
from storage.items import ItemReader
from storage.layout import (
    DATABASE,
    LEASE,
    MEND,
    Layout,
    Lease,
    Manifest,
    Pointer,
    WriterLock,
    empty,
    read_manifest,
    size_of,
)
from storage.meta import MetaReader
from storage.provenance import ExtractionReader
from storage.records import Record
from storage.recovery import mend, needs_mending, publish_again, remove_old, stay
from storage.staging import Staging
from storage.survey import Survey, damage, is_retired, survey
from storage.vector_stores import open_vector_store
from storage.vectors import StoredVectors, VectorReader, VectorStore
from storage.workspace_db import DatabasePart, WorkspaceDatabase

_ATTEMPTS = 50
_PAUSE = 0.02  # seconds
_MEND_LEASE = "The next `trellis index` or `trellis clean` makes it again."


class OpenGeneration(Protocol):
    """What a generation and a staging have in common."""

    @property
    def documents(self) -> DocumentReader: ...
    @property
    def extractions(self) -> ExtractionReader: ...
    @property
    def postings(self) -> PostingReader: ...
    @property
    def graph(self) -> GraphReader: ...
    @property
    def communities(self) -> CommunityReader: ...
    @property
    def vectors(self) -> StoredVectors: ...
    @property
    def meta(self) -> MetaReader: ...


class Generation:
    """A published generation, open for reading from any thread. It stays as it is, and stays, until `close`."""

    def __init__(self, number: int, database: Database, store: VectorStore, lease: Lease) -> None:
        self.number = number
        self._db = database
        self._lease = lease
        self.documents = DocumentReader(database)
        self.extractions = ExtractionReader(database)
        self.postings = PostingReader(database)
        self.graph = GraphReader(database)
        self.communities = CommunityReader(database)
        self.vectors = VectorReader(database, number, store)
        self.meta = MetaReader(database)
        self.edits = EditReader(database)
        self.tables = TableReader(database)
        self.traversal = TraversalReader(database)
        self.filters = FilterReader(database)
        self.items = ItemReader(database)

    def __enter__(self) -> "Generation":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.vectors.close()
        self._db.close()
        self._lease.release()


class GenerationInfo(Record):
    """A kept generation; `created` is a UTC time in ISO form.

    `damage` says what is wrong with its files, and is empty where it can be read; time and counts may then be unknown.
    """

    number: int
    created: str
    current: bool
    counts: dict[str, int]
    size_bytes: int
    damage: str = ""


class WorkspaceProblem(Record):
    """Something of a workspace that is not as it should be, and what to do."""

    message: str
    remedy: str


class Workspace:
    """A folder of state. Nothing is created before the first write.

    `store` serves the vectors (None: the default one). `reading`: who only reads goes on without the side store where
    it cannot be written.
    """

    def __init__(
        self, root: Path, keep_generations: int = 5, store: VectorStore | None = None, reading: bool = False
    ) -> None:
        if keep_generations < 1:
            raise StorageError(root, f"cannot keep {keep_generations} generations", "Keep at least one.")
        self.root = root
        self.keep_generations = keep_generations
        self._layout = Layout(root)
        self._store = store or open_vector_store("auto", root)
        self.database = WorkspaceDatabase(self._layout.side_file, reading=reading)

    def current(self) -> int | None:
        """The generation that readers open, or None where nothing is published; StorageError where CURRENT is lost."""
        return self._layout.pointer().current

    def changed(self, generation: Generation) -> bool:
        """Whether readers should open another generation now. Reads one small file."""
        return self.current() != generation.number

    def generations(self) -> list[GenerationInfo]:
        """All that were published and are kept, ascending, damaged ones too. CURRENT may be lost."""
        found = survey(self._layout)
        return [self._info(number, found) for number in found.published]

    def retired(self) -> list[int]:
        """Generations that hold what was forgotten, and are still there because somebody reads them."""
        return list(survey(self._layout).retired)

    def set_aside(self) -> list[int]:
        """Generations that were built but never published, ascending; nothing reads them."""
        return list(survey(self._layout).aside)

    def problems(self) -> list[WorkspaceProblem]:
        """What is not as it should be; writes nothing."""
        found = survey(self._layout)
        problems = []
        if found.problem:
            problems.append(WorkspaceProblem(message=f"{self._layout.pointer_file}: {found.problem}.", remedy=MEND))
        for info in self.generations():
            if info.damage:
                problems.append(self._problem_of(info))
            elif not (self._layout.folder(info.number) / LEASE).exists():
                lease = self._layout.folder(info.number) / LEASE
                problems.append(WorkspaceProblem(message=f"{lease}: it is missing.", remedy=_MEND_LEASE))
        for number in (*found.unpublished, *found.aside):
            place = self._layout.folder(number) if number in found.unpublished else self._layout.folder_aside(number)
            remedy = f"`trellis rollback {number}` makes it current; delete its folder when you do not need it."
            problems.append(
                WorkspaceProblem(message=f"Generation {number} ({place}) was built but never published.", remedy=remedy)
            )
        return problems

    def read(self, number: int | None = None) -> Generation:
        """Opens a generation (None: the current one) read-only and keeps it from being removed until it is closed.

        Raises NoGeneration, or UnknownGeneration for a number that is not kept.
        """
        for _ in range(_ATTEMPTS):
            wanted = self._current() if number is None else number
            if number is not None and wanted not in survey(self._layout).published:
                self._layout.pointer()  # where CURRENT is lost, that is what is wrong
                raise UnknownGeneration(number, survey(self._layout).published)
            lease = Lease.take(self._layout.folder(wanted) / LEASE)
            if lease is not None and self._is_retired(wanted):
                lease.release()
                lease = None
            if lease is not None:
                return self._open(wanted, lease)
            # It is being removed right now: so another one is current, or the number is gone in a moment.
            time.sleep(_PAUSE)
        raise self._unreadable(wanted)

    def recover(self, from_nothing: bool = False) -> None:
        """Before a run that writes reads the current generation: makes sure that it can be read, or mends CURRENT.

        `from_nothing`: where none can be read, the run may begin with an empty one. Raises WorkspaceLocked where
        something is to be mended while another run writes, and StorageError where that takes a person.
        """
        if needs_mending(self._layout):
            lock = WriterLock(self._layout.lock_file)
            try:
                mend(self._layout, from_nothing=from_nothing)
            finally:
                lock.release()

    def write(self) -> Staging:
        """Begins the next generation from a copy of the current one; WorkspaceLocked while another run writes.

        Where the current one cannot be read, from the newest that can.
        """
        lock = WriterLock(self._layout.lock_file)
        try:
            mend(self._layout, from_nothing=True)
            self._store.prepare()  # now, not after an hour of work
            return Staging(self._layout, lock, self.keep_generations, self._store)
        except BaseException:
            lock.release()
            raise

    def rollback(self, number: int) -> None:
        """Makes a kept generation the current one, or one that was set aside, also where CURRENT is lost.

        Later ones stay; their numbers are not given again.
        """
        with self._locked():
            publish_again(self._layout, number)
            mend(self._layout, wanted=number)

    def clean(self, keep: int | None = None) -> list[int]:
        """Removes the generations beyond `keep` (None: `keep_generations`) that nobody reads; returns their numbers.

        Damaged ones and those that were set aside stay, and do not count.
        """
        with self._locked():
            mend(self._layout)
            empty(self._layout.staging)
            removed = remove_old(self._layout, keep or self.keep_generations)
            found = survey(self._layout)
            self._store.keep_only([*found.published, *found.aside])
            return removed

    def rebuild_vectors(self, number: int | None = None) -> int:
        """Builds the vector index of a generation anew from its database; returns how many windows it has.

        Readers that are open go on with what they have.
        """
        with self._locked(), self.read(number) as generation:
            self._store.prepare()
            empty(self._layout.staging)
            count = generation.vectors.count()
            if count:
                self._store.build(generation.vectors, None)
            return count

    def _info(self, number: int, found: Survey) -> GenerationInfo:
        folder = self._layout.folder(number)
        try:
            problem = damage(folder, number)
        except WorkspaceFormatError:
            problem = ""  # whoever opens it is told
        except StorageError as error:
            problem = error.message.removesuffix(".")  # nothing is known of its content
        try:
            manifest = read_manifest(folder)
        except StorageError:
            manifest = Manifest(number=number, created="")
        current = found.pointer is not None and number == found.pointer.current
        return GenerationInfo(
            number=number, created=manifest.created, current=current, counts=manifest.counts,
            size_bytes=size_of(folder), damage=problem,
        )  # fmt: skip

    def _problem_of(self, info: GenerationInfo) -> WorkspaceProblem:
        """Of a generation with `damage`."""
        try:
            damage(self._layout.folder(info.number), info.number)
        except StorageError as error:
            return WorkspaceProblem(
                message=f"Generation {info.number} cannot be read: {error.message}", remedy=error.remedy
            )
        remedy = MEND if info.current else "Nothing uses it: delete its folder when you do not need it."
        return WorkspaceProblem(message=f"Generation {info.number} is damaged: {info.damage}.", remedy=remedy)

    def _is_retired(self, number: int) -> bool:
        return is_retired(self._layout.folder(number)) and number in survey(self._layout).retired

    def _unreadable(self, number: int) -> StorageError:
        folder = self._layout.folder(number)
        if not folder.is_dir():
            return StorageError(self._layout.pointer_file, f"it names generation {number}, which is not there", MEND)
        if self._is_retired(number):
            problem = f"it names generation {number}, which holds what was forgotten"
            return StorageError(self._layout.pointer_file, problem, MEND)
        if not (folder / LEASE).exists():
            return StorageError(folder / LEASE, "it is missing", _MEND_LEASE)
        return StorageError(self.root, "its current generation cannot be held for reading")

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

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if not self._layout.folders() and not self._layout.folders_aside():
            self._current()  # nothing was ever published here: no lock's file is made
        lock = WriterLock(self._layout.lock_file)
        try:
            yield
        finally:
            lock.release()


@contextmanager
def rehearsal(workspace: Workspace) -> Iterator[Workspace]:
    """A workspace for the time of the block whose current generation is that of another one; nothing else is shared.

    What is published there is gone after the block. It takes as much room in the folder for temporary files as a
    generation.
    """
    with tempfile.TemporaryDirectory(prefix="trellis-rehearsal-") as folder, ExitStack() as held:
        layout = Layout(Path(folder))
        try:
            number = held.enter_context(workspace.read()).number
        except NoGeneration:
            yield Workspace(layout.root)
            return
        layout.generations.mkdir()
        layout.folder(number).symlink_to(Layout(workspace.root.absolute()).folder(number))
        layout.point(Pointer(current=number, last=number))
        yield Workspace(layout.root)


class GenerationSize(Record):
    """`read`: somebody reads it now. `goes`: a clean-up removes it."""

    number: int
    size_bytes: int
    current: bool
    read: bool
    goes: bool


class WorkspaceSizes(Record):
    """Bytes on disk. `database_bytes` is the file of `side`, `holes_bytes` what of it is empty; `leftover_bytes` is what a
    run left behind, `set_aside_bytes` are generations that were never published; `freed_bytes` is about what `trellis
    clean` frees."""

    generations: tuple[GenerationSize, ...]
    kept_generations: int
    database: tuple[DatabasePart, ...]
    database_bytes: int
    holes_bytes: int
    leftover_bytes: int
    set_aside_bytes: int
    total_bytes: int
    freed_bytes: int


def measure_sizes(workspace: Workspace, keep: int | None = None) -> WorkspaceSizes:
    """What a workspace takes; nothing is made where there is none. `keep` is how many generations a clean-up leaves."""
    layout, most = Layout(workspace.root), keep or workspace.keep_generations
    generations = _generations(layout, most)
    database_bytes = sum(file.stat().st_size for file in layout.root.glob(f"{layout.side_file.name}*"))
    holes, leftovers = workspace.database.holes(), size_of(layout.staging)
    aside = sum(size_of(layout.folder(number)) for number in survey(layout).unpublished) + size_of(layout.set_aside)
    return WorkspaceSizes(
        generations=generations, kept_generations=most, database=tuple(workspace.database.parts()),
        database_bytes=database_bytes, holes_bytes=holes, leftover_bytes=leftovers, set_aside_bytes=aside,
        total_bytes=size_of(layout.root),
        freed_bytes=leftovers + holes + sum(one.size_bytes for one in generations if one.goes),
    )  # fmt: skip


def _generations(layout: Layout, keep: int) -> tuple[GenerationSize, ...]:
    found = survey(layout)
    staying, current = stay(layout, found, keep), found.pointer.current if found.pointer else None
    sizes = []
    for number in sorted({*found.published, *found.retired}):
        read = _is_read(layout, number)
        sizes.append(
            GenerationSize(
                number=number, size_bytes=size_of(layout.folder(number)), current=number == current, read=read,
                goes=number not in staying and not read,
            )
        )  # fmt: skip
    return tuple(sizes)


def _is_read(layout: Layout, number: int) -> bool:
    lease = Lease.take(layout.folder(number) / LEASE, exclusive=True)
    if lease is not None:
        lease.release()
    return lease is None
