"""Tables: find rows and headers, write each row as a line of text, and record where cells stand.

A row names its columns (`Bridge: Orla | Length (m): 412`), so that it can be found and cited alone.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, zip_longest
from typing import Literal, NamedTuple

from storage.records import Span, Table
from tasks.load.encodings import Unreadable
from tasks.load.text import LARGEST_DOCUMENT, header_line, one_line

MOST_CELLS = 4_000_000  # of a table, or values of a JSON text: some 300 bytes of memory each
_FIGURE = re.compile(r"[-+(]?(?:[$€£¥] ?)?[-+(]?\d[\d.,' ]*[%€£¥]?\)?$")
_YEAR = re.compile(r"[12]\d{3}$")
_LARGEST_FIELD = 1 << 28
_DELIMITERS = "\t;|,"
_END = "\x02"  # no stored text holds this character
_NAMED_DELIMITER = re.compile(r'(?i)"?sep=([^\n"])"?[ \t]*(?:\n|$)')
_SAMPLE = 1_000_000  # characters from which the delimiter is chosen
_MOST_HEADER_ROWS = 3
_MOST_COLUMNS = 1_000  # of a merged region in a header
Grid = Sequence[Sequence[str]]
Merged = Mapping[int, Sequence[tuple[int, int]]]  # by row: first and last column of each region
Notes = Mapping[int, Mapping[int, str]]  # by row and column


# --- delimited text ---


def read_table(text: str, delimiter: str | None) -> list[tuple[int, list[str]]]:
    """Cut a delimited text into rows: (line from 1, cells), with no cells for a blank line.

    The delimiter is the one that a first line `sep=;` names, else the given one, else the one that
    cuts most lines into equally many cells; where none does, each line is one cell, and so is a
    sentence above or below the table. Raises `Unreadable` for a broken text or too many cells.
    """
    csv.field_size_limit(_LARGEST_FIELD)
    above = 0
    if named := _NAMED_DELIMITER.match(text):
        text, delimiter, above = text[named.end() :], named[1], named.group().count("\n")
    if not delimiter or delimiter not in text:
        delimiter = _delimiter_of(text)
    rows = _cut(text, delimiter) if delimiter else _lines_alone(text)
    filled = [row for row in rows if row[1]]
    if len(rows) == 2 * len(filled) - 1:  # Blank lines between all rows mean nothing.
        rows = filled
    head = next((cells for _, cells in rows if len(cells) > 1), [""])
    head[0] = head[0].lstrip("# ") or head[0]  # A header may be marked as a comment.
    return [(line + above, cells) for line, cells in rows]


def _delimiter_of(text: str) -> str | None:
    """Return the delimiter that cuts most rows of a text's beginning into equally many cells.

    One that spaces follow may be punctuation: it loses a tie, and a comma or semicolon must cut
    all rows alike.
    """
    sample = text[:_SAMPLE]
    if len(text) > _SAMPLE:
        sample = sample.rpartition("\n")[0] or sample
    best, most = None, (0, False)
    for delimiter in _DELIMITERS:
        rows = [cells for _, cells in _cut(sample, delimiter) if cells]
        widths = Counter(len(cells) for cells in rows if len(cells) > 1)
        for width, count in widths.most_common(1):
            spaced = _is_spaced(sample, delimiter)
            first = next(place for place, cells in enumerate(rows) if len(cells) == width)
            titled = first > 0 and all(len(cells) == 1 for cells in rows[:first])
            is_table = not titled or is_header(rows[first])
            if spaced and delimiter in ",;":
                is_table = count == len(rows)
            if is_table and (count, not spaced) > most:
                best, most = delimiter, (count, not spaced)
    return best


def _is_spaced(text: str, delimiter: str) -> bool:
    return text.count(f"{delimiter} ") * 2 > text.count(delimiter)


def _cut(text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """Cut by a delimiter; without quoting where a quotation mark is never closed."""
    try:
        return _parse(text, delimiter, csv.QUOTE_MINIMAL)
    except csv.Error:
        try:
            return _parse(text, delimiter, csv.QUOTE_NONE)
        except csv.Error as error:
            raise Unreadable(f"broken table ({error})") from error


def _parse(text: str, delimiter: str, quoting: Literal[0, 3]) -> list[tuple[int, list[str]]]:
    spaced = _is_spaced(text, delimiter)
    reader = csv.reader(
        io.StringIO(f"{text}\n{_END}"),
        delimiter=delimiter,
        quoting=quoting,
        escapechar="\\" if '\\"' in text else None,
        skipinitialspace=spaced,
    )
    rows, count = list[tuple[int, list[str]]](), 0
    for read in reader:
        cells = read
        count += len(cells)
        if count > MOST_CELLS:
            raise Unreadable(f"a table of more than {MOST_CELLS:,} cells: divide it")
        if not any(map(str.strip, cells)):
            cells = []
        elif not spaced and len(cells) > 1 and all(cell[:1] == " " for cell in cells[1:]):
            cells = [delimiter.join(cells)]  # It is a sentence.
        if cells or (rows and rows[-1][1]):
            rows.append((reader.line_num, cells))
    if rows.pop()[1] != [_END]:
        raise csv.Error("a quotation mark is never closed")
    while rows and not rows[-1][1]:
        rows.pop()
    return rows


def _lines_alone(text: str) -> list[tuple[int, list[str]]]:
    lines = enumerate(text.split("\n"), 1)
    return [(number, [line]) for number, line in lines if line.strip()]


# --- rows as lines ---


class WrittenTables(NamedTuple):
    """Lines of text, and the tables in them, whose places count in the joined lines."""

    lines: list[str]
    tables: list[Table]


class TableWriter:
    """Writes remarks, headers and rows as lines, and records where each cell stands.

    Raises `Unreadable` where the lines, each of which repeats the column names, become too long.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: Sequence[str] = ()
        self._end = 0
        self._remark = ""
        self._name = ""
        self._header: Span | None = None
        self._rows: list[list[Span | None]] = []
        self._tables: list[Table] = []

    def remark(self, line: str) -> None:
        """Write a line that is not a row; the last one above a header names the table."""
        self._remark = line
        self._add(line)

    def begin(self, names: Sequence[str], notes: Sequence[str] = (), written: bool = True) -> None:
        """Begin a table with these columns, and write its header unless `written` is False."""
        self._close()
        self.names, self._name, self._remark = names, self._remark.strip("# :"), ""
        line = " | ".join(filter(None, names)) if written else ""
        self._header = (self._end, self._end + len(line)) if line else None
        self._add(line)
        self._add(" | ".join(notes))

    def row(self, cells: Sequence[str], notes: Sequence[str] = ()) -> None:
        """Write a row: each filled cell after the name of its column, then the notes."""
        pieces, spans, at = list[str](), list[Span | None](), self._end
        for name, cell in zip_longest(self.names[: len(cells)], cells, fillvalue=""):
            if not cell:
                spans.append(None)
                continue
            label = f"{name}: " if name else ""
            at += len(label)
            spans.append((at, at + len(cell)))
            at += len(cell) + len(" | ")
            pieces.append(label + cell)
        self._rows.append(spans)
        self._add(" | ".join([*pieces, *notes]))

    def written(self) -> WrittenTables:
        """Return the lines, and the tables that have named columns."""
        self._close()
        return WrittenTables(self.lines, self._tables)

    def _add(self, line: str) -> None:
        if not line:
            return
        self.lines.append(line)
        self._end += len(line) + 1
        if self._end > LARGEST_DOCUMENT:
            reason = "a table of more than 100 MB, its column names in each line"
            raise Unreadable(f"{reason}: shorten them or divide it")

    def _close(self) -> None:
        if any(self.names) and self._rows:
            width = max(len(self.names), *map(len, self._rows))
            columns = (*self.names, *[""] * (width - len(self.names)))
            rows = tuple((*row, *[None] * (width - len(row))) for row in self._rows)
            self._tables.append(Table(self._name, columns, self._header, rows))
        self._rows = []


