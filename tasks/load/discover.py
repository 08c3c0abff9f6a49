"""Discovery: the files that the named sources hold, their ids, and what was left out.

Hidden files and folders, `__pycache__`, `node_modules` and office lock files (`~$…`) are passed
over in silence, unless they are named themselves; a symbolic link that leaves its source is not
followed.
"""

# ruff: noqa: PTH100, PTH110, PTH112, PTH114, PTH116, PTH118, PTH119, PTH207 `os.path` on purpose:
# `abspath` keeps a link as it was named (`Path.resolve` would not); `glob` takes absolute ones.
import glob
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from storage.errors import SourceNotFound, TooLittle
from storage.faults import fault_of
from storage.records import Record, Skipped

# Controls, and what turns the direction of the text that follows.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_IGNORED = frozenset({"__pycache__", "node_modules"})


class NamedSource(Record):
    """A named source: its canonical key (absolute path or glob pattern) and the folder that ids are
    relative to.
    """

    key: str
    base: str
    kind: str


class SourceFile(Record):
    """A file to read: `path` absolute, `id` relative to its source's base; both with forward
    slashes. `source` and `id` are printable; the path is the file's own.
    """

    source: str
    path: str
    id: str


def resolve(sources: Sequence[str | Path]) -> list[NamedSource]:
    """The named sources, each once, in the order in which they are named: of two texts under one id
    the first stays.

    Raises `SourceNotFound` before anything is read.
    """
    named = {source.key: source for source in map(_source, sources)}
    return list(named.values())


def walk(source: NamedSource, skipped: list[Skipped]) -> list[SourceFile]:
    """The regular files of one source sorted by id; what cannot be read is added to `skipped`."""
    if source.kind == "file":
        return [
            SourceFile(
                source=printable(source.key),
                path=source.key,
                id=printable(os.path.basename(source.key)),
            )
        ]
    files = []
    for path in set(
        _below(source.base, skipped) if source.kind == "folder" else _matches(source, skipped)
    ):
        problem = _problem(path, source.base)
        if problem:
            _skip(skipped, path, problem)
        else:
            relative = Path(os.path.relpath(path, source.base)).as_posix()
            files.append(
                SourceFile(
                    source=printable(source.key), path=Path(path).as_posix(), id=printable(relative)
                )
            )
    return sorted(files, key=lambda file: (file.id, file.path))


def printable(name: str) -> str:
    """A file name as text: bytes that are no UTF-8, and signs that steer a terminal, become
    U+FFFD.
    """
    return _STEERING.sub(
        "\ufffd", name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    )


def _source(named: str | Path) -> NamedSource:
    path = os.path.abspath(named)
    key = Path(path).as_posix()
    if os.path.isdir(path):
        return NamedSource(key=key, base=key, kind="folder")
    if os.path.exists(path):
        return NamedSource(key=key, base=Path(path).parent.as_posix(), kind="file")
    if not glob.has_magic(path) or next(glob.iglob(path, recursive=True), None) is None:
        raise SourceNotFound(str(named))
    parts = Path(path).parts
    plain = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    return NamedSource(key=key, base=Path(*parts[:plain]).as_posix(), kind="glob")


def _matches(source: NamedSource, skipped: list[Skipped]) -> Iterator[str]:
    for match in glob.iglob(source.key, recursive=True):
        path = os.path.abspath(match)
        if any(
            _ignored(part) for part in Path(os.path.relpath(path, source.base)).parts if part != "."
        ):
            continue
        if not os.path.isdir(path):
            yield path
        elif _enters(path, skipped):
            yield from _below(path, skipped)


def _below(folder: str, skipped: list[Skipped]) -> Iterator[str]:
    def unreadable(error: OSError) -> None:
        if isinstance(fault := fault_of(error, folder), TooLittle):
            raise fault from error  # what the folder holds must not count as gone
        _skip(skipped, str(error.filename), f"unreadable ({error.strerror})")

    for place, folders, files in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(
            name
            for name in folders
            if not _ignored(name) and _enters(os.path.join(place, name), skipped)
        )
        yield from (os.path.join(place, name) for name in files if not _ignored(name))


def _ignored(name: str) -> bool:
    return name.startswith((".", "~$")) or name in _IGNORED


def _enters(folder: str, skipped: list[Skipped]) -> bool:
    if os.path.islink(folder):
        _skip(skipped, folder, "symbolic link to a folder: name that folder itself to read it")
        return False
    return True


def _problem(path: str, base: str) -> str:
    """Why a file cannot be read; empty where it can."""
    link = os.path.islink(path)
    if link and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(base)):
        return "symbolic link out of the source"
    try:
        # Opening a pipe or a device could wait for ever.
        return "" if stat.S_ISREG(os.stat(path).st_mode) else "not a regular file"
    except OSError as error:
        return "broken symbolic link" if link else f"unreadable ({error.strerror})"


def _skip(skipped: list[Skipped], path: str, reason: str) -> None:
    entry = Skipped(path=printable(Path(path).as_posix()), reason=reason)
    if entry not in skipped:
        skipped.append(entry)
