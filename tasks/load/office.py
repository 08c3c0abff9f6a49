"""Read Word and PowerPoint files as text, and hand Excel workbooks to `workbook.py`.

All three are zip archives; an encrypted one is an OLE container instead.
"""

import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from html import escape
from typing import Any

import mammoth
import pptx
from bs4 import BeautifulSoup
from lxml import etree
from pptx.shapes.base import BaseShape
from pptx.shapes.group import GroupShape
from pptx.shapes.picture import Picture
from pptx.shapes.placeholder import PlaceholderPicture

from tasks.load.encodings import Unreadable
from tasks.load.pictures import InnerPictures, picture_reader
from tasks.load.tables import MOST_CELLS
from tasks.load.text import (
    LARGEST_DOCUMENT,
    MOST_TAGS,
    PageText,
    check_markup,
    clean,
    join_pages,
    one_line,
    raised,
    shortened,
    to_markdown,
)
from tasks.load.workbook import read_xlsx

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ENCRYPTED = "encrypted (a password is needed)"
_MARKUP = (".xml", ".rels")
_LARGEST = 1 << 30
# mammoth takes some 40 µs for a tag, and 20 bytes of memory for a byte of text.
_LARGEST_WORD, _MOST_WORD_TAGS = 30_000_000, 600_000
_DEFAULT_TITLES = frozenset(
    {"", "powerpoint presentation", "word document", "untitled", "slide 1", "presentation"}
)
_CELLS = re.compile(rb"<(?:\w{1,99}:)?(?:c|row)[\s/>]")
_SLIDE = re.compile(r"<!-- Slide number: \d+ -->\n?")
_DRAWN = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_PICTURE = re.compile(r'<img [^<>]*src="picture:(\d+)"[^<>]*>')
_IMAGE = re.compile(r"!\[[^\]]{0,1000}\]\([^)]{0,1000}\)\n?")
# Tags around text that mammoth skips with their text; it reads `w:ins`.
_AROUND_TEXT = re.compile(rb"<(/?)w:(?:moveTo|customXml|dir|bdo|fldSimple)(?=[\s>])")


def read_office(data: bytes, ending: str) -> PageText:
    """Read an office file by its ending: .docx, .pptx or .xlsx.

    Raises `Unreadable` where it is encrypted, broken or unreasonably large.
    """
    archive = open_archive(data)
    reader = {".docx": _read_docx, ".pptx": _read_pptx, ".xlsx": read_xlsx}[ending]
    try:
        for entry in archive.infolist():
            if entry.filename.endswith(_MARKUP):
                _check_size(archive.read(entry), ending)
        return reader(data, shortened(_property_title(archive)))
    except Unreadable:
        raise
    except Exception as error:  # The parsers promise no types for a broken file.
        reason = f"{type(error).__name__}: {one_line(str(error))[:200]}"
        raise Unreadable(f"broken {ending} file ({reason})") from error


def open_archive(data: bytes) -> zipfile.ZipFile:
    """Open a zip archive; raises `Unreadable` where it is encrypted, broken or too large."""
    if data.startswith(_OLE):
        encrypted = "EncryptedPackage".encode("utf-16-le") in data
        old = "old binary office format: save it in the present one"
        raise Unreadable(ENCRYPTED if encrypted else old)
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except zipfile.BadZipFile as error:
        raise Unreadable(f"broken file ({error})") from error
    entries = archive.infolist()
    markup = sum(entry.file_size for entry in entries if entry.filename.endswith(_MARKUP))
    if sum(entry.file_size for entry in entries) > _LARGEST or markup > LARGEST_DOCUMENT:
        raise Unreadable("larger than 1 GiB when unpacked, or its text than 100 MB")
    if any(entry.flag_bits & 1 for entry in entries):
        raise Unreadable(ENCRYPTED)
    return archive


def _check_size(markup: bytes, ending: str) -> None:
    if ending == ".xlsx":
        if sum(1 for _ in _CELLS.finditer(markup)) > MOST_CELLS:
            raise Unreadable(f"a sheet of more than {MOST_CELLS:,} cells and rows: divide it")
        return  # Its sheets are read row by row.
    if ending == ".docx" and len(markup) > _LARGEST_WORD:
        size = f"{len(markup):,} bytes of text and markup, more than {_LARGEST_WORD:,}"
        raise Unreadable(f"{size}: divide it")
    check_markup(markup, _MOST_WORD_TAGS if ending == ".docx" else MOST_TAGS)


def _read_docx(data: bytes, title: str) -> PageText:
    """Read headings, lists and tables as Markdown, formulas as LaTeX, with all changes accepted."""
    # The import takes seconds.
    from markitdown.converter_utils.docx.pre_process import pre_process_docx

    pictures, texts = InnerPictures(), list[str]()

    def noted(image: Any) -> dict[str, str]:
        def read() -> bytes:
            with image.open() as file:
                return bytes(file.read())

        texts.append(pictures.text_of(read))
        return {"src": f"picture:{len(texts) - 1}"}

    result = mammoth.convert_to_html(
        pre_process_docx(io.BytesIO(_changed(data, "word/", _with_all_text))),
        style_map="p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => h2:fresh",
        convert_image=mammoth.images.img_element(noted),
    )
    shown = [f"<br/>{escape(text)}<br/>".replace("\n", "<br/>") if text else "" for text in texts]
    text = to_markdown(_PICTURE.sub(lambda found: shown[int(found[1])], result.value))
    return PageText(
        text=text,
        title=title,
        recognized=pictures.recognized_in(text),
        unread=tuple(pictures.unread),
    )


