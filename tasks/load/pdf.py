"""PDF files, page by page.

PDFium reads the characters and tells where each stands. Characters make up lines, with raised ones
marked, and lines that leave the same space blank make up tables or columns of text. Other lines are
joined into paragraphs by the distance between them; page numbers and running heads are dropped.
"""

import bisect
import ctypes
import itertools
import math
import re
import statistics
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pypdfium2
from pypdfium2 import raw

from prompts.text.regex import regex
from tasks.load.office import is_marked, join_pages
from tasks.load.tables import Marks, WrittenTables, column_names, has_figure, placed, write_table
from tasks.load.text import LARGEST_DOCUMENT, PageText, Unreadable, clean, one_line

_FIGURES = regex(r"\b[0-9]{1,5}\b")
_PAGE_NUMBER = regex(
    r"(?:page|seite|p\.|第)?\s*+[-–—]?\s*+(?:\d{1,4}|[ivxlc]{1,6})\s*+[-–—]?\s*+(?:(?:of|/|von)\s*\d{1,4}|页)?",
    re.IGNORECASE,
)
_SOFT_BREAK = regex("[\ufffe\x02\u00ad][\n ]?")
_HYPHEN = regex(r"(?<=[^\W\d_]{2})-\n(?=[a-zà-ÿ]{2})")
_BULLET = regex(r"[•▪◦‣●\-–*]\s|\(?\d{1,3}[.)]\s|\(?[a-z]\)\s")
_ENDS = regex(r"[.!?:;。！？：；]['\"”’)\]]*$")
_NO_TITLE = regex(
    r"^(?:\(?(?:anonymous|unspecified|untitled|no title)\)?(?: document)?[ \d]*"
    r"|microsoft (?:word|excel|powerpoint) - .*|(?:document|presentation|slide) ?\d*|about:blank"
    r"|powerpoint presentation|.*\.(?:docx?|pdf|tex|dvi|indd|qxd|pptx?|xlsx?))$",
    re.IGNORECASE,
)
_HYPHENS = ("\ufffe", "\x02", "\u00ad")
# Of an item of a list, or a sign of money: it goes with what follows.
_MARKER = regex(r"(?:[•▪◦‣●\-–*]|\(?\d{1,3}[.)]|\(?[a-z]\)|(?:US|HK|[CA])?[$€£¥])$")
_STOP_FIRST = regex(r"(?<=\s)([.:!?؟،,;])(\d(?:[\d.,/]*\d)?)(?=\s|$)")
# Characters whose places are asked for: it takes some 5 µs for each.
_MOST_PLACED_OF_A_PAGE, _MOST_PLACED = 100_000, 10_000_000
_MOST_LINES_OF_A_ROW, _MOST_CELLS = 12, 100
# Cells are farther apart than words: by so much of a line's height and of the width of its signs.
# A blank of Courier is one sign wide, columns of a table set by TeX are 1.2 of its font apart.
_CELL_GAP, _CELL_GAP_ADVANCES = 0.6, 1.6
_PAGELESS = regex(rb"/Type\s*/Pages\b[^>]{0,200}/Count\s+0\b|/Count\s+0\b[^>]{0,200}/Type\s*/Pages\b")
_FILLED_IN = (
    raw.FPDF_FORMFIELD_RADIOBUTTON,
    raw.FPDF_FORMFIELD_COMBOBOX,
    raw.FPDF_FORMFIELD_LISTBOX,
    raw.FPDF_FORMFIELD_TEXTFIELD,
)
_PASSWORD, _SECURITY = 4, 5  # FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY


class _Cell(NamedTuple):
    """A part of a line that blanks keep apart from the next one."""

    text: str
    left: float
    right: float


class _Line(NamedTuple):
    text: str
    top: float  # of what the letters stand on
    left: float
    right: float
    height: float
    cells: tuple[_Cell, ...]


