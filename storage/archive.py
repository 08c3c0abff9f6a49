"""Writes a whole workspace into one file, and makes a workspace of a file that came from elsewhere.

An archive is a tar file of the kept generations and of what outlives them, as they were at one
moment: nobody need stop working. Uploads and compiled steps travel too. It holds no vector index
(that is built anew from the databases) and nothing of settings, keys or locks; what else lies in
the folder stays behind and is named. Of an archive nothing is believed: only files of these names
are taken, and only whole databases with our tables alone.
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
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, cast
from uuid import uuid4

from storage.database import Database
from storage.errors import ArchiveError, Damaged, NoGeneration, StorageError, UsageError
from storage.evaluations import EvaluationStore
from storage.faults import fault_of, faults_told, writable
from storage.files import open_file
from storage.layout import DATABASE, MANIFEST, Layout, Lease, Pointer, sync, sync_tree
from storage.records import Record
from storage.recovery import damage, refuse_lost
from storage.sqlite import SqliteFile
from storage.uploads import UPLOADS, upload_path, uploaded_files
from storage.workspace_db import SCHEMA

_KINDS = {".tar.gz": "gz", ".tgz": "gz", ".tar": ""}
_OURS = re.compile(
    r"CURRENT|side\.sqlite|evaluations\.duckdb|tailoring\.toml|generations/\d{6}/(?:generation\.duckdb|manifest\.json)"
    r"|programs/[^/\0]{1,200}\.json"
)
# What a workspace makes anew, or makes no sense anywhere else.
_OF_THE_PLACE = re.compile(r"LOCK|IDENTITY|staging|(?:limits|side)\.sqlite(?:-.*)?|evaluations\.duckdb\.wal|\..*")
_PACKED = {"CURRENT", "generations", "side.sqlite", "evaluations.duckdb", "tailoring.toml", "programs", UPLOADS}
_GZIP = b"\x1f\x8b"
_OTHERWISE = {b"\xfd7zXZ": "xz -d", b"BZh": "bzip2 -d", b"\x28\xb5\x2f\xfd": "zstd -d", b"PK\x03\x04": "unzip"}
_MOST_FILES = 5_000  # beside uploads; a generation has two
_MOST_UPLOADS = 100_000  # each takes a kilobyte of memory
_LIST = "archive.json"  # which archives of earlier versions begin with
# How the readers of tar and of gzip say that a file is not as it should be.
_UNREADABLE = (tarfile.TarError, EOFError, OSError, ValueError, zlib.error)
_NO_DATABASE = (
    "Move side.sqlite out of the workspace, or put an earlier copy of it there: without it memory, kept answers and "
    "vectors, watched questions and the history of runs are lost, and nothing of what is indexed."
)
_NO_CURRENT = "Roll back to a generation that is whole (`trellis rollback N`), or index again, and archive then."

logger = logging.getLogger(__name__)


class ArchiveReport(Record):
    """What an archive holds; `created` is a UTC time in ISO form, `size_bytes` the archive's own
    size.

    `uploads` and `programs` are how many files of these there are, `left_out` what stayed behind in
    the folder.
    """

    file: str
    created: str
    generation: int
    generations: tuple[int, ...]
    size_bytes: int
    uploads: int = 0
    programs: int = 0
    left_out: tuple[str, ...] = ()


def write_archive(root: Path, file: Path) -> ArchiveReport:
    """Write a workspace into a new file, which is there only when it is whole.

    What could not be restored is not packed: an older generation that is damaged is left out, with a warning. Raises
    ArchiveError where the current one or the workspace's database is damaged; NoGeneration; UsageError for an ending
    that is not one of .tar.gz, .tgz, .tar, or a file that is there already; StorageError where the target cannot be
    written.
    """
    kind = next((kind for ending, kind in _KINDS.items() if file.name.lower().endswith(ending)), None)
    if kind is None:
        raise UsageError(f"{file} has an ending that cannot be written here.", "End its name in .tar.gz or .tar.")
    if file.exists():
        raise UsageError(f"{file} is there already.", "Name another file, or remove this one first.")
    layout = Layout(root)
    with _held(layout) as (pointer, generations), _temporary_folder() as aside, faults_told(file):
        packed = Layout(aside)
        packed.point(Pointer(current=pointer.current, last=pointer.last))
        sources, numbers = {"CURRENT": packed.pointer_file}, []
        for number in generations:
            problem = _problem_of_generation(layout.folder(number), number)
            if problem and number == pointer.current:
                raise ArchiveError(file, problem, _NO_CURRENT, "written")
            if problem:
                logger.warning("Left out of %s: %s.", file, problem)
                continue
            numbers.append(number)
            folder = layout.folder(number)
            sources |= {str(path.relative_to(root)): path for path in (folder / DATABASE, folder / MANIFEST)}
        sources |= _copied_beside(layout, packed, file)
        programs, uploads = _programs(root), _uploads(root)
        left_out = _left_out(root, {*programs, *uploads})
        if len(uploads) > _MOST_UPLOADS:
            left_out, uploads = (*left_out, UPLOADS), {}
        sources |= programs | uploads
        part = file.with_name(f".{file.name}.{uuid4().hex[:8]}")
        try:
            _write_tar(part, kind, sources)
            sync(part)
            part.rename(file)
        finally:
            part.unlink(missing_ok=True)
        report = _report(file, packed.pointer_file, pointer, numbers)
        return report.model_copy(update={"uploads": len(uploads), "programs": len(programs), "left_out": left_out})


def _write_tar(part: Path, kind: str, sources: Mapping[str, Path]) -> None:
    """Pack the files under their names; an upload that was forgotten meanwhile is left out."""
    with tarfile.open(part, f"w:{kind}") as archive:  # type: ignore[call-overload]
        for name, path in sources.items():
            try:
                stream = path.open("rb")
            except FileNotFoundError:
                if not name.startswith(f"{UPLOADS}/"):
                    raise
                continue
            with stream:  # where an upload is replaced now, this one stays as it was
                entry, status = tarfile.TarInfo(name), os.fstat(stream.fileno())
                entry.size, entry.mtime, entry.mode = status.st_size, status.st_mtime, 0o644
                archive.addfile(entry, stream)


def _uploads(root: Path) -> dict[str, Path]:
    """The uploaded files by their names in an archive; not those that were put there by hand under
    other names.
    """
    files = {path.relative_to(root).as_posix(): path for path in uploaded_files(root)}
    return {name: path for name, path in files.items() if _is_ours(name, root)}


def _programs(root: Path) -> dict[str, Path]:
    """The compiled steps of the workspace by their names in an archive."""
    files = {f"programs/{path.name}": path for path in sorted((root / "programs").glob("*.json"))}
    return {name: path for name, path in files.items() if path.is_file() and _OURS.fullmatch(name)}


def _left_out(root: Path, packed: Collection[str]) -> tuple[str, ...]:
    """What lies in the folder and is not packed, but for what belongs to the place."""
    names = {path.name for path in root.iterdir() if not _OF_THE_PLACE.fullmatch(path.name)} - _PACKED
    inside = (*uploaded_files(root), *(path for path in (root / "programs").rglob("*") if path.is_file()))
    return (*sorted(names), *sorted({path.relative_to(root).as_posix() for path in inside} - {*packed}))


def _copied_beside(layout: Layout, packed: Layout, file: Path) -> dict[str, Path]:
    """Copies what is kept beside the generations, as of one moment; the copies by their names in the archive."""
    sources = {}
    if (layout.root / "tailoring.toml").is_file():
        sources["tailoring.toml"] = layout.root / "tailoring.toml"
    if layout.database_file.exists():
        sources["side.sqlite"] = packed.database_file
        if problem := _copy_database(layout.database_file, packed.database_file):
            raise ArchiveError(file, problem, _NO_DATABASE, "written")
    if layout.evaluations_file.is_file():
        sources[layout.evaluations_file.name] = packed.evaluations_file
        EvaluationStore(layout.evaluations_file).copy_to(packed.evaluations_file)
    return sources


def read_archive(file: Path, root: Path, read_tailoring: Callable[[str], object] = tomllib.loads) -> ArchiveReport:
    """Make a workspace of an archive. The folder appears only when everything in it was checked; `read_tailoring`
    raises ValueError for a text that is no tailoring.

    Its generations have no vector index yet: `Workspace.rebuild_vectors` makes it. Raises UsageError for a folder that
    holds anything, WorkspaceFormatError for another version, ArchiveError for what is no archive of ours or damaged.
    """
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(f"{root} is not empty.", "Name a --workspace that does not exist yet.")
    if not file.is_file():
        raise UsageError(f"There is no archive {file}.", "Check the path.")
    aside = root.absolute().with_name(f".{root.absolute().name}.{uuid4().hex[:8]}")
    layout = Layout(aside)
    try:
        with faults_told(root):
            aside.mkdir(parents=True)
        _unpack(file, aside)
        with faults_told(root):
            pointer, numbers = layout.pointer(), layout.folders()
            if problem := next(filter(None, _problems(layout, pointer, numbers, read_tailoring)), ""):
                raise ArchiveError(file, problem)
            if layout.stated() is None:
                layout.point(pointer)
            report = _report(file, layout.pointer_file, pointer, numbers)
            held = {"uploads": len(_uploads(aside)), "programs": len(_programs(aside))}
            report = report.model_copy(update=held)
            sync_tree(aside)
            aside.rename(root.absolute())
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return report


def _problems(
    layout: Layout, pointer: Pointer, numbers: list[int], read_tailoring: Callable[[str], object]
) -> Iterator[str]:
    """What keeps the unpacked files from being a workspace, one after another; empty where a part is sound."""
    yield _problem_of_pointer(layout)
    yield _problem_of_tailoring(layout.root / "tailoring.toml", read_tailoring)
    yield from (_problem_of_program(path) for path in _programs(layout.root).values())
    yield from (_problem_of_generation(layout.folder(number), number) for number in numbers)
    if layout.database_file.is_file():
        yield _problem_of_database(layout.database_file)
    if layout.evaluations_file.is_file():
        yield _problem_of_evaluations(layout.evaluations_file)
    if pointer.current is None or layout.stated() not in (None, pointer):
        yield "its current generation is not in it"


@contextmanager
def _held(layout: Layout) -> Iterator[tuple[Pointer, list[int]]]:
    """The pointer and the numbers of the generations, which stay until the block ends."""
    with ExitStack() as leases:
        # Before the pointer is read: what it points to then is among them, or was published since.
        numbers = list[int]()
        while (pointer := layout.pointer()).current not in numbers:
            if pointer.current is None:
                refuse_lost(layout)
                raise NoGeneration(layout.root)
            leases.close()
            held = {number: Lease.take(layout.folder(number)) for number in layout.published()}
            numbers = [number for number, lease in held.items() if lease is not None]
            for lease in filter(None, held.values()):
                leases.callback(lease.release)
        yield pointer, numbers


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    with faults_told("The folder for temporary files"):
        folder = tempfile.TemporaryDirectory()
    with folder as path:
        yield Path(path)


def _copy_database(source: Path, copy: Path) -> str:
    """Copies the workspace's database as of one moment; what is wrong with it, or nothing."""
    try:
        with ExitStack() as stack:
            with faults_told(source):
                address = f"{source.absolute().as_uri()}?mode=ro"
                # Who may only read cannot keep SQLite's lists of readers beside the file. Where no
                # journal lies there nobody writes; what is copied is read whole all the same.
                if not writable(source) and not Path(f"{source}-wal").exists():
                    address += "&immutable=1"
                source_database = stack.enter_context(closing(sqlite3.connect(address, uri=True)))
                source_database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            with faults_told(copy), closing(sqlite3.connect(copy)) as copied_database:
                source_database.backup(copied_database)
    except Damaged:
        return "the workspace's database is damaged"
    return _problem_of_database(copy)


