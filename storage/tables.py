"""Queries the rows of a table in SQL: selects, groups, aggregates and orders them.

Every identifier is made from the number of a column; every value is a parameter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import duckdb
import numpy as np

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "contains"]
Aggregate = Literal["count", "sum", "avg", "min", "max"]
Value = tuple[str, float | None]  # folded text, and its figure if it is one

_OPERATORS = frozenset(get_args(Operator))
_AGGREGATES = frozenset(get_args(Aggregate))
_ORDERS = frozenset({"ASC", "DESC"})


@dataclass(frozen=True)
class CellColumn:
    """The cells of a column: folded texts, texts as written, and figures."""

    folded: Sequence[str | None]
    raw: Sequence[str | None]
    figures: Sequence[float | None]


@dataclass(frozen=True)
class Condition:
    """Compares a column with several values: any may match, for "!=" all must.

    Figures and dates are compared as such, everything else as text. An empty cell never matches.
    """

    column: int
    operator: Operator
    values: tuple[Value, ...]


@dataclass(frozen=True)
class RowQuery:
    """Which rows are selected, and how they are grouped.

    Rows with equal cells in the column `by` form a group; with `together` all rows do; else each
    row does. A group's number is the `aggregate` of the column `figure` over the rows with a figure
    (None: no number). Groups are ordered by their numbers, or without `order` by their first rows.
    `best` limits the groups, except that it keeps those with the same number as the last.
    """

    conditions: tuple[Condition, ...] = ()
    figure: int | None = None
    aggregate: Aggregate = "sum"
    by: int | None = None
    together: bool = False
    order: Literal["", "ASC", "DESC"] = ""
    best: int | None = None


@dataclass(frozen=True)
class RowGroup:
    """The indexes of rows in their table, and their number if there is one."""

    rows: tuple[int, ...]
    number: float | None


def select_groups(columns: Mapping[int, CellColumn], query: RowQuery) -> list[RowGroup]:
    """Run a query over the columns that it names."""
    parameters: list[object] = []
    where = [_condition(condition, parameters) for condition in query.conditions]
    number = "NULL::DOUBLE"
    if query.figure is not None:
        figure = _value(query.figure)
        aggregate = _known(query.aggregate, _AGGREGATES)
        number = "count(*)::DOUBLE" if aggregate == "count" else f"{aggregate}({figure})"
        where += [f"{figure} IS NOT NULL"] if query.aggregate != "count" else []
    key = "row"
    if query.by is not None:
        key = f"coalesce(folded{query.by}, '')"
    elif query.together:
        key = "true"
    ordered = "first_row"
    if query.order:
        ordered = f"number {_known(query.order, _ORDERS)}"
    best = ""
    if query.best is not None:
        best = f"QUALIFY rank() OVER (ORDER BY {ordered}) <= ?"
        parameters.append(query.best)
    sql = f"""
        WITH groups AS (
            SELECT list(row ORDER BY row) AS rows, min(row) AS first_row, {number} AS number
            FROM cells WHERE {" AND ".join(where) or "true"} GROUP BY {key}
        )
        SELECT rows, number FROM groups {best} ORDER BY {ordered}, first_row
    """
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.register("cells", _arrays(columns))
        found = connection.execute(sql, parameters).fetchall()
    return [RowGroup(tuple(rows), number) for rows, number in found if rows]


def _condition(condition: Condition, parameters: list[object]) -> str:
    operator = _known(condition.operator, _OPERATORS)
    folded, tests = f"folded{condition.column}", list[str]()
    for text, figure in condition.values:
        if operator == "contains":
            tests.append(f"contains({folded}, ?)")
            parameters.append(text)
        else:
            value = "coalesce(?::DOUBLE, epoch(TRY_CAST(?::VARCHAR AS TIMESTAMP)))"
            tests.append(
                f"coalesce({_value(condition.column)} {operator} {value}, {folded} {operator} ?)"
            )
            parameters += [figure, text, text]
    return f"({(' AND ' if operator == '!=' else ' OR ').join(tests) or 'false'})"


def _value(column: int) -> str:
    seconds = f"epoch(TRY_CAST(raw{column} AS TIMESTAMP))"
    return f"coalesce(nullif(figure{column}, 'nan'::DOUBLE), {seconds})"


def _known(name: str, names: frozenset[str]) -> str:
    if name not in names:
        raise ValueError(f"{name!r} is none of {sorted(names)}")
    return name


def _arrays(columns: Mapping[int, CellColumn]) -> dict[str, np.ndarray]:
    count = max((len(column.raw) for column in columns.values()), default=0)
    arrays: dict[str, np.ndarray] = {"row": np.arange(count)}
    for place, column in columns.items():
        arrays[f"folded{place}"] = _texts(column.folded)
        arrays[f"raw{place}"] = _texts(column.raw)
        arrays[f"figure{place}"] = np.array(column.figures, dtype=np.float64)
    return arrays


def _texts(values: Sequence[str | None]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
