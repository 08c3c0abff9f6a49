"""Uploaded files: a folder of the workspace that the service's index runs read as a source.

A file is written as a hidden part next to its place and then renamed. The writer holds a lock on
the part, which the system frees when the process ends in any way. So a part without a lock is a
leftover.
"""

import errno
import os
import unicodedata
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from storage.errors import UsageError
from storage.faults import faults_told
from storage.system import discard, is_name, lock, remove_unlocked, replace_open

UPLOADS = "uploads"
LONGEST_NAME = 200  # bytes of UTF-8 in a part of a path
MOST_FOLDERS = 16
_PART = ".part-"  # hidden files are not indexed
_LONGEST_PATH = 4095  # bytes, the limit of Linux
_NAME_TAKEN = {errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENOTEMPTY}


def upload_folder(workspace: Path) -> Path:
    """Return the folder of uploads, which the first one makes."""
    return workspace / UPLOADS


def upload_path(workspace: Path, name: str) -> Path:
    """Return the path of an upload, with its name in NFC. Raises UsageError for a bad name."""
    name = unicodedata.normalize("NFC", name)
    parts = name.split("/")
    # Text that is not printable is refused first: it may hold what UTF-8 cannot encode.
    is_plain = name.isprintable() and "\\" not in name and len(parts) <= MOST_FOLDERS
    if not is_plain or any(map(_is_bad, parts)):
        raise UsageError(
            f"{name[:120]!r} cannot be the name of a document.",
            "Use a relative path such as reports/2026.pdf: no part of it is blank, begins with a "
            f"dot or has more than {LONGEST_NAME} bytes; there are {MOST_FOLDERS} parts at most.",
        )
    file = upload_folder(workspace).joinpath(*parts)
    if len(os.fsencode(file)) > _LONGEST_PATH - len(_PART) - 32:
        raise UsageError(
            f"The name {name[:120]!r}… is too long for this workspace's folder.", "Shorten it."
        )
    return file


def _is_bad(part: str) -> bool:
    hidden = not part.strip() or part.startswith((".", "~$"))
    return hidden or len(part.encode()) > LONGEST_NAME or not is_name(part)


def uploaded_file(workspace: Path, name: str) -> Path | None:
    """Return the uploaded file of that name, if there is one."""
    try:
        path = upload_path(workspace, name)
    except UsageError:
        return None  # A document of another source
    return path if path.is_file() else None


def uploaded_files(workspace: Path) -> list[Path]:
    """List all complete uploads by path."""
    paths = sorted(upload_folder(workspace).rglob("*"))
    return [path for path in paths if path.is_file() and not path.name.startswith(_PART)]


async def store_upload(workspace: Path, name: str, pieces: AsyncIterator[bytes]) -> Path:
    """Write or replace a file, completely or not at all. Raises UsageError for a bad name."""
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
    """Replace a file by what the block writes, if the block succeeds."""
    try:
        with faults_told(path), _part_beside(path) as file:
            try:
                yield file
                replace_open(file, path)
            finally:
                discard(file)
    except OSError as error:
        if error.errno not in _NAME_TAKEN:
            raise
        name = path.relative_to(folder).as_posix()
        raise UsageError(
            f"{name!r} stands where a folder stands, or under a file.", "Rename it."
        ) from error
    finally:
        _remove_empty(path.parent, folder)


def _part_beside(path: Path) -> BinaryIO:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    while True:
        part = path.with_name(f"{_PART}{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = part.open("xb")
        except FileNotFoundError:
            continue  # Somebody has just removed the empty folder
        if lock(file.fileno()) and part.exists():
            return file
        file.close()  # Somebody removed it as a leftover before it was locked


def remove_upload(workspace: Path, path: Path) -> None:
    """Remove an uploaded file, and folders that are empty then."""
    with faults_told(path):
        path.unlink(missing_ok=True)
    _remove_empty(path.parent, upload_folder(workspace))


def replace_upload(workspace: Path, path: Path, content: bytes) -> None:
    """Replace an uploaded file, completely or not at all."""
    with _written(path, upload_folder(workspace)) as file:
        file.write(content)


def remove_parts(workspace: Path) -> int:
    """Remove the parts of uploads that nobody writes; return how many."""
    removed = 0
    for part in upload_folder(workspace).rglob(f"{_PART}*"):
        try:
            if not remove_unlocked(part):
                continue  # It is being written
        except (FileNotFoundError, IsADirectoryError, PermissionError):
            continue  # It was removed, or is not ours
        removed += 1
        _remove_empty(part.parent, upload_folder(workspace))
    return removed


def _remove_empty(folder: Path, top: Path) -> None:
    """Remove a folder and those above it below `top`, as long as they are empty."""
    for empty in (folder, *folder.parents):
        if empty == top or not empty.is_relative_to(top):
            return
        try:
            empty.rmdir()
        except OSError:
            return