class _Sign(NamedTuple):
    """A character as it stands on the page."""

    text: str
    base: float
    left: float
    right: float
    bottom: float
    top: float
    spaced: bool = False  # a blank stands before it

    @property
    def height(self) -> float:
        """The height of its font."""
        return self.top - self.bottom


def read_pdf(data: bytes) -> PageText:
    """The text of all pages, each with its filled-in fields at its end, and the title of the
    metadata.

    Raises `Unreadable` for an encrypted or broken file and for one that holds no text.
    """
    document = _opened(data)
    try:
        lines, fields = list[list[_Line]](), list[list[str]]()
        characters, known = 0, set[str]()
        for number in range(len(document)):
            page = document[number]
            room = min(_MOST_PLACED_OF_A_PAGE, _MOST_PLACED - characters)
            lines.append(_page_lines(page, room))
            filled_in = dict.fromkeys(_fields(document, page))
            fields.append([field for field in filled_in if field not in known])
            page.close()
            known.update(fields[-1])
            characters += sum(len(line.text) for line in lines[-1]) + sum(map(len, fields[-1]))
            if characters > LARGEST_DOCUMENT:
                # Many pages may show one content.
                raise Unreadable("more than 100 MB of text: divide it")
        title = one_line(clean(document.get_metadata_dict().get("Title", "")))
    except pypdfium2.PdfiumError as error:
        raise Unreadable(f"broken PDF ({error})") from error
    finally:
        document.close()
    written = list[WrittenTables]()
    texts = _page_texts(_without_running_heads(lines), written)
    if not any(texts):  # pages that differ in nothing but their number: it is all they say
        texts = _page_texts(lines, written)
    filled = zip(texts, map("\n".join, fields), strict=True)
    texts = ["\n\n".join(filter(None, parts)) for parts in filled]
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


def _page_lines(page: pypdfium2.PdfPage, room: int) -> list[_Line]:
    """The lines of a page; without their places where it has more characters than there is room
    for, as no page for readers has."""
    textpage = page.get_textpage()
    try:
        if textpage.count_chars() <= room:
            return [_line(signs) for signs in _sign_lines(textpage)]
        texts = filter(None, map(str.strip, textpage.get_text_range().split("\n")))
        return [_Line(text, 0, 0, 0, 0, (_Cell(text, 0, 0),)) for text in texts]
    finally:
        textpage.close()


def _sign_lines(textpage: pypdfium2.PdfTextPage) -> Iterator[list[_Sign]]:
    """The characters of each line, in the order in which they are drawn.

    PDFium tells where lines end. It ends them at raised signs too: what stands beside the sign
    before is of the same line.
    """
    signs: list[_Sign] = []
    ends, spaced = False, False
    for sign in _signs(textpage):
        if isinstance(sign, str):
            ends, spaced = ends or sign == "\n", spaced or sign == " "
            continue
        apart = bool(signs) and not _beside(signs[-1], sign)
        if apart and (ends or signs[-1].text in _HYPHENS):
            yield signs
            signs = []
        elif signs and ends:
            spaced = spaced or sign.left - signs[-1].right > 0.15 * sign.height
        signs.append(sign._replace(spaced=True) if signs and spaced else sign)
        ends, spaced = False, False
    if signs:
        yield signs


def _signs(textpage: pypdfium2.PdfTextPage) -> Iterator[_Sign | str]:
    """The characters of a page; a blank and the end of a line have no place of their own."""
    x, base, box = ctypes.c_double(), ctypes.c_double(), raw.FS_RECTF()
    edges = (math.nan, math.nan)
    for index in range(textpage.count_chars()):
        text = chr(raw.FPDFText_GetUnicode(textpage, index))
        if text in "\r\n":
            yield "\n"
        elif text.isspace():
            yield " "
        elif text != "\0":
            raw.FPDFText_GetLooseCharBox(textpage, index, box)
            if (box.bottom, box.top) != edges:  # else it stands where the one before does
                edges = (box.bottom, box.top)
                raw.FPDFText_GetCharOrigin(textpage, index, x, base)
            yield _Sign(text, base.value, box.left, box.right, *edges)


