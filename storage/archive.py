"""Writes a whole workspace into one file, and makes a workspace of a file that came from elsewhere.

An archive holds the kept generations and what outlives them, as they were at one moment: nobody need stop working. It
holds no vector index (that is built anew from the databases) and nothing of settings, keys or locks. Of an archive
nothing is believed: its first entry says what must follow, and only that is taken.
"""

import hashlib
import logging
import lzma
import shutil
import sqlite3
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from importlib import import_module
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, cast
from uuid import uuid4

from pydantic import Field, ValidationError

from storage.database import SCHEMA_VERSION, Database
from storage.errors import (
    ArchiveError,
    Damaged,
    DiskFailed,
    DiskFull,
    InUse,
    NoGeneration,
    NotPermitted,
    StorageError,
    UsageError,
    WorkspaceFormatError,
)
from storage.faults import fault_of, faults_told
from storage.layout import DATABASE, LEASE, MANIFEST, MEND, Layout, Lease, Pointer, read_manifest, sync, sync_tree
from storage.records import Record
from storage.sqlite import SIDE_VERSION, SqliteFile
from storage.survey import survey

CONTENTS = "archive.json"
VERSION = 1
_ENDINGS = {".tar.gz": "gz", ".tgz": "gz", ".tar.zst": "zst", ".tar": ""}
_SIDE = "side.sqlite"
_TAILORING = "tailoring.toml"
_MOST_CONTENTS = 16 << 20  # bytes
_BLOCK = 1 << 20


def _zstd_error() -> type[Exception]:
    """Of the reader that Python 3.14 brought."""
    has = "zst" in tarfile.TarFile.OPEN_METH
    found: type[Exception] = import_module("compression.zstd").ZstdError if has else tarfile.ReadError
    return found


# How the readers of tar and of each compression say that a file is not as it should be.
_UNREADABLE = (tarfile.TarError, EOFError, OSError, ValueError, zlib.error, lzma.LZMAError, _zstd_error())
_NO_SIDE = (
    "Move side.sqlite out of the workspace, or put an earlier copy of it there: without it memory, kept answers and "
    "vectors and the history of runs are lost, and nothing of what is indexed."
)
_NO_CURRENT = "Roll back to a generation that is whole (`trellis rollback N`), or index again, and archive then."

logger = logging.getLogger(__name__)


class _File(Record):
    sha256: str
    size: int = Field(ge=0)


class _Contents(Record):
    """The first entry: what the archive holds, each file with its hash."""

    version: int
    schema_version: int
    side_version: int
    created: str
    current: int
    last: int
    generations: tuple[int, ...]
    files: dict[str, _File]


class ArchiveReport(Record):
    """What an archive holds; `created` is a UTC time in ISO form, `size_bytes` the archive's own size."""

    file: str
    created: str
    generation: int
    generations: tuple[int, ...]
    size_bytes: int


def write_archive(root: Path, file: Path) -> ArchiveReport:
    """Write a workspace into a new file, which is there only when it is whole.

    What could not be restored is not packed: an older generation that is damaged is left out, with a warning. Raises
    ArchiveError where the current one or the side store is damaged; NoGeneration; UsageError for an ending that is not
    one of .tar.gz, .tgz, .tar, .tar.zst (Python 3.14 on), or a file that is there already; StorageError where the
    target cannot be written.
    """
    kind = _kind(file)
    if file.exists():
        raise UsageError(f"{file} is there already.", "Name another file, or remove this one first.")
    with _held(Layout(root)) as (pointer, kept), _temporary_folder() as aside, faults_told(file):
        numbers = _whole(Layout(root), kept, pointer, file)
        sources = _sources(Layout(root), numbers, aside, file)
        contents = _Contents(
            version=VERSION, schema_version=SCHEMA_VERSION, side_version=SIDE_VERSION,
            created=datetime.now(UTC).isoformat(timespec="seconds"), current=pointer.current or 0, last=pointer.last,
            generations=tuple(numbers), files={name: _described(path) for name, path in sources.items()},
        )  # fmt: skip
        part = file.with_name(f".{file.name}.{uuid4().hex[:8]}")
        try:
            with tarfile.open(part, f"w:{kind}") as archive:  # type: ignore[call-overload]
                said = contents.model_dump_json(indent=1).encode()
                _add(archive, CONTENTS, BytesIO(said), len(said))
                for name, path in sources.items():
                    with path.open("rb") as stream:
                        _add(archive, name, stream, contents.files[name].size)
            sync(part)
            part.rename(file)
        finally:
            part.unlink(missing_ok=True)
    return _report(file, contents)


