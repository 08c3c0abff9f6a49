"""Word, PowerPoint and Excel files as text.

All three are zip archives. An encrypted one is an OLE container instead, which is how it is recognised.
"""

import datetime
import io
import re
import zipfile
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

from tasks.load.rows import is_header, row_line
from tasks.load.text import PageText, Unreadable, clean, one_line, to_markdown

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_LARGEST = 1 << 30
_DEFAULT_TITLES = frozenset({"", "powerpoint presentation", "word document", "untitled", "slide 1", "presentation"})
_SLIDE = re.compile(r"<!-- Slide number: \d+ -->\n?")
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)\n?")


def read_office(data: bytes, ending: str) -> tuple[PageText, tuple[int, ...]]:
    """An office file by its ending (.docx, .pptx or .xlsx) and the offsets of its pages.

    Raises `Unreadable` with the reason where it is encrypted, broken or unreasonably large.
    """
    if data.startswith(_OLE):
        encrypted = "EncryptedPackage".encode("utf-16-le") in data
        raise Unreadable(
            "encrypted (a password is needed)" if encrypted else "old binary office format: save it in the present one"
        )
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except zipfile.BadZipFile as error:
        raise Unreadable(f"broken file ({error})") from error
    if sum(entry.file_size for entry in archive.infolist()) > _LARGEST:
        raise Unreadable("larger than 1 GiB when unpacked")
    reader = {".docx": read_docx, ".pptx": read_pptx, ".xlsx": read_xlsx}[ending]
    try:
        return reader(data, archive)
    except Exception as error:  # the parsers promise no exception types for a broken file; its reason is reported
        raise Unreadable(f"broken {ending} file ({type(error).__name__}: {one_line(str(error))[:200]})") from error


def read_docx(data: bytes, archive: zipfile.ZipFile) -> tuple[PageText, tuple[int, ...]]:
    """Headings, lists and tables as Markdown, formulas as LaTeX."""
    import mammoth
    from markitdown.converter_utils.docx.pre_process import pre_process_docx

    result = mammoth.convert_to_html(
        pre_process_docx(io.BytesIO(data)),
        style_map="p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => h2:fresh",
        convert_image=mammoth.images.img_element(lambda image: {"src": ""}),
    )
    return PageText(text=to_markdown(result.value), title=_property_title(archive)), ()


def read_pptx(data: bytes, archive: zipfile.ZipFile) -> tuple[PageText, tuple[int, ...]]:
    """Slide after slide (title as a heading, texts, tables and notes), and the offset at which each slide starts."""
    from markitdown import StreamInfo
    from markitdown.converters import PptxConverter

    converted = PptxConverter().convert(io.BytesIO(data), StreamInfo(extension=".pptx")).text_content  # type: ignore[no-untyped-call]
    slides = [clean(_IMAGE.sub("", slide)).strip() for slide in _SLIDE.split(converted)[1:]]
    text, pages = join_pages(slides, ["\n\n"] * len(slides))
    return PageText(text=text, title=_property_title(archive)), pages


def join_pages(pages: Sequence[str], joints: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """The pages joined, each preceded by its joint (none before the first text), and where each page starts."""
    text, starts = "", []
    for page, joint in zip(pages, joints, strict=True):
        text += joint if text and page else ""
        starts.append(len(text))
        text += page
    return text, tuple(starts)


def _property_title(archive: zipfile.ZipFile) -> str:
    """The title in the document's properties; empty where it is missing or an application's default."""
    from bs4 import BeautifulSoup

    try:
        tag = BeautifulSoup(archive.read("docProps/core.xml"), "xml").find("dc:title")
    except KeyError:
        return ""
    title = one_line(clean(tag.get_text())) if tag else ""
    return "" if title.lower() in _DEFAULT_TITLES else title


# --- spreadsheets ----------------------------------------------------------------------------------------------


def read_xlsx(data: bytes, archive: zipfile.ZipFile) -> tuple[PageText, tuple[int, ...]]:
    """Sheet after sheet, each row one line that names its columns; figures as the sheet displays them, dates as ISO.

    A formula that was never calculated shows itself.
    """
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), data_only=True)
    sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
    uncalculated = any(b"<f" in archive.read(name) for name in archive.namelist() if name.startswith("xl/worksheets/"))
    formulas = openpyxl.load_workbook(io.BytesIO(data)) if uncalculated else book
    parts = []
    for sheet in sheets:
        lines = _lines(_cells(sheet, formulas[sheet.title]))
        if lines:
            parts.append("\n".join([f"# {one_line(sheet.title)}", *lines] if len(sheets) > 1 else lines))
    return PageText(text=clean("\n\n".join(parts)), title=one_line(clean(book.properties.title or ""))), ()


