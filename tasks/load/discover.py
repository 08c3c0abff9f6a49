"""Discovery: find the files of the named sources, and report what was left out.

Hidden files and folders, `__pycache__`, `node_modules` and office lock files (`~$…`) are ignored
unless they are named themselves; symbolic links that leave their source are not followed.
"""

# ruff: noqa: PTH100, PTH110, PTH112, PTH114, PTH116, PTH118, PTH207 `os.path` on purpose:
# `abspath` keeps a link as it was named, which `Path.resolve` does not; `glob` takes absolute ones.
import glob
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

from storage.errors import SourceNotFound, TooLittle
from storage.faults import fault_of
from storage.records import Record, Skipped
from storage.remote import checked_address, is_address

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_LINE = re.compile(r":\d+$")
_IGNORED = frozenset({"__pycache__", "node_modules"})
LIST_ENDING = ".urls"  # of a file that lists addresses


class NamedSource(Record):
    """A named source.

    `key` is its absolute path or pattern, or its address; `base` is the folder that ids are
    relative to. `list` is a local file of addresses.
    """

    key: str
    base: str
    kind: Literal["file", "folder", "glob", "remote", "list"]

    @property
    def is_remote(self) -> bool:
        return self.kind in {"remote", "list"}


class SourceFile(Record):
    """A file to read: its absolute `path`, and its `id` relative to the base of its source.

    `source` and `id` are printable; `path` is the name that the system knows. Of a remote file both
    are its address. `served_as` is a name whose ending tells the format where the id's does not.
    """

    source: str
    path: str
    id: str
    served_as: str = ""

    @property
    def format_name(self) -> PurePosixPath:
        """The name whose ending tells the format, in small letters."""
        return PurePosixPath((self.served_as or self.id).lower())


def resolve(sources: Sequence[str | Path]) -> list[NamedSource]:
    """Return the named sources in order, each once, without asking a remote one.

    Raises `SourceNotFound`, and `UsageError` for an address that cannot be read.
    """
    named = {source.key: source for source in map(_source, sources)}
    return list(named.values())


def walk(source: NamedSource, skipped: list[Skipped]) -> list[SourceFile]:
    """Return the files of a source, sorted by path; append those it cannot read to `skipped`."""
    if source.kind == "file":
        return [_file(source, source.key)]
    paths = _below(source.base, skipped) if source.kind == "folder" else _matches(source, skipped)
    files = []
    for path in sorted(set(paths)):
        if problem := _problem(path, source.base):
            _skip(skipped, path, problem)
        else:
            files.append(_file(source, path))
    return files


def printable(name: str) -> str:
    """Return a file name with U+FFFD for bytes that are not UTF-8 and signs that steer a screen."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return _UNPRINTABLE.sub("\ufffd", text)


def is_remote(source: str) -> bool:
    """Say whether a source is an address or, by its name, a list of addresses."""
    return is_address(source) or os.path.abspath(source).endswith(LIST_ENDING)


def file_of(path: str) -> str:
    """Return the path of a file without the number of a line in it."""
    return _LINE.sub("", path)


def _source(named: str | Path) -> NamedSource:
    if isinstance(named, str) and is_address(named):
        address = checked_address(named)
        return NamedSource(key=address, base=address, kind="remote")
    path = os.path.abspath(named)
    key = Path(path).as_posix()
    if os.path.isdir(path):
        return NamedSource(key=key, base=key, kind="folder")
    if os.path.exists(path):
        kind: Literal["list", "file"] = "list" if key.endswith(LIST_ENDING) else "file"
        return NamedSource(key=key, base=Path(path).parent.as_posix(), kind=kind)
    if not glob.has_magic(path) or next(glob.iglob(path, recursive=True), None) is None:
        raise SourceNotFound(str(named))
    parts = Path(path).parts
    plain = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    return NamedSource(key=key, base=Path(*parts[:plain]).as_posix(), kind="glob")


def _file(source: NamedSource, path: str) -> SourceFile:
    relative = Path(os.path.relpath(path, source.base)).as_posix()
    return SourceFile(
        source=printable(source.key), path=Path(path).as_posix(), id=printable(relative)
    )


def _matches(source: NamedSource, skipped: list[Skipped]) -> Iterator[str]:
    for match in glob.iglob(source.key, recursive=True):
        path = os.path.abspath(match)
        parts = Path(os.path.relpath(path, source.base)).parts
        if any(is_ignored(part) for part in parts if part != "."):
            continue
        if not os.path.isdir(path):
            yield path
        elif _enters(path, skipped):
            yield from _below(path, skipped)


def _below(folder: str, skipped: list[Skipped]) -> Iterator[str]:
    def unreadable(error: OSError) -> None:
        if isinstance(fault := fault_of(error, folder), TooLittle):
            raise fault from error  # The folder's documents must not count as removed.
        _skip(skipped, str(error.filename), f"unreadable ({error.strerror})")

    for place, folders, files in os.walk(folder, onerror=unreadable):
        folders[:] = [
            name
            for name in sorted(folders)
            if not is_ignored(name) and _enters(os.path.join(place, name), skipped)
        ]
        yield from (os.path.join(place, name) for name in files if not is_ignored(name))


def is_ignored(name: str) -> bool:
    """Say whether a file or folder of this name is ignored unless it is named itself."""
    return name.startswith((".", "~$")) or name in _IGNORED


def _enters(folder: str, skipped: list[Skipped]) -> bool:
    if os.path.islink(folder):
        _skip(skipped, folder, "symbolic link to a folder: name that folder itself to read it")
        return False
    return True


def _problem(path: str, base: str) -> str:
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
