"""Read PDF files page by page.

PDFium yields the characters and their boxes. Boxes of one height form a line, wide gaps cut it into
cells, and lines whose cells stand below each other form a table or columns of text. Other lines are
joined into paragraphs. Page numbers and running heads are dropped.
"""

import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import pypdfium2
from pypdfium2 import raw

from tasks.load.encodings import Unreadable
from tasks.load.tables import WrittenTables, placed, write_table
from tasks.load.text import LARGEST_DOCUMENT, PageText, clean, join_pages, one_line, raised

_PAGE_NUMBER = re.compile(
    r"(?:page|seite|p\.|第)?\s*+[-–—]?\s*+(?:\d{1,4}|[ivxlc]{1,6})\s*+[-–—]?\s*+(?:(?:of|/|von)\s*\d{1,4}|页)?",
    re.IGNORECASE,
)
_SMALL_NUMBER = re.compile(r"\b\d{1,3}\b")  # A year is not a page number.
_SOFT_BREAK = re.compile("[\ufffe\x02\u00ad][\n ]?")
_HYPHEN = re.compile(r"(?<=[^\W\d_]{2})-\n(?=[a-zà-ÿ]{2})")
_BULLET = re.compile(r"[•▪◦‣●\-–*]\s|\(?\d{1,3}[.)]\s|\(?[a-z]\)\s")
_MARKER = re.compile(r"(?:[•▪◦‣●\-–*]|\(?\d{1,3}[.)]|\(?[a-z]\)|(?:US|HK|[CA])?[$€£¥])$")
_ENDS = re.compile(r"[.!?:;。！？：；]['\"”’)\]]*$")
_BETWEEN_HAN = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef])\n(?=[\u3000-\u9fff\uff00-\uffef])")
_NO_TITLE = re.compile(
    r"^(?:\(?(?:anonymous|unspecified|untitled)\)?.*|microsoft .*|(?:document|presentation) ?\d*"
    r"|about:blank|.*\.(?:docx?|pdf|tex|dvi|indd|pptx?|xlsx?))$",
    re.IGNORECASE,
)
_MOST_PLACED = 100_000  # characters of a page whose boxes are read, at some 5 µs each
# The least gap between cells: a share of the line's height, and of the mean width of a character,
# for a space in a fixed-width font is one character wide.
_CELL_GAP, _CELL_GAP_WIDTHS = 0.6, 1.6
_LINES_OF_A_ROW, _MOST_CELLS = 12, 100
_PAGELESS = re.compile(
    rb"/Type\s*/Pages\b[^>]{0,200}/Count\s+0\b|/Count\s+0\b[^>]{0,200}/Type\s*/Pages\b"
)
_PASSWORD, _SECURITY = 4, 5  # FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY


class _Sign(NamedTuple):
    """A character with its box in points; `spaced` where a space stands before it."""

    text: str
    left: float
    bottom: float
    right: float
    top: float
    spaced: bool

    @property
    def height(self) -> float:
        return self.top - self.bottom


class _Cell(NamedTuple):
    """A part of a line between wide gaps."""

    text: str
    left: float
    right: float


class _Line(NamedTuple):
    """A line of a page; `bottom` is measured upwards."""

    cells: tuple[_Cell, ...]
    bottom: float
    height: float

    @property
    def text(self) -> str:
        return " ".join(cell.text for cell in self.cells)

    @property
    def right(self) -> float:
        return max(cell.right for cell in self.cells)


def read_pdf(data: bytes) -> PageText:
    """Read the text of all pages, values of form fields included, and the title.

    Raises `Unreadable` where the file is encrypted, broken or without text.
    """
    document = _open(data)
    pages: list[list[_Line]] = []
    characters = 0
    try:
        for number in range(len(document)):
            page = document[number]
            # Make form fields and annotations part of the page.
            if raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY) == raw.FLATTEN_SUCCESS:
                page.close()
                page = document[number]
            pages.append(_page_lines(page))
            page.close()
            characters += sum(len(cell.text) for line in pages[-1] for cell in line.cells)
            if characters > LARGEST_DOCUMENT:  # Many pages may share one content.
                raise Unreadable("more than 100 MB of text: divide it")
        title = one_line(clean(document.get_metadata_dict().get("Title", "")))
    except pypdfium2.PdfiumError as error:
        raise Unreadable(f"broken PDF ({error})") from error
    finally:
        document.close()
    written = list[WrittenTables]()
    texts = _page_texts(_without_running_heads(pages), written)
    if not any(texts):  # The numbers of the pages are all their text.
        texts = _page_texts(pages, written)
    if not any(texts):
        raise Unreadable("no text (a scan has to be recognised first)")
    joints = [_joint(texts, number) for number in range(len(texts))]
    text, starts = join_pages(texts, joints)
    title = "" if _NO_TITLE.match(title) else title
    return PageText(text=text, title=title, pages=starts, tables=placed(text, written))