def placed(text: str, written: Iterable[WrittenTables]) -> tuple[Table, ...]:
    """Return the tables with their places in a text that holds the lines of each, in order."""
    tables, at = list[Table](), 0
    for one in written:
        lines = "\n".join(one.lines)
        start = text.find(lines, at)
        if start >= 0:
            tables += [moved_table(table, start.__add__) for table in one.tables]
            at = start + len(lines)
    return tuple(tables)


def moved_table(table: Table, place: Callable[[int], int]) -> Table:
    """Return a table whose cells begin where `place` puts them, as long as before."""

    def moved(span: Span | None) -> Span | None:
        return (place(span[0]), place(span[0]) + span[1] - span[0]) if span else None

    rows = tuple(tuple(map(moved, row)) for row in table.rows)
    return replace(table, header=moved(table.header), rows=rows)


def write_table(
    table: Grid,
    names: Sequence[str] = (),
    merged: Merged | None = None,
    notes: Notes | None = None,
) -> WrittenTables:
    """Write rows as lines that name their columns and end with the notes of the row.

    At the top and after an empty row, a row of names above another row is a header; groups of
    columns above their names join it (`Summer / Boats`). A lone cell there is a remark, and so is
    a row of a single cell among several columns. `names` are those of a table continued from
    another page, `merged` and `notes` the merged regions and notes of a spreadsheet.
    """
    merged, notes = merged or {}, notes or {}
    rows = [[one_line(cell) for cell in row] for row in table]
    writer = TableWriter()
    writer.begin(names, written=False)
    again, begins, at = bool(names), True, 0
    while at < len(rows):
        row, first = rows[at], at
        filled = [cell for cell in row if cell]
        header = _header(rows, at, again, merged) if begins and filled else None
        at += header.rows if header else 1
        shown = header.names if header else writer.names
        remarks = [remark for line in range(first, at) for remark in _notes(shown, notes, line)]
        if header:
            writer.begin(header.names, remarks)
            again, begins = True, False
        elif filled and len(filled) == 1 and (begins or len(row) == 1 < len(writer.names)):
            writer.remark(" | ".join([*filled, *remarks]))
        elif filled:
            writer.row(row, remarks)
            begins = False
        else:
            begins = True
            for remark in remarks:
                writer.remark(remark)
    return writer.written()


