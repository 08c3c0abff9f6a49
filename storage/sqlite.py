"""One SQLite file that many processes and threads share safely.

Write-ahead logging lets readers go on beside the one writer. A writer waits for another instead of
failing. Every transaction is short and takes the write lock when it begins, so that it never fails
half-way for want of it.
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

_WAIT = 30.0  # seconds, for a lock of another process: nothing else passes by waiting
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
# Faults with which a reader goes on without the file.
_DISPENSABLE = (NotPermitted, DiskFull, DiskFailed, Damaged)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Schema:
    """The tables of a file: those of `NAME.sql`, which also adds what versions from `since` lack.

    `remedy` says what to do with a damaged file, `without` what a reader lacks that cannot use it.
    """

    name: str
    version: int
    since: int
    remedy: str
    without: str


class SqliteFile:
    """The file is opened, and made where it is missing, at the first use.

    Each thread has its own connection. `reading`: who only reads can do without the file. Where it
    cannot be written or is damaged, or its disk is full, one warning says so with the remedy, and
    the process works on an empty database in memory; `fault` is then the reason.
    """

    def __init__(self, path: Path, schema: Schema, reading: bool = False) -> None:
        self.path = path
        self._schema = schema
        self._reading = reading
        self.fault: StorageError | None = None
        self._local = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._closing = threading.Lock()
        # Python's own connections know themselves: they stay open until the collector finds them.
        finalize(self, _close, self._all).atexit = False

    def made(self) -> sqlite3.Connection:
        """This thread's connection to the file, which is made where it is not there."""
        # A connection must not be carried into a forked process.
        if getattr(self._local, "pid", None) != os.getpid():
            try:
                with self._faults():
                    connection = _open(None if self.fault else self.path, self._schema)
            except _DISPENSABLE as fault:
                self._do_without(fault)
                connection = _open(None, self._schema)
            self._local.connection, self._local.pid = connection, os.getpid()
            with self._closing:
                self._all.append(connection)
        opened: sqlite3.Connection = self._local.connection
        return opened

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A write transaction: all or nothing.

        Where a reader's disk turns out to be full, the block ends half-way.
        """
        try:
            with self._faults():
                self.made().execute("BEGIN IMMEDIATE")
        except _DISPENSABLE as fault:
            self._do_without(fault)
            self.made().execute("BEGIN IMMEDIATE")
        connection = self.made()
        try:
            with self._faults():
                try:
                    yield connection
                    connection.commit()
                except BaseException:
                    connection.rollback()
                    raise
        except _DISPENSABLE as fault:
            self._do_without(fault)

    def rows(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Reads, outside of any transaction; in a file that is not there nothing is found."""
        if not self.path.exists():
            return []
        try:
            with self._faults():
                return self.made().execute(sql, parameters).fetchall()
        except _DISPENSABLE as fault:
            self._do_without(fault)
            return []

    def read(self, sql: str, form: Callable[..., T], parameters: Sequence[Value] = ()) -> list[T]:
        """What `form` makes of the columns of each row; its ValueError is taken for damage."""
        try:
            return [form(*row) for row in self.rows(sql, parameters)]
        except ValueError as error:
            words = "a value in it is not as it was written"
            self._do_without(Damaged(self.path, words, self._schema.remedy), error)
            return []

    def delete_where(
        self, table: str, column: str, holds: Callable[[str], bool], where: str = "true"
    ) -> int:
        """Deletes the rows whose text in a column holds something; returns how many."""
        with self.transaction() as connection:
            connection.create_function("holds", 1, holds)
            sql = f"DELETE FROM {table} WHERE {where} AND holds(CAST({column} AS TEXT))"
            return connection.execute(sql).rowcount

    def compact(self) -> None:
        """Writes the file anew, so that nothing of what was deleted is left in it.

        Waits for other writers; StorageError where a process keeps reading for all that time.
        """
        connection = self.made()
        with self._faults():
            _compact(connection, self.path)

    def check(self) -> None:
        """Reads the file from end to end; Damaged where its parts do not belong together."""
        if self.fault:
            raise self.fault
        if self.path.exists():
            with self._faults():
                (verdict,) = self.made().execute("PRAGMA integrity_check(1)").fetchone()
            if verdict != "ok":
                raise Damaged(self.path, str(verdict).splitlines()[-1], self._schema.remedy)

    def close(self) -> None:
        """Closes the connections of all threads; a later use opens new ones."""
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

    def _do_without(self, fault: StorageError, cause: Exception | None = None) -> None:
        """A reader works in memory from now on; the fault is raised for everybody else."""
        if not self._reading:
            raise fault from cause
        with self._closing:  # several threads may meet it at once
            first, self.fault = self.fault is None, self.fault or fault
            self._local = threading.local()
        if first:
            logger.warning("%s %s %s", fault.message, self._schema.without, fault.remedy)


def _compact(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("VACUUM")
    if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        remedy = "Run the same command again when nobody asks or indexes."
        raise StorageError(path, "another process reads it, and with it what was deleted", remedy)


def _close(connections: list[sqlite3.Connection]) -> None:
    while connections:
        connections.pop().close()


def _open(path: Path | None, schema: Schema) -> sqlite3.Connection:
    """Opens a file, or a database in memory (None)."""
    if path is not None:
        make_folder(path.parent)
    # Closing from another thread is all that happens across threads.
    connection = sqlite3.connect(
        path or ":memory:", timeout=_WAIT, isolation_level=None, check_same_thread=False
    )
    try:
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = NORMAL")  # kill -9 loses nothing
        known = {0, *range(schema.since, schema.version)}
        if _version(connection) in known:
            connection.execute("BEGIN IMMEDIATE")
            if _version(connection) in known:  # another process may have been first
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
    """Tries again where others hold the file: by itself this switch does not wait for them."""
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


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