def _beside(sign: _Sign, other: _Sign) -> bool:
    """Whether a sign goes on with the line of the one before: it stands on the same height, or
    close to it and partly so."""
    height = min(sign.height, other.height)
    gap = other.left - sign.right
    overlap = min(sign.top, other.top) - max(sign.bottom, other.bottom)
    level = abs(sign.base - other.base) < 0.1 * height
    return height > 0 and gap > -0.3 * height and (level or (overlap > 0.4 * height > gap / 4))


def _line(signs: Sequence[_Sign]) -> _Line:
    """The line that characters make up; raised ones are written `^2`."""
    height = max(Counter(round(sign.height, 1) for sign in signs).items(), key=_second)[0]
    bases = Counter(round(sign.base, 1) for sign in signs if round(sign.height, 1) == height)
    base = bases.most_common(1)[0][0]
    advance = statistics.fmean(sign.right - sign.left for sign in signs)
    gap = max(_CELL_GAP * height, _CELL_GAP_ADVANCES * advance)
    if any(_is_rtl(sign.text) for sign in signs):
        gap = math.inf
    cells: list[_Cell] = []
    text, left, before = "", signs[0].left, signs[0]

    def ends_cell() -> None:
        nonlocal text
        cells.append(_Cell(_whole(text), left, before.right))
        text = ""

    for raised, group in itertools.groupby(signs, key=lambda sign: _is_raised(sign, base, height)):
        run = list(group)
        words = "".join(sign.text for sign in run)
        mark = "^" if raised and is_marked(words, text) else ""
        for sign in run:
            if sign is not signs[0] and sign.left - before.right > gap and not _MARKER.match(text):
                ends_cell()
                left = sign.left
            text += (" " if text and sign.spaced else "") + mark + sign.text
            mark, before = "", sign
    ends_cell()
    whole = " ".join(cell.text for cell in cells)
    edges = min(sign.left for sign in signs), max(sign.right for sign in signs)
    return _Line(_with_signs_after(whole) if gap == math.inf else whole, base, *edges, height, tuple(cells))


def _second(pair: tuple[float, int]) -> tuple[int, float]:
    return pair[1], pair[0]


def _is_raised(sign: _Sign, base: float, height: float) -> bool:
    return sign.height < 0.85 * height and sign.base > base + 0.15 * height


def _is_rtl(text: str) -> bool:
    return unicodedata.bidirectional(text) in ("R", "AL")


def _with_signs_after(text: str) -> str:
    """A line that is read from the right, with what stands after a figure in its place."""
    return _STOP_FIRST.sub(r"\2\1", text)


