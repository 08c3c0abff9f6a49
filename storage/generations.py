"""Which generations does a workspace hold, and how are they read, written, switched and removed?

Readers follow one small file, CURRENT; a run builds the next generation aside and replaces that file at the very end.
So a reader sees one whole generation or another, and a run that dies at any moment leaves the current one untouched.
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from storage.chroma import ChromaIndex, build
from storage.chroma_server import ChromaServer
from storage.database import Database
from storage.errors import NoGeneration, StorageError, UnknownGeneration
from storage.layout import DATABASE, LEASE, Layout, empty, read_manifest, size_of, sync, sync_tree
from storage.locks import Lease, WriterLock
from storage.records import Record
from storage.retention import discard_leftovers, remove_old
from storage.rooms import Generation
from storage.side import SideStore
from storage.staging import Staging, build_index

_ATTEMPTS = 50
_PAUSE = 0.02  # seconds


class GenerationInfo(Record):
    """A kept generation; `created` is a UTC time in ISO form."""

    number: int
    created: str
    current: bool
    counts: dict[str, int]
    size_bytes: int


class Workspace:
    """A folder of state. Nothing is created before the first write.

    `chroma_url`: the Chroma server that serves the vectors; without it a folder of Chroma's in each generation does.
    `reading`: who only reads goes on without the side store where it cannot be written.
    """

    def __init__(
        self, root: Path, keep_generations: int = 5, chroma_url: str | None = None, reading: bool = False
    ) -> None:
        if keep_generations < 1:
            raise StorageError(root, f"cannot keep {keep_generations} generations", "Keep at least one.")
        self.root = root
        self.keep_generations = keep_generations
        self._layout = Layout(root)
        self._server = ChromaServer(chroma_url, self._layout.identity_file) if chroma_url else None
        self.side = SideStore(self._layout.side_file, reading=reading)

    def current(self) -> int | None:
        """The generation that readers open, or None where nothing is published."""
        return self._layout.pointer().current

    def changed(self, generation: Generation) -> bool:
        """Whether readers should open another generation now. Reads one small file."""
        return self.current() != generation.number

    def generations(self) -> list[GenerationInfo]:
        """All that can be read or rolled back to, ascending."""
        current = self.current()
        infos = []
        for number in self._layout.numbers():
            folder = self._layout.folder(number)
            manifest = read_manifest(folder)
            infos.append(
                GenerationInfo(
                    number=number,
                    created=manifest.created,
                    current=number == current,
                    counts=manifest.counts,
                    size_bytes=size_of(folder),
                )
            )
        return infos

    def retired(self) -> list[int]:
        """Generations that hold what was forgotten, and are still there because somebody reads them."""
        return self._layout.retired()

    def read(self, number: int | None = None) -> Generation:
        """Opens a generation (None: the current one) read-only and keeps it from being removed until it is closed.

        Raises NoGeneration, or UnknownGeneration for a number that is not kept.
        """
        for _ in range(_ATTEMPTS):
            wanted = self._current() if number is None else number
            if number is not None and wanted not in self._layout.numbers():
                raise UnknownGeneration(number, self._layout.numbers())
            lease = Lease.take(self._layout.folder(wanted) / LEASE)
            if lease is not None:
                return self._open(wanted, lease)
            # It is being removed right now: so another one is current, or the number is gone in a moment.
            time.sleep(_PAUSE)
        raise StorageError(self.root, "its current generation cannot be held for reading")

    def write(self) -> Staging:
        """Begins the next generation from a copy of the current one; WorkspaceLocked while another run writes."""
        lock = WriterLock(self._layout.lock_file)
        try:
            if self._server is not None:
                # Now, not after an hour of work.
                self._server.begin()
            return Staging(self._layout, lock, self.keep_generations, self._server)
        except BaseException:
            lock.release()
            raise

    def rollback(self, number: int) -> None:
        """Makes a kept generation the current one. Later ones stay; their numbers are not given again."""
        with self._locked():
            if number not in self._layout.numbers():
                raise UnknownGeneration(number, self._layout.numbers())
            self._layout.point(self._layout.pointer().model_copy(update={"current": number}))

    def clean(self, keep: int | None = None) -> list[int]:
        """Removes the generations beyond `keep` (None: `keep_generations`) that nobody reads; returns their numbers."""
        with self._locked():
            discard_leftovers(self._layout)
            removed = remove_old(self._layout, keep or self.keep_generations)
            if self._server is not None:
                self._server.keep_only(self._layout.numbers())
            return removed

    def rebuild_vectors(self, number: int | None = None) -> int:
        """Builds a generation's Chroma folder (or collection) anew from its database; returns how many windows it has.

        Readers that are open go on with what they have.
        """
        with self._locked(), self.read(number) as generation:
            if self._server is not None:
                self._server.begin()
                return build_index(partial(self._server.build, generation.number), generation.vectors)
            folder = self._layout.folder(generation.number)
            empty(self._layout.staging)
            before = self._layout.index_folder(folder)
            target = self._layout.next_index_folder(folder)
            aside = self._layout.staging / target.name
            count = build_index(partial(build, aside, None, ()), generation.vectors)
            if count:
                sync_tree(aside)
                aside.rename(target)
                sync(folder)
            if before is not None:
                shutil.rmtree(before)
            return count

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
        index = self._layout.index_folder(folder) or self._layout.next_index_folder(folder)
        server = self._server
        return Generation(
            number, database, partial(ChromaIndex, index) if server is None else partial(server.open, number), lease
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._current()
        lock = WriterLock(self._layout.lock_file)
        try:
            yield
        finally:
            lock.release()
