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
from io import BytesIO
from pathlib import Path
from typing import IO, cast
from uuid import uuid4

from pydantic import Field, ValidationError

from storage.database import SCHEMA_VERSION, Database
from storage.errors import ArchiveError, Damaged, DiskFull, NoGeneration, NotPermitted, UsageError, WorkspaceFormatError
from storage.faults import fault_of, faults_told
from storage.layout import DATABASE, MANIFEST, Layout, Lease, Pointer, sync, sync_tree
from storage.records import Record
from storage.recovery import damage
from storage.sqlite import SqliteFile
from storage.workspace_db import SCHEMA

CONTENTS = "archive.json"
VERSION = 1
_ENDINGS = {".tar.gz": "gz", ".tgz": "gz", ".tar": ""}
_WORKSPACE_DB = "side.sqlite"
_TAILORING = "tailoring.toml"
_MOST_CONTENTS = 16 << 20  # bytes
# How the readers of tar and of each compression say that a file is not as it should be.
_UNREADABLE = (tarfile.TarError, EOFError, OSError, ValueError, zlib.error, lzma.LZMAError)
_NO_DATABASE = (
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
    ArchiveError where the current one or the workspace's database is damaged; NoGeneration; UsageError for an ending
    that is not one of .tar.gz, .tgz, .tar, or a file that is there already; StorageError where the target cannot be
    written.
    """
    kind = next((kind for ending, kind in _ENDINGS.items() if file.name.lower().endswith(ending)), None)
    if kind is None:
        raise UsageError(f"{file} has an ending that cannot be written here.", "End its name in .tar.gz or .tar.")
    if file.exists():
        raise UsageError(f"{file} is there already.", "Name another file, or remove this one first.")
    layout = Layout(root)
    with _held(layout) as (pointer, kept), _temporary_folder() as aside, faults_told(file):
        numbers = []
        for number in kept:
            problem = _problem_of_generation(layout.folder(number), number)
            if problem and number == pointer.current:
                raise ArchiveError(file, problem, _NO_CURRENT, "written")
            if problem:
                logger.warning("Left out of %s: %s.", file, problem)
            else:
                numbers.append(number)
        sources = {name: layout.root / name for name in _names(numbers)}
        if layout.database_file.is_file():
            sources[_WORKSPACE_DB] = _copied_database(layout.database_file, aside / _WORKSPACE_DB, file)
        if (layout.root / _TAILORING).is_file():
            sources[_TAILORING] = layout.root / _TAILORING
        contents = _Contents(
            version=VERSION, schema_version=SCHEMA_VERSION, side_version=SCHEMA.version,
            created=datetime.now(UTC).isoformat(timespec="seconds"), current=pointer.current or 0, last=pointer.last,
            generations=tuple(numbers), files={name: _described(path) for name, path in sources.items()}
        )  # fmt: skip
        part = file.with_name(f".{file.name}.{uuid4().hex[:8]}")
        try:
            with tarfile.open(part, f"w:{kind}") as archive:  # type: ignore[call-overload]
                listed = contents.model_dump_json(indent=1).encode()
                _add(archive, CONTENTS, BytesIO(listed), len(listed))
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
        layout = Layout(aside)
        for number in contents.generations:
            if problem := _problem_of_generation(layout.folder(number), number):
                raise ArchiveError(file, problem)
        if layout.database_file.is_file() and (problem := _problem_of_database(layout.database_file)):
            raise ArchiveError(file, problem)
        with faults_told(root):
            layout.point(Pointer(current=contents.current, last=contents.last))
            sync_tree(aside)
            aside.rename(root.absolute())
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return _report(file, contents)


# --- writing ---------------------------------------------------------------------------------------------------------


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
        numbers = list[int]()
        while (pointer := layout.pointer()).current not in numbers:
            if pointer.current is None:
                raise NoGeneration(layout.root)
            leases.close()
            held = {number: Lease.take(layout.folder(number)) for number in layout.published()}
            numbers = [number for number, lease in held.items() if lease is not None]
            for lease in held.values():
                if lease is not None:
                    leases.callback(lease.release)
        yield pointer, numbers


def _names(generations: Sequence[int]) -> list[str]:
    """The files of these generations in an archive and in a workspace."""
    return [f"generations/{number:06d}/{name}" for number in generations for name in (DATABASE, MANIFEST)]


def _copied_database(source: Path, copy: Path, file: Path) -> Path:
    """A whole copy of the workspace's database as of one moment, or ArchiveError."""
    problem = "the workspace's database is damaged"
    try:
        try:
            with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as there:
                with faults_told(source):
                    there.execute("SELECT count(*) FROM sqlite_master").fetchone()
                with faults_told(copy), closing(sqlite3.connect(copy)) as here:
                    there.backup(here)
        except (NotPermitted, DiskFull):
            # Even reading needs room beside it. Where there is none nobody writes, and files are as good as a backup.
            for ending in ("", "-wal"):
                if (part := source.with_name(f"{source.name}{ending}")).is_file():
                    with faults_told(copy):
                        shutil.copyfile(part, copy.with_name(f"{copy.name}{ending}"))
        problem = _problem_of_database(copy)
    except Damaged:
        pass
    if problem:
        raise ArchiveError(file, problem, _NO_DATABASE, "written")
    return copy


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
        size_bytes=file.stat().st_size
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
    if contents.side_version > SCHEMA.version:
        raise WorkspaceFormatError(file, contents.side_version, SCHEMA.version)
    wanted = set(_names(contents.generations))
    strange = (contents.files.keys() - {_WORKSPACE_DB, _TAILORING}) ^ wanted
    if strange:
        raise ArchiveError(file, f"it lists {min(strange)!r} wrongly")
    if contents.current not in contents.generations or max(contents.generations) > contents.last:
        raise ArchiveError(file, f"its current generation {contents.current} is not in it")
    return contents


def _unpack(archive: tarfile.TarFile, contents: _Contents, file: Path, target: Path) -> None:
    """Writes exactly the listed files below the target, each with its hash."""
    free = shutil.disk_usage(target.parent).free
    needed = sum(listed.size for listed in contents.files.values())
    if needed > free:
        raise UsageError(f"{file} needs {needed / 1e6:.0f} MB, {free / 1e6:.0f} are free.", "Make room first.")
    left = dict(contents.files)
    while entry := archive.next():
        listed = left.pop(entry.name, None)
        if listed is None or not entry.isreg() or entry.size != listed.size:
            raise ArchiveError(file, f"its entry {entry.name!r} is not what it lists")
        path = target / entry.name
        with faults_told(target):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as out:
                shutil.copyfileobj(cast("IO[bytes]", archive.extractfile(entry)), out)
        if _described(path) != listed:
            raise ArchiveError(file, f"its entry {entry.name!r} is damaged")
    if left:
        raise ArchiveError(file, f"its entry {min(left)!r} is missing")


# --- checking --------------------------------------------------------------------------------------------------------

_MADE = """
    SELECT sql FROM duckdb_tables() WHERE NOT internal UNION ALL SELECT sql FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT function_name FROM duckdb_functions() WHERE NOT internal ORDER BY 1
"""
_ADDED = "TABLE descriptions("  # which generations of earlier versions lack
_PARTS = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name"


def _problem_of_generation(folder: Path, number: int) -> str:
    """What keeps the folder from being the whole generation of this number, with our tables alone; or nothing."""
    with _temporary_folder() as aside, closing(Database.create(aside / DATABASE)) as ours:
        known = set(ours.strings(_MADE))
    if not (problem := damage(folder, number)):
        with closing(Database.open(folder / DATABASE)) as database:
            made = set(database.strings(_MADE))  # before anything of it is read
        if not {one for one in known if _ADDED not in one} <= made <= known:
            return f"the database of generation {number} holds other things than ours do"
        problem = damage(folder, number, whole=True)
    return f"generation {number} is damaged ({problem.removesuffix('.')})" if problem else ""


def _problem_of_database(path: Path) -> str:
    """What keeps the file from being a whole workspace database with our tables alone; or nothing.

    One of an earlier version becomes one of this version.
    """
    try:
        with (
            _temporary_folder() as aside,
            closing(ours := SqliteFile(aside / path.name, SCHEMA)),
            ours.transaction() as made,
        ):
            expected = made.execute(_PARTS).fetchall()
        with faults_told(path), closing(SqliteFile(path, SCHEMA)) as file:
            connection = file.made()
            if connection.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
                return "the workspace's database is damaged"
            if connection.execute(_PARTS).fetchall() != expected:
                return "the workspace's database holds other things than ours do"
    except Damaged as error:
        return f"the workspace's database is damaged ({error.message.removesuffix('.')})"
    return ""
