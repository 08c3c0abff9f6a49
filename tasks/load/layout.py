"""Lay out the lines of pages as text: those of a PDF, and those that were recognised in pictures.

Lines whose cells stand below each other form a table or columns of text; other lines are joined
into paragraphs. Page numbers and running heads are dropped. A caption above a table names it.
"""

import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from storage.records import Recognized
from tasks.load.tables import WrittenTables, placed, write_table
from tasks.load.text import PageText, clean, join_pages, one_line

_PAGE_NUMBER = re.compile(
    r"(?:page|seite|p\.|第)?\s*+[-–—]?\s*+(?:\d{1,4}|[ivxlc]{1,6})\s*+[-–—]?\s*+(?:(?:of|/|von)\s*\d{1,4}|页)?",
    re.IGNORECASE,
)
_SMALL_NUMBER = re.compile(r"\b\d{1,3}\b")  # A year is not a page number.
_SOFT_BREAK = re.compile("[\ufffe\x02\u00ad][\n ]?")
_HYPHEN = re.compile(r"(?<=[^\W\d_]{2})-\n(?=[a-zà-ÿ]{2})")
_BULLET = re.compile(r"[•▪◦‣●\-–*]\s|\(?\d{1,3}[.)]\s|\(?[a-z]\)\s")
_ENDS = re.compile(r"[.!?:;。！？：；]['\"”’)\]]*$")
_HAN = re.compile(r"[\u3040-\u9fff\uac00-\ud7af]")
_BETWEEN_HAN = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef])\n(?=[\u3000-\u9fff\uff00-\uffef])")
_CAPTION = re.compile(r"(?:table|tab\.|tabelle|tableau|表)\s*(?:[\dIVX]+|[A-Z]\b)", re.IGNORECASE)
_LINES_OF_A_ROW, _MOST_CELLS = 12, 100
_LONGEST_CAPTION = 500  # characters
_LEAST_COLUMN = 3  # lines


class Cell(NamedTuple):
    """A part of a line between wide gaps."""

    text: str
    left: float
    right: float


class Line(NamedTuple):
    """A line of a page; `bottom` is measured upwards."""

    cells: tuple[Cell, ...]
    bottom: float
    height: float

    @property
    def text(self) -> str:
        return " ".join(cell.text for cell in self.cells)

    @property
    def left(self) -> float:
        return min(cell.left for cell in self.cells)

    @property
    def right(self) -> float:
        return max(cell.right for cell in self.cells)


class Reading(NamedTuple):
    """A piece of a line that was recognised in a picture, its box (measured upwards), and how sure
    the recogniser is (0-1).
    """

    text: str
    left: float
    bottom: float
    right: float
    top: float
    confidence: float

    @property
    def height(self) -> float:
        return self.top - self.bottom


class Page(NamedTuple):
    """The lines of a page in reading order, what was recognised on it, and its width and height.

    `figure` ends its text: what stands for a picture that a model is to describe.
    """

    lines: list[Line]
    readings: Sequence[Reading] = ()
    width: float = 1.0
    height: float = 1.0
    figure: str = ""


def lay_out(pages: Sequence[Page]) -> PageText:
    """Return the text of pages, with their tables and the places of what was recognised.

    The text is empty where the pages hold none.
    """
    written, lines = list[WrittenTables](), [page.lines for page in pages]
    texts = _page_texts(_without_running_heads(lines), written)
    if not any(texts):  # The numbers of the pages are all their text.
        texts = _page_texts(lines, written)
    figures = [page.figure for page in pages]
    texts = ["\n\n".join(filter(None, both)) for both in zip(texts, figures, strict=True)]
    joints = [_joint(texts, number) for number in range(len(texts))]
    text, starts = join_pages(texts, joints)
    recognized = [
        place
        for number, (page, start) in enumerate(zip(pages, starts, strict=True))
        for place in places(page, number + 1, text, start, start + len(texts[number]))
    ]
    return PageText(
        text=text,
        title="",
        pages=starts,
        tables=placed(text, written),
        recognized=tuple(recognized),
    )


# --- what was recognised ---


def places(page: Page, number: int | None, text: str, start: int, end: int) -> Iterator[Recognized]:
    """Yield where the readings of a page stand in this part of a text.

    A reading that stands nowhere, such as a running head, is left out.
    """
    at = start
    for one in page.readings:
        words = clean(one.text).strip().removesuffix("-")
        found = text.find(words, at, end)
        found = text.find(words, start, end) if found < 0 else found
        if words and found >= 0:
            at = found + len(words)
            box = (
                round(one.left / page.width, 4),
                round(1 - one.top / page.height, 4),
                round(one.right / page.width, 4),
                round(1 - one.bottom / page.height, 4),
            )
            yield Recognized(found, at, number, box, round(one.confidence, 3))


