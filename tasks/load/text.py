"""Text and HTML files: from their bytes to stored text, its title and its metadata.

Stored text has `\\n` newlines only (form feeds and the like count as line breaks) and holds no lone surrogates and no
control characters but newline and tab, so that offsets mean the same for every reader.
"""

import datetime
import math
import re
from collections.abc import Mapping
from itertools import takewhile, zip_longest
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from prompts.text.regex import regex
from prompts.text.segment import heading_words
from storage.records import Record, Scalar, Table
from tasks.load.encodings import Unreadable as Unreadable  # noqa: PLC0414 - others import it here
from tasks.load.encodings import decode

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

_BREAKS = regex("\r\n|[\r\v\f\x85]")
_UNWANTED = regex("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_FRONT = regex(r"---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|$)\n*", re.DOTALL)
_HEADING = regex(r"^(?:(#{1,6})[ \t]+\S.*|(\S.*)\n={3,}[ \t]*$)", re.MULTILINE)
# Tags, and images with what they lead to: what a page is decorated with before it begins.
_DECORATION = regex(r"<[^<>]{1,1000}>|\[?!\[[^\]]{0,500}\]\([^)]{0,500}\)(?:\]\([^)]{0,500}\))?")
_OPENING = 5_000  # characters
_FIELDS = regex(r"(?:[\w-]{1,40}:[ \t].*(?:\n|$)){2}")
_FENCED = regex(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_MARKS = regex(
    r"!?\[([^\]]{0,500})\]\([^)]{0,500}\)|[*`]{1,3}(?=\S)|(?<=\S)[*`]{1,3}|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)"
)
_LONGEST_TITLE = 100  # of a first line that is taken for one
_LONGEST_GIVEN = 500  # characters of a title that the text or its metadata gives
_WORDS_OF_A_SENTENCE = 5
_LONGEST_FRONT = 65_536


LARGEST_DOCUMENT = 100_000_000  # bytes of one document, unpacked: what reads it needs some ten times as much memory
MOST_TAGS = 2_000_000  # of markup, opening and closing: about a kilobyte of memory each


def clean(text: str) -> str:
    """The text as it is stored."""
    text = text.removeprefix("\ufeff")
    if _BREAKS.search(text):
        text = _BREAKS.sub("\n", text)
    return _UNWANTED.sub("", text)


def read_text(data: bytes) -> str:
    """Stored text of a text file; raises `Unreadable` ("binary", "empty")."""
    return not_empty(clean(decode(data)))


def not_empty(text: str) -> str:
    """The text; raises `Unreadable` ("empty") where it holds white space only."""
    if not text.strip():
        raise Unreadable("empty")
    return text


# --- front matter and titles -----------------------------------------------------------------------------------


def split_front_matter(text: str) -> tuple[str, dict[str, Scalar]]:
    """The text after its YAML front matter, and the front matter; a text without one is given back whole."""
    match = _FRONT.match(text)
    if not match or len(match.group(1)) > _LONGEST_FRONT:
        return text, {}
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        front = YAML(typ="safe", pure=False).load(match.group(1))
    except (YAMLError, ValueError, RecursionError):
        return text, {}  # two rules around ordinary text are no front matter
    return (text[match.end() :], scalars(front)) if isinstance(front, dict) else (text, {})


def scalars(values: Mapping[object, object]) -> dict[str, Scalar]:
    """Metadata to compare by: lists joined by commas, mappings flattened to `outer.inner`; lists of lists are left
    out."""
    flat: dict[str, Scalar] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= {clean(f"{key}.{inner}"): item for inner, item in scalars(value).items()}
        elif not isinstance(value, list) or not any(isinstance(item, list | Mapping) for item in value):
            flat[clean(str(key))] = _scalar(value)
    return flat


def _scalar(value: object) -> Scalar:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON knows no such figure
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, datetime.date):
        return value.isoformat()
    return clean(", ".join(map(str, value)) if isinstance(value, list) else str(value))


