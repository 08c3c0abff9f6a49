"""PDF files, page by page.

PDFium reads the characters and their boxes. Boxes of one height make up a line, wide blanks cut it
into cells, and lines whose cells stand below each other make up a table or columns of text. Other
lines are joined into paragraphs. Page numbers and running heads are dropped.
"""

import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import pypdfium2
from pypdfium2 import raw

from tasks.load.tables import WrittenTables, placed, write_table
from tasks.load.text import (
    LARGEST_DOCUMENT,
    PageText,
    Unreadable,
    clean,
    join_pages,
    one_line,
    raised,
)

_PAGE_NUMBER = re.compile(
    r"(?:page|seite|p\.|第)?\s*+[-–—]?\s*+(?:\d{1,4}|[ivxlc]{1,6})\s*+[-–—]?\s*+(?:(?:of|/|von)\s*\d{1,4}|页)?",
    re.IGNORECASE,
)
_SMALL_NUMBER = re.compile(r"\b\d{1,3}\b")  # a year is no page number
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
_MOST_PLACED = 100_000  # characters of a page whose boxes are asked for, at some 5 µs each
_CELL_GAP = 0.6  # of a line's height: words are closer to each other than cells
_CELL_GAP_WIDTHS = 1.6  # of a character's width: a blank of a typewriter's font is one wide
_LINES_OF_A_ROW, _MOST_CELLS = 12, 100
_PAGELESS = re.compile(
    rb"/Type\s*/Pages\b[^>]{0,200}/Count\s+0\b|/Count\s+0\b[^>]{0,200}/Type\s*/Pages\b"
)
_PASSWORD, _SECURITY = 4, 5  # FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY


class _Sign(NamedTuple):
    """A character with its box; `spaced` where a blank stands before it."""

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
    """A part of a line that wide blanks keep apart."""

    text: str
    left: float
    right: float


class _Line(NamedTuple):
    """A line of a page; `bottom`, in points, grows upwards."""

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
    """The text of all pages, what is filled into forms included, and the title of the metadata.

    Raises `Unreadable` for an encrypted or broken file and for one that holds no text.
    """
    document = _opened(data)
    pages: list[list[_Line]] = []
    characters = 0
    try:
        for number in range(len(document)):
            page = document[number]
            # What is filled in or typed onto a page becomes text of it.
            if raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY) == raw.FLATTEN_SUCCESS:
                page.close()
                page = document[number]
            pages.append(_page_lines(page))
            page.close()
            characters += sum(len(cell.text) for line in pages[-1] for cell in line.cells)
            if characters > LARGEST_DOCUMENT:  # many pages may show one content
                raise Unreadable("more than 100 MB of text: divide it")
        title = one_line(clean(document.get_metadata_dict().get("Title", "")))
    except pypdfium2.PdfiumError as error:
        raise Unreadable(f"broken PDF ({error})") from error
    finally:
        document.close()
    written = list[WrittenTables]()
    texts = _page_texts(_without_running_heads(pages), written)
    if not any(texts):  # pages that differ in their number alone: it is all they say
        texts = _page_texts(pages, written)
    if not any(texts):
        raise Unreadable("no text (a scan has to be recognised first)")
    joints = [_joint(texts, number) for number in range(len(texts))]
    text, starts = join_pages(texts, joints)
    title = "" if _NO_TITLE.match(title) else title
    return PageText(text=text, title=title, pages=starts, tables=placed(text, written))


def _opened(data: bytes) -> pypdfium2.PdfDocument:
    try:
        document = pypdfium2.PdfDocument(data)
        document.init_forms()
    except pypdfium2.PdfiumError as error:
        # PDFium has no error for a file without pages: its last one may be of another file.
        if _PAGELESS.search(data):
            raise Unreadable("has no pages") from error
        if getattr(error, "err_code", 0) in (_PASSWORD, _SECURITY):
            raise Unreadable("encrypted (a password is needed)") from error
        raise Unreadable(f"broken PDF ({error})") from error
    if not len(document):
        document.close()
        raise Unreadable("has no pages")
    return document


# --- lines ---------------------------------------------------------------------------------------


def _page_lines(page: pypdfium2.PdfPage) -> list[_Line]:
    """The lines of a page; without places where it has more characters than a page for readers."""
    textpage = page.get_textpage()
    try:
        if textpage.count_chars() <= _MOST_PLACED:
            return [_line(signs) for signs in _sign_lines(textpage)]
        texts = filter(None, map(str.strip, textpage.get_text_range().split("\n")))
        return [_Line((_Cell(text, 0, 0),), 0, 0) for text in texts]
    finally:
        textpage.close()


def _sign_lines(textpage: pypdfium2.PdfTextPage) -> Iterator[list[_Sign]]:
    """The characters of each line as they are drawn.

    PDFium ends a line at raised characters too: what stands beside the one before goes on with it.
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
        if signs and ends and not _beside(signs[-1], sign):
            yield signs
            signs = []
        elif signs and ends:
            sign = sign._replace(spaced=sign.left - signs[-1].right > 0.15 * sign.height)
        signs.append(sign)
        ends = spaced = False
    if signs:
        yield signs


def _beside(sign: _Sign, other: _Sign) -> bool:
    """Whether a character stands to the right of another one, on its height or partly so."""
    height = min(sign.height, other.height)
    gap = other.left - sign.right
    overlap = min(sign.top, other.top) - max(sign.bottom, other.bottom)
    level = abs(sign.bottom - other.bottom) < 0.1 * height
    return height > 0 and gap > -0.3 * height and (level or overlap > 0.4 * height > gap / 4)


def _line(signs: Sequence[_Sign]) -> _Line:
    """The line that characters make up, raised ones as `^2`."""
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
    """The text, its pairs of surrogates joined."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# --- running heads -------------------------------------------------------------------------------


