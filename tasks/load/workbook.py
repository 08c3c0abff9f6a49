"""Read Excel workbooks as text: each row of a sheet is a line that names its columns.

openpyxl reads the values row by row, because two cells in opposite corners would otherwise span
sixteen thousand million cells in memory. What it leaves out in this mode (merged cells, formulas
without a value, notes) is read from the XML parts of the file.
"""

import datetime
import io
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import openpyxl
from lxml import etree
from openpyxl.packaging.relationship import get_dependents, get_rels_path
from openpyxl.styles.numbers import is_datetime
from openpyxl.utils.cell import coordinate_to_tuple, range_boundaries
from pydantic import Field

from storage.records import Record
from tasks.load.encodings import Unreadable
from tasks.load.tables import MOST_CELLS, WrittenTables, placed, write_table
from tasks.load.text import LARGEST_DOCUMENT, PageText, clean, one_line

NO_VALUE = "(formula without a stored value)"
_MOST_REGIONS = 100_000  # merged regions of a sheet
_SPECIAL = re.compile(rb"<(?:\w{1,99}:)?(?:f|mergeCell)[\s/>]")
_THREADED = "[Threaded comment]"


class _Annotations(Record):
    """What a sheet holds besides its values, by row and column from 1.

    A region is its first and last row, then its first and last column. `shown` replaces values.
    """

    regions: tuple[tuple[int, int, int, int], ...] = ()
    shown: Mapping[tuple[int, int], str] = Field(default_factory=dict)
    notes: tuple[tuple[int, int, str], ...] = ()


def read_xlsx(data: bytes, title: str) -> PageText:
    """Read the visible sheets, figures as they are displayed, dates as ISO.

    The value of a merged cell stands in each of its rows, a note at the end of its row.
    """
    book = openpyxl.load_workbook(io.BytesIO(data), data_only=True, read_only=True)
    sheets, size = list[tuple[str, WrittenTables]](), _Size()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = _Parts(archive)
        for sheet in book.worksheets:
            if sheet.sheet_state == "visible":
                name = one_line(clean(sheet.title))
                written = _written(sheet, parts.annotations(sheet.title), size)
                if written.lines:
                    sheets.append((name, written))
    several = len(sheets) > 1
    texts = ["\n".join([*[f"# {name}"] * several, *one.lines]) for name, one in sheets]
    text = "\n\n".join(texts)
    tables = placed(text, (_named(one, name) for name, one in sheets))
    return PageText(text=text, title=title, tables=tables)


def _named(written: WrittenTables, name: str) -> WrittenTables:
    """Give the name of the sheet to each table that has none."""
    return written._replace(
        tables=[replace(table, name=table.name or name) for table in written.tables]
    )


class _Size:
    """Counts the cells and characters of a workbook.

    The size of its file does not bound them: many cells may share one text, and many sheets one
    part of the file.
    """

    def __init__(self) -> None:
        self.cells = self.characters = 0

    def add(self, cells: int, characters: int) -> None:
        self.cells += cells
        self.characters += characters
        if self.cells > MOST_CELLS or self.characters > LARGEST_DOCUMENT:
            raise Unreadable(f"more than {MOST_CELLS:,} cells or 100 MB of text: divide it")


def _written(sheet: Any, annotations: _Annotations, size: _Size) -> WrittenTables:
    regions = _Regions(annotations.regions)
    rows, merged = list[list[str]](), dict[int, list[tuple[int, int]]]()
    sheet.reset_dimensions()
    for number, cells in enumerate(sheet.iter_rows(), 1):
        row = [
            annotations.shown.get((number, column))
            or clean(displayed(cell.value, cell.number_format))
            for column, cell in enumerate(cells, 1)
        ]
        if wide := regions.fill(number, row):
            merged[number - 1] = wide
        size.add(len(row) + len(regions.open), sum(map(len, row)))
        rows.append(row)
    notes: dict[int, dict[int, str]] = defaultdict(dict)
    for number, column, note in annotations.notes:
        size.add(1, len(note))
        notes[number - 1][column - 1] = note
    written = write_table(rows, merged=merged, notes=notes)
    below = [f"Note: {note}" for number, _, note in annotations.notes if number > len(rows)]
    return written._replace(lines=written.lines + below)


class _Regions:
    """Writes the value of each merged region into all its rows, in its first column."""

    def __init__(self, regions: Sequence[tuple[int, int, int, int]]) -> None:
        self._begun: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for top, bottom, left, right in regions:
            self._begun[top].append((bottom, left, right))
        self.open: dict[int, tuple[int, str]] = {}  # by column from 0: last row, value

    def fill(self, number: int, row: list[str]) -> list[tuple[int, int]]:
        """Fill a row in place, unless it is empty.

        Returns the first and last column of each region that begins in it and spans several.
        """
        self.open = {column: found for column, found in self.open.items() if found[0] >= number}
        for column, (_, value) in self.open.items() if any(row) else ():
            row += [""] * (column + 1 - len(row))
            row[column] = row[column] or value
        wide = []
        for bottom, left, right in self._begun.get(number, ()):
            value = row[left - 1] if left <= len(row) else ""
            if value and bottom > number:
                self.open[left - 1] = (bottom, value)
            if value and right > left:
                wide.append((left - 1, right - 1))
        return wide


# --- annotations ---