def read_archive(file: Path, root: Path) -> ArchiveReport:
    """Make a workspace of an archive. The folder appears only when everything in it was checked.

    Its generations have no vector index yet: `Workspace.rebuild_vectors` makes it. Raises UsageError for a folder that
    holds anything, WorkspaceFormatError for another version, ArchiveError for what is no archive of ours or damaged.
    """
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(f"{root} is not empty.", "Name a --workspace that does not exist yet.")
    with faults_told(root):
        root.absolute().parent.mkdir(parents=True, exist_ok=True)
    aside = root.absolute().with_name(f".{root.absolute().name}.{uuid4().hex[:8]}")
    try:
        with _opened(file) as archive:
            contents = _contents_of(archive, file)
            _unpack(archive, contents, file, aside)
        _check(contents, file, aside)
        layout = Layout(aside)
        with faults_told(root):
            for number in contents.generations:
                (layout.folder(number) / LEASE).touch()
            layout.point(Pointer(current=contents.current, last=contents.last))
            sync_tree(aside)
            aside.rename(root.absolute())
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return _report(file, contents)


# --- writing ---------------------------------------------------------------------------------------------------------


def _kind(file: Path) -> str:
    kind = next((kind for ending, kind in _ENDINGS.items() if file.name.lower().endswith(ending)), None)
    if kind is None or (kind == "zst" and "zst" not in tarfile.TarFile.OPEN_METH):
        raise UsageError(f"{file} has an ending that cannot be written here.", "End its name in .tar.gz or .tar.")
    return kind


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    with faults_told("The folder for temporary files"):
        folder = tempfile.TemporaryDirectory()
    with folder as path:
        yield Path(path)


@contextmanager
def _held(layout: Layout) -> Iterator[tuple[Pointer, list[int]]]:
    """The pointer and the numbers of the generations, which stay until the block ends."""
    with ExitStack() as leases:
        # Before the pointer is read: what it points to then is among them, or was published since.
        numbers = []
        while (pointer := layout.pointer()).current not in numbers:
            if pointer.current is None:
                raise NoGeneration(layout.root)
            leases.close()
            if not (layout.folder(pointer.current) / LEASE).exists() and layout.pointer() == pointer:
                raise StorageError(layout.folder(pointer.current), "the current generation is not whole", MEND)
            taken = {number: Lease.take(layout.folder(number) / LEASE) for number in survey(layout).published}
            numbers = [number for number, lease in taken.items() if lease is not None]
            for lease in taken.values():
                if lease is not None:
                    leases.callback(lease.release)
        yield pointer, numbers


def _whole(layout: Layout, numbers: Sequence[int], pointer: Pointer, file: Path) -> list[int]:
    """Those of the generations that can be restored; ArchiveError where the current one cannot."""
    whole = []
    for number in numbers:
        try:
            check_generation(layout.folder(number), number)
        except UnsoundDatabase as problem:
            if number == pointer.current:
                raise ArchiveError(file, str(problem), _NO_CURRENT, "written") from problem
            logger.warning("Left out of %s: %s.", file, problem)
        else:
            whole.append(number)
    return whole