def title_of(text: str, fallback: str, metadata: Mapping[str, Scalar], headings: bool = True) -> str:
    """The title in the metadata, else the Markdown heading that the text opens with, else the first one where it alone
    is of the first level, else a short first line, else the fallback.

    A line that is a sentence is no title, nor is the first of several fields ("From: …").
    """
    title = metadata.get("title")
    if isinstance(title, str) and title.strip():
        return shortened(one_line(title))
    if headings and (heading := _title_heading(text)):
        return one_line(_MARKS.sub(r"\1", heading[:_LONGEST_GIVEN]))
    opening = _DECORATION.sub("", text[:_OPENING]).lstrip()
    first = one_line(opening[:500].split("\n", 1)[0]).lstrip("#").strip()
    marked = first.startswith(("http://", "https://", "|", "---", "```")) or _FIELDS.match(opening)
    return first if 0 < len(first) < _LONGEST_TITLE and not marked and not _is_sentence(first) else fallback


def _title_heading(text: str) -> str:
    """The heading that names the whole text, or nothing: one further down may name a part ("Installation")."""
    if "```" in text or "~~~" in text:
        text = _FENCED.sub("", text)
    found = list(_HEADING.finditer(text))
    tops = [heading for heading in found if heading[1] in ("#", None)]
    opens = found and not _DECORATION.sub("", text[: min(found[0].start(), _OPENING)]).strip()
    if not (opens or (len(tops) == 1 and tops == found[:1])):
        return ""
    return heading_words(found[0][0]) if found[0][1] else found[0][2]


def _is_sentence(line: str) -> bool:
    """Whether a line says something instead of naming it; "Nordlicht Ltd." is still a name."""
    return line.endswith(("。", "！", "；")) or (
        line.endswith((".", "!", ";")) and line.count(" ") >= _WORDS_OF_A_SENTENCE
    )


def shortened(title: str) -> str:
    """A title as it is stored and shown to models: its beginning where it is a text of its own."""
    return title[:_LONGEST_GIVEN].rstrip()


def one_line(text: str) -> str:
    """The text with every run of white space as one space."""
    return " ".join(text.split())


def stem(name: str) -> str:
    """The file name without its folder and endings (`.jsonl.gz` counts as one)."""
    return PurePosixPath(name.removesuffix(".gz")).stem


def pretty_stem(name: str) -> str:
    """A file name as words: `bridge_report-2020.md` is "Bridge report 2020"."""
    words = one_line(re.sub(r"[_\-]+", " ", stem(name)))
    return words[:1].upper() + words[1:] or name


# --- HTML --------------------------------------------------------------------------------------------------------

# Not forms themselves: some pages are one form from top to bottom.
_DROPPED = [
    "script", "style", "noscript", "template", "nav", "svg", "iframe", "head",
    "button", "select", "datalist", "textarea"
]  # fmt: skip
# They stand by themselves as `div` does, which alone is known to the converter.
_BLOCKS = [
    "address", "aside", "center", "details", "dialog", "fieldset", "figure", "footer", "form", "header", "hgroup",
    "legend", "main", "summary"
]  # fmt: skip
# Cells that span several rows are written into each of them, up to so many, and characters, of a file; empty columns
# count as a character each.
_COPIED_CELLS, _COPIED_CHARACTERS = 100_000, 1_000_000
_HIDDEN = '[hidden], [aria-hidden="true"], [role="navigation"]'
_BLANKS = regex(r"\n{3,}")
_TRAILING = regex(r"(?<![ \t\u00a0])[ \t\u00a0]+$", re.MULTILINE)


class PageText(Record):
    """Readable text, the title that the file gives (or empty), metadata, and the offsets at which pages start."""

    text: str
    title: str
    metadata: Mapping[str, Scalar] = Field(default_factory=dict)
    pages: tuple[int, ...] = ()
    tables: tuple[Table, ...] = ()


def read_html(data: bytes) -> PageText:
    """The page without scripts and navigation: headings as `# …` lines, lists and tables as Markdown."""
    from bs4 import BeautifulSoup
    from bs4.dammit import EncodingDetector

    check_markup(data)
    declared = EncodingDetector.find_declared_encoding(data, is_html=True)
    soup = BeautifulSoup(decode(data, declared or ""), "lxml")
    metadata: dict[str, Scalar] = {}
    for name in ("author", "description", "date", "keywords"):
        tag = soup.find("meta", attrs={"name": name})
        if tag and tag.get("content"):
            metadata[name] = clean(one_line(str(tag["content"])))
    page_title = soup.title.get_text() if soup.title else ""
    for tag in [*soup(_DROPPED), *soup.select(_HIDDEN)]:
        tag.decompose()
    for tag in soup(_BLOCKS):
        tag.name = "div"
    top = soup.find("h1")
    title = one_line(page_title) or (one_line(top.get_text()) if top else "")
    return PageText(text=to_markdown(str(soup.body or soup)), title=clean(shortened(title)), metadata=metadata)


