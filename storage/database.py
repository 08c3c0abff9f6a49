"""Opens the DuckDB file of one generation, writes it in bulk and reads it as records or arrays.

`executemany` takes half a minute for 100,000 rows; a scan over numpy arrays takes a tenth of a
second. Rows are therefore turned into columns before they are inserted.
"""

import json
import re
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.resources import files
from inspect import get_annotations
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from storage.errors import StorageError, WorkspaceFormatError
from storage.faults import faults_told
from storage.records import Record
from storage.system import replace

SCHEMA_VERSION = 5

R = TypeVar("R", bound=Record)
Row = tuple[Any, ...]
Parameter = str | int | float | None | Collection[str] | Sequence[float]
Column = Sequence[object] | NDArray[np.generic]
Arrays = dict[str, NDArray[np.generic]]
Selection = tuple[str, list[Parameter]]  # a condition for WHERE, and its parameters

_DAMAGED = (
    "Index again: the run goes on from the newest generation that is whole. Or roll back to one "
    "(`trellis generations`, `trellis rollback N`). Memory and caches are not touched."
)

# START and END are keywords of DuckDB, so the columns of these fields have other names.
_COLUMN_OF = {"start": "start_at", "end": "end_at"}
_FIELD_OF = {column: field for field, column in _COLUMN_OF.items()}

# What a part of a file shows of each table: the rows whose column names a document or a chunk of
# it. All else in a part is made anew from these, or stays empty.
_BY_DOCUMENT = {
    "documents": "id",
    "parts": "document",
    "chunks": "document",
    "windows": "document",
    "resolutions": "document",
    "recognized": "document",
}
_BY_CHUNK = {
    "postings": "chunk",
    "extractions": "chunk",
    "mentions": "chunk",
    "relation_mentions": "chunk",
    "claim_mentions": "chunk",
    "fact_mentions": "chunk",
    "left_out_facts": "chunk",
    "propositions": "chunk",
    "proposition_inputs": "chunk",
    "dead_letters": "item",
}

# The order of chunks in every array that has one row or column for each.
CHUNKS_IN_ORDER = "SELECT id FROM chunks ORDER BY document, ordinal"

_FEW_VALUES = 16