def _unpack(file: Path, target: Path) -> None:
    try:
        with (
            closing(_Unpacked(_stream(file))) as stream,
            tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r:") as archive,
        ):
            uploads = 0
            for count, entry in enumerate(archive):
                uploads += entry.name.startswith(f"{UPLOADS}/")
                if count - uploads > _MOST_FILES or uploads > _MOST_UPLOADS:
                    many = f"{_MOST_FILES:,} files" if uploads <= _MOST_UPLOADS else f"{_MOST_UPLOADS:,} uploads"
                    raise ArchiveError(file, f"it holds more than {many}")
                if entry.name == _LIST:
                    continue
                # A sparse file of a kilobyte may be unpacked to a terabyte.
                if not entry.isreg() or entry.issparse() or not _is_ours(entry.name, target):
                    raise ArchiveError(file, f"its entry {entry.name!r} is not of a workspace")
                path = target / entry.name
                with faults_told(target):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with path.open("xb") as out:
                        shutil.copyfileobj(cast("IO[bytes]", archive.extractfile(entry)), out)
                os.utime(path, (entry.mtime, entry.mtime))
            while stream.read(_LONGEST_READ):
                pass  # tarfile stops before the checksum of what is packed
    except _UNREADABLE as error:
        if fault := fault_of(error, file):
            raise fault from error
        # tarfile tells how each of its readers failed, a line each.
        words = (str(error).splitlines() or [type(error).__name__])[0].rstrip(":")
        raise ArchiveError(file, f"it cannot be read ({words})") from error


