"""PDF files, page by page.

PDFium reads the characters (13 times as fast as pdfminer.six on a manual of 36 pages, and in better order). Lines are
joined into paragraphs by the distance between them; page numbers and running heads are dropped.
"""

import itertools
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from prompts.text.regex import regex
from tasks.load.office import join_pages
from tasks.load.text import LARGEST_DOCUMENT, PageText, Unreadable, clean, one_line

if TYPE_CHECKING:
    import pypdfium2

_FIGURES = regex(r"\b[0-9]{1,5}\b")
_PAGE_NUMBER = regex(
    r"(?:page|seite|p\.|第)?\s*+[-–—]?\s*+(?:\d{1,4}|[ivxlc]{1,6})\s*+[-–—]?\s*+(?:(?:of|/|von)\s*\d{1,4}|页)?",
    re.IGNORECASE,
)
_SOFT_BREAK = regex("[\ufffe\x02\u00ad]\n?")
_HYPHEN = regex(r"(?<=[^\W\d_]{2})-\n(?=[a-zà-ÿ]{2})")
_BULLET = regex(r"[•▪◦‣●\-–*]\s|\(?\d{1,3}[.)]\s|\(?[a-z]\)\s")
_ENDS = regex(r"[.!?:;。！？：；]['\"”’)\]]*$")
_NO_TITLE = regex(r"^(?:untitled|microsoft word - .*|.*\.(?:docx?|pdf|tex|dvi|indd|qxd|pptx?|xlsx?))$", re.IGNORECASE)
_PASSWORD, _SECURITY = 4, 5  # FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY


class _Line(NamedTuple):
    text: str
    top: float
    left: float
    right: float


def read_pdf(data: bytes) -> PageText:
    """The text of all pages with the title of the metadata.

    Raises `Unreadable` for an encrypted or broken file and for one that holds no text.
    """
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", 0) in (_PASSWORD, _SECURITY):
            raise Unreadable("encrypted (a password is needed)") from error
        raise Unreadable(f"broken PDF ({error})") from error
    try:
        lines, characters = [], 0
        for number in range(len(document)):
            lines.append(_page_lines(document, number))
            if (characters := characters + sum(len(line.text) for line in lines[-1])) > LARGEST_DOCUMENT:
                raise Unreadable("more than 100 MB of text: divide it")  # many pages may show one content
        title = one_line(clean(document.get_metadata_dict().get("Title", "")))
    except pypdfium2.PdfiumError as error:
        raise Unreadable(f"broken PDF ({error})") from error
    finally:
        document.close()
    texts = [_paragraphs(page) for page in _without_running_heads(lines)]
    if not any(texts):  # pages that differ in nothing but their number: what runs through them is all they say
        texts = [_paragraphs(page) for page in lines]
    if not any(texts):
        raise Unreadable("no text (a scan has to be recognised first)")
    joints = [_joint(texts, number) for number in range(len(texts))]
    text, starts = join_pages(texts, joints)
    return PageText(text=text, title="" if _NO_TITLE.match(title) else title, pages=starts)


def _page_lines(document: "pypdfium2.PdfDocument", number: int) -> list[_Line]:
    page = document[number]
    textpage = page.get_textpage()
    try:
        lines, index = [], 0
        characters = textpage.get_text_range()
        # PDFium numbers characters its own way (UTF-16, some left out): where that differs, boxes would be another's.
        boxed = len(characters) == textpage.count_chars() and max(characters, default=" ") <= "\uffff"
        for raw in characters.split("\n"):
            line = raw.rstrip("\r")
            text = line.strip()
            if text:
                first = index + len(line) - len(line.lstrip())
                lines.append(_boxed(textpage, text, first) if boxed else _Line(text, 0, 0, 0))
            index += len(raw) + 1
        return lines
    finally:
        textpage.close()
        page.close()


def _boxed(textpage: "pypdfium2.PdfTextPage", text: str, first: int) -> _Line:
    left, bottom, _, _ = textpage.get_charbox(first, loose=True)
    right = textpage.get_charbox(first + len(text) - 1, loose=True)[2]
    return _Line(text, bottom, left, right)


def _without_running_heads(pages: Sequence[list[_Line]]) -> list[list[_Line]]:
    """Drops page numbers, and first or last lines that three pages repeat with their number or half as they are."""
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
            while (
                body
                and len(pages) > 1
                and (_PAGE_NUMBER.fullmatch(body[place].text) or repeated & _keys(body[place], number, len(pages)))
            ):
                body.pop(place)
        bodies.append(body)
    return bodies


def _keys(line: _Line, page: int, pages: int) -> set[tuple[str, str]]:
    """What a running head has in common with those of other pages: its words, or those around a page number. A year is
    none: "Sales in 2021", "Sales in 2022" say something."""
    keys = {("same", line.text)}
    figures = [figure for figure in _FIGURES.finditer(line.text) if int(figure.group()) <= max(999, pages)]
    for name, match in zip(("first", "last"), figures[:1] + figures[-1:], strict=False):
        keys.add((name, f"{line.text[: match.start()]}#{int(match.group()) - page}{line.text[match.end() :]}"))
    return keys


def _paragraphs(lines: Sequence[_Line]) -> str:
    """Lines of a paragraph stay lines of their own unless the words read on; a blank line stands between paragraphs."""
    if not lines:
        return ""
    gaps = [above.top - line.top for above, line in itertools.pairwise(lines) if above.top > line.top]
    usual = statistics.median_low(gaps) if gaps else 0.0
    width = max(line.right for line in lines)
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
    if usual and (gap > usual * 1.35 or gap < -usual):
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
