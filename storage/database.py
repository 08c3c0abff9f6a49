"""Opens the DuckDB file of one generation, writes it in bulk and reads it as records or arrays.

DuckDB has no fast path for Python rows: `executemany` needs half a minute for 100,000 rows, while a
scan over a dict of numpy arrays needs a tenth of a second. So rows become columns here, once.
"""

import json
import logging
import re
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter
from scipy import sparse

from storage.errors import StorageError, WorkspaceFormatError
from storage.faults import faults_told
from storage.records import Record

SCHEMA_VERSION = 4

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=Record)
Row = tuple[object, ...]
Parameter = str | int | float | None | Collection[str] | Sequence[float]
Column = Sequence[object] | NDArray[np.generic]
Arrays = dict[str, NDArray[np.generic]]
Selection = tuple[str, list[Parameter]]  # a condition for WHERE, and its parameters

_DAMAGED = (
    "Index again: the run goes on from the newest generation that is whole. Or roll back to one "
    "(`trellis generations`, `trellis rollback N`). Memory and caches are not touched."
)

# A keyword of DuckDB cannot name a column without quotes: records say `start` and `end`, tables
# `start_at` and `end_at`.
_COLUMN_OF = {"start": "start_at", "end": "end_at"}
_FIELD_OF = {column: field for field, column in _COLUMN_OF.items()}

# The order of chunks in every array that has one row or column for each.
CHUNKS_IN_ORDER = "SELECT id FROM chunks ORDER BY document, ordinal"

_FEW_VALUES = 16  # up to so many are compared in turn; more are joined


