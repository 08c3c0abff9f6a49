"""Writes a whole workspace into one file, and restores a workspace from such a file.

An archive is a tar file of the kept generations and of what outlives them, as of one moment, even
while others work. It holds no vector index, which is rebuilt from the databases, and no settings,
keys or locks. An archive is not trusted: only files with these names are taken, and only sound
databases that hold our tables and nothing else.
"""

import gzip
import json
import logging
import os
import re
import shutil
import sqlite3
import tarfile
import tempfile
import tomllib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, cast
from uuid import uuid4

from storage.database import Database
from storage.errors import ArchiveError, Damaged, NoGeneration, UsageError
from storage.faults import fault_of, faults_told
from storage.files import open_file
from storage.layout import DATABASE, MANIFEST, Layout, Lease, Pointer, sync_tree
from storage.records import Record
from storage.recovery import damage, refuse_lost
from storage.sqlite import SqliteFile
from storage.system import replace, sync
from storage.uploads import UPLOADS, upload_path, uploaded_files
from storage.workspace_db import SCHEMA

_KINDS = {".tar.gz": "gz", ".tgz": "gz", ".tar": ""}
_OURS = re.compile(
    r"CURRENT|side\.sqlite|tailoring\.toml|programs/[^/\0]{1,200}\.json"
    r"|generations/\d{6}/(?:generation\.duckdb|manifest\.json)"
)
_MOST_FILES = 5_000  # without uploads; a generation has two
_LONGEST_READ = 1 << 24  # bytes: files are copied in smaller pieces, and no header is longer
# What the readers of tar and gzip raise for a malformed file.
_UNREADABLE = (tarfile.TarError, EOFError, OSError, ValueError, zlib.error)
_NO_DATABASE = (
    "Move side.sqlite out of the workspace, or put an earlier copy of it there: without it memory, "
    "kept answers and vectors, watched questions and the history of runs are lost, and nothing of "
    "what is indexed."
)
_NO_CURRENT = "Roll back to a generation that is whole (`trellis rollback N`), or index again."

logger = logging.getLogger(__name__)


class ArchiveReport(Record):
    """What an archive holds.

    `created` is a UTC time in ISO form, `size_bytes` the size of the archive, `uploads` and
    `programs` count files.
    """

    file: str
    created: str
    generation: int
    generations: tuple[int, ...]
    size_bytes: int
    uploads: int = 0
    programs: int = 0


def _report(
    file: Path, layout: Layout, pointer_file: Path, current: int, generations: Sequence[int]
) -> ArchiveReport:
    created = datetime.fromtimestamp(pointer_file.stat().st_mtime, UTC)
    return ArchiveReport(
        file=str(file),
        created=created.isoformat(timespec="seconds"),
        generation=current,
        generations=tuple(generations),
        size_bytes=file.stat().st_size,
        uploads=len(uploaded_files(layout.root)),
        programs=len(_programs(layout.root)),
    )


def _programs(root: Path) -> list[Path]:
    return sorted(path for path in (root / "programs").glob("*.json") if path.is_file())


def _is_ours(name: str, root: Path) -> bool:
    """Whether a workspace may hold a file of that name."""
    if not name.startswith(f"{UPLOADS}/"):
        return bool(_OURS.fullmatch(name))
    try:
        upload_path(root, name.removeprefix(f"{UPLOADS}/"))
    except UsageError:
        return False
    return True


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    with faults_told("The folder for temporary files"):
        folder = tempfile.TemporaryDirectory()
    with folder as path:
        yield Path(path)


# --- writing ---