def _open(data: bytes) -> pypdfium2.PdfDocument:
    try:
        document = pypdfium2.PdfDocument(data)
        document.init_forms()
    except pypdfium2.PdfiumError as error:
        if _PAGELESS.search(data):
            raise Unreadable("has no pages") from error  # PDFium's error code is stale then.
        if getattr(error, "err_code", 0) in (_PASSWORD, _SECURITY):
            raise Unreadable("encrypted (a password is needed)") from error
        raise Unreadable(f"broken PDF ({error})") from error
    if not len(document):
        document.close()
        raise Unreadable("has no pages")
    return document


# --- lines ---


def _page_lines(page: pypdfium2.PdfPage) -> list[_Line]:
    """Return the lines of a page, without places where it has very many characters."""
    textpage = page.get_textpage()
    try:
        if textpage.count_chars() <= _MOST_PLACED:
            return [_line(signs) for signs in _sign_lines(textpage)]
        texts = filter(None, map(str.strip, textpage.get_text_range().split("\n")))
        return [_Line((_Cell(text, 0, 0),), 0, 0) for text in texts]
    finally:
        textpage.close()


def _sign_lines(textpage: pypdfium2.PdfTextPage) -> Iterator[list[_Sign]]:
    """Yield the characters of each line in the order in which they are drawn.

    PDFium also ends a line at raised characters; one that stands next to the last continues it.
    """
    signs: list[_Sign] = []
    ends = spaced = False
    for index in range(textpage.count_chars()):
        text = chr(raw.FPDFText_GetUnicode(textpage, index))
        if text == "\0":
            continue
        if text.isspace():
            ends, spaced = ends or text in "\r\n", True
            continue
        left, bottom, right, top = textpage.get_charbox(index, loose=True)
        sign = _Sign(text, left, bottom, right, top, spaced)
        if signs and ends and not _is_next_to(signs[-1], sign):
            yield signs
            signs = []
        elif signs and ends:
            sign = sign._replace(spaced=sign.left - signs[-1].right > 0.15 * sign.height)
        signs.append(sign)
        ends = spaced = False
    if signs:
        yield signs


def _is_next_to(sign: _Sign, other: _Sign) -> bool:
    """Say whether the other character stands right of the first, at least partly level with it."""
    height = min(sign.height, other.height)
    gap = other.left - sign.right
    overlap = min(sign.top, other.top) - max(sign.bottom, other.bottom)
    level = abs(sign.bottom - other.bottom) < 0.1 * height
    return height > 0 and gap > -0.3 * height and (level or overlap > 0.4 * height > gap / 4)


def _line(signs: Sequence[_Sign]) -> _Line:
    """Join characters into a line, raised ones as `^2`."""
    heights = Counter(round(sign.height, 1) for sign in signs)
    height = max(heights, key=lambda each: (heights[each], each))
    bottoms = Counter(round(sign.bottom, 1) for sign in signs if round(sign.height, 1) == height)
    bottom = bottoms.most_common(1)[0][0]
    width = statistics.fmean(sign.right - sign.left for sign in signs)
    gap = max(_CELL_GAP * height, _CELL_GAP_WIDTHS * width)

    def is_raised(sign: _Sign) -> bool:
        return sign.height < 0.85 * height and sign.bottom > bottom + 0.15 * height

    cells: list[_Cell] = []
    before: _Sign | None = None
    for up, group in groupby(signs, key=is_raised):
        run = list(group)
        words = "".join(sign.text for sign in run)
        mark = raised(words).removesuffix(words) if up else ""
        for sign in run:
            if before is None or (
                sign.left - before.right > gap and not _MARKER.match(cells[-1].text)
            ):
                cells.append(_Cell(mark + sign.text, sign.left, sign.right))
            else:
                text = f"{cells[-1].text}{' ' if sign.spaced else ''}{mark}{sign.text}"
                cells[-1] = _Cell(text, cells[-1].left, sign.right)
            before, mark = sign, ""
    whole = (cell._replace(text=_with_whole_characters(cell.text)) for cell in cells)
    return _Line(tuple(whole), bottom, height)


