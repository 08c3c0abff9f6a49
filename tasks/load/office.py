"""Word, PowerPoint and Excel files as text (a workbook's reader is `workbook.py`).

All three are zip archives. An encrypted one is an OLE container instead, which is how it is recognised.
"""

import io
import re
import zipfile
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from prompts.text.regex import regex
from tasks.load.tables import MOST_CELLS
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

if TYPE_CHECKING:
    from lxml import etree

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "encrypted (a password is needed)"
_MARKUP = (".xml", ".rels")
_LARGEST = 1 << 30
_LARGEST_WORD, _TAGS_OF_WORD = (
    30_000_000,
    600_000,
)  # its reader takes some 40 µs for a tag, 20 bytes for one of text
_DEFAULT_TITLES = frozenset({"", "powerpoint presentation", "word document", "untitled", "slide 1", "presentation"})
_CELLS = regex(rb"<(?:\w{1,99}:)?(?:c|row)[\s/>]")
_SLIDE = regex(r"<!-- Slide number: \d+ -->\n?")
_IMAGE = regex(r"!\[[^\]]{0,1000}\]\([^)]{0,1000}\)\n?")


def read_office(data: bytes, ending: str) -> PageText:
    """An office file by its ending (.docx, .pptx or .xlsx).

    Raises `Unreadable` with the reason where it is encrypted, broken or unreasonably large.
    """
    archive = _opened(data)
    reader = {".docx": read_docx, ".pptx": read_pptx, ".xlsx": read_xlsx}[ending]
    try:
        for entry in archive.infolist():
            if entry.filename.endswith(_MARKUP):
                _check(archive.read(entry), ending)
        return reader(data, shortened(_property_title(archive)))
    except Unreadable:
        raise
    except Exception as error:  # the parsers promise no exception types for a broken file
        reason = f"{type(error).__name__}: {one_line(str(error))[:200]}"
        raise Unreadable(f"broken {ending} file ({reason})") from error


def _opened(data: bytes) -> zipfile.ZipFile:
    if data.startswith(_OLE):
        encrypted = "EncryptedPackage".encode("utf-16-le") in data
        old = "old binary office format: save it in the present one"
        raise Unreadable(_ENCRYPTED if encrypted else old)
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except zipfile.BadZipFile as error:
        raise Unreadable(f"broken file ({error})") from error
    entries = archive.infolist()
    markup = sum(entry.file_size for entry in entries if entry.filename.endswith(_MARKUP))
    if sum(entry.file_size for entry in entries) > _LARGEST or markup > LARGEST_DOCUMENT:
        raise Unreadable("larger than 1 GiB when unpacked, or its text than 100 MB")
    if any(entry.flag_bits & 1 for entry in entries):
        raise Unreadable(_ENCRYPTED)
    return archive


def _check(markup: bytes, ending: str) -> None:
    """Raise `Unreadable` where a part of the file has more than its reader should get."""
    if ending == ".xlsx":  # a sheet is read row by row
        if sum(1 for _ in _CELLS.finditer(markup)) > MOST_CELLS:
            raise Unreadable(f"a sheet of more than {MOST_CELLS:,} cells and rows: divide it")
        return
    if ending == ".docx" and len(markup) > _LARGEST_WORD:
        size = f"{len(markup):,} bytes of text and markup, more than {_LARGEST_WORD:,}"
        raise Unreadable(f"{size}: divide it")
    check_markup(markup, _TAGS_OF_WORD if ending == ".docx" else MOST_TAGS)


def read_docx(data: bytes, title: str) -> PageText:
    """Headings, lists and tables as Markdown, formulas as LaTeX; as all changes were accepted, and
    without hidden text."""
    import mammoth
    from markitdown.converter_utils.docx.pre_process import pre_process_docx

    result = mammoth.convert_to_html(
        pre_process_docx(io.BytesIO(_with_plain_marks(data, _WORD_TEXT, _plain_word))),
        style_map="p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => h2:fresh",
        convert_image=mammoth.images.img_element(lambda image: {"src": ""}),
    )
    return PageText(text=to_markdown(result.value), title=title)


def read_pptx(data: bytes, title: str) -> PageText:
    """Slide after slide: title as a heading, texts, tables and notes."""
    from markitdown import StreamInfo
    from markitdown.converters import PptxConverter

    plain = io.BytesIO(_with_plain_marks(data, _SLIDE_TEXT, _plain_slide))
    converted = PptxConverter().convert(plain, StreamInfo(extension=".pptx")).text_content  # type: ignore[no-untyped-call]
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


# --- raised, moved and hidden text ---------------------------------------------------------------

_STYLES = "word/styles.xml"
_WORD_TEXT = regex(r"word/(?:document|footnotes|endnotes)\.xml")
_SLIDE_TEXT = regex(r"ppt/(?:slides|notesSlides)/[^/]+\.xml")
# What stands around text and is unknown to mammoth, which reads what is inserted.
_AROUND_TEXT = ("moveTo", "customXml", "dir", "bdo", "fldSimple", "ruby", "rubyBase", "rt")
_NO_TEXT = ("rPr", "fldChar", "instrText")  # of a run: its look and where a field begins and ends
_OF_ORDINALS = frozenset({"st", "nd", "rd", "th", "er", "re", "e"})
_RAISED = regex(r"\s*(?=[-+−]?\w)")
_MOST_STYLES = 20  # one based on another
_OFF = ("", "0", "false", "off")


