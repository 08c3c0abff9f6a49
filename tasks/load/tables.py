"""Tables, stored so that each row can be found and cited by itself.

The header stands on the first line; every further row is one line that repeats the column names:
`Bridge: Orla | Length (m): 412`. Figures stay as they are written.
"""

import csv
import io
import re
from collections.abc import Sequence

from tasks.load.discover import Found
from tasks.load.plain import Unreadable, one_line
from tasks.load.rows import BadRow, Rows, collect

_FIGURE = re.compile(r"[-+(]?[$€£¥]?\d[\d.,' ]*%?\)?$")
_YEAR = re.compile(r"[12]\d{3}$")
_TRIPLE_COLUMNS = frozenset({"s", "p", "o", "weight", "document"})
_LARGEST_FIELD = 1 << 28


def read_table(text: str, delimiter: str | None) -> list[tuple[int, list[str]]]:
    """(Line from 1, cells) of each row of a delimited text; the delimiter is found where it is None.

    Raises `Unreadable` with the parser's reason.
    """
    csv.field_size_limit(_LARGEST_FIELD)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter or _delimiter(text))
    try:
        return [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise Unreadable(f"broken table ({error})") from error


def triples_header(rows: Sequence[tuple[int, list[str]]]) -> list[str] | None:
    """The column names where the header is `s,p,o[,weight,document]` in any order, else None."""
    names = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    return names if {"s", "p", "o"} <= set(names) <= _TRIPLE_COLUMNS and len(set(names)) == len(names) else None


def read_triples(rows: Sequence[tuple[int, list[str]]], names: Sequence[str], file: Found) -> Rows:
    """The triples below the header."""
    return collect(((line, _row(names, cells)) for line, cells in rows[1:]), file)


def _row(names: Sequence[str], cells: Sequence[str]) -> object:
    if len(cells) > len(names):
        return BadRow(f"{len(cells)} cells under {len(names)} columns")
    return dict(zip(names, cells, strict=False))


def render(rows: Sequence[Sequence[str]]) -> str:
    """A table as lines; without a header the cells alone."""
    table = [[one_line(cell) for cell in row] for row in rows]
    if not table:
        return ""
    names = table[0] if is_header(table[0]) else []
    lines = [" | ".join(cell for cell in names if cell)] if names else []
    lines += [row_line(names, row) for row in table[1 if names else 0 :]]
    return "\n".join(line for line in lines if line)


def row_line(names: Sequence[str], row: Sequence[str]) -> str:
    """One row: `column: cell` joined by bars, empty cells left out."""
    labels = [*names, *[""] * len(row)]
    return " | ".join(f"{label}: {cell}" if label else cell for label, cell in zip(labels, row, strict=False) if cell)


def is_header(cells: Sequence[str]) -> bool:
    """Whether a first row names columns: distinct names and no figures other than years."""
    named = [cell for cell in cells if cell]
    distinct = len(set(named)) == len(named)
    return bool(named) and distinct and not any(_FIGURE.match(cell) and not _YEAR.match(cell) for cell in named)


def _delimiter(text: str) -> str:
    """The delimiter that the first line holds most of, outside quotation marks."""
    first = re.sub(r'"[^"]*"', "", text[:10_000].lstrip().split("\n", 1)[0])
    return max(",;\t|", key=first.count)
