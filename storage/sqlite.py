"""How do many processes and threads share one SQLite file safely?

Write-ahead logging lets readers go on beside the one writer; a writer waits for another instead of failing; every
transaction is short and takes the write lock when it begins, so that it never fails half-way for want of it.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from storage.errors import StorageError, WorkspaceFormatError

SIDE_VERSION = 1
# Tables that files of the same version may lack.
_ADDED = {"side.sql": "side_added.sql"}

Value = str | int | float | bytes | None
Row = tuple[Value, ...]

_WAIT = 30.0  # seconds
_AGAIN = "Run the same command again when nobody asks or indexes."


class SideDatabase:
    """The file is opened, and made where it is missing, at the first use; each thread has its own connection."""

    def __init__(self, path: Path, schema: str = "side.sql") -> None:
        self.path = path
        self._schema = schema
        self._local = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._closing = threading.Lock()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A write transaction: all or nothing."""
        connection = self._connection()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.rollback()
            raise
        connection.commit()

    def rows(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Reads, outside any transaction. In a file that is not there nothing is found, and none is made."""
        if not self.path.exists():
            return []
        return self._connection().execute(sql, parameters).fetchall()

    def compact(self) -> None:
        """Writes the file anew, so that nothing of what was deleted is left in it. Waits for other writers.

        StorageError where another process is in the midst of reading for all that time.
        """
        connection = self._connection()
        try:
            connection.execute("VACUUM")
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.OperationalError as error:
            raise StorageError(self.path, f"it could not be written anew ({error})", _AGAIN) from error
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
            connection = _open(self.path, self._schema)
            self._local.connection, self._local.pid = connection, os.getpid()
            with self._closing:
                self._all.append(connection)
        opened: sqlite3.Connection = self._local.connection
        return opened


def _open(path: Path, schema: str) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Closing from another thread is all that happens across threads.
    connection = sqlite3.connect(path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
    try:
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = NORMAL")  # safe after kill -9; a power cut may lose the last rows
        connection.execute("PRAGMA foreign_keys = ON")
        _prepare(connection, path, schema)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise StorageError(
            path, f"the side store cannot be opened ({error})", "Move the file away: it is made anew."
        ) from error
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
        except sqlite3.OperationalError:
            if time.monotonic() > end:
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