class Database:
    """One DuckDB connection: a read-only one serves threads in parallel, a writable one in turn.

    Every method that runs SQL raises StorageError where the file or its disk fails. A part shows
    some documents of a file, but all of its vectors.
    """

    def __init__(
        self,
        path: Path,
        connection: duckdb.DuckDBPyConnection,
        read_only: bool,
        is_part: bool = False,
    ) -> None:
        self.path = path
        self.read_only = read_only
        self.is_part = is_part
        self._opened: duckdb.DuckDBPyConnection | None = connection
        self._lock = threading.RLock()
        self._in_transaction = False

    @classmethod
    def create(cls, path: Path) -> "Database":
        """Create a file with the schema. The folder must exist, the file must not."""
        with faults_told(path, _DAMAGED):
            database = cls(path, duckdb.connect(str(path)), read_only=False)
        with database.transaction():
            database.execute(_schema("schema.sql"))
            database.execute(_schema("schema_added.sql"))
            database.execute(
                "INSERT INTO meta (key, value) VALUES ('schema_version', ?)", [str(SCHEMA_VERSION)]
            )
        return database

    @classmethod
    def open(cls, path: Path, read_only: bool = True) -> "Database":
        """Open a file of this schema version; one to be written gets the tables that it lacks.

        Raises StorageError where it is missing or damaged, WorkspaceFormatError for other versions.
        """
        if not path.is_file():
            raise StorageError(path, "the database file is missing", _DAMAGED)
        # A question reads a few rows, which gives several threads no work.
        config: dict[str, str | bool | int | float | list[str]] = (
            {"threads": 1} if read_only else {}
        )
        with faults_told(path, _DAMAGED):
            database = cls(path, duckdb.connect(str(path), read_only, config), read_only)
        try:
            versions = database.strings("SELECT value FROM meta WHERE key = 'schema_version'")
            if versions != [str(SCHEMA_VERSION)]:
                version = int(versions[0]) if versions else 0
                raise WorkspaceFormatError(path.parent, version, SCHEMA_VERSION)
            if not read_only:
                database.execute(_schema("schema_added.sql"))
        except BaseException:
            database.close()
            raise
        return database

    @classmethod
    def part(cls, path: Path, documents: Collection[str]) -> "Database":
        """Open what a file holds of these documents, in memory beside it: no row of another can be
        read through it.

        What was extracted from the documents is there, by views on the file. What was made of
        several documents (the graph, communities, reports, counts) is empty: its maker fills it
        before others read it. Vectors are found by the hash of their text alone.
        """
        with faults_told(path, _DAMAGED):
            connection = duckdb.connect(config={"threads": 1, "temp_directory": f"{path}.tmp"})
            database = cls(path, connection, read_only=True, is_part=True)
        try:
            database.execute(_schema("schema.sql"))
            database.execute(_schema("schema_added.sql"))
            database.execute(f"ATTACH '{_quoted(path)}' AS whole (READ_ONLY)")
            database.execute("CREATE TABLE permitted (document VARCHAR NOT NULL)")
            database.insert("permitted", {"document": sorted(documents)})
            for table, column in _BY_DOCUMENT.items():
                database._show(table, f"{column} IN (SELECT document FROM permitted)")
            for table, column in _BY_CHUNK.items():
                database._show(table, f"{column} IN (SELECT id FROM chunks)")
            database._show("vectors", "true")
        except BaseException:
            database.close()
            raise
        return database

    def _show(self, table: str, condition: str) -> None:
        """Put a view on the attached file in the place of a table, unless the file lacks it."""
        sql = "SELECT table_name FROM duckdb_tables() WHERE database_name = 'whole'"
        if table in self.strings(sql):
            self.execute(f"DROP TABLE {table}")
            rows = f"SELECT *, rowid FROM whole.{table}"
            self.execute(f"CREATE VIEW {table} AS {rows} WHERE {condition}")

    @staticmethod
    def rewrite(path: Path) -> None:
        """Rewrite a closed file so that it holds nothing of deleted rows."""
        aside = path.with_name(f"{path.name}.new")
        with faults_told(path, _DAMAGED), duckdb.connect() as connection:
            connection.execute(f"ATTACH '{_quoted(path)}' AS was (READ_ONLY)")
            connection.execute(f"ATTACH '{_quoted(aside)}' AS is_now")
            connection.execute("COPY FROM DATABASE was TO is_now")
            connection.execute("CHECKPOINT is_now")
            connection.execute("DETACH is_now")
        replace(aside, path)

    def close(self) -> None:
        """Close the file and drop the connection, so that DuckDB frees the file."""
        with self._lock:
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
        """Write all or nothing. An inner transaction is part of the outermost one."""
        with self._lock:
            if self._in_transaction:
                yield
                return
            self.execute("BEGIN TRANSACTION")
            self._in_transaction = True
            try:
                yield
            except BaseException:
                # A disk that fails ends the transaction; its error is raised, not this one.
                with suppress(duckdb.Error):
                    self._connection.execute("ROLLBACK")
                raise
            else:
                self.execute("COMMIT")
            finally:
                self._in_transaction = False

    def execute(self, sql: str, parameters: Sequence[Parameter] = ()) -> None:
        with self._lock, faults_told(self.path, _DAMAGED):
            self._connection.execute(sql, _bound(parameters))

    def insert(self, table: str, columns: Mapping[str, Column]) -> None:
        """Append rows given as columns of equal length.

        A column holds text (or None), numbers, vectors, or lists of text or integers. Raises
        StorageError for text that is no valid Unicode.
        """
        if not len(next(iter(columns.values()))):
            return
        # Lists are passed as JSON: DuckDB guesses their type from a sample and fails on empty ones.
        picked = [
            f"from_json({name}, '[\"VARCHAR\"]')" if _holds_lists(values) else name
            for name, values in columns.items()
        ]
        arrays: Arrays = {name: _array(values) for name, values in columns.items()}
        with self._lock, faults_told(self.path, _DAMAGED):
            try:
                self._connection.register("incoming", arrays)
                chosen = f"SELECT {', '.join(picked)} FROM incoming"
                self._connection.execute(f"INSERT INTO {table} ({', '.join(arrays)}) {chosen}")
            except (UnicodeEncodeError, duckdb.InvalidInputException) as error:
                problem = f"a value cannot be stored ({error})"
                remedy = "Clean the text: it must be valid Unicode."
                raise StorageError(table, problem, remedy) from error
            self._connection.unregister("incoming")

    def insert_rows(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[object]]
    ) -> None:
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
        """Append a row for each record: these fields as columns, and the columns of `more`."""
        columns: dict[str, Column] = {
            _COLUMN_OF.get(field, field): [getattr(record, field) for record in records]
            for field in fields
        }
        self.insert(table, columns | dict(more or {}))

    def delete(self, table: str, column: str, values: Collection[str] | None) -> None:
        """Delete the rows with one of these values in the column; None deletes all rows."""
        if values is None or values:
            where, parameters = selection(column, values)
            self.execute(f"DELETE FROM {table} WHERE {where}", parameters)

    # --- reading ---

    def rows(self, sql: str, parameters: Sequence[Parameter] = ()) -> list[Row]:
        """Return the rows; a collection among the parameters is bound as one list."""
        with self._reader() as connection:
            rows: list[Row] = connection.execute(sql, _bound(parameters)).fetchall()
            return rows

    def mappings(self, sql: str, parameters: Sequence[Parameter] = ()) -> list[dict[str, Any]]:
        with self._reader() as connection:
            result = connection.execute(sql, _bound(parameters))
            names = [_FIELD_OF.get(column[0], column[0]) for column in result.description or ()]
            return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def records(self, kind: type[R], sql: str, parameters: Sequence[Parameter] = ()) -> list[R]:
        return [kind.model_validate(row) for row in self.mappings(sql, parameters)]

    def select(
        self, kind: type[R], table: str, order: str, where: Selection = ("true", [])
    ) -> list[R]:
        """Return the rows of a table as records; `selection` makes the condition."""
        sql = _select(tuple(kind.model_fields), table, order, where)
        return self.records(kind, sql, where[1])

    def columns(
        self, fields: Sequence[str], table: str, order: str, where: Selection = ("true", [])
    ) -> dict[str, list[Any]]:
        """Return the columns of these fields, in a third of the time that rows take."""
        arrays = self.arrays(_select(fields, table, order, where), where[1])
        return {field: array.tolist() for field, array in zip(fields, arrays.values(), strict=True)}

    def has_table(self, name: str) -> bool:
        """Whether there is a table of this name: see `schema_added.sql`."""
        return bool(
            self.strings(
                "SELECT table_name FROM information_schema.tables WHERE table_name = ?", [name]
            )
        )

    def strings(self, sql: str, parameters: Sequence[Parameter] = ()) -> list[str]:
        """Return the first column, which must hold text."""
        return [row[0] for row in self.rows(sql, parameters)]

    def number(self, sql: str) -> int:
        """Return the first column of the first row, which must hold a whole number."""
        value: int = self.rows(sql)[0][0]
        return value

    def arrays(
        self,
        sql: str,
        parameters: Sequence[Parameter] = (),
        tables: Mapping[str, Arrays] | None = None,
    ) -> Arrays:
        """Return an array for each column by name; the statement may also name these `tables`."""
        with self._reader() as connection:
            for name, table in (tables or {}).items():
                connection.register(name, table)
            arrays: Arrays = connection.execute(sql, _bound(parameters)).fetchnumpy()
            for name in tables or ():
                connection.unregister(name)
            return arrays

    def copy(self, sql: str, path: Path, form: str) -> int:
        """Write the rows of a query into a file, which never are in memory all at once.

        `form` is what DuckDB's COPY takes in parentheses. Returns the number of rows.
        """
        with faults_told(path), self._connection.cursor() as cursor:
            cursor.execute(f"COPY ({sql}) TO '{_quoted(path)}' ({form})")
            [(rows,)] = cursor.fetchall()
            return int(rows)

    def read_everything(self) -> None:
        """Read all tables, so that DuckDB compares each block with its checksum.

        Raises Damaged where one differs, StorageError where a table is missing.
        """
        needed = re.findall(r"^CREATE TABLE (\w+)", _schema("schema.sql"), re.MULTILINE)
        there = self.strings("SELECT table_name FROM duckdb_tables() WHERE NOT internal")
        for table in dict.fromkeys([*needed, *there]):
            self.rows(f"SELECT max(hash({table})) FROM {table}")

    @contextmanager
    def _reader(self) -> Iterator[duckdb.DuckDBPyConnection]:
        # Two threads that execute and fetch on one connection mix up their results, so each read
        # has its own cursor. A writer needs the connection that holds its transaction.
        with faults_told(self.path, _DAMAGED):
            if self.read_only:
                with self._connection.cursor() as cursor:
                    yield cursor
            else:
                with self._lock:
                    yield self._connection


