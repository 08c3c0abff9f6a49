"""Where in a workspace each thing lies, how a file is changed so that a crash leaves the old or the new one, and locks.

CURRENT                     which generation readers open, the highest number ever published, and which are retired
LOCK                        held by the one process that writes
generations/000007/         a generation: generation.duckdb, chroma-1/ where needed, manifest.json, LEASE, PUBLISHED
set-aside/000008/           a generation whose run died before it was published; nothing removes it but `forget`
staging/                    what a run is building; nothing here survives the run
side.sqlite                 what outlives generations
IDENTITY                    the workspace's name on a Chroma server, where one serves it

Who writes a workspace, and who still reads a generation, is told by `flock` locks, which the system frees when their
process ends, however it ends.
"""

import fcntl
import json
import os
import shutil
import socket
from datetime import UTC, datetime
from pathlib import Path

from pydantic import Field, ValidationError

from storage.errors import StorageError, WorkspaceLocked
from storage.faults import faults_told
from storage.records import Record

DATABASE = "generation.duckdb"
LEASE = "LEASE"
MANIFEST = "manifest.json"
PUBLISHED = "PUBLISHED"
RETIRED = "RETIRED"
MEND = "The next `trellis index` mends it, or `trellis rollback N` with one of `trellis generations`."


class Pointer(Record):
    """The content of CURRENT. `last` is the highest number that was ever given: no other run gets it.

    `retired` are those that hold what was to be forgotten: nobody opens them again, and they go with their last reader.
    """

    current: int | None = None
    last: int = 0
    retired: tuple[int, ...] = ()


class Manifest(Record):
    """What is known of a generation without opening it.

    `forgotten` are the documents that it keeps out, `database_bytes` the size of its database (None: not known).
    """

    number: int
    created: str
    counts: dict[str, int] = Field(default_factory=dict)
    forgotten: tuple[str, ...] = ()
    database_bytes: int | None = None


class Layout:
    """The paths of one workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pointer_file = root / "CURRENT"
        self.lock_file = root / "LOCK"
        self.side_file = root / "side.sqlite"
        self.identity_file = root / "IDENTITY"
        self.staging = root / "staging"
        self.generations = root / "generations"
        self.set_aside = root / "set-aside"

    def folder(self, number: int) -> Path:
        return self.generations / f"{number:06d}"

    def folder_aside(self, number: int) -> Path:
        return self.set_aside / f"{number:06d}"

    def pointer(self) -> Pointer:
        """What CURRENT says; nothing published where there is neither such a file nor a generation's folder.

        Raises StorageError where it is missing or damaged.
        """
        text = self.pointer_text()
        if text is None and self.folders():
            text = self.pointer_text()  # a first run writes it before its folder is there
            if text is None:
                raise StorageError(self.pointer_file, "it is missing, but there are generations", MEND)
        return Pointer() if text is None else self.read_pointer(text)

    def pointer_text(self) -> bytes | None:
        """What is in CURRENT, whatever it is; None where there is no such file."""
        try:
            with faults_told(self.pointer_file):
                return self.pointer_file.read_bytes()
        except FileNotFoundError:
            return None

    def read_pointer(self, text: bytes) -> Pointer:
        """The content of CURRENT; StorageError where it is none."""
        try:
            pointer = Pointer.model_validate_json(text)
        except ValidationError as error:
            raise StorageError(self.pointer_file, "this is not a generation pointer", MEND) from error
        return pointer.model_copy(update={"last": max(pointer.last, pointer.current or 0)})

    def point(self, pointer: Pointer) -> None:
        write_atomically(self.pointer_file, pointer.model_dump_json(exclude_defaults=True) + "\n")

    def folders(self) -> list[int]:
        """All numbered folders, ascending, published or not."""
        return _numbered(self.generations)

    def folders_aside(self) -> list[int]:
        """The numbers of the generations that were set aside, ascending."""
        return _numbered(self.set_aside)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Into a generation's folder."""
    write_atomically(folder / MANIFEST, json.dumps(manifest.model_dump(), indent=2) + "\n")


def read_manifest(folder: Path) -> Manifest:
    """Of a generation's folder; StorageError where it is missing or damaged."""
    try:
        with faults_told(folder / MANIFEST):
            return Manifest.model_validate_json((folder / MANIFEST).read_bytes())
    except (OSError, ValidationError) as error:
        raise StorageError(folder, "this generation's manifest cannot be read") from error


def size_of(folder: Path) -> int:
    """Bytes of all files below; files that vanish meanwhile do not count."""
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(base) / name).stat().st_size
            except FileNotFoundError:
                continue
    return total


def write_atomically(path: Path, text: str) -> None:
    """Readers see the old content or the new one, and after a power cut so do we."""
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
    for base, _, names in os.walk(folder):
        for name in names:
            sync(Path(base) / name)
        sync(Path(base))


def empty(folder: Path) -> None:
    """Leaves an empty folder there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)


def _numbered(parent: Path) -> list[int]:
    if not parent.is_dir():
        return []
    names = [folder.name for folder in parent.iterdir()]
    return sorted(int(name) for name in names if name.isdecimal() and name == f"{int(name):06d}")


class WriterLock:
    """Held from construction until `release`. Raises WorkspaceLocked, naming the holder, where another holds it."""

    def __init__(self, path: Path) -> None:
        with faults_told(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise _locked(path) from None
        holder = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        try:
            with faults_told(path):
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, json.dumps(holder).encode(), 0)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _locked(path: Path) -> WorkspaceLocked:
    try:
        holder = json.loads(path.read_bytes())
        return WorkspaceLocked(path.parent, int(holder["pid"]), str(holder["host"]), str(holder["since"]))
    except (ValueError, KeyError, TypeError):
        # The holder has the lock but has not written its name yet.
        return WorkspaceLocked(path.parent, 0, "", "")


class Lease:
    """A hold on a generation's folder through its lease file: shared by readers, exclusive for whoever removes it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path, exclusive: bool = False) -> "Lease | None":
        """None where the folder is gone or going, or (exclusive) where it has readers."""
        try:
            with faults_told(path):
                descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
            # The folder may have been removed between opening and locking: the lock is then on a file without a name.
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return cls(descriptor)
        except (BlockingIOError, FileNotFoundError):
            pass
        os.close(descriptor)
        return None

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
