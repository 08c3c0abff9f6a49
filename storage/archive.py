"""How does a whole workspace travel as one file, and how is a file that came from elsewhere let in?

An archive holds the kept generations and what outlives them, as they were at one moment: nobody need stop working. It
holds no vector index (that is built anew from the databases) and nothing of settings, keys or locks. Of an archive
nothing is believed: its first entry says what must follow, and only that is taken.
"""

import hashlib
import shutil
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, cast
from uuid import uuid4

from pydantic import Field, ValidationError

from storage.archive_check import check_generation, check_side
from storage.database import SCHEMA_VERSION
from storage.errors import ArchiveError, NoGeneration, StorageError, UsageError, WorkspaceFormatError
from storage.layout import DATABASE, LEASE, MANIFEST, MEND, Layout, Pointer, sync_tree
from storage.locks import Lease
from storage.records import Record
from storage.sqlite import SIDE_VERSION
from storage.survey import survey

CONTENTS = "archive.json"
VERSION = 1
_ENDINGS = {".tar.gz": "gz", ".tgz": "gz", ".tar.zst": "zst", ".tar": ""}
_SIDE = "side.sqlite"
_TAILORING = "tailoring.toml"
_MOST_CONTENTS = 16 << 20  # bytes
_BLOCK = 1 << 20


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

    Raises NoGeneration, or UsageError for an ending that is not one of .tar.gz, .tgz, .tar, .tar.zst (Python 3.14 on),
    or a file that is there already.
    """
    kind = _kind(file)
    if file.exists():
        raise UsageError(f"{file} is there already.", "Name another file, or remove this one first.")
    with _held(Layout(root)) as (pointer, numbers), tempfile.TemporaryDirectory() as aside:
        sources = _sources(Layout(root), numbers, Path(aside))
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
    root.absolute().parent.mkdir(parents=True, exist_ok=True)
    aside = root.absolute().with_name(f".{root.absolute().name}.{uuid4().hex[:8]}")
    try:
        with _opened(file) as archive:
            contents = _contents_of(archive, file)
            _unpack(archive, contents, file, aside)
        _check(contents, file, aside)
        layout = Layout(aside)
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


def _sources(layout: Layout, numbers: Sequence[int], aside: Path) -> dict[str, Path]:
    """The files to archive by their names there; the side store as a copy of one moment."""
    found = {
        f"generations/{number:06d}/{name}": layout.folder(number) / name
        for number in numbers
        for name in (DATABASE, MANIFEST)
    }
    if layout.side_file.is_file():
        found[_SIDE] = aside / _SIDE
        there = sqlite3.connect(f"{layout.side_file.absolute().as_uri()}?mode=ro", uri=True)
        with closing(there), closing(sqlite3.connect(found[_SIDE])) as here:
            there.backup(here)
    if (layout.root / _TAILORING).is_file():
        found[_TAILORING] = layout.root / _TAILORING
    return found


def _described(path: Path) -> _File:
    with path.open("rb") as stream:
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
    except (tarfile.TarError, EOFError, OSError) as error:
        # tarfile tells how each of its readers failed, a line each.
        raise ArchiveError(file, f"it cannot be read ({str(error).splitlines()[0].rstrip(':')})") from error


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
            out.write(block)
    return digest.hexdigest()


def _check(contents: _Contents, file: Path, target: Path) -> None:
    layout = Layout(target)
    for number in contents.generations:
        check_generation(layout.folder(number), number, file)
    if layout.side_file.is_file():
        check_side(layout.side_file, file)