def check_markup(data: bytes, most: int = MOST_TAGS) -> None:
    """Raises `Unreadable` where HTML or XML has more tags than a tree of them should hold in memory."""
    if (tags := data.count(b"<")) > most:
        raise Unreadable(f"{tags:,} tags, more than {most:,}: divide it")


def to_markdown(markup: str) -> str:
    """Stored text of an HTML fragment; links and emphasis keep their words only, so that quotes read as on the page."""
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    converter = MarkdownConverter(
        heading_style="ATX",
        bullets="-",
        strip=["a", "b", "strong", "i", "em", "img", "code"],
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
        newline_style="backslash",
        table_infer_header=True,
    )
    try:
        soup = BeautifulSoup(markup, "html.parser")
        _write_out_signs(soup)
        _open_layout(soup)
        _write_out_spans(soup)
        for table, rows in _tables(soup):
            _arrange(soup, table, rows)
        text = converter.convert_soup(soup)
    except RecursionError as error:
        raise Unreadable("its markup is nested too deep") from error
    text = clean(text).replace("\\\n", "\n")
    return _BLANKS.sub("\n\n", _TRAILING.sub("", text)).strip("\n")


# What is written above the line: exponents, the numbers of notes, the marks of trades.
_RAISED = "sup, msup > :nth-child(2), msubsup > :nth-child(3)"
_EXPONENT = regex(r"[-+−–]?\w+(?:[.,]\d+)?")


def _write_out_signs(soup: "BeautifulSoup") -> None:
    """Write what only its place shows: `10^6` where the 6 is raised, `漢字(かんじ)` for a reading.

    The base of a reading stays one word. What is lowered stays where it is: `H2O`.
    """
    for tag in reversed(soup.select(_RAISED)):  # what is raised twice comes first
        tag.string = _raised(tag.get_text())
    for ruby in soup("ruby"):
        reading = "".join(tag.get_text(strip=True) for tag in ruby("rt"))
        for tag in ruby(["rt", "rp", "rtc"]):
            tag.decompose()
        ruby.string = ruby.get_text() + (f"({reading})" if reading else "")


def _raised(text: str) -> str:
    """A raised text behind `^`: figures and single letters, which would change what they follow.

    Endings of ordinals, marks of trades and notes in brackets do not: `21st`, `Orla™`, `1931[1]`.
    """
    said = one_line(text)
    counts = any(map(str.isdigit, said)) or (len(said) == 1 and said.isalpha())
    if not counts or said.startswith(("[", "(")):
        return said
    return f"^{said}" if _EXPONENT.fullmatch(said) else f"^({said})"


class _Spanning(NamedTuple):
    """A cell that goes on in `rows` more rows, over `width` columns."""

    rows: int
    width: int
    name: str
    text: str


def _write_out_spans(soup: "BeautifulSoup") -> None:
    """Write each cell that spans several rows into all of them, so that every row has its cells under their columns."""
    from bs4 import Tag

    cells, characters = _COPIED_CELLS, _COPIED_CHARACTERS
    groups: dict[int, dict[int, _Spanning]] = {}  # of rows, by column
    for row in soup("tr"):
        spanning = groups.setdefault(id(row.parent), {})
        column, whole = 0, list[Tag]()
        own = [tag for tag in row.contents if isinstance(tag, Tag) and tag.name in ("td", "th")]
        for cell in [*own, None]:
            while column in spanning and cells > 0 and characters > 0:
                above = spanning.pop(column)
                copied = soup.new_tag(above.name, attrs={"colspan": str(above.width)})
                copied.string = said = above.text if len(above.text) <= characters else ""
                cells, characters = cells - 1, characters - len(said) - above.width
                whole.append(copied)
                if above.rows > 1:
                    spanning[column] = above._replace(rows=above.rows - 1)
                column += above.width
            if cell is not None:
                whole.append(cell)
                width = _span(cell.get("colspan")) if characters > 0 else 1
                cell["colspan"], characters = str(width), characters - (width - 1)
                if (rows := _span(cell.get("rowspan"))) > 1:
                    text = cell.get_text(" ", strip=True)
                    spanning[column] = _Spanning(rows - 1, width, cell.name, text)
                column += width
        if len(whole) > len(own):
            row.clear()
            row.extend(whole)