def _read_pptx(data: bytes, title: str) -> PageText:
    """Read each slide as a page: its title as a heading, texts, tables, notes and pictures."""
    # The import takes seconds.
    from markitdown import StreamInfo
    from markitdown.converters import PptxConverter

    changed = io.BytesIO(_changed(data, "ppt/slides/", _with_raised_text))
    converter = PptxConverter()  # type: ignore[no-untyped-call]
    converted = converter.convert(changed, StreamInfo(extension=".pptx")).text_content
    texts = [clean(_IMAGE.sub("", text)).strip() for text in _SLIDE.split(converted)[1:]]
    pictures = InnerPictures()
    slides = pptx.Presentation(io.BytesIO(data)).slides if picture_reader().works else ()
    for number, slide in enumerate(slides):
        for picture in _pictures_of(slide.shapes):
            found = pictures.text_of(partial(_content, picture), number + 1)
            texts[number] = "\n\n".join(filter(None, (texts[number], found)))
    text, pages = join_pages(texts, ["\n\n"] * len(texts))
    return PageText(
        text=text,
        title=title,
        pages=pages,
        recognized=pictures.recognized_in(text),
        unread=tuple(pictures.unread),
    )


def _pictures_of(shapes: Iterable[BaseShape]) -> Iterator[Picture | PlaceholderPicture]:
    """Yield the pictures of a slide, also those in groups."""
    for shape in shapes:
        if isinstance(shape, GroupShape):
            yield from _pictures_of(shape.shapes)
        elif isinstance(shape, Picture | PlaceholderPicture):
            yield shape


def _content(picture: Picture | PlaceholderPicture) -> bytes:
    return bytes(picture.image.blob)


def _changed(data: bytes, folder: str, change: Callable[[bytes], bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(made, "w") as copy:
        for name in dict.fromkeys(archive.namelist()):
            part = archive.read(name)
            is_text = name.startswith(folder) and name.endswith(".xml")
            copy.writestr(name, change(part) if is_text else part)
    return made.getvalue()


def _with_all_text(part: bytes) -> bytes:
    """Mark moved and framed text as inserted, so that mammoth reads it, and empty hidden text."""
    part = _AROUND_TEXT.sub(rb"<\1w:ins", part)
    if b":vanish" not in part:
        return part
    tree = _parse(part)
    for run in list(tree.iterfind(".//{*}r/{*}rPr/{*}vanish/../..")):
        for words in run.iterchildren("{*}t"):
            words.text = ""
    return _serialize(tree)


def _with_raised_text(part: bytes) -> bytes:
    """Write the raised text of a slide as `^6`, and its formulas as LaTeX.

    python-pptx passes over a text box that holds a formula, and over the formula in it.
    """
    tree = _parse(part)
    if b":oMath" in part:
        _write_formulas(tree)
    for run in tree.iter("{*}r"):
        look, words = run.find("{*}rPr"), run.find("{*}t")
        baseline = "" if look is None else look.get("baseline", "")
        if words is not None and baseline.isdecimal() and int(baseline):
            words.text = raised(words.text or "")
    return _serialize(tree)


def _write_formulas(tree: "etree._Element") -> None:
    """Replace formulas by text, and a text box in two versions by the one with the formula."""
    for choice in list(tree.iterfind(".//{*}AlternateContent/{*}Choice")):
        around = choice.getparent()
        if around is not None and choice.find(".//{*}oMath") is not None:
            for child in list(choice):
                around.addprevious(child)
            around.getparent().remove(around)
    for formula in list(tree.iterfind(".//{*}p/{*}m")):
        run = etree.SubElement(formula.getparent(), f"{_DRAWN}r")
        words = map(_formula, formula.iterfind(".//{*}oMath"))
        etree.SubElement(run, f"{_DRAWN}t").text = " ".join(words)
        formula.getparent().replace(formula, run)


def _formula(element: "etree._Element") -> str:
    """Return a formula as LaTeX, or its letters where markitdown cannot write it."""
    # The import takes seconds.
    from markitdown.converter_utils.docx.math.omml import oMath2Latex

    try:
        latex = str(oMath2Latex(element).latex)  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001 -- it promises no types; one formula must not cost the file
        return " ".join(word.text or "" for word in element.iter("{*}t"))
    return f"${latex}$"


def _parse(part: bytes) -> "etree._Element":
    return etree.fromstring(part, etree.XMLParser(resolve_entities=False, huge_tree=True))


def _serialize(tree: "etree._Element") -> bytes:
    return bytes(etree.tostring(tree, encoding="UTF-8", standalone=True))


def _property_title(archive: zipfile.ZipFile) -> str:
    """Return the title in the document's properties, unless it is an application's default."""
    try:
        tag = BeautifulSoup(archive.read("docProps/core.xml"), "xml").find("dc:title")
    except KeyError:
        return ""
    title = one_line(clean(tag.get_text())) if tag else ""
    return "" if title.lower() in _DEFAULT_TITLES else title