def _sources(layout: Layout, numbers: Sequence[int], aside: Path, file: Path) -> dict[str, Path]:
    """The files to archive by their names there; the side store as a copy of one moment."""
    found = {
        f"generations/{number:06d}/{name}": layout.folder(number) / name
        for number in numbers
        for name in (DATABASE, MANIFEST)
    }
    if layout.side_file.is_file():
        found[_SIDE] = _copied_side(layout.side_file, aside / _SIDE, file)
    if (layout.root / _TAILORING).is_file():
        found[_TAILORING] = layout.root / _TAILORING
    return found


def _copied_side(source: Path, copy: Path, file: Path) -> Path:
    """A whole copy of the side store, or ArchiveError."""
    try:
        try:
            _back_up(source, copy)
        except (NotPermitted, DiskFull):
            # Even reading needs room beside it. Where there is none nobody writes, and files are as good as a backup.
            for ending in ("", "-wal"):
                if (there := source.with_name(f"{source.name}{ending}")).is_file():
                    with faults_told(copy):
                        shutil.copyfile(there, copy.with_name(f"{copy.name}{ending}"))
        with closing(SqliteFile(copy)) as ours:
            ours.is_there()  # an earlier version's gets the tables that it lacks
        check_side(copy)
    except (Damaged, UnsoundDatabase) as problem:
        said = "the side store is damaged" if isinstance(problem, Damaged) else str(problem)
        raise ArchiveError(file, said, _NO_SIDE, "written") from problem
    return copy


def _back_up(source: Path, copy: Path) -> None:
    with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as there:
        with faults_told(source):
            there.execute("SELECT count(*) FROM sqlite_master").fetchone()
        with faults_told(copy), closing(sqlite3.connect(copy)) as here:
            there.backup(here)


def _described(path: Path) -> _File:
    with faults_told(path), path.open("rb") as stream:
        return _File(sha256=hashlib.file_digest(stream, "sha256").hexdigest(), size=path.stat().st_size)