def reading_lines(readings: Sequence[Reading]) -> tuple[list[Reading], list[Line]]:
    """Return readings in the order in which they are read, and as lines: columns one by one."""
    ordered, lines = list[Reading](), list[Line]()
    for column in _columns(readings):
        for row in _level_rows(column):
            ordered += row
            lines.append(_joined(row))
    return ordered, lines


def _columns(readings: Sequence[Reading]) -> list[list[Reading]]:
    """Cut a page where a gutter divides running text, and above and below what crosses it.

    A gutter is the end of a reading that the fewest others cross. Cells of tables are short, and
    stay beside each other.
    """
    best: tuple[int, float] | None = None
    for edge in {one.right for one in readings}:
        left = [one for one in readings if one.right <= edge]
        right = [one for one in readings if one.left > edge]
        crossing = len(readings) - len(left) - len(right)
        fits = 2 * crossing <= min(len(left), len(right))
        if fits and _is_running(left) and _is_running(right) and _beside(left, right):
            best = min(best or (crossing, edge), (crossing, edge))
    if best is None:
        return [list(readings)]
    edge = best[1]
    crossing_ones = [one for one in readings if one.left <= edge < one.right]
    bounds = sorted((one.bottom for one in crossing_ones), reverse=True)
    blocks: list[list[Reading]] = []
    for above, below in pairwise([float("inf"), *bounds, float("-inf")]):
        band = [one for one in readings if below <= one.bottom < above and one not in crossing_ones]
        sides = [[it for it in band if it.right <= edge], [it for it in band if it.left > edge]]
        blocks += [block for side in sides if side for block in _columns(side)]
        blocks.append([one for one in crossing_ones if one.bottom == below])
    return [block for block in blocks if block]


def _is_running(column: Sequence[Reading]) -> bool:
    """Say whether readings are lines of running text: several, and mostly of several words."""
    return len(column) >= _LEAST_COLUMN and is_running([one.text for one in column])


def is_running(texts: Sequence[str]) -> bool:
    """Say whether texts have a median of three words, or of eight characters of Chinese."""
    return statistics.median(len(it.split()) + len(_HAN.findall(it)) / 4 for it in texts) >= 3


def _beside(left: Sequence[Reading], right: Sequence[Reading]) -> bool:
    """Say whether two columns share the height of several lines."""
    shared = min(max(it.top for it in left), max(it.top for it in right)) - max(
        min(it.bottom for it in left), min(it.bottom for it in right)
    )
    return shared > _LEAST_COLUMN * statistics.median(it.height for it in (*left, *right))


def _level_rows(column: Sequence[Reading]) -> list[list[Reading]]:
    """Group readings of one height into rows, from the top, each from the left."""
    rows: list[list[Reading]] = []
    for one in sorted(column, key=lambda it: -(it.bottom + it.top)):
        last = rows[-1][-1] if rows else None
        shift = abs(last.bottom + last.top - one.bottom - one.top) / 2 if last else 0.0
        if last and shift < 0.5 * min(last.height, one.height):
            rows[-1].append(one)
        else:
            rows.append([one])
    return [sorted(row, key=lambda it: it.left) for row in rows]


def _joined(row: Sequence[Reading]) -> Line:
    """Join the readings of a row into a line; a gap as wide as half its height divides cells."""
    height = statistics.median(one.height for one in row)
    cells = [Cell(row[0].text, row[0].left, row[0].right)]
    for one in row[1:]:
        if one.left - cells[-1].right > 0.5 * height:
            cells.append(Cell(one.text, one.left, one.right))
        else:
            text = f"{cells[-1].text} {one.text}"
            cells[-1] = Cell(text, cells[-1].left, max(cells[-1].right, one.right))
    return Line(tuple(cells), statistics.median(one.bottom for one in row), height)


# --- running heads ---