def _notes(names: Sequence[str], notes: Notes, row: int) -> list[str]:
    name_of = dict(enumerate(names))
    return [
        f"{name_of[column]} (note): {note}" if name_of.get(column) else f"Note: {note}"
        for column, note in sorted(notes.get(row, {}).items())
    ]


# --- headers ---


class _Header(NamedTuple):
    names: list[str]
    rows: int


def _header(rows: Grid, at: int, again: bool, merged: Merged) -> _Header | None:
    """Return the header that begins at a row, if one does.

    A table that has names already (`again`) gets new ones only above figures and without a gap.
    """
    if not again and _are_pairs(rows, at):
        return None
    over: list[str] = []
    found = [_Header(list(rows[at]), 1)]
    for line in range(at, at + _MOST_HEADER_ROWS - 1):
        groups = _groups(rows, line, merged)
        if not groups:
            break
        over = header_line([over, groups])
        found.append(_Header(header_line([over, rows[line + 1]]), line + 2 - at))
    for header in reversed(found):
        end = at + header.rows
        row, below = rows[end - 1], rows[end] if end < len(rows) else []
        gap = "" in row[1 : _width(row)] or _width(row) < _width(below)
        doubtful = again and (gap or is_header(below))
        several = sum(map(bool, header.names)) > 1 and not has_figure(row)
        if several and any(below) and not doubtful and is_header(header.names, below):
            return header._replace(names=_numbered(header.names))
    return None


def _are_pairs(rows: Grid, at: int) -> bool:
    """Say whether the rows up to an empty one are pairs of a name and its value, as above a table.

    They are where a wider table follows and not all of them have figures.
    """
    end = next((place for place in range(at, len(rows)) if not any(rows[place])), len(rows))
    narrow = all(_width(row) <= 2 for row in rows[at:end])
    wider = any(_width(row) > 2 for row in rows[end : end + 2])
    return narrow and wider and not all(map(has_figure, rows[at + 1 : end]))


def _groups(rows: Grid, at: int, merged: Merged) -> list[str]:
    """Return the group of each column where the row stands above a row of column names.

    A group is a merged cell over several names. Without merged cells, gaps in the row are filled
    from the left where the names below repeat and figures follow.
    """
    row, below, after = [*rows[at : at + 3], [], []][:3]
    if has_figure(row) or has_figure(below) or not any(after):
        return []
    below = _spread(below, merged.get(at + 1, ()))
    named = [column for column, cell in enumerate(below) if cell]
    alone = sum(map(bool, row)) == 1
    if at in merged:
        wide = [
            (first, last)
            for first, last in merged[at]
            # A lone cell that begins in the first column is a title.
            if set(range(first, last + 1)) <= set(named) and not (alone and first <= named[0])
        ]
        return _spread(row, wide) if wide else []
    if alone or len({below[column] for column in named}) == len(named) or not has_figure(after):
        return []
    over = [*row, *[""] * (len(below) - len(row))]
    for column in named[1:]:
        if not over[column] and below[column - 1]:
            over[column] = over[column - 1]
    return over