class _Parts:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._paths: dict[str, str] = {}  # by the name of the sheet
        self._computes = True  # whether the program that wrote the file computes formulas
        self._read: dict[str, _Annotations] = {}  # by path: many sheets may share one part
        for book in self._related("", "/officeDocument").values():
            self._read_book(book)

    def _read_book(self, path: str) -> None:
        sheets = self._related(path, "/worksheet")
        for element in self._elements(path, "sheet", "calcPr"):
            if element.get("fullCalcOnLoad") in ("1", "true"):
                self._computes = False
            for name, value in element.items():
                if name.endswith("}id") and value in sheets:
                    self._paths[element.get("name")] = sheets[value]

    def annotations(self, name: str) -> _Annotations:
        path = self._paths.get(name)
        if path is None:
            return _Annotations()
        if path not in self._read:
            self._read[path] = self._read_sheet(path)
        return self._read[path]

    def _read_sheet(self, path: str) -> _Annotations:
        regions = list[tuple[int, int, int, int]]()
        shown = dict[tuple[int, int], str]()
        # A second look at each cell costs most of the time, and most sheets do not need it.
        special = _SPECIAL.search(self._archive.read(path))
        # Rows only to free them.
        for element in self._elements(path, "row", "c", "mergeCell") if special else ():
            if element.tag.endswith("}mergeCell"):
                if len(regions) < _MOST_REGIONS:
                    left, top, right, bottom = range_boundaries(element.get("ref"))
                    regions.append((top, bottom, left, right))
            elif element.get("r") and (text := self._shown(element)):
                shown[coordinate_to_tuple(element.get("r"))] = text
        notes = [
            (*coordinate_to_tuple(comment.get("ref")), _note(comment))
            for part in self._related(path, "/comments").values()
            for comment in self._elements(part, "comment")
        ]
        return _Annotations(regions=tuple(regions), shown=shown, notes=tuple(notes))

    def _shown(self, cell: "etree._Element") -> str:
        """Return what stands in place of a cell's stored value, or an empty text.

        A formula may have an empty text as its value. Zero is not a value where the program that
        wrote the file does not compute.
        """
        stored = cell.findtext("{*}v") or ""
        if cell.find("{*}f") is None or (stored and (self._computes or stored != "0")):
            return ""
        text_result = cell.get("t") == "str" and cell.find("{*}v") is not None
        return "" if text_result else NO_VALUE

    def _related(self, path: str, kind: str) -> dict[str, str]:
        """Return the parts of a kind that a part refers to, by the id of the relation."""
        known = set(self._archive.namelist())
        relations = get_rels_path(path)
        if relations not in known:
            return {}
        return {
            relation.id: relation.target
            for relation in get_dependents(self._archive, relations)
            if relation.Type.endswith(kind) and relation.target in known
        }

    def _elements(self, path: str, *names: str) -> "Iterator[etree._Element]":
        """Yield the elements of these names in a part; each is freed when the next is read."""
        tags = [f"{{*}}{name}" for name in names]
        with self._archive.open(path) as part:
            for _, element in etree.iterparse(
                part, tag=tags, resolve_entities=False, huge_tree=True
            ):
                yield element
                element.clear()
                while element.getprevious() is not None:
                    del element.getparent()[0]


def _note(comment: "etree._Element") -> str:
    """Return the words of a note, without the lines for older programs in a threaded one."""
    text = "".join(part.text or "" for part in comment.iter("{*}t"))
    if text.startswith(_THREADED):
        text = text.partition("Comment:")[2]
    return one_line(clean(text))


# --- figures ---

# The digits of a number format; and what is not shown in it: colours, widths, quotation marks.
_DIGITS = re.compile(r"[#0?][#0?.,]*")
_MARKUP = re.compile(r'\[\$([^\]-]{0,99})[^\]]{0,99}\]|\[[^\]]{0,99}\]|[_*].|["\\]')
_GENERAL_DIGITS = 11


def displayed(value: object, number_format: str) -> str:
    """Format a value as its cell shows it: `1,308,463`, `-12.5%`, `007`, `27:05`.

    Dates and times are ISO; other formats (thousands, fractions, exponents) give the plain value.
    """
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return _figure(value, _MARKUP.sub(r"\1", number_format.split(";", maxsplit=1)[0]))
    if isinstance(value, datetime.datetime):
        if is_datetime(number_format) == "time":
            return value.time().isoformat("seconds")
        has_time = value.time() != datetime.time()
        return value.isoformat(" ", "seconds") if has_time else value.date().isoformat()
    if isinstance(value, datetime.timedelta):
        return _duration(value, number_format.lower())
    return "" if value is None else str(value)


def _duration(value: datetime.timedelta, number_format: str) -> str:
    """Format a duration by a format such as `[h]:mm`, whose first unit may exceed its range."""
    seconds = round(abs(value.total_seconds()))
    sign = "-" if value.total_seconds() < 0 else ""
    minutes = seconds // 60
    after = f":{seconds % 60:02}" if "s" in number_format else ""
    if "[s" in number_format:
        return f"{sign}{seconds}"
    if "[m" in number_format:
        return f"{sign}{minutes:02}{after}"
    return f"{sign}{minutes // 60}:{minutes % 60:02}{after}"


def _figure(value: int | float, section: str) -> str:
    patterns = _DIGITS.findall(section)
    if len(patterns) != 1 or patterns[0].endswith(","):
        return str(int(value)) if float(value).is_integer() else f"{value:.{_GENERAL_DIGITS}g}"
    whole, point, fraction = patterns[0].partition(".")
    magnitude = Decimal(str(abs(value))).scaleb(2 if "%" in section else 0)
    rounded = magnitude.quantize(Decimal(1).scaleb(-len(fraction)), rounding=ROUND_HALF_UP)
    digits = f"{rounded:,f}" if "," in whole else f"{rounded:f}"
    padded = digits.zfill(whole.count("0") + len(point + fraction))
    shown = section.replace(patterns[0], padded).strip()
    return f"-{shown}" if value < 0 and rounded else shown