def _whole(text: str) -> str:
    """The text, its pairs of surrogates joined."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# --- forms ---------------------------------------------------------------------------------------


def _fields(document: pypdfium2.PdfDocument, page: pypdfium2.PdfPage) -> Iterator[str]:
    """What is filled into the fields of a page, as `name: value`, and what is typed onto it."""
    for index in range(raw.FPDFPage_GetAnnotCount(page)):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        hidden = raw.FPDFAnnot_GetFlags(annotation) & raw.FPDF_ANNOT_FLAG_HIDDEN
        if kind == raw.FPDF_ANNOT_FREETEXT and not hidden:
            yield _said(raw.FPDFAnnot_GetStringValue, annotation, b"Contents")
        elif kind == raw.FPDF_ANNOT_WIDGET and document.formenv and not hidden:
            form = document.formenv.raw
            name = _said(raw.FPDFAnnot_GetFormFieldAlternateName, form, annotation)
            name = name or _said(raw.FPDFAnnot_GetFormFieldName, form, annotation)
            value = _value_of(form, annotation)
            if value:
                yield f"{name}: {value}" if name else value
        raw.FPDFPage_CloseAnnot(annotation)


def _value_of(form: object, annotation: object) -> str:
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind == raw.FPDF_FORMFIELD_CHECKBOX:
        return "yes" if raw.FPDFAnnot_IsChecked(form, annotation) else "no"
    secret = raw.FPDFAnnot_GetFormFieldFlags(form, annotation) & raw.FPDF_FORMFLAG_TEXT_PASSWORD
    if kind not in _FILLED_IN or (kind == raw.FPDF_FORMFIELD_TEXTFIELD and secret):
        return ""
    return _said(raw.FPDFAnnot_GetFormFieldValue, form, annotation)


def _said(function: Callable[..., int], *arguments: object) -> str:
    """The text that a function of PDFium writes into a buffer, on one line."""
    length = function(*arguments, None, 0)
    buffer = ctypes.create_string_buffer(length)
    function(*arguments, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), length)
    return one_line(clean(buffer.raw.decode("utf-16-le", "replace").rstrip("\0")))


# --- running heads -------------------------------------------------------------------------------


def _without_running_heads(pages: Sequence[list[_Line]]) -> list[list[_Line]]:
    """Drops page numbers, and first or last lines that three pages repeat with their number or half
    as they are. The names of columns, which may be repeated so, stay on the first page."""
    edges = Counter(
        key
        for number, page in enumerate(pages)
        for line in (page[:1] + page[-1:])
        for key in _keys(line, number, len(pages))
    )
    enough = {"same": max(3, len(pages) / 2), "first": 3, "last": 3}
    repeated = {key for key, count in edges.items() if count >= enough[key[0]]}
    bodies = []
    for number, page in enumerate(pages):
        body = list(page)
        for place in (0, -1):
            while body and len(pages) > 1:
                keys = repeated & _keys(body[place], number, len(pages))
                names = number == place == 0 and len(body[0].cells) > 1
                if names and keys == {("same", body[0].text)}:
                    break
                if not keys and not _PAGE_NUMBER.fullmatch(body[place].text):
                    break
                body.pop(place)
        bodies.append(body)
    return bodies


def _keys(line: _Line, page: int, pages: int) -> set[tuple[str, str]]:
    """What a running head has in common with those of other pages: its words, or those around a page number. A year is
    none: "Sales in 2021", "Sales in 2022" say something."""
    keys = {("same", line.text)}
    figures = [figure for figure in _FIGURES.finditer(line.text) if int(figure.group()) <= max(999, pages)]
    for name, match in zip(("first", "last"), figures[:1] + figures[-1:], strict=False):
        keys.add(
            (
                name,
                f"{line.text[: match.start()]}#{int(match.group()) - page}{line.text[match.end() :]}",
            )
        )
    return keys


# --- tables and columns --------------------------------------------------------------------------


class _TextBlock(NamedTuple):
    """Lines of text; `right` is where the column ends, or 0 where the page does not have several."""

    lines: Sequence[_Line]
    right: float = 0.0


class _Table(NamedTuple):
    """Rows of cells, the merged columns of each row, and where the columns begin on the page."""

    rows: list[list[str]]
    merged: dict[int, list[tuple[int, int]]]
    gutters: list[tuple[float, float]]


def _page_texts(pages: Sequence[list[_Line]], written: list[WrittenTables]) -> list[str]:
    """The text of each page; what is `written` of its tables is added. A table that goes on at the
    top of a page has the column names of the page before."""
    texts = []
    last: _Table | None = None
    names: Sequence[str] = ()
    for page in pages:
        parts = list[str]()
        usual, right = _usual_gap(page), max((line.right for line in page), default=0.0)
        for block in _blocks(page, last.gutters if last else ()):
            if isinstance(block, _Table):
                goes_on = not parts and last is not None and _same_columns(last, block)
                names = names if goes_on else ()
                written.append(_table_text(block, names))
                parts.append("\n".join(written[-1].lines))
                names = names or _names(block)
                last = block
            else:
                parts.append(_paragraphs(block.lines, usual, block.right or right))
                last = None
        texts.append("\n\n".join(filter(None, parts)))
    return texts


def _names(table: _Table) -> Sequence[str]:
    """The names of a table's columns, where each but the first has one and figures stand below."""
    names = column_names(table.rows, table.merged)
    whole = len(names) == len(table.gutters) + 1 and all(names[1:])
    return names if whole and any(map(has_figure, table.rows[1:])) else ()


