"""One SQLite file that many processes and threads share safely.

Write-ahead logging lets readers go on beside the one writer; a writer waits for another instead of failing; every
transaction is short and takes the write lock when it begins, so that it never fails half-way for want of it.
"""

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from storage.errors import DiskFailed, DiskFull, NotPermitted, StorageError, WorkspaceFormatError
from storage.faults import faults_told

SIDE_VERSION = 1
# Tables that files of the same version may lack.
_ADDED = {"workspace_db.sql": "workspace_db_added.sql"}

Value = str | int | float | bytes | None
Row = tuple[Value, ...]

_WAIT = 30.0  # seconds, for a lock of another process: nothing else passes by waiting
_AGAIN = "Run the same command again when nobody asks or indexes."
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_DAMAGED = {
    "workspace_db.sql": "Put back a copy of it (an archive holds one), or move the file away: a new one is made. With it go "
    "memory, kept answers and vectors (models are paid again) and the history of runs; what is indexed stays.",
    "limits.sql": "Move the file away: a new one is made. With it goes only what was counted in the last minute.",
}
_WITHOUT = {
    "workspace_db.sql": "Nothing is remembered, and no kept answer or vector is used.",
    "limits.sql": "This process keeps the limits by itself.",
}
# Faults with which a reader goes on without the file. Damage is not among them: nobody should pay twice unknowingly.
_DISPENSABLE = (NotPermitted, DiskFull, DiskFailed)

logger = logging.getLogger(__name__)


class SqliteFile:
    """The file is opened, and made where it is missing, at the first use; each thread has its own connection.

    `reading`: who only reads can do without it. Where the file cannot be written, or its disk is full, one warning says
    so, what it held is not read, and what is written goes to the process's memory.
    """

    def __init__(self, path: Path, schema: str = "workspace_db.sql", reading: bool = False) -> None:
        self.path = path
        self._schema = schema
        self._reading = reading
        self._apart = False  # from the file: in memory
        self._local = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._closing = threading.Lock()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A write transaction: all or nothing. Where a reader's disk turns out to be full, the block ends half-way."""
        connection = self._begun()
        try:
            with faults_told(self.path, _DAMAGED[self._schema]):
                try:
                    yield connection
                    connection.commit()
                except BaseException:
                    connection.rollback()
                    raise
        except _DISPENSABLE as fault:
            self._do_without(fault)

    def rows(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Reads, outside any transaction. In a file that is not there nothing is found, and none is made."""
        if not self.path.exists():
            return []
        try:
            with faults_told(self.path, _DAMAGED[self._schema]):
                return self._connection().execute(sql, parameters).fetchall()
        except _DISPENSABLE as fault:
            self._do_without(fault)
            return []

    def is_there(self) -> bool:
        """Whether there is a file that this process works with."""
        return self.path.exists() and bool(self._connection()) and not self._apart

    def compact(self) -> None:
        """Writes the file anew, so that nothing of what was deleted is left in it. Waits for other writers.

        StorageError where another process is in the midst of reading for all that time.
        """
        connection = self._connection()
        with faults_told(self.path, _DAMAGED[self._schema]):
            connection.execute("VACUUM")
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            raise StorageError(self.path, "another process reads it, and with it what was deleted", _AGAIN)

    def close(self) -> None:
        """Closes the connections of all threads; a later use opens new ones."""
        with self._closing:
            for connection in self._all:
                connection.close()
            self._all.clear()
            self._local = threading.local()

    def _connection(self) -> sqlite3.Connection:
        # A connection must not be carried into a forked process.
        if getattr(self._local, "pid", None) != os.getpid():
            connection = self._opened()
            self._local.connection, self._local.pid = connection, os.getpid()
            with self._closing:
                self._all.append(connection)
        opened: sqlite3.Connection = self._local.connection
        return opened

    def _opened(self) -> sqlite3.Connection:
        if not self._apart:
            try:
                with faults_told(self.path, _DAMAGED[self._schema]):
                    return _open(self.path, self._schema)
            except _DISPENSABLE as fault:
                self._do_without(fault)
        return _open(None, self._schema)

    def _begun(self) -> sqlite3.Connection:
        try:
            with faults_told(self.path, _DAMAGED[self._schema]):
                self._connection().execute("BEGIN IMMEDIATE")
        except _DISPENSABLE as fault:
            self._do_without(fault)
            self._connection().execute("BEGIN IMMEDIATE")
        return self._connection()

    def _do_without(self, fault: StorageError) -> None:
        """From now on in memory, for a reader; raises the fault for everybody else."""
        if not self._reading or self._apart:
            raise fault
        self._apart = True
        self._local = threading.local()
        logger.warning("%s %s", fault.message, _WITHOUT[self._schema])


def _open(path: Path | None, schema: str) -> sqlite3.Connection:
    """None: in memory."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    # Closing from another thread is all that happens across threads.
    connection = sqlite3.connect(path or ":memory:", timeout=_WAIT, isolation_level=None, check_same_thread=False)
    try:
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = NORMAL")  # safe after kill -9; a power cut may lose the last rows
        connection.execute("PRAGMA foreign_keys = ON")
        _prepare(connection, path or Path(":memory:"), schema)
    except BaseException:
        connection.close()
        raise
    return connection


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """The switch to write-ahead logging does not wait for other connections by itself: it is tried again."""
    end = time.monotonic() + _WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _LOCKED or time.monotonic() > end:
                raise
            time.sleep(0.02)
        else:
            return


def _prepare(connection: sqlite3.Connection, path: Path, schema: str) -> None:
    if _version(connection) == 0:
        connection.execute("BEGIN IMMEDIATE")
        if _version(connection) == 0:  # another process may have been first
            for statement in _statements(schema):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SIDE_VERSION}")
        connection.commit()
    found = _version(connection)
    if found != SIDE_VERSION:
        raise WorkspaceFormatError(path, found, SIDE_VERSION)
    if schema in _ADDED:
        for statement in _statements(_ADDED[schema]):
            connection.execute(statement)


def _statements(schema: str) -> list[str]:
    return files("storage").joinpath(schema).read_text("utf-8").split(";\n")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
