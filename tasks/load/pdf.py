"""Read PDF files page by page.

PDFium yields the characters and their boxes. Boxes of one height form a line, and wide gaps cut it
into cells; `layout.py` makes text of the lines. Pages without characters, and pictures on pages,
are drawn and recognised (`pictures.py`).
"""

import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import groupby
from typing import NamedTuple

import pypdfium2
from pypdfium2 import raw

from tasks.load.encodings import Unreadable
from tasks.load.layout import Cell, Line, Page, Reading, lay_out, reading_lines
from tasks.load.pictures import LONGEST_SIDE, NOT_RECOGNIZED, PictureReader, picture_reader
from tasks.load.text import LARGEST_DOCUMENT, PageText, clean, one_line, raised

_MARKER = re.compile(r"(?:[•▪◦‣●\-–*]|\(?\d{1,3}[.)]|\(?[a-z]\)|(?:US|HK|[CA])?[$€£¥])$")
_NO_TITLE = re.compile(
    r"^(?:\(?(?:anonymous|unspecified|untitled)\)?.*|microsoft .*|(?:document|presentation) ?\d*"
    r"|about:blank|.*\.(?:docx?|pdf|tex|dvi|indd|pptx?|xlsx?))$",
    re.IGNORECASE,
)
_MOST_PLACED = 100_000  # characters of a page whose boxes are read, at some 5 µs each
# The least gap between cells: a share of the line's height, and of the mean width of a character,
# for a space in a fixed-width font is one character wide.
_CELL_GAP, _CELL_GAP_WIDTHS = 0.6, 1.6
_PAGELESS = re.compile(
    rb"/Type\s*/Pages\b[^>]{0,200}/Count\s+0\b|/Count\s+0\b[^>]{0,200}/Type\s*/Pages\b"
)
_MOST_NAMED = 10  # pages
_LEAST_SIDE = 20.0  # points: a smaller picture holds no line that can be read
_MOST_PICTURES = 100  # of a page; more are strips of one
# A line of text on a scan covers half a per cent of it, a text behind a scan a tenth and more.
_COVERED = 0.03
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