def _table_text(table: _Table, names: Sequence[str]) -> WrittenTables:
    rows = [[clean(_SOFT_BREAK.sub("", cell)) for cell in row] for row in table.rows]
    if names or _names(table):
        return write_table(rows, Marks(merged=table.merged), names)
    return WrittenTables([" | ".join(filter(None, row)) for row in rows if row], [])


def _same_columns(table: _Table, other: _Table) -> bool:
    pairs = zip(table.gutters, other.gutters, strict=False)
    return len(table.gutters) == len(other.gutters) and all(a < d and c < b for (a, b), (c, d) in pairs)


def _blocks(lines: Sequence[_Line], open_gutters: Sequence[tuple[float, float]]) -> Iterator[_TextBlock | _Table]:
    """What a page consists of: lines of text, columns of text, and tables; a table that is open at
    the end of the page before may go on at the top."""
    lines = _with_late_cells(lines)
    text: list[_Line] = []
    at = 0
    while at < len(lines):
        end, gutters = _run(lines, at, () if at else open_gutters)
        if not gutters:
            text.append(lines[at])
            at += 1
            continue
        if text:
            yield _TextBlock(text)
            text = []
        if columns := _text_columns(lines[at:end], gutters):
            yield from columns
        else:
            yield _table(lines[at:end], gutters)
        at = end
    if text:
        yield _TextBlock(text)


def _with_late_cells(lines: Sequence[_Line]) -> list[_Line]:
    """The lines, with cells in the row where they stand if they are drawn late: after the cell
    before was drawn to its end, or beside one that stands for several rows."""
    placed: list[_Line] = []
    for line in lines:
        first = max(0, len(placed) - _MOST_LINES_OF_A_ROW)
        several = len(line.cells) > 1
        for place in range(len(placed) - 1, first - 1, -1):
            other = placed[place]
            beside = line.left > other.right and (several or len(other.cells) > 1)
            level = abs(other.top - line.top) < 0.5 * line.height
            if beside and level and len(other.cells) < _MOST_CELLS:
                placed[place] = _side_by_side(other, line)
                break
        else:
            above = bool(placed) and 0 < line.top - placed[-1].top < 2 * line.height
            if above and several and line.left > placed[-1].right:
                placed.insert(len(placed) - 1, line)
            else:
                placed.append(line)
    return placed


def _side_by_side(line: _Line, other: _Line) -> _Line:
    text = f"{line.text} {other.text}"
    return line._replace(text=text, right=other.right, cells=line.cells + other.cells)