def _with_plain_marks(
    data: bytes, names: re.Pattern[str], change: Callable[["etree._Element", "_Looks"], None]
) -> bytes:
    """The file with its parts of these names changed."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, huge_tree=True)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    looks = _Looks(etree.fromstring(parts[_STYLES], parser) if _STYLES in parts else None)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name in filter(names.fullmatch, parts):
            part = etree.fromstring(parts[name], parser)
            change(part, looks)
            tree = part.getroottree()
            parts[name] = etree.tostring(tree, encoding="UTF-8", standalone=True)
        for name, content in parts.items():
            archive.writestr(name, content)
    return made.getvalue()


def _plain_word(part: "etree._Element", looks: "_Looks") -> None:
    """Write raised text as `^2`, drop hidden text, and keep what was moved at its new place, what
    stands in boxes, and how a word is read in brackets after it."""
    texts = list[_TextElement]()
    for run in list(part.iter("{*}r")):
        paragraph = next(run.iterancestors("{*}p"), None)
        if looks.of(run, paragraph, "vanish") not in _OFF:
            for element in [one for one in run if _name(one) not in _NO_TEXT]:
                run.remove(element)
        raised = looks.of(run, paragraph, "vertAlign") == "superscript"
        texts += [_TextElement(element, raised, paragraph) for element in run.iterchildren("{*}t")]
    _mark_raised(texts)
    for mark in list(part.iter("{*}vertAlign")):
        mark.getparent().remove(mark)
    for reading in list(part.iter("{*}rt")):
        _put_in_brackets(list(reading.iter("{*}t")))
        reading.getparent().append(reading)  # it stands before the word
    for drawing in list(part.iter("{*}drawing")):
        whole = next(drawing.iterancestors("{*}AlternateContent"), drawing)
        if whole.find("{*}Fallback//{*}txbxContent") is None:
            for box in list(drawing.iter("{*}txbxContent")):
                whole.addprevious(box)
    for element in list(part.iter(*(f"{{*}}{name}" for name in _AROUND_TEXT))):
        element.tag = element.tag.replace(_name(element), "ins")


def _plain_slide(part: "etree._Element", looks: "_Looks") -> None:
    """Write raised text as `^2`."""
    texts = list[_TextElement]()
    for run in part.iter("{*}r"):
        baseline = next((look.get("baseline") or "" for look in run.iterchildren("{*}rPr")), "")
        raised = baseline.isdecimal() and int(baseline) > 0
        texts += [_TextElement(element, raised, run.getparent()) for element in run.iterchildren("{*}t")]
    _mark_raised(texts)


class _TextElement(NamedTuple):
    """An element that holds text, whether it is raised above the line, and its paragraph."""

    element: "etree._Element"
    raised: bool
    paragraph: "etree._Element | None"


def _mark_raised(texts: Sequence[_TextElement]) -> None:
    """Write raised text as `10` and a raised `6` are read: `10^6`."""
    before = ""
    for (_, raised), group in groupby(texts, key=lambda text: (id(text.paragraph), text.raised)):
        elements = [text.element for text in group]
        words = "".join(element.text or "" for element in elements)
        if raised and is_marked(words, before):
            first = next(element for element in elements if (element.text or "").strip())
            blanks = len(first.text) - len(first.text.lstrip())
            first.text = f"{first.text[:blanks]}^{first.text[blanks:]}"
        before = words


def is_marked(raised: str, before: str) -> bool:
    """Whether raised text is marked as such; other signs than letters and figures, and the endings
    of ordinals (`1st`), stay as they are."""
    ordinal = before[-1:].isdigit() and raised.strip().lower() in _OF_ORDINALS
    return not ordinal and _RAISED.match(raised) is not None


def _put_in_brackets(texts: "Sequence[etree._Element]") -> None:
    if texts:
        texts[0].text = f"({texts[0].text or ''}"
        texts[-1].text = f"{texts[-1].text or ''})"


def _name(element: "etree._Element") -> str:
    return str(element.tag).rpartition("}")[2]


class _Looks:
    """How the styles of a document say that text looks."""

    def __init__(self, styles: "etree._Element | None") -> None:
        found = [] if styles is None else list(styles.iter("{*}style"))
        self._styles = {_value(style, "styleId"): style for style in found}

    def of(self, run: "etree._Element", paragraph: "etree._Element | None", name: str) -> str:
        """What a run, its style or its paragraph's style says of one property; else nothing."""
        own = run.find(f"{{*}}rPr/{{*}}{name}")
        if own is not None:
            return _value(own, "val", "1")
        said = self._of_style(run.find("{*}rPr/{*}rStyle"), name)
        if said or paragraph is None:
            return said
        return self._of_style(paragraph.find("{*}pPr/{*}pStyle"), name)

    def _of_style(self, named: "etree._Element | None", name: str) -> str:
        for _ in range(_MOST_STYLES):
            style = None if named is None else self._styles.get(_value(named, "val"))
            if style is None:
                return ""
            own = style.find(f"{{*}}rPr/{{*}}{name}")
            if own is not None:
                return _value(own, "val", "1")
            named = style.find("{*}basedOn")
        return ""


def _value(element: "etree._Element", name: str, default: str = "") -> str:
    """An attribute in whatever namespace it stands."""
    found = (value for key, value in element.items() if key.rpartition("}")[2] == name)
    return next(found, default)