def _spread(row: Sequence[str], merged: Sequence[tuple[int, int]]) -> list[str]:
    """Return the row with the value of each merged region in all its columns."""
    spread = list(row)
    for first, last in merged:
        if last < _MOST_COLUMNS:
            spread += [""] * (last + 1 - len(spread))
            spread[first : last + 1] = [spread[first]] * (last + 1 - first)
    return spread


def _width(row: Sequence[str]) -> int:
    """Return the number of cells up to the last filled one."""
    return max((place for place, cell in enumerate(row, 1) if cell), default=0)


def _numbered(names: Sequence[str]) -> list[str]:
    """Number the names that repeat (`Sales`, `Sales 2`)."""
    given, taken, numbers = set(names), set[str](), Counter[str]()
    numbered = list[str]()
    for name in names:
        own = name
        while name and (own in taken or (own != name and own in given)):
            numbers[name] += 1
            own = f"{name} {numbers[name] + 1}"
        taken.add(own)
        numbered.append(own)
    return numbered


def is_header(cells: Sequence[str], below: Sequence[str] = ()) -> bool:
    """Say whether a row names columns: it has no figure but years, and no name twice unless the
    row below has figures or shares none of the names.
    """
    named = [cell for cell in cells if cell.strip()]
    differs = any(below) and (has_figure(below) or set(named).isdisjoint(below))
    distinct = differs or len(set(named)) == len(named)
    return bool(named) and distinct and not has_figure(named)


def has_figure(cells: Iterable[str]) -> bool:
    """Say whether a cell is a figure other than a year."""
    return any(_FIGURE.match(cell) and not _YEAR.match(cell) for cell in map(str.strip, cells))


# --- tables of Markdown ---

_RULE = re.compile(
    r"(?m)^[ \t]{0,9}\|?[ \t]*+:?-{3,}+:?[ \t]*+(?:\|[ \t]*+:?-{3,}+:?[ \t]*+)*+\|?[ \t]*+$"
)
_BAR = re.compile(r"(?<!\\)\|")
_BREAK = re.compile(r"<br\s*/?>|\\(?=\|)")
_LONGEST_NAME = 120


def markdown_tables(text: str) -> tuple[Table, ...]:
    """Return the tables of a Markdown text: a header, a rule of equally many cells, and rows.

    One or two short lines above a table name it.
    """
    tables, end = list[Table](), 0
    for rule in _RULE.finditer(text) if "|" in text else ():
        start, stop = _line_before(text, rule.start())
        head = _cells(text, start, stop)
        matches = "|" in text[start:stop] and len(head) == len(_cells(text, *rule.span()))
        if start < end or not matches:
            continue
        rows, end = list[tuple[Span | None, ...]](), rule.end()
        while end < len(text):
            line_end = text.find("\n", end + 1)
            line_end = len(text) if line_end < 0 else line_end
            if "|" not in text[end + 1 : line_end]:
                break
            cells = _cells(text, end + 1, line_end)[: len(head)]
            spans = [span if span[0] < span[1] else None for span in cells]
            rows.append((*spans, *[None] * (len(head) - len(spans))))
            end = line_end
        columns = tuple(one_line(_BREAK.sub(" ", text[a:b])).strip(" *_`") for a, b in head)
        if rows:
            tables.append(Table(_name_above(text, start), columns, (start, stop), tuple(rows)))
    return tuple(tables)


def _line_before(text: str, at: int) -> Span:
    """Return the place of the line above the one that begins at an offset, empty without one."""
    stop = max(at - 1, 0)
    return text.rfind("\n", 0, stop) + 1, stop


def _name_above(text: str, at: int) -> str:
    names = list[str]()
    while at > 0 and len(names) < 2:
        at, stop = _line_before(text, at)
        line = one_line(text[at:stop][: _LONGEST_NAME + 1]).strip("# *")
        if len(line) >= _LONGEST_NAME or line.endswith((".", ",", ";", "。", "；")) or "|" in line:
            break
        names += [line.rstrip(":：")] if line else []
    return ": ".join(reversed(names))


def _cells(text: str, start: int, stop: int) -> list[Span]:
    """Return the places of the cells between the bars of a row, without the spaces around them."""
    bars = [start - 1, *(bar.start() for bar in _BAR.finditer(text, start, stop)), stop]
    cells = list[Span]()
    for left, right in pairwise(bars):
        inner = text[left + 1 : right]
        first = left + 1 + len(inner) - len(inner.lstrip())
        cells.append((first, max(first, left + 1 + len(inner.rstrip()))))
    for outer in (0, -1):  # A row may begin and end with a bar.
        if len(cells) > 1 and cells[outer][0] == cells[outer][1]:
            cells.pop(outer)
    return cells
