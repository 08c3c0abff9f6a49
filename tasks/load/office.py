"""Word, PowerPoint and Excel files as text.

All three are zip archives. An encrypted one is an OLE container instead, which is how it is recognised.
"""

import io
import re
import zipfile
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tasks.load.figures import shown
from tasks.load.markup import Page, to_markdown
from tasks.load.plain import Unreadable, clean, one_line
from tasks.load.tables import is_header, row_line

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_LARGEST = 1 << 30
_DEFAULT_TITLES = frozenset({"", "powerpoint presentation", "word document", "untitled", "slide 1", "presentation"})
_SLIDE = re.compile(r"<!-- Slide number: \d+ -->\n?")
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)\n?")


def read_office(data: bytes, ending: str) -> tuple[Page, tuple[int, ...]]:
    """An office file by its ending (.docx, .pptx or .xlsx) and the offsets of its pages.

    Raises `Unreadable` with the reason where it is encrypted or broken.
    """
    try:
        if ending == ".pptx":
            return read_pptx(data)
        return (read_docx if ending == ".docx" else read_xlsx)(data), ()
    except Unreadable:
        raise
    except Exception as error:  # the parsers promise no exception types for a broken file; its reason is reported
        raise Unreadable(f"broken {ending} file ({type(error).__name__}: {one_line(str(error))[:200]})") from error


def open_archive(data: bytes) -> zipfile.ZipFile:
    """The archive of an office file; raises `Unreadable` where it is encrypted, broken or unreasonably large."""
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
    return archive


def read_docx(data: bytes) -> Page:
    """Headings, lists and tables as Markdown, formulas as LaTeX."""
    archive = open_archive(data)
    import mammoth
    from markitdown.converter_utils.docx.pre_process import pre_process_docx

    result = mammoth.convert_to_html(
        pre_process_docx(io.BytesIO(data)),
        style_map="p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => h2:fresh",
        convert_image=mammoth.images.img_element(lambda image: {"src": ""}),
    )
    return Page(text=to_markdown(result.value), title=_property_title(archive), metadata={})


def read_pptx(data: bytes) -> tuple[Page, tuple[int, ...]]:
    """Slide after slide (title as a heading, texts, tables and notes), and the offset at which each slide starts."""
    archive = open_archive(data)
    from markitdown import StreamInfo
    from markitdown.converters import PptxConverter

    converted = PptxConverter().convert(io.BytesIO(data), StreamInfo(extension=".pptx")).text_content  # type: ignore[no-untyped-call]
    slides = [clean(_IMAGE.sub("", slide)).strip() for slide in _SLIDE.split(converted)[1:]]
    text, pages = join_pages(slides, ["\n\n"] * len(slides))
    return Page(text=text, title=_property_title(archive), metadata={}), pages


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
        found = BeautifulSoup(archive.read("docProps/core.xml"), "xml").find("dc:title")
    except KeyError:
        return ""
    title = one_line(clean(found.get_text())) if found else ""
    return "" if title.lower() in _DEFAULT_TITLES else title


# --- spreadsheets ----------------------------------------------------------------------------------------------


def read_xlsx(data: bytes) -> Page:
    """Sheet after sheet, each row one line that names its columns; values as the sheet displays them.

    A formula that was never calculated shows itself.
    """
    archive = open_archive(data)
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
    title = one_line(clean(book.properties.title or ""))
    return Page(text=clean("\n\n".join(parts)), title=title, metadata={})


def _cells(sheet: "Worksheet", formulas: "Worksheet") -> list[list[str]]:
    rows = []
    for row, raw in zip(sheet.iter_rows(), formulas.iter_rows(), strict=False):
        rows.append(
            [
                one_line(shown(raw_cell.value if cell.value is None else cell.value, cell.number_format))
                for cell, raw_cell in zip(row, raw, strict=False)
            ]
        )
    return rows


def _lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows as lines. A row of names above a row of the same width or more is a header; a lone cell is a remark."""
    lines: list[str] = []
    names: Sequence[str] = ()
    begins = True
    for number, row in enumerate(rows):
        filled = sum(1 for cell in row if cell)
        if not filled:
            begins = True
            continue
        below = rows[number + 1] if number + 1 < len(rows) else ()
        if begins and filled > 1 and is_header(row) and any(below) and not (names and is_header(below)):
            names, begins = row, False
            lines.append(" | ".join(cell for cell in row if cell))
        elif filled == 1 and begins:
            lines.append(next(cell for cell in row if cell))
        else:
            begins = False
            lines.append(row_line(names, row))
    return lines