class _Box(NamedTuple):
    """A rectangle in points, measured upwards."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.top - self.bottom)

    def holds(self, x: float, y: float) -> bool:
        return self.left <= x <= self.right and self.bottom <= y <= self.top

    def touches(self, other: "_Box") -> bool:
        apart = self.right < other.left or other.right < self.left
        return not (apart or self.top < other.bottom or other.top < self.bottom)

    def joined(self, other: "_Box") -> "_Box":
        return _Box(*map(min, self[:2], other[:2]), *map(max, self[2:], other[2:]))


def read_pdf(data: bytes) -> PageText:
    """Read the text of all pages, values of form fields included, and the title.

    Raises `Unreadable` where the file is encrypted, broken or without text.
    """
    document, reader = _open(data), picture_reader()
    pages, scans, seen = list[Page](), list[int](), set[str]()
    characters = 0
    try:
        for number in range(len(document)):
            page = document[number]
            # Make form fields and annotations part of the page.
            if raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY) == raw.FLATTEN_SUCCESS:
                page.close()
                page = document[number]
            lines = _page_lines(page)
            if not lines and next(page.get_objects(max_depth=1), None):
                scans.append(number + 1)
            pages.append(_with_pictures(page, lines, reader, seen))
            page.close()
            characters += sum(len(cell.text) for line in pages[-1].lines for cell in line.cells)
            if characters > LARGEST_DOCUMENT:  # Many pages may share one content.
                raise Unreadable("more than 100 MB of text: divide it")
        title = one_line(clean(document.get_metadata_dict().get("Title", "")))
    except pypdfium2.PdfiumError as error:
        raise Unreadable(f"broken PDF ({error})") from error
    finally:
        document.close()
    text = lay_out(pages)
    unread = [number for number in scans if not pages[number - 1].lines]
    reason = "no text is recognised on them" if reader.recognizes else NOT_RECOGNIZED
    if not text.text.strip():
        raise Unreadable(f"no text (scans: {reason})" if unread else "no text")
    title = "" if _NO_TITLE.match(title) else title
    shown = ", ".join(map(str, unread[:_MOST_NAMED])) + (", …" if unread[_MOST_NAMED:] else "")
    told = (f"{len(unread)} pages without text ({shown}): {reason}",) if unread else ()
    return text.model_copy(update={"title": title, "unread": told})


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


# --- pictures ---


def _with_pictures(
    page: pypdfium2.PdfPage, lines: list[Line], reader: PictureReader, seen: set[str]
) -> Page:
    """Return the lines of a page with those of its pictures in their places.

    A page without lines is one picture. `seen` holds the pictures of the document.
    """
    boxes = _pictures_on(page, lines) if reader.works else []
    if not boxes:
        return Page(lines)
    scale = LONGEST_SIDE / max(page.get_size())
    bitmap = page.render(scale=scale)
    drawn, place = bitmap.to_pil().convert("RGB"), bitmap.get_posconv(page)
    if not lines:
        readings, found = reading_lines(reader.read(drawn))
        figure = "" if found else reader.marker(drawn)
        return Page(found, readings, drawn.width, drawn.height, figure)
    kept = list[Reading]()
    for box in boxes:
        (x, y), (to_x, to_y) = place.to_bitmap(*box[:2]), place.to_bitmap(*box[2:])
        left, above = max(0, min(x, to_x)), max(0, min(y, to_y))
        picture = drawn.crop((left, above, max(x, to_x), max(y, to_y)))
        if min(picture.size) == 0 or (digest := sha256(picture.tobytes()).hexdigest()) in seen:
            continue
        seen.add(digest)
        below = drawn.height - above - picture.height
        moved = [
            one._replace(
                left=one.left + left,
                right=one.right + left,
                bottom=one.bottom + below,
                top=one.top + below,
            )
            for one in reader.read(picture)
        ]
        readings, found = reading_lines(
            [one for one in moved if not _is_written(one, lines, place, drawn.height)]
        )
        kept += readings
        shown = [_on_page(line, place, drawn.height) for line in found]
        if marker := reader.marker(picture):
            shown.append(Line((Cell(marker, box.left, box.right),), box.bottom, _LEAST_SIDE))
        at = _place_among(lines, box)
        lines[at:at] = shown
    return Page(lines, kept, drawn.width, drawn.height)


def _pictures_on(page: pypdfium2.PdfPage, lines: Sequence[Line]) -> list[_Box]:
    """Return the boxes of the pictures on a page, those that touch each other as one.

    A page without lines is one picture if it shows anything. Left out are small pictures, and those
    that text covers: the text of a scan that has been recognised before, or of a slide.
    """
    if not lines:
        shows = next(page.get_objects(max_depth=1), None) is not None
        return [_Box(0, 0, *page.get_size())] if shows else []
    boxes: list[_Box] = []
    for one in page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE]):
        bounds, container = one.get_bounds(), one.container
        while container is not None:
            bounds, container = container.get_matrix().on_rect(*bounds), container.container
        box = _Box(*bounds)
        for other in [other for other in boxes if other.touches(box)]:
            boxes.remove(other)
            box = box.joined(other)
        boxes.append(box)
        if len(boxes) > _MOST_PICTURES:
            return [_Box(0, 0, *page.get_size())]
    return [
        box
        for box in boxes
        if min(box.right - box.left, box.top - box.bottom) >= _LEAST_SIDE
        and _covered(box, lines) < _COVERED * box.area
    ]


def _covered(box: _Box, lines: Sequence[Line]) -> float:
    """Return how much of a box the lines in it cover."""
    return sum(
        (cell.right - cell.left) * line.height
        for line in lines
        for cell in line.cells
        if box.holds((cell.left + cell.right) / 2, line.bottom + line.height / 2)
    )


def _is_written(
    one: Reading, lines: Sequence[Line], place: pypdfium2.PdfPosConv, height: int
) -> bool:
    """Say whether a reading is of characters that the page itself writes over its picture."""
    x, y = place.to_page(
        round((one.left + one.right) / 2), round(height - (one.bottom + one.top) / 2)
    )
    return any(
        _Box(cell.left, line.bottom, cell.right, line.bottom + line.height).holds(x, y)
        for line in lines
        for cell in line.cells
    )


def _on_page(line: Line, place: pypdfium2.PdfPosConv, height: int) -> Line:
    """Return a line with places in points in place of pixels."""

    def x_y(x: float, y: float) -> tuple[float, float]:
        return place.to_page(round(x), round(height - y))  # type: ignore[no-any-return]

    cells = tuple(
        Cell(it.text, x_y(it.left, line.bottom)[0], x_y(it.right, line.bottom)[0])
        for it in line.cells
    )
    bottom = x_y(0, line.bottom)[1]
    return Line(cells, bottom, x_y(0, line.bottom + line.height)[1] - bottom)


def _place_among(lines: Sequence[Line], box: _Box) -> int:
    """Return where the lines of a picture belong: before the first line that stands below it."""
    for place, line in enumerate(lines):
        beside = line.right > box.left and line.cells[0].left < box.right
        if beside and line.bottom < box.bottom:
            return place
    return len(lines)


# --- lines ---


def _page_lines(page: pypdfium2.PdfPage) -> list[Line]:
    """Return the lines of a page, without places where it has very many characters."""
    textpage = page.get_textpage()
    try:
        if textpage.count_chars() <= _MOST_PLACED:
            return [_line(signs) for signs in _sign_lines(textpage)]
        texts = filter(None, map(str.strip, textpage.get_text_range().split("\n")))
        return [Line((Cell(text, 0, 0),), 0, 0) for text in texts]
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
        ends = ends or bool(signs and _begins_below(signs[-1], sign))
        if signs and ends and not _is_next_to(signs[-1], sign):
            yield signs
            signs = []
        elif signs and ends:
            sign = sign._replace(spaced=sign.left - signs[-1].right > 0.15 * sign.height)
        signs.append(sign)
        ends = spaced = False
    if signs:
        yield signs


def _begins_below(sign: _Sign, other: _Sign) -> bool:
    """Say whether the other character begins another line, though PDFium tells of no end."""
    left = other.right < sign.left
    return left and other.top <= sign.bottom + 0.3 * sign.height


def _is_next_to(sign: _Sign, other: _Sign) -> bool:
    """Say whether the other character stands right of the first, at least partly level with it."""
    height = min(sign.height, other.height)
    gap = other.left - sign.right
    overlap = min(sign.top, other.top) - max(sign.bottom, other.bottom)
    level = abs(sign.bottom - other.bottom) < 0.1 * height
    return height > 0 and gap > -0.3 * height and (level or overlap > 0.4 * height > gap / 4)


def _line(signs: Sequence[_Sign]) -> Line:
    """Join characters into a line, raised ones as `^2`."""
    heights = Counter(round(sign.height, 1) for sign in signs)
    height = max(heights, key=lambda each: (heights[each], each))
    bottoms = Counter(round(sign.bottom, 1) for sign in signs if round(sign.height, 1) == height)
    bottom = bottoms.most_common(1)[0][0]
    width = statistics.fmean(sign.right - sign.left for sign in signs)
    gap = max(_CELL_GAP * height, _CELL_GAP_WIDTHS * width)

    def is_raised(sign: _Sign) -> bool:
        return sign.height < 0.85 * height and sign.bottom > bottom + 0.15 * height

    cells: list[Cell] = []
    before: _Sign | None = None
    for up, group in groupby(signs, key=is_raised):
        run = list(group)
        words = "".join(sign.text for sign in run)
        mark = raised(words).removesuffix(words) if up else ""
        for sign in run:
            if before is None or (
                sign.left - before.right > gap and not _MARKER.match(cells[-1].text)
            ):
                cells.append(Cell(mark + sign.text, sign.left, sign.right))
            else:
                text = f"{cells[-1].text}{' ' if sign.spaced else ''}{mark}{sign.text}"
                cells[-1] = Cell(text, cells[-1].left, sign.right)
            before, mark = sign, ""
    whole = (cell._replace(text=_with_whole_characters(cell.text)) for cell in cells)
    return Line(tuple(whole), bottom, height)


def _with_whole_characters(text: str) -> str:
    """Return the text with its pairs of surrogates joined."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