def _with_whole_characters(text: str) -> str:
    """Return the text with its pairs of surrogates joined."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# --- running heads ---


def _without_running_heads(pages: Sequence[list[_Line]]) -> list[list[_Line]]:
    """Drop page numbers, and first and last lines that repeat on the pages.

    A line repeats where three pages have it with their own number, or half of the pages have it
    unchanged. The first page keeps a line of several cells, which may be the names of columns.
    """
    edges = Counter(
        key
        for number, page in enumerate(pages)
        for line in page[:1] + page[-1:]
        for key in _keys(line, number)
    )
    half = max(3, len(pages) / 2)
    repeated = {key for key, count in edges.items() if count >= (3 if "\0" in key else half)}

    def runs(line: _Line, number: int) -> bool:
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


def _keys(line: _Line, page: int) -> set[str]:
    """Return the text of a line, unchanged and with its numbers relative to the page's."""
    numbered = _SMALL_NUMBER.sub(lambda number: f"\0{int(number[0]) - page}", line.text)
    return {line.text, numbered}


# --- tables and columns ---


def _page_texts(pages: Sequence[list[_Line]], written: list[WrittenTables]) -> list[str]:
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
                written.append(write_table(cells, names=header if continues else ()))
                parts.append("\n".join(written[-1].lines))
                continue
            header = []
            parts += [_paragraphs(column, usual) for column in columns]
        texts.append("\n\n".join(filter(None, parts)))
    return texts


class _Block(NamedTuple):
    lines: Sequence[_Line]
    is_table: bool


def _blocks(lines: Sequence[_Line]) -> Iterator[_Block]:
    lines = _with_late_cells(lines)
    text: list[_Line] = []
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


def _with_late_cells(lines: Sequence[_Line]) -> list[_Line]:
    """Move each cell to its row that is drawn after all lines of the cell left of it."""
    placed: list[_Line] = []
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


def _table_end(lines: Sequence[_Line], at: int) -> int:
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


def _aligned(line: _Line, other: _Line) -> bool:
    near = 0.5 * line.height
    return len(line.cells) == len(other.cells) and all(
        abs(a.left - b.left) < near for a, b in zip(line.cells, other.cells, strict=True)
    )


def _rows(lines: Sequence[_Line]) -> list[list[str]]:
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


def _text_columns(rows: Sequence[Sequence[str]]) -> list[list[_Line]]:
    """Return the columns where they are running text, and nothing where they are a table."""
    columns = [[cell for cell in column if cell] for column in zip(*rows, strict=True)]
    for column in columns:
        if len(column) < 3 or statistics.median(len(cell.split()) for cell in column) < 3:
            return []
    return [[_Line((_Cell(cell, 0, 0),), 0, 0) for cell in column] for column in columns]


# --- paragraphs ---


def _usual_gap(lines: Sequence[_Line]) -> float:
    gaps = [a.bottom - b.bottom for a, b in pairwise(lines) if a.bottom > b.bottom]
    return statistics.median_low(gaps) if gaps else 0.0


def _paragraphs(lines: Sequence[_Line], usual: float) -> str:
    """Join lines into paragraphs with blank lines between; `usual` is the gap between lines."""
    width = max(line.right for line in lines)
    text = lines[0].text
    for above, line in pairwise(lines):
        text += _between(above, line, usual, width) + line.text
    text = _HYPHEN.sub("", _SOFT_BREAK.sub("", text.replace("\r", "")))
    text = re.sub(r"(?<!\n)\n(?!\n)", " ", _BETWEEN_HAN.sub("", text))
    return clean(text.replace("\v", "\n"))


def _between(above: _Line, line: _Line, usual: float, width: float) -> str:
    """Return a blank line before a paragraph, `\\v` for a hard line break, or a newline."""
    gap = above.bottom - line.bottom
    if _BULLET.match(line.text) and 0 <= gap < 2 * usual:
        return "\v"
    if usual and (gap > min(usual * 1.35, 4 * above.height) or gap < -usual):
        return "\n\n"
    full = not width or above.right > width * 0.85
    is_hard = not full and (_ENDS.search(above.text) or not line.text[:1].islower())
    return "\v" if is_hard or 0 < abs(gap) < 0.2 * usual else "\n"


def _joint(texts: Sequence[str], number: int) -> str:
    """Return a space where a sentence continues from the previous page, else a blank line."""
    above = next((text for text in reversed(texts[:number]) if text), "")
    runs_on = above and not _ENDS.search(above) and texts[number][:1].islower()
    return " " if runs_on else "\n\n"
