"""Where each thing of a workspace lies, how its files are changed, and its locks.

CURRENT                     which generation readers open, the highest number, which are retired
LOCK                        held by the one process that writes
generations/000007/         a generation: generation.duckdb, chroma-1/ where needed, manifest.json
staging/                    what a run is building; nothing here survives the run
side.sqlite                 what outlives generations
uploads/                    files that clients of the service have sent, as an index run reads them
IDENTITY                    the workspace's name on a Chroma server, where one serves it

A generation is published when its whole folder is renamed from staging/ into generations/; CURRENT
follows. Where a run was killed before that, or CURRENT is lost or older than the folders, the
newest folder that is not retired is current.

Who writes a workspace, and who still reads a generation, is told by `flock` locks, which the system
frees when their process ends, however it ends.
"""

import fcntl
import os
import re
import shutil
import socket
from contextlib import suppress
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field, ValidationError

from storage.errors import StorageError, WorkspaceLocked
from storage.faults import faults_told, make_folder
from storage.records import Record, utc_now

R = TypeVar("R", bound=Record)
DATABASE = "generation.duckdb"
MANIFEST = "manifest.json"

Number = Annotated[int, Field(ge=1, lt=1_000_000)]  # six digits name its folder


class Pointer(Record):
    """The content of CURRENT.

    `last` is the highest number that was ever given: no other run gets it. `retired` are those that
    hold what was to be forgotten: nobody opens them again, and they go with their last reader.
    """

    current: Number | None = None
    last: int = Field(default=0, ge=0, lt=1_000_000)
    retired: tuple[Number, ...] = ()


class Manifest(Record):
    """What is known of a generation without opening it.

    `forgotten` are the documents that it keeps out, `retired` the generations that nobody opens
    once it is published, `database_bytes` the size of its database (None: not known).
    """

    number: int
    created: str
    counts: dict[str, int] = Field(default_factory=dict)
    forgotten: tuple[str, ...] = ()
    retired: tuple[int, ...] = ()
    database_bytes: int | None = None


class Layout:
    """The paths of one workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pointer_file = root / "CURRENT"
        self.lock_file = root / "LOCK"
        self.database_file = root / "side.sqlite"
        self.identity_file = root / "IDENTITY"
        self.staging = root / "staging"
        self.generations = root / "generations"

    def folder(self, number: int) -> Path:
        return self.generations / f"{number:06d}"

    def folders(self) -> list[int]:
        """The numbers of all generations that are there, ascending."""
        if not self.generations.is_dir():
            return []
        names = [folder.name for folder in self.generations.iterdir()]
        return sorted(int(name) for name in names if re.fullmatch("(?!000000)[0-9]{6}", name))

    def stated(self) -> Pointer | None:
        """What CURRENT says; None where it is missing or damaged."""
        return _read(self.pointer_file, Pointer)

    def pointer(self) -> Pointer:
        """What CURRENT says; where it is lost, older or names what is not there, the folders do."""
        stated, folders = self.stated(), self.folders()
        newest = max(folders, default=0)
        if stated and newest <= stated.last and stated.current in (None, *folders):
            return stated
        retired = set(stated.retired if stated else ())
        for number in folders:
            manifest = read_manifest(self.folder(number))
            retired.update(manifest.retired if manifest else ())
        current = max((number for number in folders if number not in retired), default=None)
        last = max(newest, stated.last if stated else 0)
        return Pointer(
            current=current, last=last, retired=tuple(sorted(retired.intersection(folders)))
        )

    def published(self) -> list[int]:
        """The numbers of the generations that readers may open, damaged ones too; ascending."""
        retired = self.pointer().retired
        return [number for number in self.folders() if number not in retired]

    def clear_leftovers(self) -> None:
        """Leaves an empty folder for what a run builds."""
        shutil.rmtree(self.staging, ignore_errors=True)
        self.staging.mkdir(parents=True, exist_ok=True)

    def point(self, pointer: Pointer) -> None:
        write_atomically(self.pointer_file, pointer.model_dump_json(exclude_defaults=True) + "\n")


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a generation's folder; None where it is missing or damaged."""
    return _read(folder / MANIFEST, Manifest)


def _read(path: Path, kind: type[R]) -> R | None:
    try:
        with faults_told(path):
            # Reading a pipe has no end.
            return kind.model_validate_json(path.read_bytes()) if path.is_file() else None
    except ValidationError:
        return None


def _check_place(path: Path) -> None:
    """Raises StorageError where a folder, a pipe or the like lies in a file's place."""
    if path.exists() and not path.is_file():
        raise StorageError(path, "what lies there is no file", "Move it away, then run again.")


def size_of(folder: Path) -> int:
    """The bytes of all files below; files that vanish meanwhile do not count."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def write_atomically(path: Path, text: str) -> None:
    """Replaces a file: readers see the old content or the new one, also after a power cut."""
    _check_place(path)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    with faults_told(path):
        try:
            with aside.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        sync(path.parent)


def sync(path: Path) -> None:
    """Forces a file's content, or a folder's list of names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """The same for all that is in a folder."""
    for path in (folder, *folder.rglob("*")):
        sync(path)


class _Holder(Record):
    """The content of LOCK; `since` is a UTC time in ISO form."""

    pid: int
    host: str
    since: str


class _Lock:
    """A lock of the system's on an open file, held until `release`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class WriterLock(_Lock):
    """The lock of the one process that writes, held until `release`.

    Raises WorkspaceLocked, naming the holder, where another process holds it.
    """

    def __init__(self, path: Path) -> None:
        _check_place(path)
        with faults_told(path):
            make_folder(path.parent)
            super().__init__(os.open(path, os.O_RDWR | os.O_CREAT, 0o644))
        try:
            with faults_told(path):
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                holder = _Holder(pid=os.getpid(), host=socket.gethostname(), since=utc_now())
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, holder.model_dump_json().encode(), 0)
        except BlockingIOError:
            self.release()
            try:
                other = _Holder.model_validate_json(path.read_bytes())
            except ValidationError:
                other = _Holder(pid=0, host="", since="")  # it has not written its name yet
            raise WorkspaceLocked(path.parent, other.pid, other.host, other.since) from None
        except BaseException:
            self.release()
            raise


class Lease(_Lock):
    """A hold on a generation's folder: shared by readers, exclusive for whoever removes it."""

    @classmethod
    def take(cls, folder: Path, exclusive: bool = False) -> "Lease | None":
        """Takes a lease; None where the folder is gone or going, or (exclusive) has readers."""
        try:
            with faults_told(folder):
                descriptor = os.open(folder, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            return None
        lease = cls(descriptor)
        try:
            with faults_told(folder):
                fcntl.flock(
                    descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB
                )
                # The folder may have been moved between opening and locking.
                if os.path.samestat(os.fstat(descriptor), folder.stat()):
                    return lease
        except (BlockingIOError, FileNotFoundError):
            pass
        except BaseException:
            lease.release()
            raise
        lease.release()
        return None