def _without_running_heads(pages: Sequence[list[_Line]]) -> list[list[_Line]]:
    """The pages without page numbers, and without the first or last lines that repeat.

    Three pages repeat a line with their number, or half of the pages as it stands. The names of
    columns, which may repeat so, stay on the first page.
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
    """A line as it stands, and with its numbers counted from that of the page."""
    numbered = _SMALL_NUMBER.sub(lambda number: f"\0{int(number[0]) - page}", line.text)
    return {line.text, numbered}


# --- tables and columns --------------------------------------------------------------------------


def _page_texts(pages: Sequence[list[_Line]], written: list[WrittenTables]) -> list[str]:
    """The text of each page; what is `written` of its tables is added. A table that goes on over
    pages keeps its column names.
    """
    texts = []
    header: list[str] = []  # of a table that ends the page before
    for page in pages:
        usual = _usual_gap(page)
        parts: list[str] = []
        for block in _blocks(page):
            rows = _rows(block.lines) if block.is_table else []
            columns = _text_columns(rows) if rows else [block.lines]
            if not columns:
                goes_on = not parts and len(header) == len(rows[0])
                header = header if goes_on else rows[0]
                cells = [[clean(_SOFT_BREAK.sub("", cell)) for cell in row] for row in rows]
                written.append(write_table(cells, names=header if goes_on else ()))
                parts.append("\n".join(written[-1].lines))
                continue
            header = []
            parts += [_paragraphs(column, usual) for column in columns]
        texts.append("\n\n".join(filter(None, parts)))
    return texts


class _Block(NamedTuple):
    """Lines of a page that are one table, or the text between tables."""

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
    """The lines, a cell in its row also where it is drawn after all lines of the cell before it."""
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
    """Where the table ends that begins with a line; there where none does.

    Rows have several cells and follow each other closely; a line of one cell that is closer still,
    and not below the first cell, goes on with the row above.
    """
    step, end, several = 0.0, at, 0
    for place in range(at, len(lines)):
        line = lines[place]
        gap = lines[place - 1].bottom - line.bottom if place > at else 0.0
        if place > at and not 0 < gap < (2.2 * step or 4 * line.height):
            break
        if len(line.cells) == 1:
            if (
                end == at
                or gap > 1.3 * line.height
                or line.cells[0].left <= lines[at].cells[0].right
            ):
                break
            continue
        step = max(step, gap)
        end, several = place + 1, several + 1
    return end if several > 2 or (several == 2 and _aligned(lines[at], lines[end - 1])) else at


def _aligned(line: _Line, other: _Line) -> bool:
    """Whether the cells of two lines begin below each other."""
    near = 0.5 * line.height
    return len(line.cells) == len(other.cells) and all(
        abs(a.left - b.left) < near for a, b in zip(line.cells, other.cells, strict=True)
    )


def _rows(lines: Sequence[_Line]) -> list[list[str]]:
    """The rows of a table in its columns; none where it has one column alone.

    The columns are the stretches that the lines with most cells take together.
    """
    counts = Counter(len(line.cells) for line in lines if len(line.cells) > 1)
    usual = [cells for cells, count in counts.items() if 3 * count >= counts.total()]
    most = max(usual, default=max(counts))
    columns: list[tuple[float, float]] = []
    for cell in sorted(
        (c for line in lines if len(line.cells) == most for c in line.cells), key=lambda c: c.left
    ):
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
    """The columns one after another where they are running text; none where they are a table."""
    columns = [[cell for cell in column if cell] for column in zip(*rows, strict=True)]
    if any(
        len(column) < 3 or statistics.median(len(cell.split()) for cell in column) < 3
        for column in columns
    ):
        return []
    return [[_Line((_Cell(cell, 0, 0),), 0, 0) for cell in column] for column in columns]


# --- paragraphs ----------------------------------------------------------------------------------


def _usual_gap(lines: Sequence[_Line]) -> float:
    gaps = [a.bottom - b.bottom for a, b in pairwise(lines) if a.bottom > b.bottom]
    return statistics.median_low(gaps) if gaps else 0.0


def _paragraphs(lines: Sequence[_Line], usual: float) -> str:
    """The lines as paragraphs with a blank line between; lines are usually `usual` points apart."""
    width = max(line.right for line in lines)
    text = lines[0].text
    for above, line in pairwise(lines):
        text += _between(above, line, usual, width) + line.text
    text = _HYPHEN.sub("", _SOFT_BREAK.sub("", text.replace("\r", "")))
    text = re.sub(r"(?<!\n)\n(?!\n)", " ", _BETWEEN_HAN.sub("", text))
    return clean(text.replace("\v", "\n"))


def _between(above: _Line, line: _Line, usual: float, width: float) -> str:
    """A blank line before a paragraph, a newline that is meant (`\\v`), or one that only wraps."""
    gap = above.bottom - line.bottom
    if _BULLET.match(line.text) and 0 <= gap < 2 * usual:
        return "\v"
    if usual and (gap > min(usual * 1.35, 4 * above.height) or gap < -usual):
        return "\n\n"
    full = not width or above.right > width * 0.85
    is_meant = not full and (_ENDS.search(above.text) or not line.text[:1].islower())
    return "\v" if is_meant or 0 < abs(gap) < 0.2 * usual else "\n"


def _joint(texts: Sequence[str], number: int) -> str:
    """A space where a sentence runs on from the page before, else a blank line."""
    above = next((text for text in reversed(texts[:number]) if text), "")
    runs_on = above and not _ENDS.search(above) and texts[number][:1].islower()
    return " " if runs_on else "\n\n"
