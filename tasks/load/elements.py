"""Read XML as text: prose as paragraphs, data as lines of `outer.inner: value` and as tables.

An XML file is prose where text stands beside elements, as in DocBook, JATS and TEI. Nothing outside
the file is read: entities that stand for other files are an error, and the parser bounds how far
those of the file itself may grow.
"""

import re
from collections.abc import Iterator
from html.entities import html5
from itertools import groupby

from bs4.dammit import EncodingDetector
from lxml import etree

from tasks.load.encodings import Unreadable, decode
from tasks.load.tables import TableWriter
from tasks.load.text import PageText, check_markup, clean, one_line, pretty_stem, read_html

_NAMED = re.compile("&([A-Za-z][A-Za-z0-9]{1,31});")
_OF_XML = frozenset({"amp", "lt", "gt", "quot", "apos"})
_HEADINGS = frozenset({"title", "head", "heading"})
_DEEPEST = 6  # levels of headings in Markdown


def read_xml(data: bytes, name: str) -> PageText:
    """Read an XML file of this name, or a web page that calls itself one.

    Raises `Unreadable` where it is broken, or refers to what is not in the file.
    """
    root = _parsed(data)
    if _name(root) == "html":
        return read_html(data)
    writer = TableWriter()
    prose = any(map(_is_mixed, root.iter(etree.Element)))
    for line in _paragraphs(root, 0) if prose else ():
        writer.remark(line)
    if not prose:
        _write(root, _name(root), writer)
    written = writer.written()
    title = "" if prose else pretty_stem(name)
    return PageText(text="\n".join(written.lines), title=title, tables=tuple(written.tables))


def _parsed(data: bytes) -> "etree._Element":
    check_markup(data)
    declared = EncodingDetector.find_declared_encoding(data, is_html=False)
    text = _NAMED.sub(_character, decode(data, declared or ""))
    parser = etree.XMLParser(
        encoding="utf-8", resolve_entities="internal", remove_comments=True, remove_pis=True
    )
    try:
        return etree.fromstring(text.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError as error:
        raise Unreadable(f"broken XML ({error.msg})") from error


def _character(name: re.Match[str]) -> str:
    """Return the character of an entity that HTML names, as many XML files do without saying so."""
    return name[0] if name[1] in _OF_XML else html5.get(f"{name[1]};", name[0])


def _is_mixed(element: "etree._Element") -> bool:
    """Say whether text stands beside the elements in an element."""
    beside = [element.text, *(child.tail for child in element)] if len(element) else []
    return any(text and text.strip() for text in beside)


def _name(element: "etree._Element") -> str:
    return str(etree.QName(element).localname)


def _text(element: "etree._Element") -> str:
    return one_line(clean("".join(element.itertext())))


def _paragraphs(element: "etree._Element", depth: int) -> Iterator[str]:
    """Yield the paragraphs of prose, titles as Markdown headings."""
    if len(element) and not _is_mixed(element):
        for child in element:
            yield from _paragraphs(child, depth + 1)
    elif text := _text(element):
        heading = _name(element) in _HEADINGS
        yield f"{'#' * min(max(depth - 1, 1), _DEEPEST)} {text}\n" if heading else f"{text}\n"


def _write(element: "etree._Element", name: str, writer: TableWriter) -> None:
    """Write data in order; neighbours of one name that hold only values become a table."""
    for key, value in _attributes(element).items():
        writer.remark(f"{name}.{key}: {value}")
    if not len(element) and (text := _text(element)):
        writer.remark(f"{name}: {text}")
    for tag, members in groupby(element, key=_name):
        children, inner = list(members), f"{name}.{tag}"
        if len(children) > 1 and all(map(_is_row, children)):
            rows = [_cells(child) for child in children]
            writer.remark(f"{inner}:")
            columns = list(dict.fromkeys(column for row in rows for column in row))
            writer.begin(columns, written=False)
            for row in rows:
                writer.row([row.get(column, "") for column in columns])
        else:
            for number, child in enumerate(children, 1):
                _write(child, f"{inner}[{number}]" if len(children) > 1 else inner, writer)


def _attributes(element: "etree._Element") -> dict[str, str]:
    pairs = element.attrib.items()
    return {str(etree.QName(key).localname): one_line(clean(value)) for key, value in pairs}


def _is_row(element: "etree._Element") -> bool:
    """Say whether an element holds values alone, each under a name of its own."""
    names = [*map(_name, element), *_attributes(element)]
    nested = any(len(child) or child.attrib for child in element)
    return 0 < len(names) == len(set(names)) and not nested


def _cells(row: "etree._Element") -> dict[str, str]:
    inner = {_name(child): _text(child) for child in row} if len(row) else {_name(row): _text(row)}
    return _attributes(row) | inner