_LONGEST_READ = 1 << 24  # bytes: files are copied in smaller pieces, and no header of ours is longer


class _Unpacked:
    """An archive's tar file, of which nobody reads more at once than a header of ours may have: tarfile would take a
    header of gigabytes into memory."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.tell, self.seek, self.close = stream.tell, stream.seek, stream.close

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _LONGEST_READ:
            raise tarfile.ReadError(f"a header of {size} bytes")
        return self._stream.read(size)


def _stream(file: Path) -> IO[bytes]:
    """The file as it is packed, unpacked while it is read; by its first bytes, since a name may say anything."""
    stream = open_file(file)
    begins = stream.peek(16)
    if tool := next((tool for first, tool in _OTHERWISE.items() if begins.startswith(first)), ""):
        stream.close()
        raise ArchiveError(file, "only .tar and .tar.gz are read", f"Unpack it first (`{tool}`); nothing was changed.")
    return cast("IO[bytes]", gzip.open(stream) if begins.startswith(_GZIP) else stream)


def _report(file: Path, packed: Path, pointer: Pointer, numbers: list[int]) -> ArchiveReport:
    created = datetime.fromtimestamp(packed.stat().st_mtime, UTC).isoformat(timespec="seconds")
    return ArchiveReport(
        file=str(file), created=created, generation=pointer.current or 0, generations=tuple(numbers),
        size_bytes=file.stat().st_size
    )  # fmt: skip


# --- checking --------------------------------------------------------------------------------------------------------

_MADE = """
    SELECT sql FROM duckdb_tables() WHERE NOT internal UNION ALL SELECT sql FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT function_name FROM duckdb_functions() WHERE NOT internal ORDER BY 1
