"""Word, PowerPoint and Excel files as text (a workbook's reader is `workbook.py`).

All three are zip archives. An encrypted one is an OLE container instead, which is how it is recognised.
"""

import io
import zipfile
from collections.abc import Sequence

from prompts.text.regex import regex
from tasks.load.rows import MOST_CELLS
from tasks.load.text import (
    LARGEST_DOCUMENT,
    MOST_TAGS,
    PageText,
    Unreadable,
    check_markup,
    clean,
    one_line,
    shortened,
    to_markdown,
)
from tasks.load.workbook import read_xlsx

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_LARGEST = 1 << 30
_LARGEST_WORD, _TAGS_OF_WORD = 30_000_000, 600_000  # its reader takes some 40 µs for a tag, 20 bytes for one of text
_DEFAULT_TITLES = frozenset({"", "powerpoint presentation", "word document", "untitled", "slide 1", "presentation"})
_CELLS = regex(rb"<(?:\w{1,99}:)?(?:c|row)[\s/>]")
_SLIDE = regex(r"<!-- Slide number: \d+ -->\n?")
_IMAGE = regex(r"!\[[^\]]{0,1000}\]\([^)]{0,1000}\)\n?")


def read_office(data: bytes, ending: str) -> PageText:
    """An office file by its ending (.docx, .pptx or .xlsx).

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
    unpacked = [entry.file_size for entry in archive.infolist()]
    marked_up = [entry.file_size for entry in archive.infolist() if entry.filename.endswith((".xml", ".rels"))]
    if sum(unpacked) > _LARGEST or sum(marked_up) > LARGEST_DOCUMENT:
        raise Unreadable("larger than 1 GiB when unpacked, or its text than 100 MB")
    reader = {".docx": read_docx, ".pptx": read_pptx, ".xlsx": read_xlsx}[ending]
    try:
        for entry in archive.infolist():
            markup = archive.read(entry) if entry.filename.endswith((".xml", ".rels")) else b""
            if ending == ".docx" and len(markup) > _LARGEST_WORD:
                raise Unreadable(f"{len(markup):,} bytes of text and markup, more than {_LARGEST_WORD:,}: divide it")
            if ending != ".xlsx":
                check_markup(markup, _TAGS_OF_WORD if ending == ".docx" else MOST_TAGS)
            elif sum(1 for _ in _CELLS.finditer(markup)) > MOST_CELLS:  # a sheet is read row by row
                raise Unreadable(f"a sheet of more than {MOST_CELLS:,} cells and rows: divide it")
        return reader(data, shortened(_property_title(archive)))
    except Unreadable:
        raise
    except Exception as error:  # the parsers promise no exception types for a broken file; its reason is reported
        raise Unreadable(f"broken {ending} file ({type(error).__name__}: {one_line(str(error))[:200]})") from error


def read_docx(data: bytes, title: str) -> PageText:
    """Headings, lists and tables as Markdown, formulas as LaTeX."""
    import mammoth
    from markitdown.converter_utils.docx.pre_process import pre_process_docx

    result = mammoth.convert_to_html(
        pre_process_docx(io.BytesIO(data)),
        style_map="p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => h2:fresh",
        convert_image=mammoth.images.img_element(lambda image: {"src": ""}),
    )
    return PageText(text=to_markdown(result.value), title=title)


def read_pptx(data: bytes, title: str) -> PageText:
    """Slide after slide: title as a heading, texts, tables and notes."""
    from markitdown import StreamInfo
    from markitdown.converters import PptxConverter

    converted = PptxConverter().convert(io.BytesIO(data), StreamInfo(extension=".pptx")).text_content  # type: ignore[no-untyped-call]
    slides = [clean(_IMAGE.sub("", slide)).strip() for slide in _SLIDE.split(converted)[1:]]
    text, pages = join_pages(slides, ["\n\n"] * len(slides))
    return PageText(text=text, title=title, pages=pages)


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
