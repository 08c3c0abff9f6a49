"""Tables at load: rows are found, written as lines of the stored text, and kept as rows.

A row is written with its column names (`Bridge: Orla | Length (m): 412`), so that it can be found
and cited by itself. Beside the lines a table keeps its columns and where each cell stands.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, zip_longest
from typing import NamedTuple

from pydantic import Field

from prompts.text.regex import regex
from storage.records import Record, Span, Table
from tasks.load.text import LARGEST_DOCUMENT, Unreadable, one_line

MOST_CELLS = 4_000_000  # of a table, or values of a JSON text: some 300 bytes of memory each
_FIGURE = regex(r"[-+(]?(?:[$€£¥] ?)?[-+(]?\d[\d.,' ]*[%€£¥]?\)?$")
_YEAR = regex(r"[12]\d{3}$")
_LARGEST_FIELD = 1 << 28
_DELIMITERS = "\t;|,"
_END = "\x02"  # a sign that no stored text holds
_NAMED_DELIMITER = regex(r'(?i)"?sep=([^\n"])"?[ \t]*(?:\n|$)')
_SAMPLE = 1_000_000  # characters by which the delimiter is chosen
_MOST_HEADER_LINES = 3
_MOST_COLUMNS = 1_000  # of a merged region in a header
Rows = Sequence[Sequence[str]]
Merged = Mapping[int, Sequence[tuple[int, int]]]  # of a row: first and last column of each region


# --- delimited text --------------------------------------------------------------------------


def read_table(text: str, delimiter: str | None) -> list[tuple[int, list[str]]]:
    """Cut a delimited text into rows: (line from 1, cells), without cells for a blank line.

    The delimiter is the one that a first line `sep=;` names, else the given one, else the one that
    cuts most lines into the same number of cells; where none does, each line is one cell. A
    sentence above or below the table is one cell too. Raises `Unreadable` where the parser cannot
    read the text, or where it has too many cells.
    """
    csv.field_size_limit(_LARGEST_FIELD)
    above = 0
    if named := _NAMED_DELIMITER.match(text):
        text, delimiter, above = text[named.end() :], named[1], named.group().count("\n")
    if not delimiter or delimiter not in text:
        delimiter = _delimiter_of(text)
    rows = _cut(text, delimiter) if delimiter else _lines_alone(text)
    filled = [row for row in rows if row[1]]
    if len(rows) == 2 * len(filled) - 1:  # a blank line after each row says nothing
        rows = filled
    head = next((cells for _, cells in rows if len(cells) > 1), [""])
    head[0] = head[0].lstrip("# ") or head[0]  # a header may be marked as a comment
    return [(line + above, cells) for line, cells in rows]


def _delimiter_of(text: str) -> str | None:
    """Choose the sign that cuts most rows of a text's beginning into one number of cells.

    What a blank follows may be punctuation: then all rows must have as many cells, and of two that
    cut as many rows the other one is chosen. A figure with a comma in it is no header.
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
            alone = all(len(cells) == 1 for cells in rows[:first])  # what stands above
            is_table = first == 0 or not alone or is_header(rows[first])
            if spaced and delimiter in ",;":
                is_table = count == len(rows)
            if is_table and (count, not spaced) > most:
                best, most = delimiter, (count, not spaced)
    return best


def _is_spaced(text: str, delimiter: str) -> bool:
    return text.count(f"{delimiter} ") * 2 > text.count(delimiter)