def _add(archive: tarfile.TarFile, name: str, stream: IO[bytes], size: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o644
    archive.addfile(entry, stream)


def _report(file: Path, contents: _Contents) -> ArchiveReport:
    return ArchiveReport(
        file=str(file), created=contents.created, generation=contents.current, generations=contents.generations,
        size_bytes=file.stat().st_size,
    )  # fmt: skip


# --- reading ---------------------------------------------------------------------------------------------------------


@contextmanager
def _opened(file: Path) -> Iterator[tarfile.TarFile]:
    if not file.is_file():
        raise UsageError(f"There is no archive {file}.", "Check the path.")
    try:
        with tarfile.open(file, "r:*") as archive:
            yield archive
    except _UNREADABLE as error:
        if fault := fault_of(error, file):
            raise fault from error
        # tarfile tells how each of its readers failed, a line each.
        words = (str(error).splitlines() or [type(error).__name__])[0].rstrip(":")
        raise ArchiveError(file, f"it cannot be read ({words})") from error


def _contents_of(archive: tarfile.TarFile, file: Path) -> _Contents:
    first = archive.next()
    if first is None or first.name != CONTENTS or not first.isreg() or first.size > _MOST_CONTENTS:
        raise ArchiveError(file, f"it does not begin with {CONTENTS}")
    try:
        contents = _Contents.model_validate_json(cast("IO[bytes]", archive.extractfile(first)).read())
    except ValidationError as error:
        raise ArchiveError(file, f"its {CONTENTS} cannot be understood") from error
    if (contents.version, contents.schema_version) != (VERSION, SCHEMA_VERSION):
        raise WorkspaceFormatError(file, contents.schema_version, SCHEMA_VERSION)
    if contents.side_version > SIDE_VERSION:
        raise WorkspaceFormatError(file, contents.side_version, SIDE_VERSION)
    wanted = {f"generations/{n:06d}/{name}" for n in contents.generations for name in (DATABASE, MANIFEST)}
    strange = contents.files.keys() - wanted - {_SIDE, _TAILORING}
    if strange or wanted - contents.files.keys():
        raise ArchiveError(file, f"it lists {min(strange or wanted - contents.files.keys())!r} wrongly")
    if contents.current not in contents.generations or max(contents.generations) > contents.last:
        raise ArchiveError(file, f"its current generation {contents.current} is not in it")
    return contents


def _unpack(archive: tarfile.TarFile, contents: _Contents, file: Path, target: Path) -> None:
    """Writes exactly the listed files below the target, each with its hash."""
    free = shutil.disk_usage(target.parent).free
    needed = sum(one.size for one in contents.files.values())
    if needed > free:
        raise UsageError(f"{file} needs {needed / 1e6:.0f} MB, {free / 1e6:.0f} are free.", "Make room first.")
    left = dict(contents.files)
    while entry := archive.next():
        said = left.pop(entry.name, None)
        if said is None or not entry.isreg() or entry.size != said.size:
            raise ArchiveError(file, f"its entry {entry.name!r} is not what it lists")
        path = target.joinpath(*PurePosixPath(entry.name).parts)
        with faults_told(target):
            path.parent.mkdir(parents=True, exist_ok=True)
        if _copied(cast("IO[bytes]", archive.extractfile(entry)), path) != said.sha256:
            raise ArchiveError(file, f"its entry {entry.name!r} is damaged")
    if left:
        raise ArchiveError(file, f"its entry {min(left)!r} is missing")


def _copied(stream: IO[bytes], path: Path) -> str:
    """Writes the stream; its hash."""
    digest = hashlib.sha256()
    with path.open("xb") as out:
        while block := stream.read(_BLOCK):
            digest.update(block)
            with faults_told(path):
                out.write(block)
    return digest.hexdigest()


def _check(contents: _Contents, file: Path, target: Path) -> None:
    layout = Layout(target)
    try:
        for number in contents.generations:
            check_generation(layout.folder(number), number)
        if layout.side_file.is_file():
            check_side(layout.side_file)
    except UnsoundDatabase as problem:
        raise ArchiveError(file, str(problem)) from problem


_MADE = """
    SELECT sql FROM duckdb_tables() WHERE NOT internal UNION ALL SELECT sql FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT function_name FROM duckdb_functions() WHERE NOT internal ORDER BY 1
"""
_ADDED = "TABLE descriptions("  # which generations of earlier versions lack
_PARTS = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name"


class UnsoundDatabase(Exception):
    """What is wrong, as the end of a sentence."""


def check_generation(folder: Path, number: int) -> None:
    """Raises UnsoundDatabase unless the folder holds the whole generation of this number, with our tables alone."""
    try:
        if read_manifest(folder).number != number:
            raise UnsoundDatabase(f"generation {number} says that it is another one")
        with closing(Database.open(folder / DATABASE)) as database:
            made, known = set(database.strings(_MADE)), set(_ours())  # before anything of it is read
            if not {one for one in known if _ADDED not in one} <= made <= known:
                raise UnsoundDatabase(f"the database of generation {number} holds other things than ours do")
            database.read_everything()
    except (DiskFull, DiskFailed, NotPermitted, InUse):
        raise
    except StorageError as error:
        raise UnsoundDatabase(f"generation {number} is damaged ({error.message.rstrip('.')})") from error


def check_side(path: Path) -> None:
    """Raises UnsoundDatabase unless the file is a whole side store with our tables and nothing else."""
    with tempfile.TemporaryDirectory() as aside, closing(SqliteFile(Path(aside) / path.name)) as ours:
        try:
            with faults_told(path), closing(sqlite3.connect(path)) as connection:
                whole = connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
                parts = connection.execute(_PARTS).fetchall()
        except Damaged as error:
            raise UnsoundDatabase(f"the side store is damaged ({error.message.rstrip('.')})") from error
        with ours.transaction() as made:
            expected = made.execute(_PARTS).fetchall()
        if not whole:
            raise UnsoundDatabase("the side store is damaged")
        if parts != expected:
            raise UnsoundDatabase("the side store holds other things than ours do")


def _ours() -> list[str]:
    with tempfile.TemporaryDirectory() as folder, closing(Database.create(Path(folder) / DATABASE)) as database:
        return database.strings(_MADE)
