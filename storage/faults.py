"""Finds out why a file cannot be read or written, because each reason has its own remedy.

Missing permission, no room, too little memory or too few open files, a failing disk, damaged
content: SQLite distinguishes them by codes, the system by error numbers, and DuckDB by classes of
exceptions and words.
"""

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from storage.errors import (
    Damaged,
    DiskFailed,
    DiskFull,
    FileFault,
    InUse,
    NoLocks,
    NotPermitted,
    StorageError,
    TooLittle,
)
from storage.system import is_file_size_limited

_OF_THE_SYSTEM: dict[int, type[FileFault]] = {
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), NotPermitted),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), DiskFull),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE, errno.ENOMEM), TooLittle),
    **dict.fromkeys((errno.EIO, errno.ENXIO, errno.ENODEV, errno.ESTALE), DiskFailed),
    **dict.fromkeys((errno.ENOLCK, errno.EOPNOTSUPP), NoLocks),
}
_OF_SQLITE: dict[int, type[FileFault]] = {
    **dict.fromkeys((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM), NotPermitted),
    sqlite3.SQLITE_AUTH: NotPermitted,
    sqlite3.SQLITE_FULL: DiskFull,
    sqlite3.SQLITE_NOMEM: TooLittle,
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), InUse),
    sqlite3.SQLITE_PROTOCOL: InUse,
}
_IN_USE_ON_WINDOWS = (32, 33)  # sharing and lock violation; Python calls both EACCES
_NAME_TAKEN = {errno.EEXIST, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOENT}
_LITTLE_ROOM = 1 << 20  # bytes: SQLite asks for some tens of thousands at once
_DAMAGED_SQLITE = ("no such", "malformed", "unsupported file format", "Could not decode to UTF-8")
_DAMAGED_DUCKDB = (
    "Corrupt database",
    "not a valid DuckDB database",
    "Could not read enough bytes",
    "has been invalidated",
    "Failed to load metadata",
    "Serialization Error",
    "INTERNAL Error",
)
_LOCKED_DUCKDB = ("Could not set lock", "Conflicting lock")
_NOBODY = "PID 0."  # holds the lock where the disk supports none

DATABASE_ERRORS = (sqlite3.Error, duckdb.Error)


@contextmanager
def faults_told(place: str | Path, damaged: str = "") -> Iterator[None]:
    """Turn the errors for which `fault_of` knows a StorageError into it."""
    try:
        yield
    except (*DATABASE_ERRORS, OSError, MemoryError) as error:
        fault = fault_of(error, place, damaged)
        if fault is None:
            raise
        raise fault from error


def fault_of(error: BaseException, place: str | Path, damaged: str = "") -> StorageError | None:
    """Return the StorageError for an error, or None where it is not about a file.

    `damaged` is the remedy for damaged content.
    """
    if isinstance(error, sqlite3.Error):
        return _of_sqlite(error, Path(place), damaged)
    if isinstance(error, duckdb.Error):
        return _of_duckdb(error, place, damaged)
    if isinstance(error, MemoryError):
        return TooLittle(place, str(error) or "out of memory")
    if isinstance(error, OSError) and getattr(error, "winerror", None) in _IN_USE_ON_WINDOWS:
        return InUse(place, error.strerror or str(error))
    if isinstance(error, OSError) and error.errno in _OF_THE_SYSTEM:
        return _OF_THE_SYSTEM[error.errno](place, error.strerror or str(error))
    return None


def make_folder(path: Path) -> None:
    """Make a folder unless it is there. Raises StorageError where its path cannot be a folder."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno not in _NAME_TAKEN:
            raise
        problem = f"no folder can be made there ({error.strerror})"
        raise StorageError(path, problem, "Name another folder (--workspace).") from error


def _may(path: Path, mode: int) -> bool:
    # By the effective user, not the one who started the process.
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _of_sqlite(error: sqlite3.Error, place: Path, damaged: str) -> StorageError | None:
    code, words = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF, str(error)
    if code in _OF_SQLITE:
        return _OF_SQLITE[code](place, words)
    words = words.partition(" with text ")[0]  # The rest quotes stored content
    is_damage = code == sqlite3.SQLITE_ERROR and words.startswith(_DAMAGED_SQLITE)
    if is_damage or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or place.is_dir():
        return Damaged(place, words, damaged)
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR):
        return _by_the_disk(place, words)
    return None  # An error of the program


def _by_the_disk(path: Path, words: str) -> StorageError:
    """Find out from disk and limits why SQLite, which does not say it, cannot use a file."""
    folder = next((parent for parent in path.absolute().parents if parent.exists()), Path("/"))
    try:
        next(os.scandir(folder), None)
    except OSError as error:
        if _OF_THE_SYSTEM.get(error.errno or 0) is TooLittle:
            return TooLittle(path, error.strerror or words)
    readable = not path.exists() or _may(path, os.R_OK | os.W_OK)
    if not _may(folder, os.W_OK | os.X_OK) or not readable:
        return NotPermitted(path, words)
    if shutil.disk_usage(folder).free < _LITTLE_ROOM or is_file_size_limited():
        return DiskFull(path, words)
    return DiskFailed(path, words)


def _of_duckdb(error: duckdb.Error, place: str | Path, damaged: str) -> StorageError:
    words = str(error).splitlines()[0]
    for number, kind in _OF_THE_SYSTEM.items():
        if os.strerror(number) in words:
            return kind(place, os.strerror(number))
    if isinstance(error, duckdb.PermissionException):
        return NotPermitted(place, words)
    if isinstance(error, duckdb.OutOfMemoryException):
        return TooLittle(place, words)
    if any(known in words for known in _LOCKED_DUCKDB):
        return (NoLocks if _NOBODY in words else InUse)(place, words)
    is_damage = isinstance(error, duckdb.SerializationException)
    if is_damage or any(known in words for known in _DAMAGED_DUCKDB):
        return Damaged(place, words, damaged)
    return StorageError(place, f"the database refuses this ({words})")