def _cut(text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """Cut by a delimiter. A quotation mark that nothing closes is a sign like any other."""
    try:
        return _parsed(text, delimiter, quoted=True)
    except csv.Error:
        try:
            return _parsed(text, delimiter, quoted=False)
        except csv.Error as error:
            raise Unreadable(f"broken table ({error})") from error


def _parsed(text: str, delimiter: str, quoted: bool) -> list[tuple[int, list[str]]]:
    spaced = _is_spaced(text, delimiter)
    reader = csv.reader(
        io.StringIO(f"{text}\n{_END}"),
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
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
            cells = [delimiter.join(cells)]  # a sentence
        if cells or (rows and rows[-1][1]):
            rows.append((reader.line_num, cells))
    if rows.pop()[1] != [_END]:
        raise csv.Error("a quotation mark that nothing closes")
    while rows and not rows[-1][1]:
        rows.pop()
    return rows


def _lines_alone(text: str) -> list[tuple[int, list[str]]]:
    lines = enumerate(text.split("\n"), 1)
    return [(number, [line]) for number, line in lines if line.strip()]


# --- rows as lines ---------------------------------------------------------------------------


class Marks(Record):
    """What a spreadsheet says beside its cells, by row: the merged regions, and notes by column."""

    merged: Merged = Field(default_factory=dict)
    notes: Mapping[int, Mapping[int, str]] = Field(default_factory=dict)


class WrittenTables(NamedTuple):
    """Lines of text, and the tables in them with places in the lines joined by line breaks."""

    lines: list[str]
    tables: list[Table]


class TableWriter:
    """Writes remarks, headers and rows as lines, and notes where each cell comes to stand.

    Raises `Unreadable` where the lines become too long, for each repeats the column names.
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
        """Write a line that is no row; the last one above a header names the table."""
        self._remark = line
        self._add(line)

    def begin(self, names: Sequence[str], notes: Sequence[str] = (), written: bool = True) -> None:
        """Begin a table with these columns, its header `written` as a line or not."""
        self._close()
        self.names, self._name, self._remark = names, self._remark.strip("# :"), ""
        line = " | ".join(filter(None, names)) if written else ""
        self._header = (self._end, self._end + len(line)) if line else None
        self._add(line)
        self._add(" | ".join(notes))

    def row(self, cells: Sequence[str], notes: Sequence[str] = ()) -> None:
        """Write a row: each cell that says something after its column's name, then the notes."""
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
        """Give the lines and the tables that have named columns."""
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
    """The tables with their places in a text that holds the lines of each, one after another."""
    tables, at = list[Table](), 0
    for one in written:
        lines = "\n".join(one.lines)
        start = text.find(lines, at)
        if start >= 0:
            tables += [moved(table, start) for table in one.tables]
            at = start + len(lines)
    return tuple(tables)


def moved(table: Table, by: int) -> Table:
    """The table as it stands in a text that has `by` more characters before it."""
    rows = tuple(
        tuple((cell[0] + by, cell[1] + by) if cell else None for cell in row) for row in table.rows
    )
    header = (table.header[0] + by, table.header[1] + by) if table.header else None
    return replace(table, header=header, rows=rows)


def write_table(
    table: Rows, marks: Marks | None = None, names: Sequence[str] = ()
) -> WrittenTables:
    """Write rows as lines that name their columns; the notes of a row stand at its end.

    A row of names above another row is a header, also after an empty row; a lone cell there is a
    remark, and so is a row of one cell in a table of several columns. The lines of a header, groups
    of columns above their names, are one line (`Summer / Boats`). A table that goes on from another
    place has its `names` already.
    """
    marks = marks or Marks()
    rows = [[one_line(cell) for cell in row] for row in table]
    writer = TableWriter()
    writer.begin(names, written=False)
    again, begins, at = bool(names), True, 0
    while at < len(rows):
        row, first = rows[at], at
        filled = [cell for cell in row if cell]
        header = _header(rows, at, again, marks.merged) if begins and filled else None
        at += header.rows if header else 1
        shown = header.names if header else writer.names
        notes = [note for noted in range(first, at) for note in _notes(shown, marks.notes, noted)]
        if header:
            writer.begin(header.names, notes)
            again, begins = True, False
        elif filled and len(filled) == 1 and (begins or len(row) == 1 < len(writer.names)):
            writer.remark(" | ".join([*filled, *notes]))
        elif filled:
            writer.row(row, notes)
            begins = False
        else:
            begins = True
            for note in notes:
                writer.remark(note)
    return writer.written()


def _notes(names: Sequence[str], notes: Mapping[int, Mapping[int, str]], row: int) -> list[str]:
    """The notes on a row, each after the name of its column."""
    name_of = dict(enumerate(names))
    return [
        f"{name_of[column]} (note): {note}" if name_of.get(column) else f"Note: {note}"
        for column, note in sorted(notes.get(row, {}).items())
    ]


# --- headers ---------------------------------------------------------------------------------


class _Header(NamedTuple):
    names: list[str]
    rows: int


def _header(rows: Rows, at: int, again: bool, merged: Merged) -> _Header | None:
    """The header that begins at a row, if one does.

    In a table that has names already (`again`), names stand again only above figures, and without
    a gap.
    """
    over: list[str] = []
    if not again and _are_pairs(rows, at):
        return None
    found = [_Header(list(rows[at]), 1)]
    for line in range(at, at + _MOST_HEADER_LINES - 1):
        groups = _groups(rows, line, merged)
        if not groups:
            break
        over = _joined(over, groups)
        found.append(_Header(_joined(over, rows[line + 1]), line + 2 - at))
    for header in reversed(found):
        end = at + header.rows
        row, below = rows[end - 1], rows[end] if end < len(rows) else []
        gap = "" in row[1 : _width(row)] or _width(row) < _width(below)
        doubtful = again and (gap or is_header(below))
        several = sum(map(bool, header.names)) > 1 and not has_figure(row)
        if several and any(below) and not doubtful and is_header(header.names, below):
            return header._replace(names=_numbered(header.names))
    return None


def _are_pairs(rows: Rows, at: int) -> bool:
    """Whether rows up to an empty one are names with what they stand for, as above a table, and no
    table of two columns: a wider one follows, and not all of them have figures."""
    end = next((place for place in range(at, len(rows)) if not any(rows[place])), len(rows))
    narrow = all(_width(row) <= 2 for row in rows[at:end])
    wider = any(_width(row) > 2 for row in rows[end : end + 2])
    return narrow and wider and not all(map(has_figure, rows[at + 1 : end]))


def _groups(rows: Rows, at: int, merged: Merged) -> list[str]:
    """The group of each column where a row stands over a row of column names; else nothing.

    A group is a merged cell over several names. Without merged cells, gaps of the row are filled
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
            # A cell from the first column on that stands alone is a title.
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
    """The row with the value of each merged region in all its columns, as far as rows are read."""
    spread = list(row)
    for first, last in merged:
        if last < _MOST_COLUMNS:
            spread += [""] * (last + 1 - len(spread))
            spread[first : last + 1] = [spread[first]] * (last + 1 - first)
    return spread


def _width(row: Sequence[str]) -> int:
    """The number of cells up to the last that says something."""
    return max((place for place, cell in enumerate(row, 1) if cell), default=0)


def _joined(over: Sequence[str], row: Sequence[str]) -> list[str]:
    """Two lines of a header as one; what stands in both stands once."""
    return [
        " / ".join(dict.fromkeys(filter(None, pair)))
        for pair in zip_longest(over, row, fillvalue="")
    ]


def _numbered(names: Sequence[str]) -> list[str]:
    """The names, each that stood before with a number (`Sales`, `Sales 2`)."""
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
    """Whether a row names columns: it has no figures other than years, and no name twice unless
    the row below has figures, or none of the names."""
    named = [cell for cell in cells if cell.strip()]
    differs = any(below) and (has_figure(below) or set(named).isdisjoint(below))
    distinct = differs or len(set(named)) == len(named)
    return bool(named) and distinct and not has_figure(named)


def has_figure(cells: Iterable[str]) -> bool:
    """Whether a cell is a figure and no year."""
    written = map(str.strip, cells)
    return any(_FIGURE.match(cell) and not _YEAR.match(cell) for cell in written)


# --- tables of Markdown ----------------------------------------------------------------------

_RULE = regex(
    r"(?m)^[ \t]{0,9}\|?[ \t]*+:?-{3,}+:?[ \t]*+(?:\|[ \t]*+:?-{3,}+:?[ \t]*+)*+\|?[ \t]*+$"
)
_BAR = regex(r"(?<!\\)\|")
_BREAK = regex(r"<br\s*/?>|\\(?=\|)")
_LONGEST_NAME = 120


def markdown_tables(text: str) -> tuple[Table, ...]:
    """The tables of a Markdown text: a header, a rule with as many cells, and the rows below.

    One or two short lines above a table name it.
    """
    tables, end = list[Table](), 0
    for rule in _RULE.finditer(text) if "|" in text else ():
        start, stop = _line_before(text, rule.start())
        head = _cells(text, start, stop)
        if (
            start < end
            or "|" not in text[start:stop]
            or len(head) != len(_cells(text, *rule.span()))
        ):
            continue
        rows, end = list[tuple[Span | None, ...]](), rule.end()
        while end < len(text):
            stop_of_row = text.find("\n", end + 1)
            stop_of_row = len(text) if stop_of_row < 0 else stop_of_row
            if "|" not in text[end + 1 : stop_of_row]:
                break
            cells = _cells(text, end + 1, stop_of_row)[: len(head)]
            spans = [span if span[0] < span[1] else None for span in cells]
            rows.append((*spans, *[None] * (len(head) - len(spans))))
            end = stop_of_row
        columns = tuple(one_line(_BREAK.sub(" ", text[a:b])).strip(" *_`") for a, b in head)
        if rows:
            tables.append(Table(_name_above(text, start), columns, (start, stop), tuple(rows)))
    return tuple(tables)


def _line_before(text: str, at: int) -> Span:
    """The line above the one that begins at an offset; an empty place where there is none."""
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
    """The places between the bars of a row, without the blanks around each cell."""
    bars = [start - 1, *(bar.start() for bar in _BAR.finditer(text, start, stop)), stop]
    cells = list[Span]()
    for left, right in pairwise(bars):
        inner = text[left + 1 : right]
        first = left + 1 + len(inner) - len(inner.lstrip())
        cells.append((first, max(first, left + 1 + len(inner.rstrip()))))
    if len(cells) > 1 and cells[0][0] == cells[0][1]:  # what stands before the first bar
        cells.pop(0)
    if len(cells) > 1 and cells[-1][0] == cells[-1][1]:
        cells.pop()
    return cells
