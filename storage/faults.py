"""Tells what is wrong when a file cannot be read or written: no right, no room, too little memory or too few open
files, a failing disk, or damaged content.

Each has another remedy, so all of SQLite's, DuckDB's and the system's errors are told apart here, in one place: by
SQLite's code, by the system's error number, and of DuckDB, which has neither, by its exception and words.
"""

import errno
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_FSIZE, getrlimit

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
)  # fmt: skip

_OF_THE_SYSTEM: dict[int, type[FileFault]] = {
    errno.EACCES: NotPermitted, errno.EPERM: NotPermitted, errno.EROFS: NotPermitted,
    errno.ENOSPC: DiskFull, errno.EDQUOT: DiskFull, errno.EFBIG: DiskFull,
    errno.EMFILE: TooLittle, errno.ENFILE: TooLittle, errno.ENOMEM: TooLittle,
    errno.EIO: DiskFailed, errno.ENXIO: DiskFailed, errno.ENODEV: DiskFailed, errno.ESTALE: DiskFailed,
    errno.ENOLCK: NoLocks, errno.EOPNOTSUPP: NoLocks
}  # fmt: skip
_NO_PLACE = {errno.EEXIST, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOENT}
_OF_SQLITE: dict[int, type[FileFault]] = {
    sqlite3.SQLITE_READONLY: NotPermitted, sqlite3.SQLITE_PERM: NotPermitted, sqlite3.SQLITE_AUTH: NotPermitted,
    sqlite3.SQLITE_FULL: DiskFull, sqlite3.SQLITE_NOMEM: TooLittle,
    sqlite3.SQLITE_BUSY: InUse, sqlite3.SQLITE_LOCKED: InUse, sqlite3.SQLITE_PROTOCOL: InUse
}  # fmt: skip
_LONGEST_PATH = 504  # bytes: SQLite's 512, less the ending of the files that it makes beside
_LITTLE = 1 << 20  # bytes: SQLite asks for some tens of thousands at once
_DAMAGED_WORDS = (
    "Corrupt database", "not a valid DuckDB database", "Could not read enough bytes", "has been invalidated",
    "Failed to load metadata", "Serialization Error", "INTERNAL Error"
)  # fmt: skip
_DAMAGED_SQLITE_WORDS = ("no such", "malformed", "unsupported file format", "Could not decode to UTF-8")
_CODE = re.compile(r"\(code: (\d+)\)")
_LOCK_WORDS = ("Could not set lock", "Conflicting lock")
_NOBODY = "PID 0."  # holds a lock that could not be had: there are none

DATABASE_ERRORS = (sqlite3.Error, duckdb.Error)


def fault_of(error: BaseException, place: str | Path, damaged: str = "") -> StorageError | None:
    """The error of storage that this one stands for; None for one that says nothing of a file or its disk.

    `damaged` is the remedy where the content itself is damaged.
    """
    if isinstance(error, sqlite3.Error):
        code, words = getattr(error, "sqlite_errorcode", None), str(error)
        if code in (None, sqlite3.SQLITE_ERROR):  # a wrong use, but for these
            told = words.partition(" with text ")[0]  # which it quotes
            return Damaged(place, told, damaged) if told.startswith(_DAMAGED_SQLITE_WORDS) else None
        return _of_sqlite(code, words, place, damaged)
    if isinstance(error, duckdb.Error):
        return _of_duckdb(error, place, damaged)
    if isinstance(error, MemoryError):
        return TooLittle(place, str(error) or "out of memory")
    if isinstance(error, OSError) and error.errno in _OF_THE_SYSTEM:
        return _OF_THE_SYSTEM[error.errno](place, error.strerror or str(error))
    return None


def fault_in_words(words: str, place: str | Path, damaged: str = "") -> StorageError | None:
    """The same for an error of which only a text came through, with SQLite's code or the system's words in it."""
    if match := _CODE.search(words):
        return _of_sqlite(int(match[1]), words, place, damaged)
    return next((kind(place, text) for n, kind in _OF_THE_SYSTEM.items() if (text := os.strerror(n)) in words), None)


@contextmanager
def faults_told(place: str | Path, damaged: str = "") -> Iterator[None]:
    """Errors of SQLite, DuckDB and the system inside the block become those of storage, where they speak of a fault."""
    try:
        yield
    except (*DATABASE_ERRORS, OSError, MemoryError) as error:
        fault = fault_of(error, place, damaged)
        if fault is None:
            raise
        raise fault from error


def make_folder(path: Path) -> None:
    """Make the folder where it is not there. StorageError where none can be: a file has its name, or one above it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno not in _NO_PLACE:
            raise
        problem = f"no folder can be made there ({error.strerror})"
        raise StorageError(path, problem, "Name another folder (--workspace).") from error


def writable(path: Path) -> bool:
    """Whether a file can be changed by a database, which also makes files beside it."""
    return _may(path, os.W_OK) and _may(path.parent, os.W_OK)


def _may(path: Path, mode: int) -> bool:
    # By the rights in force, not by those of whoever started the process.
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _of_sqlite(code: int, words: str, place: str | Path, damaged: str) -> StorageError | None:
    code &= 0xFF
    if code in _OF_SQLITE:
        return _OF_SQLITE[code](place, words)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or Path(place).is_dir():
        return Damaged(place, words, damaged)
    return _by_the_disk(Path(place), words) if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR) else None


def _by_the_disk(path: Path, words: str) -> StorageError:
    """SQLite does not say why it could not open or write a file: its path, the disk and the
    process's limits do.
    """
    if (length := len(os.fsencode(path.absolute()))) > _LONGEST_PATH:
        problem = f"its path has {length} bytes, and SQLite opens none of more than {_LONGEST_PATH}"
        return StorageError(path, problem, "Name a folder with a shorter path (--workspace). Nothing is damaged.")
    folder = next((parent for parent in path.absolute().parents if parent.exists()), Path("/"))
    try:
        os.close(os.open(folder, os.O_RDONLY))
    except OSError as error:
        if _OF_THE_SYSTEM.get(error.errno or 0) is TooLittle:
            return TooLittle(path, error.strerror or words)
    if not _may(folder, os.W_OK | os.X_OK) or (path.exists() and not _may(path, os.R_OK | os.W_OK)):
        return NotPermitted(path, words)
    if shutil.disk_usage(folder).free < _LITTLE or getrlimit(RLIMIT_FSIZE)[0] != RLIM_INFINITY:
        return DiskFull(path, words)
    return DiskFailed(path, words)


def _of_duckdb(error: duckdb.Error, place: str | Path, damaged: str) -> StorageError:
    words = str(error).splitlines()[0]
    if fault := fault_in_words(words, place):
        return fault
    if isinstance(error, duckdb.PermissionException):
        return NotPermitted(place, words)
    if isinstance(error, duckdb.OutOfMemoryException):
        return TooLittle(place, words)
    if any(known in words for known in _LOCK_WORDS):
        return (NoLocks if _NOBODY in words else InUse)(place, words)
    if any(known in words for known in _DAMAGED_WORDS) or isinstance(error, duckdb.SerializationException):
        return Damaged(place, words, damaged)
    return StorageError(place, f"the database refuses this ({words})")