def _run(
    lines: Sequence[_Line], at: int, open_gutters: Sequence[tuple[float, float]]
) -> tuple[int, list[tuple[float, float]]]:
    """Up to where the lines from one on have blank space in common between their cells, and where
    that is; nowhere if they are no table.

    A line of one cell goes on with the row above it if it leaves that space blank.
    """
    gutters = _gaps(lines[at])[1:-1]
    goes_on = _common(open_gutters, _gaps(lines[at]), lines[at].height) if gutters else []
    if goes_on and len(goes_on) == len(open_gutters):
        gutters = goes_on
    else:
        goes_on = []
    end, alone, step = at + 1, 0, 0.0
    rows = [lines[at]]
    for place in range(at + 1, len(lines) if gutters else 0):
        above, line = lines[place - 1 : place + 1]
        several, gap = len(line.cells) > 1, above.top - line.top
        apart = (2.2 if several else 1.5) * step or 4 * line.height
        if not 0 < gap < apart:
            break
        common = _common(gutters, _gaps(line), line.height)
        if several:
            wide = any(right - left > 0.5 * line.height for left, right in common)
            if not wide or (gap > 1.5 * step > 0 and len(common) < len(gutters)):
                break
            gutters, end, alone, step = common, place + 1, 0, max(step, gap)
            rows.append(line)
            continue
        wrapped = line.left > gutters[0][0]  # the text of another column than the first
        alone += 1 if wrapped else _MOST_LINES_OF_A_ROW // 2
        if alone > _MOST_LINES_OF_A_ROW or len(common) < len(gutters):
            break
        if end == place and wrapped and gap < 1.3 * line.height:
            end = place + 1
    return end, gutters if goes_on or _is_aligned(rows) else []


def _is_aligned(rows: Sequence[_Line]) -> bool:
    """Whether rows with blank space in common are a table, and not two lines of text that happen to
    have wide blanks: there are three, or two with as many cells that begin or end alike."""
    if len(rows) != 2:
        return len(rows) > 2
    above, below = (row.cells for row in rows)
    near = 0.5 * rows[0].height
    return len(above) == len(below) and all(
        abs(a.left - b.left) < near or (abs(a.right - b.right) < near and a is not above[-1])
        for a, b in zip(above, below, strict=True)
    )


def _gaps(line: _Line) -> list[tuple[float, float]]:
    """The blank space of a line, from before its first cell to after its last one."""
    edges = [-math.inf, *(edge for cell in line.cells for edge in cell[1:]), math.inf]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _common(
    gaps: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]], height: float
) -> list[tuple[float, float]]:
    """The blank space that two lines have in common."""
    common = []
    rest = iter(others)
    other = next(rest)
    for left, right in gaps:
        while other[1] <= left and (following := next(rest, None)):
            other = following
        while other[0] < right:
            both = max(left, other[0]), min(right, other[1])
            if both[1] - both[0] > 0.25 * height:
                common.append(both)
            if other[1] >= right or not (following := next(rest, None)):
                break
            other = following
    return common


def _in_columns(line: _Line, gutters: Sequence[tuple[float, float]]) -> list[tuple[int, int]]:
    """The first and last column of each cell."""
    middles = [(left + right) / 2 for left, right in gutters]
    return [(bisect.bisect_right(middles, cell.left), bisect.bisect_left(middles, cell.right)) for cell in line.cells]


def _text_columns(run: Sequence[_Line], gutters: Sequence[tuple[float, float]]) -> list[_TextBlock]:
    """The lines column after column, if they are text in columns: long lines of three words and
    more; else nothing."""
    columns: list[list[_Line]] = [[] for _ in range(len(gutters) + 1)]
    for line in run:
        for place, group in itertools.groupby(
            zip(line.cells, _in_columns(line, gutters), strict=True), key=lambda pair: pair[1][0]
        ):
            cells = [cell for cell, _ in group]
            text = " ".join(cell.text for cell in cells)
            whole = _Cell(text, cells[0].left, cells[-1].right)
            columns[place].append(_Line(text, line.top, whole.left, whole.right, line.height, (whole,)))
    for column in columns:
        if len(column) < 3:
            return []
        width = max(line.right for line in column) - min(line.left for line in column)
        words = statistics.median(len(line.text.split()) for line in column)
        filled = statistics.median(line.right - line.left for line in column)
        if words < 3 or filled < 0.7 * width:
            return []
    return [_TextBlock(column, max(line.right for line in column)) for column in columns]