class Store:
    """Base of the stores that read and write records of one kind in a generation.

    A writing call is one transaction, or part of the open one.
    """

    def __init__(self, database: Database) -> None:
        self._db = database


def selection(columns: str, values: Collection[str] | None) -> Selection:
    """Return the condition that one of the columns has one of these values (None: any)."""
    if values is None:
        return "true", []
    # Comparing with few values takes a quarter of the time of a join, with many it takes longer.
    few = len(values) <= _FEW_VALUES
    test = "list_contains(?::VARCHAR[], {})" if few else "{} IN (SELECT unnest(?::VARCHAR[]))"
    names = columns.split(", ")
    return f"({' OR '.join(map(test.format, names))})", [list(values)] * len(names)


def field_names(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of a model, a dataclass or a named tuple."""
    return tuple(get_annotations(kind))


@dataclass(frozen=True)
class SparseCounts:
    """How often each of the `rows` holds each of the `columns`: a matrix of int32."""

    rows: list[str]
    columns: list[str]
    counts: sparse.csr_matrix


def sparse_counts(database: Database, rows: str, columns: str, pairs: str) -> SparseCounts:
    """Count `pairs`, a query of (row, column, count), over the names that two queries give."""
    of_row, of_column = (next(iter(database.arrays(sql).values())) for sql in (rows, columns))
    # DuckDB takes twice as long for names that are parameters, not tables.
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
    places, shape = (arrays["r"], arrays["c"]), (len(of_row), len(of_column))
    counts = sparse.csr_matrix((arrays["n"], places), shape=shape, dtype=np.int32)
    counts.sort_indices()
    return SparseCounts(of_row.tolist(), of_column.tolist(), counts)


def _schema(name: str) -> str:
    return files("storage").joinpath(name).read_text("utf-8")


def _select(fields: Sequence[str], table: str, order: str, where: Selection) -> str:
    columns = ", ".join(_COLUMN_OF.get(field, field) for field in fields)
    return f"SELECT {columns} FROM {table} WHERE {where[0]} ORDER BY {order}"


def _bound(parameters: Sequence[Parameter]) -> list[object]:
    return [
        list(p) if isinstance(p, Collection) and not isinstance(p, str) else p for p in parameters
    ]


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")  # ATTACH takes no parameter


def _holds_lists(values: Column) -> bool:
    return isinstance(values[0], tuple | list)


def _array(values: Column) -> NDArray[np.generic]:
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values[0], int | float):
        return np.asarray(values)
    # Filled one by one: numpy would make a matrix of vectors of equal length.
    lists = _holds_lists(values)
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = json.dumps(value, ensure_ascii=False) if lists else value
    return array