def _without_running_heads(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """Drop page numbers, and first and last lines that repeat on the pages.

    A line repeats where three pages have it with their own number, or half of the pages, or of the
    left or right ones, have it unchanged. The first page keeps a line of several cells, which may
    be the names of columns. A number alone is that of the page, or counts up on two pages.
    """
    edges = [
        {key for line in page[:1] + page[-1:] for key in _keys(line, number)}
        for number, page in enumerate(pages)
    ]
    counted = Counter(key for keys in edges for key in keys)
    repeated = set[str]()
    for some in (edges, edges[::2], edges[1::2]):
        counts = Counter(key for keys in some for key in keys)
        half = max(2 if len(pages) > 4 else 3, len(some) / 2)
        repeated |= {key for key, count in counts.items() if count >= (3 if "\0" in key else half)}

    def runs(line: Line, number: int) -> bool:
        if line.text.isdecimal():
            keys = [key for key in _keys(line, number) if "\0" in key]
            return line.text == str(number + 1) or any(counted[key] > 1 for key in keys)
        if _PAGE_NUMBER.fullmatch(line.text):
            return True
        return bool(repeated & _keys(line, number)) and not (number == 0 and len(line.cells) > 1)

    bodies = []
    for number, page in enumerate(pages):
        body = list(page)
        for place in (0, -1):
            while body and len(pages) > 1 and runs(body[place], number):
                body.pop(place)
        bodies.append(body)
    return bodies


def _keys(line: Line, page: int) -> set[str]:
    """Return the text of a line, unchanged and with its numbers relative to the page's."""
    numbered = _SMALL_NUMBER.sub(lambda number: f"\0{int(number[0]) - page}", line.text)
    return {line.text, numbered}


# --- tables and columns ---


def _page_texts(pages: Sequence[list[Line]], written: list[WrittenTables]) -> list[str]:
    """Return the text of each page, and append its tables to `written`.

    A table that continues on the next page keeps its column names.
    """
    texts = []
    header: list[str] = []  # of the table that ended the previous page
    for page in pages:
        usual = _usual_gap(page)
        parts: list[str] = []
        for block in _blocks(page):
            rows = _rows(block.lines) if block.is_table else []
            columns = _text_columns(rows) if rows else [block.lines]
            if not columns:
                cells = [[clean(_SOFT_BREAK.sub("", cell)) for cell in row] for row in rows]
                continues = not parts and len(header) == len(cells[0])
                header = header if continues else cells[0]
                if caption := _caption(parts):
                    cells.insert(0, [caption, *[""] * (len(cells[0]) - 1)])
                written.append(write_table(cells, names=header if continues else ()))
                parts.append("\n".join(written[-1].lines))
                continue
            header = []
            parts += [_paragraphs(column, usual) for column in columns]
        texts.append("\n\n".join(filter(None, parts)))
    return texts


def _caption(parts: list[str]) -> str:
    """Take the caption of a table off the end of the text above it; empty where there is none."""
    above, _, last = parts[-1].rpartition("\n\n") if parts else ("", "", "")
    if not _CAPTION.match(last) or len(last) > _LONGEST_CAPTION:
        return ""
    parts[-1:] = [above] if above else []
    return one_line(last)


class _Block(NamedTuple):
    lines: Sequence[Line]
    is_table: bool


def _blocks(lines: Sequence[Line]) -> Iterator[_Block]:
    lines = _with_late_cells(lines)
    text: list[Line] = []
    at = 0
    while at < len(lines):
        end = _table_end(lines, at)
        if end == at:
            text.append(lines[at])
            at += 1
            continue
        if text:
            yield _Block(text, is_table=False)
            text = []
        yield _Block(lines[at:end], is_table=True)
        at = end
    if text:
        yield _Block(text, is_table=False)


def _with_late_cells(lines: Sequence[Line]) -> list[Line]:
    """Move each cell to its row that is drawn after all lines of the cell left of it."""
    placed: list[Line] = []
    for line in lines:
        for place in range(len(placed) - 1, max(-1, len(placed) - _LINES_OF_A_ROW), -1):
            row = placed[place]
            level = abs(row.bottom - line.bottom) < 0.5 * line.height
            several = 1 < len(row.cells) + len(line.cells) - 1 < _MOST_CELLS
            if level and several and line.cells[0].left > row.right:
                placed[place] = row._replace(cells=row.cells + line.cells)
                break
        else:
            placed.append(line)
    return placed


def _table_end(lines: Sequence[Line], at: int) -> int:
    """Return where the table that begins at a line ends, or `at` where none begins.

    Rows have several cells and follow each other closely. A line of one cell continues the row
    above where it is closer still and not below the first cell.
    """
    step, end, several = 0.0, at, 0
    for place in range(at, len(lines)):
        line = lines[place]
        gap = lines[place - 1].bottom - line.bottom if place > at else 0.0
        if place > at and not 0 < gap < (2.2 * step or 4 * line.height):
            break
        if len(line.cells) == 1:
            below_first = line.cells[0].left <= lines[at].cells[0].right
            if end == at or gap > 1.3 * line.height or below_first:
                break
            continue
        step = max(step, gap)
        end, several = place + 1, several + 1
    return end if several > 2 or (several == 2 and _aligned(lines[at], lines[end - 1])) else at


def _aligned(line: Line, other: Line) -> bool:
    near = 0.5 * line.height
    return len(line.cells) == len(other.cells) and all(
        abs(a.left - b.left) < near for a, b in zip(line.cells, other.cells, strict=True)
    )


def _rows(lines: Sequence[Line]) -> list[list[str]]:
    """Sort the cells of a table into rows and columns; empty where it has a single column.

    The columns are the intervals that the cells of the fullest lines cover.
    """
    counts = Counter(len(line.cells) for line in lines if len(line.cells) > 1)
    usual = [cells for cells, count in counts.items() if 3 * count >= counts.total()]
    most = max(usual, default=max(counts))
    columns: list[tuple[float, float]] = []
    full = (cell for line in lines if len(line.cells) == most for cell in line.cells)
    for cell in sorted(full, key=lambda cell: cell.left):
        if columns and cell.left < columns[-1][1]:
            columns[-1] = (columns[-1][0], max(columns[-1][1], cell.right))
        else:
            columns.append((cell.left, cell.right))
    if len(columns) < 2:
        return []
    steps = [a.bottom - b.bottom for a, b in pairwise(lines) if len(b.cells) == most]
    step = statistics.median_low(steps) if steps else 0.0
    rows: list[list[str]] = []
    for above, line in pairwise([lines[0], *lines]):
        if not rows or above.bottom - line.bottom >= 0.8 * step:
            rows.append([""] * len(columns))
        for cell in line.cells:
            place = next(
                (n for n, (_, right) in enumerate(columns) if cell.left < right), len(columns) - 1
            )
            rows[-1][place] = f"{rows[-1][place]} {cell.text}".strip()
    return rows


def _text_columns(rows: Sequence[Sequence[str]]) -> list[list[Line]]:
    """Return the columns where they are running text, and nothing where they are a table."""
    columns = [[cell for cell in column if cell] for column in zip(*rows, strict=True)]
    if any(len(column) < _LEAST_COLUMN or not is_running(column) for column in columns):
        return []
    return [[Line((Cell(cell, 0, 0),), 0, 0) for cell in column] for column in columns]


# --- paragraphs ---


def _usual_gap(lines: Sequence[Line]) -> float:
    gaps = [a.bottom - b.bottom for a, b in pairwise(lines) if a.bottom > b.bottom]
    return statistics.median_low(gaps) if gaps else 0.0


def _paragraphs(lines: Sequence[Line], usual: float) -> str:
    """Join lines into paragraphs with blank lines between; `usual` is the gap between lines."""
    text = lines[0].text
    for (above, line), full in zip(pairwise(lines), _full_lines(lines), strict=False):
        text += _between(above, line, usual, full) + line.text
    text = _HYPHEN.sub("", _SOFT_BREAK.sub("", text.replace("\r", "")))
    text = re.sub(r"(?<!\n)\n(?!\n)", " ", _BETWEEN_HAN.sub("", text))
    return clean(text.replace("\v", "\n"))


def _full_lines(lines: Sequence[Line]) -> list[bool]:
    """Say of each line whether it reaches to the right edge of those that begin where it does.

    Lines without places count as full.
    """
    step = 2 * statistics.median(line.height for line in lines) or 1.0
    edges: dict[int, float] = {}
    for line in lines:
        for place in (-1, 0, 1):
            beside = int(line.left / step) + place
            edges[beside] = max(edges.get(beside, 0.0), line.right)
    widths = [(line.right - line.left, edges[int(line.left / step)] - line.left) for line in lines]
    return [not whole or width > 0.85 * whole for width, whole in widths]


def _between(above: Line, line: Line, usual: float, full: bool) -> str:
    """Return a blank line before a paragraph, `\\v` for a hard line break, or a newline.

    `full`: the line above reaches to the edge.
    """
    gap = above.bottom - line.bottom
    if _BULLET.match(line.text) and 0 <= gap < 2 * usual:
        return "\v"
    if usual and (gap > min(usual * 1.35, 4 * above.height) or gap < -usual):
        return "\n\n"
    is_hard = not full and (_ENDS.search(above.text) or not line.text[:1].islower())
    return "\v" if is_hard or 0 < abs(gap) < 0.2 * usual else "\n"


def _joint(texts: Sequence[str], number: int) -> str:
    """Return a space where a sentence continues from the previous page, else a blank line."""
    above = next((text for text in reversed(texts[:number]) if text), "")
    runs_on = above and not _ENDS.search(above) and texts[number][:1].islower()
    return " " if runs_on else "\n\n"
