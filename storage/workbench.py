"""How are the figures of a question sorted, counted and compared? By SQL over a table of them in memory.

The statements are fixed and everything else is bound: nothing that a user or a model wrote becomes SQL. The table
lives as long as the question.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Literal

import duckdb

from storage.record import Record

Sorting = Literal["descending", "ascending"]

_TABLES = """
CREATE TEMP TABLE cells (cell INTEGER, thing VARCHAR, slot INTEGER, number DOUBLE);
CREATE TEMP TABLE bands (place INTEGER, low DOUBLE, high DOUBLE, low_in BOOLEAN, high_in BOOLEAN);
CREATE TEMP VIEW figures AS
    SELECT thing, slot, sum(number) AS number, list(cell ORDER BY cell) AS cells, min(cell) AS first_cell
    FROM cells GROUP BY thing, slot;
"""
_FILL = "INSERT INTO cells SELECT unnest(?::INTEGER[]), unnest(?::VARCHAR[]), unnest(?::INTEGER[]), unnest(?::DOUBLE[])"
_ORDERED = """
SELECT thing, slot, number, cells FROM figures
ORDER BY CASE WHEN ? = 'descending' THEN -number ELSE number END, first_cell LIMIT ?
"""
_INSIDE = """
(b.low IS NULL OR f.number > b.low OR (b.low_in AND f.number = b.low))
AND (b.high IS NULL OR f.number < b.high OR (b.high_in AND f.number = b.high))
"""
_BANDED = f"""
SELECT min(b.place) AS band, f.thing, f.slot, f.number, f.cells
FROM figures AS f LEFT JOIN bands AS b ON {_INSIDE}
GROUP BY f.thing, f.slot, f.number, f.cells, f.first_cell ORDER BY band NULLS LAST, f.first_cell
"""
_SUMMED = "SELECT count(*), sum(number), avg(number) FROM figures"
_STEPS = """
SELECT thing, slot, number, cells, number - lag(number) OVER course AS change,
    CASE WHEN lag(number) OVER course <> 0
        THEN (number - lag(number) OVER course) / abs(lag(number) OVER course) END AS growth
FROM figures WINDOW course AS (PARTITION BY thing ORDER BY slot) ORDER BY thing, slot
"""


class CellRow(Record):
    """A cell on the bench: `cell` is the caller's number for it, `slot` the place of its period among those asked."""

    cell: int
    thing: str
    number: float
    slot: int = 0


class Row(Record):
    """A figure of a thing in a period: that of one cell, or the sum of several."""

    thing: str
    slot: int
    number: float
    cells: tuple[int, ...]


class Step(Record):
    """A figure of a course, what it changed by since the one before (None for the first), and that as a share."""

    row: Row
    change: float | None
    growth: float | None


class Bounds(Record):
    """A range; an end that is None is open, and `low_in`, `high_in` say whether an end belongs to it."""

    low: float | None
    high: float | None
    low_in: bool
    high_in: bool


class Totals(Record):
    """How many figures there are, their sum and their mean."""

    count: int
    total: float
    mean: float


class Workbench:
    """The figures of one question. Made by `workbench`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def ordered(self, sorting: Sorting, most: int | None = None) -> list[Row]:
        """The figures by size, equal ones in the order of their cells; at most `most`."""
        found = self._connection.execute(_ORDERED, [sorting, most if most is not None else 1 << 30]).fetchall()
        return [_row(*one) for one in found]

    def banded(self, bands: Sequence[Bounds]) -> list[tuple[int | None, Row]]:
        """Each figure with the place of the first range that holds it, or None; those of one range together."""
        self._connection.execute("DELETE FROM bands")
        for place, band in enumerate(bands):
            self._connection.execute(
                "INSERT INTO bands VALUES (?, ?, ?, ?, ?)", [place, band.low, band.high, band.low_in, band.high_in]
            )
        return [(place, _row(*one)) for place, *one in self._connection.execute(_BANDED).fetchall()]

    def within(self, band: Bounds) -> list[Row]:
        """The figures in a range."""
        return [row for place, row in self.banded([band]) if place is not None]

    def totals(self) -> Totals:
        """Of all figures; zeros where there are none."""
        count, total, mean = self._connection.execute(_SUMMED).fetchall()[0]
        return Totals(count=count, total=total or 0.0, mean=mean or 0.0)

    def steps(self) -> list[Step]:
        """The figures of each thing in the order of their periods, with what each changed by."""
        found = self._connection.execute(_STEPS).fetchall()
        return [Step(row=_row(*one[:4]), change=one[4], growth=one[5]) for one in found]


@contextmanager
def workbench(cells: Sequence[CellRow]) -> Iterator[Workbench]:
    """A bench with these cells; those of one thing and slot are added up. Gone when the block ends."""
    connection = _memory().cursor()
    try:
        connection.execute(_TABLES)
        columns = [[getattr(cell, name) for cell in cells] for name in ("cell", "thing", "slot", "number")]
        if cells:
            connection.execute(_FILL, columns)
        yield Workbench(connection)
    finally:
        connection.close()


@lru_cache(maxsize=1)
def _memory() -> duckdb.DuckDBPyConnection:
    """One database in memory for the process; each question has a connection and temporary tables of its own."""
    return duckdb.connect(":memory:", config={"threads": 1})


def _row(thing: str, slot: int, number: float, cells: Sequence[int]) -> Row:
    return Row(thing=thing, slot=slot, number=number, cells=tuple(cells))
