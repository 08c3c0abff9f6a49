"""The files of a workspace, how they are written safely, and its locks.

CURRENT                     which generation readers open, the highest number, which are retired
LOCK                        held by the one process that writes
generations/000007/         a generation: generation.duckdb, chroma-1/ where needed, manifest.json
staging/                    what a run is building; nothing here survives the run
side.sqlite                 what outlives generations
uploads/                    files that clients of the service have sent, as an index run reads them
sets/                       public question sets that were evaluated: passages and questions
IDENTITY                    the workspace's name on a Chroma server, where one serves it
PUBLISHED                   the address of what this workspace is a copy of, where it is one

A generation is published when its whole folder is renamed from staging/ into generations/; then
CURRENT is written. Where a run was killed between the two, or CURRENT is lost or older than the
folders, the newest folder that is not retired is current.

The writer of a workspace and the readers of a generation hold locks, which the system frees when a
process ends in any way.
"""

import os
import re
import shutil
import socket
from contextlib import suppress
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field, ValidationError

from storage.errors import ReadOnlyWorkspace, StorageError, WorkspaceLocked
from storage.faults import faults_told, make_folder
from storage.records import Record, utc_now
from storage.system import is_still_there, lock, open_folder_lock, replace, sync

R = TypeVar("R", bound=Record)
DATABASE = "generation.duckdb"
MANIFEST = "manifest.json"

Number = Annotated[int, Field(ge=1, lt=1_000_000)]  # six digits name its folder


class Pointer(Record):
    """The content of CURRENT.

    `last` is the highest number ever used. `retired` generations hold what was to be forgotten:
    they are not opened again, and are removed after their last reader.
    """

    current: Number | None = None
    last: int = Field(default=0, ge=0, lt=1_000_000)
    retired: tuple[Number, ...] = ()


class Manifest(Record):
    """What is known of a generation without opening its database.

    `forgotten` are the documents that it keeps out, `retired` the generations that are not opened
    after its publication, `database_bytes` the size of its database (None: not known).
    """

    number: int
    created: str
    counts: dict[str, int] = Field(default_factory=dict)
    forgotten: tuple[str, ...] = ()
    retired: tuple[int, ...] = ()
    database_bytes: int | None = None


class Origin(Record):
    """The content of PUBLISHED."""

    address: str


class Layout:
    """The paths of one workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pointer_file = root / "CURRENT"
        self.lock_file = root / "LOCK"
        self.database_file = root / "side.sqlite"
        self.identity_file = root / "IDENTITY"
        self.origin_file = root / "PUBLISHED"
        self.staging = root / "staging"
        self.generations = root / "generations"

    def folder(self, number: int) -> Path:
        return self.generations / f"{number:06d}"

    def folders(self) -> list[int]:
        if not self.generations.is_dir():
            return []
        names = [folder.name for folder in self.generations.iterdir()]
        return sorted(int(name) for name in names if re.fullmatch("(?!000000)[0-9]{6}", name))

    def stated(self) -> Pointer | None:
        """Read CURRENT; None where it is missing or damaged."""
        return _read(self.pointer_file, Pointer)

    def pointer(self) -> Pointer:
        """Read CURRENT, or derive it from the folders where it is lost, too old or wrong."""
        stated, folders = self.stated(), self.folders()
        newest = max(folders, default=0)
        if stated and newest <= stated.last and stated.current in (None, *folders):
            return stated
        stated = stated or Pointer()
        retired = set(stated.retired)
        for number in folders:
            if manifest := read_manifest(self.folder(number)):
                retired.update(manifest.retired)
        return Pointer(
            current=max(set(folders) - retired, default=None),
            last=max(newest, stated.last),
            retired=tuple(sorted(retired.intersection(folders))),
        )

    def published(self) -> list[int]:
        """Return the generations that readers may open, also damaged ones, ascending."""
        retired = self.pointer().retired
        return [number for number in self.folders() if number not in retired]

    def origin(self) -> str | None:
        """Return the address of what this workspace is a copy of; None where it is none."""
        origin = _read(self.origin_file, Origin)
        return origin.address if origin else None

    def refuse_copy(self) -> None:
        """Raise ReadOnlyWorkspace where this workspace is a copy of what is published."""
        if origin := self.origin():
            raise ReadOnlyWorkspace(self.root, origin)

    def clear_leftovers(self) -> None:
        shutil.rmtree(self.staging, ignore_errors=True)
        self.staging.mkdir(parents=True, exist_ok=True)

    def point(self, pointer: Pointer) -> None:
        write_atomically(self.pointer_file, pointer.model_dump_json(exclude_defaults=True) + "\n")


def read_manifest(folder: Path) -> Manifest | None:
    """Read the manifest of a generation's folder; None where it is missing or damaged."""
    return _read(folder / MANIFEST, Manifest)