def write_archive(root: Path, file: Path) -> ArchiveReport:
    """Write a workspace into a new file, which appears only when it is whole.

    Raises ArchiveError where a generation or the workspace's database is damaged; NoGeneration;
    UsageError for a name without one of the endings .tar.gz, .tgz and .tar, or of an existing file;
    StorageError where the target cannot be written.
    """
    name = file.name.lower()
    kind = next((kind for ending, kind in _KINDS.items() if name.endswith(ending)), None)
    if kind is None:
        problem = f"{file} has an ending that cannot be written here."
        raise UsageError(problem, "End its name in .tar.gz or .tar.")
    if file.exists():
        raise UsageError(
            f"{file} is there already.", "Name another file, or remove this one first."
        )
    layout, part = Layout(root), file.with_name(f".{file.name}.{uuid4().hex[:8]}")
    with _held(layout) as (pointer, held), _temporary_folder() as aside, faults_told(file):
        copied = Layout(aside)
        copied.point(Pointer(current=pointer.current, last=pointer.last))
        sources = {"CURRENT": copied.pointer_file}
        for number in held:
            if problem := damage(layout.folder(number), number, whole=True):
                words = f"generation {number} is damaged ({problem})"
                raise ArchiveError(file, words, _NO_CURRENT, "written")
        files = [layout.folder(number) / name for number in held for name in (DATABASE, MANIFEST)]
        files += [*_programs(root), *uploaded_files(root)]
        files += [path for path in (root / "tailoring.toml",) if path.is_file()]
        sources |= {path.relative_to(root).as_posix(): path for path in files}
        if layout.database_file.exists():
            sources["side.sqlite"] = copied.database_file
            try:
                _copy_database(layout.database_file, copied.database_file)
            except Damaged as problem:
                raise ArchiveError(file, problem.message, _NO_DATABASE, "written") from problem
        try:
            _write_tar(part, kind, sources)
            sync(part)
            replace(part, file)
        finally:
            part.unlink(missing_ok=True)
        return _report(file, layout, copied.pointer_file, pointer.current or 0, held)


@contextmanager
def _held(layout: Layout) -> Iterator[tuple[Pointer, list[int]]]:
    """Yield the pointer and the generations, none of which is removed before the block ends."""
    with ExitStack() as leases:
        # The pointer is read after the leases are taken: it may name one published since then.
        numbers = list[int]()
        while (pointer := layout.pointer()).current not in numbers:
            if pointer.current is None:
                refuse_lost(layout)
                raise NoGeneration(layout.root)
            leases.close()
            numbers = []
            for number in layout.published():
                if lease := Lease.take(layout.folder(number)):
                    leases.callback(lease.release)
                    numbers.append(number)
        yield pointer, numbers


def _copy_database(source: Path, copy: Path) -> None:
    """Copy the workspace's database as of one moment. Raises Damaged where it is not sound."""
    with (
        faults_told(source, _NO_DATABASE),
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as read,
        closing(sqlite3.connect(copy)) as written,
    ):
        read.backup(written)
    with closing(SqliteFile(copy, SCHEMA)) as file:
        file.check()


def _write_tar(part: Path, kind: str, sources: Mapping[str, Path]) -> None:
    """Pack the files under their names, without uploads that were removed meanwhile."""
    with tarfile.open(part, f"w:{kind}") as archive:  # type: ignore[call-overload]
        for name, path in sources.items():
            try:
                stream = path.open("rb")
            except FileNotFoundError:
                if not name.startswith(f"{UPLOADS}/"):
                    raise
                continue
            with stream:  # An upload that is replaced now remains readable here
                entry, status = tarfile.TarInfo(name), os.fstat(stream.fileno())
                entry.size, entry.mtime, entry.mode = status.st_size, status.st_mtime, 0o644
                archive.addfile(entry, stream)


# --- reading ---


def read_archive(
    file: Path, root: Path, read_tailoring: Callable[[str], object] = tomllib.loads
) -> ArchiveReport:
    """Restore a workspace, whose folder appears only when everything in it was checked.

    `read_tailoring` raises ValueError for a text that is no tailoring. The generations have no
    vector index until `Workspace.rebuild_vectors`. Raises UsageError for a folder that is not
    empty, WorkspaceFormatError for another schema version, ArchiveError for a file that is damaged
    or no archive of ours.
    """
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(f"{root} is not empty.", "Name a --workspace that does not exist yet.")
    if not file.is_file():
        raise UsageError(f"There is no archive {file}.", "Check the path.")
    aside = root.absolute().with_name(f".{root.absolute().name}.{uuid4().hex[:8]}")
    try:
        with faults_told(root):
            aside.mkdir(parents=True)
        _unpack(file, aside)
        with faults_told(root):
            layout = Layout(aside)
            try:
                current = check_workspace(layout, read_tailoring)
            except ValueError as problem:
                raise ArchiveError(file, str(problem)) from problem
            report = _report(file, layout, layout.pointer_file, current, layout.folders())
            sync_tree(aside)
            with suppress(FileNotFoundError):
                root.rmdir()  # an empty one; Windows moves nothing to a place that is taken
            aside.rename(root.absolute())
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return report


