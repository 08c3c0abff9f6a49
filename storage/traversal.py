"""Which of the things that a traversal found are most, least, shared or left over? Counted and sorted in SQL.

What is compared travels in as columns; nothing of a question becomes SQL text.
"""

from collections.abc import Sequence
from typing import Literal

from storage.database import Database
from storage.record import Record

Direction = Literal["max", "min"]

# A value is a date where it reads as one, else the first figure in it ("1,308,463 km" is 1308463). Dates count in
# years, so that a bare year and a full date compare.
_MEASURED = """
    WITH given AS (
        SELECT unnest(?::VARCHAR[]) AS item, unnest(?::VARCHAR[]) AS value
    ), dated AS (
        SELECT item, value,
            try_strptime(
                replace(trim(value), '_', ' '),
                ['%Y-%m-%d', '%Y/%m/%d', '%d %B %Y', '%d %b %Y', '%B %d, %Y', '%B %d %Y', '%Y-%m']
            ) AS moment,
            try_cast(replace(regexp_extract(value, '-?[0-9][0-9,]*(?:[.][0-9]+)?'), ',', '') AS DOUBLE) AS figure
        FROM given
    )
    SELECT item, value, coalesce(year(moment) + (dayofyear(moment) - 1) / 366.0, figure) AS number FROM dated
"""


class Measured(Record):
    """A thing with the number that it was ranked by: that of its `value`, or of how many values it has."""

    item: str
    value: str
    number: float


class TraversalReader:
    """Aggregation over what a traversal found (PolyG: operators over the result)."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def ranked(self, pairs: Sequence[tuple[str, str]], direction: Direction) -> list[Measured]:
        """The items of (item, value) pairs by the number or date of their values, best first; equals by item.

        Of an item with several values the best counts; what no number can be read from is left out.
        """
        order, best = _order(direction)
        sql = f"""
            SELECT item, {best}(value, number) AS value, {direction}(number)::DOUBLE AS number
            FROM ({_MEASURED}) WHERE number IS NOT NULL GROUP BY item ORDER BY number {order}, item
        """
        return self._db.records(Measured, sql, _columns(pairs))

    def counted(self, pairs: Sequence[tuple[str, str]], direction: Direction) -> list[Measured]:
        """The items of (item, value) pairs by how many different values they have; equals by item."""
        sql = f"""
            SELECT item, count(DISTINCT value)::VARCHAR AS value, count(DISTINCT value)::DOUBLE AS number
            FROM (SELECT unnest(?::VARCHAR[]) AS item, unnest(?::VARCHAR[]) AS value)
            GROUP BY item ORDER BY number {_order(direction)[0]}, item
        """
        return self._db.records(Measured, sql, _columns(pairs))

    def count(self, values: Sequence[str]) -> int:
        """How many different values there are."""
        sql = "SELECT count(DISTINCT value) FROM (SELECT unnest(?::VARCHAR[]) AS value)"
        return self._db.number(sql, [list(values)])

    def shared(self, groups: Sequence[Sequence[str]]) -> list[str]:
        """What all groups hold, in the order of its text."""
        return self._combined("INTERSECT", groups)

    def left_over(self, groups: Sequence[Sequence[str]]) -> list[str]:
        """What the first group holds and no other one, in the order of its text."""
        return self._combined("EXCEPT", groups)

    def _combined(self, operator: Literal["INTERSECT", "EXCEPT"], groups: Sequence[Sequence[str]]) -> list[str]:
        sql = f" {operator} ".join(["SELECT unnest(?::VARCHAR[]) AS value"] * len(groups))
        return self._db.strings(f"SELECT value FROM ({sql}) ORDER BY value", [list(group) for group in groups])


def _order(direction: Direction) -> tuple[str, str]:
    return ("DESC", "arg_max") if direction == "max" else ("ASC", "arg_min")


def _columns(pairs: Sequence[tuple[str, str]]) -> list[list[str]]:
    return [[item for item, _ in pairs], [value for _, value in pairs]]
