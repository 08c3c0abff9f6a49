"""Uploaded files: they lie in a folder of the workspace, a source of the service's index runs.

A file comes in beside its place, as a hidden part, and is then renamed. Whoever writes a part holds
a lock on it, which the system frees when the process ends, however it ends: what is not locked was
left behind by a dead one.
"""

import errno
import fcntl
import os
import unicodedata
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from storage.errors import UsageError
from storage.faults import faults_told

UPLOADS = "uploads"
LONGEST_NAME = 200  # bytes of UTF-8 of a part of a path
MOST_FOLDERS = 16
_PART = ".part-"  # hidden files are no documents
_LONGEST_PATH = 4095  # bytes of a whole path, as Linux has it
_NO_PLACE = {errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENOTEMPTY}


def upload_folder(workspace: Path) -> Path:
    """Where the uploads of a workspace are; not there before the first."""
    return workspace / UPLOADS


def upload_path(workspace: Path, name: str) -> Path:
    """The file of an upload, in one spelling of Unicode, inside of the workspace's folder for them.

    Raises UsageError for a name that no file there may have.
    """
    name = unicodedata.normalize("NFC", name)
    path, parts = PurePosixPath(name), name.split("/")
    bad = (
        not name
        or path.is_absolute()
        or any(_is_bad(part) for part in parts)
        or not name.isprintable()
        or "\\" in name
        or len(parts) > MOST_FOLDERS
    )
    if bad:
        raise UsageError(
            f"{name[:120]!r} cannot be the name of a document.",
            "Use a relative path such as reports/2026.pdf: each part of it has a sign that is no "
            f"blank, does not begin with a dot, and has {LONGEST_NAME} bytes at most; there are "
            f"{MOST_FOLDERS} parts at most.",
        )
    file = upload_folder(workspace).joinpath(*parts)
    if len(os.fsencode(file)) > _LONGEST_PATH - len(_PART) - 32:
        raise UsageError(
            f"The name {name[:120]!r}… is too long for this workspace's folder.", "Shorten it."
        )
    return file


def _is_bad(part: str) -> bool:
    return not part.strip() or part.startswith((".", "~$")) or len(part.encode()) > LONGEST_NAME


def uploaded_file(workspace: Path, name: str) -> Path | None:
    """The uploaded file of that name; None where there is none."""
    try:
        path = upload_path(workspace, name)
    except UsageError:
        return None  # a document from elsewhere
    return path if path.is_file() else None


def uploaded_files(workspace: Path) -> list[Path]:
    """All uploaded files that are whole, in the order of their paths."""
    folder = upload_folder(workspace)
    files = [
        path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(_PART)
    ]
    return sorted(files)


async def store_upload(workspace: Path, name: str, pieces: AsyncIterator[bytes]) -> Path:
    """Write a file in place of the one of that name. It is whole, or as it was.

    Raises UsageError where the name cannot be that of a file there.
    """
    path = upload_path(workspace, name)
    with _written(path, upload_folder(workspace)) as file:
        async for piece in pieces:
            file.write(piece)
        if not file.tell():
            raise UsageError(
                f"The file {name!r} is empty.", "Send its content as the body of the request."
            )
    return path


@contextmanager
def _written(path: Path, folder: Path) -> Iterator[BinaryIO]:
    """What the block writes takes the place of a file when the block ends well."""
    try:
        with faults_told(path), _part_beside(path) as file:
            part = Path(file.name)
            try:
                yield file
                file.flush()
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
    except OSError as error:
        if error.errno not in _NO_PLACE:
            raise
        name = path.relative_to(folder).as_posix()
        raise UsageError(
            f"{name!r} stands where a folder stands, or under a file.", "Rename it."
        ) from error
    finally:
        _remove_empty(path.parent, folder)


def _part_beside(path: Path) -> BinaryIO:
    """A new part beside a file, locked."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    while True:
        part = path.with_name(f"{_PART}{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = part.open("xb")
        except FileNotFoundError:
            continue  # somebody has just removed the folder, which was empty
        fcntl.flock(file, fcntl.LOCK_EX)
        if part.exists():
            return file
        file.close()  # somebody took it for one left behind, before it was locked


def remove_upload(workspace: Path, path: Path) -> None:
    """Remove an uploaded file, and the folders that hold nothing without it."""
    with faults_told(path):
        path.unlink(missing_ok=True)
    _remove_empty(path.parent, upload_folder(workspace))


def replace_upload(workspace: Path, path: Path, content: bytes) -> None:
    """Write an uploaded file anew. It is whole, or as it was."""
    with _written(path, upload_folder(workspace)) as file:
        file.write(content)


def remove_parts(workspace: Path) -> int:
    """Remove the parts of uploads that nobody writes any more; how many there were."""
    removed = 0
    for part in upload_folder(workspace).rglob(f"{_PART}*"):
        try:
            with part.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()
        except (BlockingIOError, FileNotFoundError, IsADirectoryError, PermissionError):
            continue  # it is under way, or has gone, or is not ours
        removed += 1
        _remove_empty(part.parent, upload_folder(workspace))
    return removed


def _remove_empty(folder: Path, top: Path) -> None:
    """Remove a folder that is empty, and those above it that are then, up to the top."""
    for empty in (folder, *folder.parents):
        if empty == top or not empty.is_relative_to(top):
            return
        try:
            empty.rmdir()
        except OSError:
            return