def _table(run: Sequence[_Line], gutters: Sequence[tuple[float, float]]) -> _Table:
    """The rows of a table; a line that stands closer to the one above than rows do goes on with its
    cells."""
    counts = Counter(len(line.cells) for line in run if len(line.cells) > 1)
    common = [cells for cells, lines in counts.items() if 3 * lines >= counts.total()]
    usual = max(common, default=max(counts))
    full = [line for line in run if len(line.cells) == usual]
    fine = _gaps(full[0])[1:-1]
    for line in full[1:]:
        fine = _common(fine, _gaps(line), line.height)
    if len(gutters) < len(fine) == usual - 1:  # cells of other lines stand over several columns
        gutters = fine
    steps = [above.top - line.top for above, line in itertools.pairwise(run) if len(line.cells) == usual]
    step = statistics.median_low(steps) if steps else 0.0
    rows: list[list[str]] = []
    merged: dict[int, list[tuple[int, int]]] = {}
    lowest: dict[int, float] = {}  # of each column, where the text of this row ends
    for above, line in itertools.pairwise([run[0], *run]):
        places = _in_columns(line, gutters)
        tight = bool(rows) and above.top - line.top < 0.8 * step
        if not tight or any(lowest.get(first, 0.0) - line.top > 0.8 * step for first, _ in places):
            if len(places) == 1 and len(rows) > 2:
                rows.append([])  # a line of one cell may stand over another table
            rows.append([""] * (len(gutters) + 1))
            lowest = {}
        for cell, (first, last) in zip(line.cells, places, strict=True):
            rows[-1][first] = f"{rows[-1][first]} {cell.text}".strip()
            lowest[first] = line.top
            if last > first:
                merged.setdefault(len(rows) - 1, []).append((first, last))
    rows = [row if any(row[1:]) else row[:1] for row in rows]
    return _Table(rows, merged, list(gutters))


# --- paragraphs ----------------------------------------------------------------------------------


def _usual_gap(lines: Sequence[_Line]) -> float:
    pairs = itertools.pairwise(lines)
    gaps = [above.top - line.top for above, line in pairs if above.top > line.top]
    return statistics.median_low(gaps) if gaps else 0.0


def _paragraphs(lines: Sequence[_Line], usual: float, width: float) -> str:
    """Lines of a paragraph stay lines of their own unless the words read on; a blank line stands
    between paragraphs. Lines are usually so far apart, and reach so far to the right."""
    text = lines[0].text
    for above, line in itertools.pairwise(lines):
        text += _between(above, line, usual, width) + line.text
    text = _HYPHEN.sub("", _SOFT_BREAK.sub("", text.replace("\r", "")))
    # Wrapped lines are joined by a space (by nothing between Chinese or Japanese characters); other newlines stay.
    text = re.sub(r"(?<=[\u3000-\u9fff\uff00-\uffef])\n(?=[\u3000-\u9fff\uff00-\uffef])", "", text)
    return clean(re.sub(r"(?<!\n)\n(?!\n)", " ", text).replace("\v", "\n"))


def _between(above: _Line, line: _Line, usual: float, width: float) -> str:
    """What separates two lines: a blank line (new paragraph), a newline that is meant (\\v), or one that only wraps."""
    gap = above.top - line.top
    if _BULLET.match(line.text) and 0 < gap < 2 * usual:
        return "\v"
    if usual and (gap > min(usual * 1.35, 4 * above.height) or gap < -usual):
        return "\n\n"
    if gap and abs(gap) < 0.2 * usual:
        return "\v"
    full = not width or above.right > width * 0.85
    if _BULLET.match(line.text) or (not full and (_ENDS.search(above.text) or not line.text[:1].islower())):
        return "\v"
    return "\n"


def _joint(texts: Sequence[str], number: int) -> str:
    """A space where a sentence runs on from the page before, else a blank line."""
    above = next((text for text in reversed(texts[:number]) if text), "")
    runs_on = above and not _ENDS.search(above) and texts[number][:1].islower()
    return " " if runs_on else "\n\n"
