"""A question's table in DuckDB, in memory, where conditions, groups and figures are computed by SQL.

There is one statement. Its columns are numbered by us and all else is bound: nothing that a user or a model wrote
becomes SQL. The table lives as long as the question.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Literal

import duckdb

from storage.records import Record

Comparison = Literal["equal", "not_equal", "less", "at_most", "more", "at_least", "contains"]
Aggregate = Literal["sum", "average", "count", "max", "min"]
Sorting = Literal["", "ascending", "descending"]
# Of one row each, of all rows together, or of the rows that have the same text in a column.
Grouping = Literal["row", "all"] | int

_SIGNS: dict[Comparison, str] = {
    "equal": "=", "not_equal": "<>", "less": "<", "at_most": "<=", "more": ">", "at_least": ">="
}  # fmt: skip
_COMPUTED: dict[Aggregate, str] = {"sum": "sum({})", "average": "avg({})", "max": "max({})", "min": "min({})"}
_SORTED: dict[Sorting, str] = {"": "", "ascending": "number ASC NULLS LAST,", "descending": "number DESC NULLS LAST,"}


class Value(Record):
    """A cell: its text as it is compared (folded), and its number where it is a figure."""

    text: str
    number: float | None = None


class Condition(Record):
    """A column compared with values; several values of one condition: any of them."""

    column: int
    comparison: Comparison
    values: tuple[Value, ...]


class Selection(Record):
    """Rows that meet all conditions, put together by `by`, with the aggregate of the column `of` (None: a count)."""

    conditions: tuple[Condition, ...] = ()
    by: Grouping = "row"
    of: int | None = None
    aggregate: Aggregate = "sum"
    sorting: Sorting = ""
    limit: int | None = None


class Group(Record):
    """What one group of rows comes to, and the rows (their places in the table) that it was made of."""

    number: float | None
    rows: tuple[int, ...]


class QuestionTable:
    """Made by `question_table`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def select(self, selection: Selection) -> list[Group]:
        """The groups in the order asked for, else in that of the table; rows without a figure in `of` are left out."""
        clauses, bound = ["TRUE"], list[object]()
        for condition in selection.conditions:
            clause, values = _clause(condition)
            clauses.append(clause)
            bound += values
        figure = f"n{selection.of:d}" if selection.of is not None else ""
        if figure and selection.aggregate != "count":
            clauses.append(f"{figure} IS NOT NULL")
        number = (
            _COMPUTED[selection.aggregate].format(figure) if figure and selection.aggregate != "count" else "count(*)"
        )
        key = (
            f"t{selection.by:d}"
            if isinstance(selection.by, int)
            else {"row": "place", "all": "place < 0"}[selection.by]
        )
        statement = (
            f"SELECT {number} AS number, list(place ORDER BY place) AS places FROM cells WHERE {' AND '.join(clauses)} "
            f"GROUP BY {key} ORDER BY {_SORTED[selection.sorting]} min(place) LIMIT ?"
        )
        found = self._connection.execute(statement, [*bound, selection.limit or 1 << 30]).fetchall()
        return [Group(number=number, rows=tuple(places)) for number, places in found]


@contextmanager
def question_table(rows: Sequence[Sequence[Value | None]]) -> Iterator[QuestionTable]:
    """A table of these rows, all of one length; gone when the block ends."""
    width = len(rows[0]) if rows else 0
    connection = _memory().cursor()
    try:
        columns = "".join(f", t{place} VARCHAR, n{place} DOUBLE" for place in range(width))
        connection.execute(f"CREATE TEMP TABLE cells (place INTEGER{columns})")
        if rows:
            names = ", ".join("unnest(?::VARCHAR[]), unnest(?::DOUBLE[])" for _ in range(width))
            filled: list[list[object]] = [list(range(len(rows)))]
            for place in range(width):
                cells = [row[place] for row in rows]
                filled += [[cell and cell.text for cell in cells], [cell and cell.number for cell in cells]]
            connection.execute(f"INSERT INTO cells SELECT unnest(?::INTEGER[]), {names}", filled)
        yield QuestionTable(connection)
    finally:
        connection.close()


@lru_cache(maxsize=1)
def _memory() -> duckdb.DuckDBPyConnection:
    """One database in memory for the process; each question has a connection and a temporary table of its own."""
    return duckdb.connect(":memory:", config={"threads": 1})


def _clause(condition: Condition) -> tuple[str, list[object]]:
    """A condition as SQL: by number where the value is one and the cell too, else by text."""
    text, number = f"t{condition.column:d}", f"n{condition.column:d}"
    clauses, bound = [], list[object]()
    for value in condition.values:
        if condition.comparison == "contains":
            clauses.append(f"contains({text}, ?)")
            bound.append(value.text)
        elif value.number is not None:
            sign = _SIGNS[condition.comparison]
            clauses.append(f"CASE WHEN {number} IS NOT NULL THEN {number} {sign} ? ELSE {text} {sign} ? END")
            bound += [value.number, value.text]
        else:
            clauses.append(f"{text} {_SIGNS[condition.comparison]} ?")
            bound.append(value.text)
    joint = " AND " if condition.comparison == "not_equal" else " OR "
    return f"({joint.join(clauses)})", bound