def _read(path: Path, kind: type[R]) -> R | None:
    try:
        with faults_told(path):
            # Reading a pipe would block.
            return kind.model_validate_json(path.read_bytes()) if path.is_file() else None
    except ValidationError:
        return None


def _check_place(path: Path) -> None:
    """Raise StorageError where a folder, a pipe or the like has a file's name."""
    if path.exists() and not path.is_file():
        raise StorageError(path, "what lies there is no file", "Move it away, then run again.")


def size_of(folder: Path) -> int:
    """Return the bytes of all files below; a file that is removed meanwhile does not count."""
    total = 0
    for parent, _, names in os.walk(folder):  # It passes over folders that are removed
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(parent, name).stat().st_size
    return total


def write_atomically(path: Path, text: str) -> None:
    """Replace a file: readers see the old content or the new one, also after a power cut."""
    _check_place(path)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    with faults_told(path):
        try:
            with aside.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            replace(aside, path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        sync(path.parent)


def sync_tree(folder: Path) -> None:
    """Force a folder and everything in it to the disk."""
    for path in (folder, *folder.rglob("*")):
        sync(path)


class _Holder(Record):
    """The content of LOCK; `since` is a UTC time in ISO form."""

    pid: int
    host: str
    since: str


class _Lock:
    """A lock of the system on an open file, held until `release`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class WriterLock(_Lock):
    """The lock of the one process that writes.

    Raises WorkspaceLocked, which names the holder, where another process holds it.
    """

    def __init__(self, path: Path) -> None:
        _check_place(path)
        with faults_told(path):
            make_folder(path.parent)
            super().__init__(os.open(path, os.O_RDWR | os.O_CREAT, 0o644))
        try:
            with faults_told(path):
                if not lock(self._descriptor):
                    raise _locked(path)
                holder = _Holder(pid=os.getpid(), host=socket.gethostname(), since=utc_now())
                os.ftruncate(self._descriptor, 0)
                os.lseek(self._descriptor, 0, os.SEEK_SET)
                os.write(self._descriptor, holder.model_dump_json().encode())
        except BaseException:
            self.release()
            raise


def _locked(path: Path) -> WorkspaceLocked:
    try:
        other = _Holder.model_validate_json(path.read_bytes())
    except ValidationError:
        other = _Holder(pid=0, host="", since="")  # It has not written its name yet
    return WorkspaceLocked(path.parent, other.pid, other.host, other.since)


class Lease(_Lock):
    """A lock on a generation's folder: shared by readers, exclusive for its removal."""

    @classmethod
    def take(cls, folder: Path, exclusive: bool = False) -> "Lease | None":
        """Take a lease; None where the folder is gone or going, or (exclusive) has readers."""
        try:
            with faults_told(folder):
                descriptor = open_folder_lock(folder)
        except (FileNotFoundError, NotADirectoryError):
            return None
        lease = cls(descriptor)
        try:
            with faults_told(folder):
                # The folder may have been moved between opening and locking.
                if lock(descriptor, shared=not exclusive) and is_still_there(descriptor, folder):
                    return lease
        except BaseException:
            lease.release()
            raise
        lease.release()
        return None