def _cells(sheet: "Worksheet", formulas: "Worksheet") -> list[list[str]]:
    return [
        [
            one_line(displayed(raw.value if cell.value is None else cell.value, cell.number_format))
            for cell, raw in zip(row, raws, strict=False)
        ]
        for row, raws in zip(sheet.iter_rows(), formulas.iter_rows(), strict=False)
    ]


def _lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows as lines. A row of names above a row of the same width or more is a header; a lone cell is a remark."""
    lines: list[str] = []
    names: Sequence[str] = ()
    begins = True
    for number, row in enumerate(rows):
        filled = [cell for cell in row if cell]
        below = rows[number + 1] if number + 1 < len(rows) else ()
        if not filled:
            begins = True
        elif begins and len(filled) > 1 and is_header(row) and any(below) and not (names and is_header(below)):
            names, begins = row, False
            lines.append(" | ".join(filled))
        elif begins and len(filled) == 1:
            lines.append(filled[0])
        else:
            begins = False
            lines.append(row_line(names, row))
    return lines


_FORMAT_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<money>[^\]-]*)[^\]]*\]|\[[^\]]*\]|_.|\*.|'
    r"(?P<digits>[#0?][#0?.,]*)|(?P<other>.)"
)
_GENERAL_DIGITS = 11


def displayed(value: object, number_format: str) -> str:
    """A cell's value with the decimals, separators, signs and units of its format (`1,308,463`, `12.5%`, `(1.2)`).

    Dates and times are ISO, durations `26:03:00`; formats of another kind (fractions, exponents) show the plain value.
    """
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return _figure(value, number_format)
    if isinstance(value, datetime.timedelta):
        seconds = round(value.total_seconds())
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ", "seconds") if value.time() != datetime.time() else value.date().isoformat()
    return "" if value is None else str(value)


def _figure(value: int | float, number_format: str) -> str:
    sections = number_format.split(";")
    section, sign = sections[0], "-" if value < 0 else ""
    if value < 0 and len(sections) > 1:
        section, sign = sections[1], ""
    elif value == 0 and len(sections) > 2:
        section = sections[2]
    plain = str(int(value)) if float(value).is_integer() else f"{value:.{_GENERAL_DIGITS}g}"
    tokens = list(_FORMAT_TOKEN.finditer(section))
    places = [place for place, token in enumerate(tokens) if token["digits"]]
    letters = re.search(r"[A-Za-z/@]", "".join(token["other"] or "" for token in tokens))
    if letters or len(places) > 1 or not (places or section in sections[1:]):
        return plain
    texts = [token["quoted"] or token["escaped"] or token["money"] or token["other"] or "" for token in tokens]
    for place in places:
        percent = 2 * texts.count("%")
        texts[place] = _digits(Decimal(str(abs(value))).scaleb(percent), tokens[place]["digits"])
    text = "".join(texts).strip()
    return sign + text if re.search("[1-9]", text) else text


def _digits(magnitude: Decimal, pattern: str) -> str:
    """The digits for a pattern such as `#,##0.00`; commas at its end divide by a thousand each."""
    scaled = pattern.rstrip(",")
    whole, _, fraction = scaled.partition(".")
    rounded = magnitude.scaleb(-3 * (len(pattern) - len(scaled))).quantize(
        Decimal(1).scaleb(-len(fraction)), rounding=ROUND_HALF_UP
    )
    before, _, after = f"{rounded:,f}".partition(".")
    before = before if "," in whole else before.replace(",", "")
    after = after.rstrip("0").ljust(fraction.count("0"), "0")
    return ("" if before == "0" else before).zfill(whole.count("0")) + (f".{after}" if after else "")
