"""Asks rows in SQL: which of them meet conditions, put together, added up and ordered.

Every identifier is made here from the place of a column; every value is a parameter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import duckdb
import numpy as np

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "contains"]
Aggregate = Literal["count", "sum", "avg", "min", "max"]
Value = tuple[str, float | None]  # folded text, and the figure that it is

_OPERATORS: frozenset[str] = frozenset({"=", "!=", "<", "<=", ">", ">=", "contains"})
_AGGREGATES: frozenset[str] = frozenset({"count", "sum", "avg", "min", "max"})


@dataclass(frozen=True)
class CellColumn:
    """A column of cells: their folded texts, as they are written, and figures; None where there is
    none.
    """

    folded: Sequence[str | None]
    raw: Sequence[str | None]
    figures: Sequence[float | None]


@dataclass(frozen=True)
class Condition:
    """A column compared with any of several values, with "!=" with all of them.

    Where cell and value are figures or dates these are compared, else their texts. An empty cell
    meets nothing.
    """

    column: int
    operator: Operator
    values: tuple[Value, ...]


@dataclass(frozen=True)
class RowQuery:
    """Which rows are chosen and what is made of them.

    Rows with equal cells in the column `by` are one group, of `together` all rows, else each row is
    one. A group's number is the `aggregate` of the figures in the column `figure`, rows without one
    left out; without such a column nothing is computed. `order` sorts by the numbers, else groups
    stand as their first rows do. `best`: so many groups in that order, and those with an equal
    number.
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
    """The places of some rows in their table, and the number that they come to (None: none is asked
    for).
    """

    rows: tuple[int, ...]
    number: float | None


def select_groups(columns: Mapping[int, CellColumn], query: RowQuery) -> list[RowGroup]:
    """Run a query over the columns that it names, in a database in memory."""
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
    ordered = (
        f"number {_known(query.order, frozenset({'ASC', 'DESC'}))}" if query.order else "first_row"
    )
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
    """The figure of a cell, or the seconds of its date."""
    return (
        f"coalesce(nullif(figure{column}, 'nan'::DOUBLE), epoch(TRY_CAST(raw{column} AS "
        "TIMESTAMP)))"
    )


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
