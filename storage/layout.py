"""Where in a workspace does each thing lie, and how is a file changed so that a crash leaves the old or the new one?

CURRENT                     which generation readers open, the highest number ever published, and which are retired
LOCK                        held by the one process that writes
generations/000007/         an immutable generation: generation.duckdb, chroma-1/, manifest.json, LEASE
staging/                    what a run is building; nothing here survives the run
side.sqlite                 what outlives generations
IDENTITY                    the workspace's name on a Chroma server, where one serves it
"""

import json
import os
import shutil
from pathlib import Path

from pydantic import Field, ValidationError

from storage.errors import StorageError
from storage.faults import faults_told
from storage.records import Record

DATABASE = "generation.duckdb"
LEASE = "LEASE"
MANIFEST = "manifest.json"
_INDEX = "chroma-"


class Pointer(Record):
    """The content of CURRENT. A number above `last` was never published: its folder is a dead run's.

    `retired` are those that hold what was to be forgotten: nobody opens them again, and they go with their last reader.
    """

    current: int | None = None
    last: int = 0
    retired: tuple[int, ...] = ()


class Manifest(Record):
    """What is known of a generation without opening it."""

    number: int
    created: str
    counts: dict[str, int] = Field(default_factory=dict)


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

    def folder(self, number: int) -> Path:
        return self.generations / f"{number:06d}"

    def pointer(self) -> Pointer:
        """What CURRENT says; nothing published where there is no such file."""
        try:
            with faults_told(self.pointer_file):
                return Pointer.model_validate_json(self.pointer_file.read_bytes())
        except FileNotFoundError:
            return Pointer()
        except ValidationError as error:
            raise StorageError(
                self.pointer_file, "this is not a generation pointer", "Restore it from a backup."
            ) from error

    def point(self, pointer: Pointer) -> None:
        write_atomically(self.pointer_file, pointer.model_dump_json(exclude_defaults=True) + "\n")

    def numbers(self) -> list[int]:
        """The published generations that are kept, ascending."""
        pointer = self.pointer()
        return [n for n in self.folders() if n <= pointer.last and n not in pointer.retired]

    def retired(self) -> list[int]:
        """The retired generations that a reader still holds, ascending."""
        return sorted(set(self.folders()) & set(self.pointer().retired))

    def folders(self) -> list[int]:
        """All numbered folders, ascending, published or not."""
        if not self.generations.is_dir():
            return []
        return sorted(int(f.name) for f in self.generations.iterdir() if f.name.isdecimal())

    def index_folder(self, generation: Path) -> Path | None:
        """The newest Chroma folder of a generation's folder."""
        found = [f for f in generation.glob(f"{_INDEX}*") if f.name.removeprefix(_INDEX).isdecimal()]
        return max(found, key=lambda f: int(f.name.removeprefix(_INDEX)), default=None)

    def next_index_folder(self, generation: Path) -> Path:
        """A Chroma folder that does not exist yet: a path that was opened once is never used again."""
        newest = self.index_folder(generation)
        number = int(newest.name.removeprefix(_INDEX)) + 1 if newest else 1
        return generation / f"{_INDEX}{number}"


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