"""
_ADDED = "TABLE descriptions("  # which generations of earlier versions lack
_PARTS = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name"


def _problem_of_generation(folder: Path, number: int) -> str:
    """What keeps the folder from being the whole generation of this number, with our tables alone; or nothing."""
    if problem := damage(folder, number, whole=True):
        return f"generation {number} is damaged ({problem.removesuffix('.')})"
    with _temporary_folder() as aside, closing(Database.create(aside / DATABASE)) as ours:
        known = set(ours.strings(_MADE))
    with closing(Database.open(folder / DATABASE)) as database:
        statements = set(database.strings(_MADE))
    if {sql for sql in known if _ADDED not in sql} <= statements <= known:
        return ""
    return f"the database of generation {number} holds other things than ours do"


def _problem_of_pointer(layout: Layout) -> str:
    return "its CURRENT cannot be understood" if layout.pointer_file.exists() and layout.stated() is None else ""


def _problem_of_tailoring(path: Path, read: Callable[[str], object]) -> str:
    try:
        read(path.read_text(encoding="utf-8") if path.exists() else "")
    except (ValueError, RecursionError) as error:
        return f"its {path.name} cannot be understood ({error})"
    return ""


def _problem_of_program(path: Path) -> str:
    try:
        json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        return f"its programs/{path.name} cannot be understood ({error})"
    return ""


def _is_ours(name: str, root: Path) -> bool:
    """Whether a file of that name belongs to a workspace."""
    if not name.startswith(f"{UPLOADS}/"):
        return bool(_OURS.fullmatch(name))
    try:
        upload_path(root, name.removeprefix(f"{UPLOADS}/"))
    except (UsageError, UnicodeEncodeError):
        return False
    return True


def _problem_of_evaluations(path: Path) -> str:
    """What keeps the file from being a whole database of evaluations with our tables alone; or nothing."""
    try:
        with _temporary_folder() as aside, EvaluationStore(aside / path.name).opened() as ours:
            known = ours.strings(_MADE)
        with EvaluationStore(path).opened(reading=True) as database:
            if database.strings(_MADE) != known:
                return "the database of evaluations holds other things than ours does"
            for evaluation in EvaluationStore(path).list():
                EvaluationStore(path).read(evaluation.number)
    except (StorageError, ValueError) as error:
        return f"the database of evaluations is damaged ({error})"
    return ""


def _problem_of_database(path: Path) -> str:
    """What keeps the file from being a whole workspace database with our tables alone; or nothing.

    One of an earlier version becomes one of this version.
    """
    try:
        with _temporary_folder() as aside, closing(SqliteFile(aside / path.name, SCHEMA)) as ours:
            expected = ours.made().execute(_PARTS).fetchall()
        with faults_told(path), closing(SqliteFile(path, SCHEMA)) as file:
            if file.made().execute("PRAGMA integrity_check").fetchone()[0] != "ok":
                return "the workspace's database is damaged"
            if file.made().execute(_PARTS).fetchall() != expected:
                return "the workspace's database holds other things than ours do"
    except Damaged as error:
        return f"the workspace's database is damaged ({error.message.removesuffix('.')})"
    return ""