def _unpack(file: Path, target: Path) -> None:
    try:
        with (
            closing(_Unpacked(file)) as stream,
            tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r:") as archive,
        ):
            others = 0
            for entry in archive:
                others += not entry.name.startswith(f"{UPLOADS}/")
                if others > _MOST_FILES:
                    raise ArchiveError(file, f"it holds more than {_MOST_FILES:,} files")
                # A sparse file of a kilobyte may become a terabyte.
                if not entry.isreg() or entry.issparse() or not _is_ours(entry.name, target):
                    raise ArchiveError(file, f"its entry {entry.name!r} is not of a workspace")
                path = target / entry.name
                with faults_told(target):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with path.open("xb") as out:
                        shutil.copyfileobj(cast("IO[bytes]", archive.extractfile(entry)), out)
                os.utime(path, (entry.mtime, entry.mtime))
            while stream.read(_LONGEST_READ):
                pass  # tarfile stops before the checksum at the end of a gzip file
    except _UNREADABLE as error:
        if fault := fault_of(error, file):
            raise fault from error
        # tarfile says in one line each how its readers failed.
        words = (str(error).splitlines() or [type(error).__name__])[0].rstrip(":")
        raise ArchiveError(file, f"it cannot be read ({words})") from error


class _Unpacked:
    """The tar file in an archive, which refuses long reads: tarfile reads a header of any size.

    Whether it is compressed shows in its first bytes; its name may be wrong.
    """

    def __init__(self, file: Path) -> None:
        stream = open_file(file)
        packed = stream.peek(2).startswith(b"\x1f\x8b")
        self._stream = cast("IO[bytes]", gzip.GzipFile(fileobj=stream) if packed else stream)
        self.tell, self.seek, self.close = self._stream.tell, self._stream.seek, self._stream.close

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _LONGEST_READ:
            raise tarfile.ReadError(f"a header of {size} bytes")
        return self._stream.read(size)


# --- checking: a ValueError says why the files are not those of a workspace ---

_MADE = """
    SELECT sql FROM duckdb_tables() WHERE NOT internal
    UNION ALL SELECT sql FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT function_name FROM duckdb_functions() WHERE NOT internal ORDER BY 1
"""
# Generations of earlier versions lack these (`schema_added.sql`).
_ADDED = re.compile(r"CREATE TABLE (?:propositions|proposition_inputs|recognized)\(")
_PARTS = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name"


def check_workspace(layout: Layout, read_tailoring: Callable[[str], object] = tomllib.loads) -> int:
    """Check files from elsewhere; return the number of the current generation.

    Raises ValueError where they are not those of a workspace.
    """
    stated, folders = layout.stated(), layout.folders()
    if stated is None or stated.current is None or stated.current not in folders:
        raise ValueError("its CURRENT names no generation in it")
    readers: dict[Path, Callable[[str], object]] = dict.fromkeys(_programs(layout.root), json.loads)
    if (tailoring := layout.root / "tailoring.toml").exists():
        readers[tailoring] = read_tailoring
    for path, read in readers.items():
        try:
            read(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            name = path.relative_to(layout.root).as_posix()
            raise ValueError(f"its {name} cannot be understood ({error})") from error
    for number in folders:
        _check_generation(layout.folder(number), number)
    if layout.database_file.is_file():
        _check_database(layout.database_file)
    return stated.current


def _check_generation(folder: Path, number: int) -> None:
    """Check that a generation is sound and holds our tables only."""
    if problem := damage(folder, number, whole=True):
        raise ValueError(f"generation {number} is damaged ({problem.removesuffix('.')})")
    with _temporary_folder() as aside, closing(Database.create(aside / DATABASE)) as ours:
        known = set(ours.strings(_MADE))
    with closing(Database.open(folder / DATABASE)) as database:
        statements = set(database.strings(_MADE))
    lacking = {sql for sql in known - statements if not _ADDED.match(sql)}
    if lacking or statements - known:
        raise ValueError(f"the database of generation {number} holds other things than ours do")


def _check_database(path: Path) -> None:
    """Check that the workspace's database is sound and holds our tables only."""
    with _temporary_folder() as aside, closing(SqliteFile(aside / path.name, SCHEMA)) as ours:
        expected = ours.connect().execute(_PARTS).fetchall()
    with closing(SqliteFile(path, SCHEMA)) as file:
        try:
            file.check()
        except Damaged as error:
            raise ValueError(f"the workspace's database is damaged ({error.message})") from error
        parts = file.rows(_PARTS)
    if parts != expected:
        raise ValueError("the workspace's database holds other things than ours do")