def _span(attribute: object) -> int:
    """Of how many columns or rows an attribute says that a cell takes them; browsers read at most 1,000 columns."""
    return min(max(int(attribute[:6]), 1), 1000) if isinstance(attribute, str) and attribute.isdecimal() else 1


_MOST_HEADER_ROWS, _MOST_COLUMNS = 3, 1000  # a header of more is left as it is


def _open_layout(soup: "BeautifulSoup") -> None:
    """Turn tables that hold tables into plain blocks: they place what they hold, and name nothing."""
    outer = {id(table.find_parent("table")) for table in soup("table")}
    for tag in soup(["caption", "thead", "tbody", "tfoot", "tr", "td", "th"]):
        if id(table := tag.find_parent("table")) in outer and table:
            tag.name = "div"
    for table in soup("table"):
        if id(table) in outer:
            table.name = "div"


def _tables(soup: "BeautifulSoup") -> "list[tuple[Tag, list[Tag]]]":
    """Each table with its rows."""
    tables: dict[int, tuple[Tag, list[Tag]]] = {}
    for row in soup("tr"):
        if table := row.find_parent("table"):
            tables.setdefault(id(table), (table, []))[1].append(row)
    return list(tables.values())


def _arrange(soup: "BeautifulSoup", table: "Tag", rows: "list[Tag]") -> None:
    """Give a table one header row and one body, at whose end the rows of its foot stand."""
    head = _header_rows(rows)
    body = sorted(rows[len(head) :], key=lambda row: _group(row) == "tfoot")
    if len(head) < 2 and len({id(row.parent) for row in body}) < 2:
        return
    for row in rows:
        row.extract()
    for group in table(["thead", "tbody", "tfoot"], recursive=False):
        if not group.get_text(strip=True):
            group.decompose()
    if len(head) > 1:
        head = _joined(soup, table, [_columns(row) for row in head])
    for name, those in (("thead", head), ("tbody", body)):
        if those:
            group = soup.new_tag(name)
            group.extend(those)
            table.append(group)


def _group(row: "Tag") -> str:
    return row.parent.name if row.parent else ""


def _header_rows(rows: "list[Tag]") -> "list[Tag]":
    """The rows above a table's body: those of its `thead`, else those of `th` alone, else those of
    which the first one's cells say it: one goes down into the rows where another has its parts."""
    if any(_group(row) == "thead" for row in rows):
        head = list(takewhile(lambda row: _group(row) == "thead", rows))
    elif not rows[0]("td", limit=1):
        head = list(takewhile(lambda row: not row("td", limit=1), rows))
    else:
        cells = rows[0](["td", "th"], recursive=False)
        spans = [(_span(cell.get("rowspan")), _span(cell.get("colspan"))) for cell in cells]
        divided = any(down == 1 and across > 1 for down, across in spans)
        head = rows[: max(down for down, _ in spans)] if divided and spans else []
    wide = any(len(_columns(row)) > _MOST_COLUMNS for row in head[:_MOST_HEADER_ROWS])
    return [] if len(head) in (len(rows), 0) or len(head) > _MOST_HEADER_ROWS or wide else head


def _columns(row: "Tag") -> list[str]:
    """What a row says in each column; a cell that spans several says it in all of them."""
    return [
        text
        for cell in row(["td", "th"], recursive=False)
        for text in [cell.get_text(" ", strip=True)] * _span(cell.get("colspan"))
    ]


def _joined(soup: "BeautifulSoup", table: "Tag", rows: list[list[str]]) -> "list[Tag]":
    """One row of what several say above a column: `Fee / Winter`. One text above all is a caption."""
    named = [texts for texts in rows if len(texts) == 1 or len(set(texts)) > 1] or rows[-1:]
    for texts in rows:
        if texts not in named and texts and texts[0]:
            caption = soup.new_tag("caption")
            caption.string = texts[0]
            table.append(caption)
    header = soup.new_tag("tr")
    for column in zip_longest(*named, fillvalue=""):
        cell = soup.new_tag("th")
        cell.string = " / ".join(dict.fromkeys(filter(None, column)))
        header.append(cell)
    return [header]