class Database:
    """One DuckDB connection: a read-only one serves many threads at once, a writable one in turn.

    Every method that runs SQL raises StorageError, or one of its kinds, where the file or its disk
    fails (`storage.faults`).
    """

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection, read_only: bool) -> None:
        self.path = path
        self.read_only = read_only
        self._opened: duckdb.DuckDBPyConnection | None = connection
        self._turn = threading.RLock()
        self._depth = 0

    @classmethod
    def create(cls, path: Path) -> "Database":
        """A new file with the schema in it. The folder must exist, the file must not."""
        with faults_told(path, _DAMAGED):
            database = cls(path, duckdb.connect(str(path)), read_only=False)
        with database.transaction():
            database.execute(files("storage").joinpath("schema.sql").read_text("utf-8"))
            database.execute(
                "INSERT INTO meta (key, value) VALUES ('schema_version', ?)", [str(SCHEMA_VERSION)]
            )
        return database

    @classmethod
    def open(cls, path: Path, read_only: bool = True) -> "Database":
        """Opens a file of this version.

        Raises StorageError where it is missing or damaged, WorkspaceFormatError for another one.
        """
        if not path.is_file():
            raise StorageError(path, "the database file is missing", _DAMAGED)
        with faults_told(path, _DAMAGED):
            # A question reads a few rows: more threads are woken than find work.
            config: dict[str, str | bool | int | float | list[str]] = (
                {"threads": 1} if read_only else {}
            )
            database = cls(path, duckdb.connect(str(path), read_only, config), read_only)
        try:
            versions = database.strings("SELECT value FROM meta WHERE key = 'schema_version'")
            if versions != [str(SCHEMA_VERSION)]:
                raise WorkspaceFormatError(
                    path.parent, int(versions[0]) if versions else 0, SCHEMA_VERSION
                )
        except BaseException:
            database.close()
            raise
        return database

    @staticmethod
    def rewrite(path: Path) -> None:
        """Writes a closed file anew, so that nothing of deleted rows is left in it."""
        aside = path.with_name(f"{path.name}.new")
        with faults_told(path, _DAMAGED), duckdb.connect() as connection:
            connection.execute(f"ATTACH '{_quoted(path)}' AS was (READ_ONLY)")
            connection.execute(f"ATTACH '{_quoted(aside)}' AS is_now")
            connection.execute("COPY FROM DATABASE was TO is_now")
            connection.execute("CHECKPOINT is_now")
            connection.execute("DETACH is_now")
        aside.replace(path)

    def close(self) -> None:
        """Closes the file. Whoever still holds this object holds nothing of DuckDB any more."""
        with self._turn:
            if self._opened is not None:
                self._opened.close()
            self._opened = None

    @property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        if self._opened is None:
            raise StorageError(self.path, "this generation was closed", "Open it again.")
        return self._opened

    # --- writing ---

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. Inner ones join the outermost; an exception rolls everything back."""
        with self._turn:
            if self._depth == 0:
                self.execute("BEGIN TRANSACTION")
            self._depth += 1
            try:
                yield
            except BaseException:
                self._depth -= 1
                if self._depth == 0:
                    self._roll_back()
                raise
            self._depth -= 1
            if self._depth == 0:
                self.execute("COMMIT")

    def execute(self, sql: str, parameters: Sequence[Parameter] = ()) -> None:
        """Runs a statement that gives nothing."""
        with self._turn, faults_told(self.path, _DAMAGED):
            self._connection.execute(sql, _bound(parameters))

    def _roll_back(self) -> None:
        try:
            self._connection.execute("ROLLBACK")
        except duckdb.Error as error:
            # After a fault of the disk there is no transaction any more; that fault is told.
            logger.debug("Nothing is rolled back in %s: %s", self.path, error)

    def insert(self, table: str, columns: Mapping[str, Column]) -> None:
        """Appends rows given as equally long columns.

        A column holds text (or None), numbers, vectors, or lists of text or integers. Raises
        StorageError for text that is no valid Unicode.
        """
        if not len(next(iter(columns.values()))):
            return
        # Lists travel as JSON: DuckDB guesses their type from a sample, and fails on empty ones.
        picked = [
            f"from_json({name}, '[\"VARCHAR\"]')" if _holds_lists(values) else name
            for name, values in columns.items()
        ]
        arrays: Arrays = {name: _array(values) for name, values in columns.items()}
        with self._turn, faults_told(self.path, _DAMAGED):
            try:
                self._connection.register("incoming", arrays)
                chosen = f"SELECT {', '.join(picked)} FROM incoming"
                self._connection.execute(f"INSERT INTO {table} ({', '.join(arrays)}) {chosen}")
            except (UnicodeEncodeError, duckdb.InvalidInputException) as error:
                problem = f"a value cannot be stored ({error})"
                raise StorageError(
                    table, problem, "Clean the text: it must be valid Unicode."
                ) from error
            self._connection.unregister("incoming")

    def insert_rows(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[object]]
    ) -> None:
        """The same by row."""
        self.insert(
            table, {name: [row[place] for row in rows] for place, name in enumerate(columns)}
        )

    def insert_records(
        self,
        table: str,
        records: Sequence[object],
        fields: Sequence[str],
        more: Mapping[str, Column] | None = None,
    ) -> None:
        """Appends a row for each record: these fields as columns, and the columns of `more`."""
        columns: dict[str, Column] = {
            _COLUMN_OF.get(field, field): [getattr(record, field) for record in records]
            for field in fields
        }
        self.insert(table, columns | dict(more or {}))

    def delete(self, table: str, column: str, values: Collection[str] | None) -> None:
        """Deletes the rows with one of these values in the column; None deletes all rows."""
        if values is None or values:
            where, parameters = selection(column, values)
            self.execute(f"DELETE FROM {table} WHERE {where}", parameters)

    # --- reading ---

    def rows(self, sql: str, parameters: Sequence[Parameter] = ()) -> list[Row]:
        """The rows as DuckDB gives them; a collection among the parameters is one list."""
        with self._reader() as connection:
            rows: list[Row] = connection.execute(sql, _bound(parameters)).fetchall()
            return rows

    def records(self, kind: type[R], sql: str, parameters: Sequence[Parameter] = ()) -> list[R]:
        """The rows as records: the columns, renamed back, are the fields."""
        with self._reader() as connection:
            return _rows_as(kind).validate_python(_named(connection, sql, parameters))

    def select(
        self, kind: type[R], table: str, order: str, where: Selection = ("true", [])
    ) -> list[R]:
        """The rows of a table as records, the columns being their fields; see `selection`."""
        return self.records(
            kind, _selected(tuple(kind.model_fields), table, order, where), where[1]
        )

    def mappings(self, sql: str, parameters: Sequence[Parameter] = ()) -> list[dict[str, object]]:
        """The rows by the names of fields."""
        with self._reader() as connection:
            return _named(connection, sql, parameters)

    def columns(
        self, fields: Sequence[str], table: str, order: str, where: Selection = ("true", [])
    ) -> dict[str, list[Any]]:
        """The columns of these fields; DuckDB gives them in a third of the time of rows."""
        arrays = self.arrays(_selected(fields, table, order, where), where[1])
        return {field: array.tolist() for field, array in zip(fields, arrays.values(), strict=True)}

    def strings(self, sql: str, parameters: Sequence[Parameter] = ()) -> list[str]:
        """The first column, which must hold text."""
        return [str(row[0]) for row in self.rows(sql, parameters)]

    def read_everything(self) -> None:
        """Reads every column of every table of ours, and so compares each block with its checksum.

        Damaged where one differs, StorageError where a table is missing.
        """
        schema = files("storage").joinpath("schema.sql").read_text("utf-8")
        for table in re.findall(r"^CREATE TABLE (\w+)", schema, re.MULTILINE):
            self.rows(f"SELECT max(hash({table})) FROM {table}")

    def number(self, sql: str, parameters: Sequence[Parameter] = ()) -> int:
        """The first column of the first row, which must hold a whole number."""
        value = self.rows(sql, parameters)[0][0]
        if not isinstance(value, int):
            raise StorageError(self.path, f"{sql} gave {value!r}, not a whole number")
        return value

    def arrays(
        self,
        sql: str,
        parameters: Sequence[Parameter] = (),
        tables: Mapping[str, Arrays] | None = None,
    ) -> Arrays:
        """One array for each column, by its name; the statement may name further `tables`."""
        with self._reader() as connection:
            for name, table in (tables or {}).items():
                connection.register(name, table)
            arrays: Arrays = connection.execute(sql, _bound(parameters)).fetchnumpy()
            for name in tables or ():
                connection.unregister(name)
            return arrays

    @contextmanager
    def _reader(self) -> Iterator[duckdb.DuckDBPyConnection]:
        # Executing and fetching on one connection from two threads mixes up their results: a reader
        # gets its own cursor. A writer must stay on the connection that holds the transaction.
        with faults_told(self.path, _DAMAGED):
            if self.read_only:
                with self._connection.cursor() as cursor:
                    yield cursor
            else:
                with self._turn:
                    yield self._connection


def selection(columns: str, values: Collection[str] | None) -> Selection:
    """A condition and its parameters: one of the columns has one of these values (None: any)."""
    if values is None:
        return "true", []
    # A comparison with few values takes a quarter of what a join does, and grows with each.
    few = len(values) <= _FEW_VALUES
    test = "list_contains(?::VARCHAR[], {})" if few else "{} IN (SELECT unnest(?::VARCHAR[]))"
    names = columns.split(", ")
    return f"({' OR '.join(map(test.format, names))})", [list(values)] * len(names)


class Store:
    """Records of one kind in a generation.

    A writing call is one transaction, or part of the one that is open.
    """

    def __init__(self, database: Database) -> None:
        self._db = database


@dataclass(frozen=True)
class SparseCounts:
    """How often each of the `rows` holds each of the `columns`: a matrix of int32."""

    rows: list[str]
    columns: list[str]
    counts: sparse.csr_matrix


def sparse_counts(database: Database, rows: str, columns: str, pairs: str) -> SparseCounts:
    """The counts of `pairs`, a query of (row, column, count), over the names of two queries."""
    of_row, of_column = (next(iter(database.arrays(sql).values())) for sql in (rows, columns))
    shape = (len(of_row), len(of_column))
    # As tables: DuckDB takes twice as long for names that come as parameters.
    named: dict[str, Arrays] = {
        "r": {"name": of_row, "place": np.arange(len(of_row))},
        "c": {"name": of_column, "place": np.arange(len(of_column))},
    }
    arrays = database.arrays(
        f"""
        SELECT r.place AS r, c.place AS c, n FROM ({pairs}) AS p(row_name, column_name, n)
        JOIN r ON r.name = row_name JOIN c ON c.name = column_name
        """,
        tables=named,
    )
    places = (arrays["r"], arrays["c"])
    counts = sparse.csr_matrix((arrays["n"], places), shape=shape, dtype=np.int32)
    counts.sort_indices()
    return SparseCounts(of_row.tolist(), of_column.tolist(), counts)


def _selected(fields: Sequence[str], table: str, order: str, where: Selection) -> str:
    columns = ", ".join(_COLUMN_OF.get(field, field) for field in fields)
    return f"SELECT {columns} FROM {table} WHERE {where[0]} ORDER BY {order}"


def _named(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[Parameter]
) -> list[dict[str, object]]:
    result = connection.execute(sql, _bound(parameters))
    names = [_FIELD_OF.get(column[0], column[0]) for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def names_of(kind: type) -> tuple[str, ...]:
    """Of the fields of a kind of records."""
    if issubclass(kind, Record):
        return tuple(kind.model_fields)
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    return tuple(kind.__annotations__)  # of a NamedTuple


@cache
def _rows_as(kind: type[R]) -> TypeAdapter[list[R]]:
    return TypeAdapter(list[kind])  # type: ignore[valid-type]


def _bound(parameters: Sequence[Parameter]) -> list[object]:
    return [
        list(p) if isinstance(p, Collection) and not isinstance(p, str) else p for p in parameters
    ]


def _quoted(path: Path) -> str:
    """Inside an SQL literal: ATTACH takes no parameter."""
    return str(path).replace("'", "''")


def _holds_lists(values: Column) -> bool:
    return len(values) > 0 and isinstance(values[0], tuple | list)


def _array(values: Column) -> NDArray[np.generic]:
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values[0], int | float):
        return np.asarray(values)
    # Filled one by one: numpy would make a matrix of equally long vectors.
    lists = _holds_lists(values)
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = json.dumps(value, ensure_ascii=False) if lists else value
    return array
