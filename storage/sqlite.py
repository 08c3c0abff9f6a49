"""One SQLite file that many processes and threads share safely.

Write-ahead logging lets readers go on while somebody writes; a writer waits for another writer.
Every transaction is short and takes the write lock at its beginning, so that it cannot fail halfway
because another process has the lock.
"""

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TypeVar
from weakref import finalize

from storage.errors import (
    Damaged,
    DiskFailed,
    DiskFull,
    NotPermitted,
    StorageError,
    WorkspaceFormatError,
)
from storage.faults import faults_told, make_folder

Value = str | int | float | bytes | None
Row = tuple[Value, ...]
T = TypeVar("T")

_LOCK_TIMEOUT = 30.0  # seconds
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
# Faults after which a reader goes on without the file.
_SURVIVABLE = (NotPermitted, DiskFull, DiskFailed, Damaged)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Schema:
    """The tables of a file, which `NAME.sql` creates or adds to those of versions from `since`.

    `remedy` says what to do with a damaged file, `without` what a reader lacks without the file.
    """

    name: str
    version: int
    since: int
    remedy: str
    without: str


class SqliteFile:
    """A file that is opened, or made, at its first use, with a connection for each thread.

    With `reading`, a file that cannot be written, is damaged or has no room is replaced by an empty
    database in memory; one warning names the remedy, and `fault` is the reason.
    """

    def __init__(self, path: Path, schema: Schema, reading: bool = False) -> None:
        self.path = path
        self._schema = schema
        self._reading = reading
        self.fault: StorageError | None = None
        self._local = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._closing = threading.Lock()
        # Connections are in reference cycles: without this they stay open until a collection.
        finalize(self, _close, self._all).atexit = False

    def connect(self) -> sqlite3.Connection:
        """Return this thread's connection; make the file where it is missing."""
        # A connection must not be used in a forked process.
        if getattr(self._local, "pid", None) != os.getpid():
            try:
                with self._faults():
                    connection = _open(None if self.fault else self.path, self._schema)
            except _SURVIVABLE as fault:
                self._go_without(fault)
                connection = _open(None, self._schema)
            self._local.connection, self._local.pid = connection, os.getpid()
            with self._closing:
                self._all.append(connection)
        opened: sqlite3.Connection = self._local.connection
        return opened

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write all or nothing.

        Where the disk of a reader turns out to be full, the block ends early without an error.
        """
        try:
            with self._faults():
                self.connect().execute("BEGIN IMMEDIATE")
        except _SURVIVABLE as fault:
            self._go_without(fault)
            self.connect().execute("BEGIN IMMEDIATE")
        connection = self.connect()
        try:
            with self._faults():
                try:
                    yield connection
                    connection.commit()
                except BaseException:
                    connection.rollback()
                    raise
        except _SURVIVABLE as fault:
            self._go_without(fault)

    def rows(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Read rows outside of any transaction; a missing file has none."""
        if not self.path.exists():
            return []
        try:
            with self._faults():
                return self.connect().execute(sql, parameters).fetchall()
        except _SURVIVABLE as fault:
            self._go_without(fault)
            return []

    def read(self, sql: str, form: Callable[..., T], parameters: Sequence[Value] = ()) -> list[T]:
        """Call `form` with the columns of each row. Its ValueError counts as damage."""
        try:
            return [form(*row) for row in self.rows(sql, parameters)]
        except ValueError as error:
            words = "a value in it is not as it was written"
            self._go_without(Damaged(self.path, words, self._schema.remedy), error)
            return []

    def delete_where(
        self, table: str, column: str, holds: Callable[[str], bool], where: str = "true"
    ) -> int:
        """Delete the rows for whose text in a column `holds` is true; return how many."""
        with self.transaction() as connection:
            connection.create_function("holds", 1, holds)
            sql = f"DELETE FROM {table} WHERE {where} AND holds(CAST({column} AS TEXT))"
            return connection.execute(sql).rowcount

    def compact(self) -> None:
        """Rewrite the file, so that it holds nothing of what was deleted.

        Raises StorageError where another process reads it until the timeout.
        """
        connection = self.connect()
        with self._faults():
            connection.execute("VACUUM")
            if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                problem = "another process reads it, and with it what was deleted"
                remedy = "Run the same command again when nobody asks or indexes."
                raise StorageError(self.path, problem, remedy)

    def check(self) -> None:
        """Read the whole file. Raises Damaged where it is inconsistent."""
        if self.fault:
            raise self.fault
        if self.path.exists():
            with self._faults():
                (verdict,) = self.connect().execute("PRAGMA integrity_check(1)").fetchone()
            if verdict != "ok":
                raise Damaged(self.path, str(verdict).splitlines()[-1], self._schema.remedy)

    def close(self) -> None:
        """Close the connections of all threads; a later use opens new ones."""
        with self._closing:
            _close(self._all)
            self._local = threading.local()

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            with faults_told(self.path, self._schema.remedy):
                yield
        except UnicodeDecodeError as error:  # SQLite's message quotes what is damaged
            raise Damaged(self.path, "names in it are no text", self._schema.remedy) from error

    def _go_without(self, fault: StorageError, cause: Exception | None = None) -> None:
        """Let a reader work in memory from now on; raise the fault for everybody else."""
        if not self._reading:
            raise fault from cause
        with self._closing:  # Several threads may get here at once
            first, self.fault = self.fault is None, self.fault or fault
            self._local = threading.local()
        if first:
            logger.warning("%s %s %s", fault.message, self._schema.without, fault.remedy)


def _close(connections: list[sqlite3.Connection]) -> None:
    while connections:
        connections.pop().close()


def _open(path: Path | None, schema: Schema) -> sqlite3.Connection:
    """Open a file, or a database in memory (None)."""
    if path is not None:
        make_folder(path.parent)
    # The only use in another thread is closing.
    connection = sqlite3.connect(
        path or ":memory:", timeout=_LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
    )
    try:
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = NORMAL")  # kill -9 loses nothing
        known = {0, *range(schema.since, schema.version)}
        if _version(connection) in known:
            connection.execute("BEGIN IMMEDIATE")
            if _version(connection) in known:  # Another process may have been first
                script = files("storage").joinpath(f"{schema.name}.sql").read_text("utf-8")
                for statement in script.split(";\n"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {schema.version}")
            connection.commit()
        version = _version(connection)
        if version != schema.version:
            raise WorkspaceFormatError(path or ":memory:", version, schema.version)
    except BaseException:
        connection.close()
        raise
    return connection


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; SQLite itself does not wait here for others' locks."""
    end = time.monotonic() + _LOCK_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _LOCKED or time.monotonic() > end:
                raise
            time.sleep(0.02)
        else:
            return


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
