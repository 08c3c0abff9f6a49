"""Uploaded files: kept in a folder of the workspace, which index runs read as a source."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath

from flows.service.workspaces import UPLOADS
from storage.errors import UsageError

LONGEST_NAME = 200  # bytes of UTF-8 of a part of a path
PARTIAL = ".part-"  # hidden files are no documents


def upload_folder(workspace: Path) -> Path:
    """Where the uploads of a workspace are; not there before the first."""
    return workspace / UPLOADS


def upload_path(workspace: Path, name: str) -> Path:
    """The file of an upload, inside of the workspace's folder for them. Raises UsageError for any other name."""
    path, parts = PurePosixPath(name), name.split("/")
    bad = (
        not name
        or path.is_absolute()
        or any(not part or part.startswith((".", "~$")) or len(part.encode()) > LONGEST_NAME for part in parts)
        or not name.isprintable()
        or "\\" in name
        or len(parts) > 16
    )
    if bad:
        raise UsageError(
            f"{name[:120]!r} cannot be the name of a document.",
            "Use a relative path such as reports/2026.pdf: no part of it may be empty or begin with a dot.",
        )
    return upload_folder(workspace).joinpath(*parts)


async def store_upload(workspace: Path, name: str, pieces: AsyncIterator[bytes]) -> Path:
    """Write a file in place of the one of that name. It is whole, or as it was."""
    path = upload_path(workspace, name)
    folder = upload_folder(workspace)
    _check_folders(folder, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{PARTIAL}{uuid.uuid4().hex}")
    try:
        with partial.open("xb") as file:
            async for piece in pieces:
                file.write(piece)
            size = file.tell()
        if not size:
            raise UsageError(f"The file {name!r} is empty.", "Send its content as the body of the request.")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def remove_upload(workspace: Path, name: str) -> None:
    """Remove an uploaded file, where there is one of that name."""
    try:
        path = upload_path(workspace, name)
    except UsageError:
        return  # a document from elsewhere
    path.unlink(missing_ok=True)


def _check_folders(folder: Path, path: Path) -> None:
    """UsageError where a file stands in the way of a folder, or a folder in the way of the file."""
    inside = [parent for parent in path.parents if parent.is_relative_to(folder)]
    if path.is_dir() or any(parent.exists() and not parent.is_dir() for parent in inside):
        raise UsageError(f"{path.relative_to(folder)} stands where a folder stands, or under a file.", "Rename it.")
