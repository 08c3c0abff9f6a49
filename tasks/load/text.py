"""Text and HTML files: from their bytes to stored text, its title and its metadata.

Stored text has `\\n` newlines only (form feeds and the like count as line breaks) and holds no lone
surrogates and no control characters but newline and tab: offsets mean the same for every reader.
"""

import datetime
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import PurePosixPath

from bs4 import BeautifulSoup, Tag
from bs4.dammit import EncodingDetector
from markdownify import MarkdownConverter
from pydantic import Field
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from prompts.text.segment import heading_words
from storage.records import Record, Scalar, Table
from tasks.load.encodings import Unreadable as Unreadable  # noqa: PLC0414 - others import it here
from tasks.load.encodings import decode

_BREAKS = re.compile("\r\n|[\r\v\f\x85]")
_UNWANTED = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_FRONT = re.compile(r"---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|$)\n*", re.DOTALL)
_HEADING = re.compile(r"^(?:(#{1,6})[ \t]+\S.*|(\S.*)\n={3,}[ \t]*$)", re.MULTILINE)
# Tags, and images with what they lead to: what a page is decorated with before it begins.
_DECORATION = re.compile(
    r"<[^<>]{1,1000}>|\[?!\[[^\]]{0,500}\]\([^)]{0,500}\)(?:\]\([^)]{0,500}\))?"
)
_OPENING = 5_000  # characters
_FIELDS = re.compile(r"(?:[\w-]{1,40}:[ \t].*(?:\n|$)){2}")
_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_MARKS = re.compile(
    r"!?\[([^\]]{0,500})\]\([^)]{0,500}\)|[*`]{1,3}(?=\S)|(?<=\S)[*`]{1,3}|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)"
)
_LONGEST_TITLE = 100  # of a first line that is taken for one
_LONGEST_GIVEN = 500  # characters of a title that the text or its metadata gives
_WORDS_OF_A_SENTENCE = 5
_LONGEST_FRONT = 65_536


# Bytes of one document, unpacked: what reads it needs some ten times as much memory.
LARGEST_DOCUMENT = 100_000_000
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


# --- front matter and titles ---------------------------------------------------------------------


def split_front_matter(text: str) -> tuple[str, dict[str, Scalar]]:
    """The text after its YAML front matter, and the front matter; the whole text without one."""
    match = _FRONT.match(text)
    if not match or len(match.group(1)) > _LONGEST_FRONT:
        return text, {}
    try:
        front = YAML(typ="safe", pure=False).load(match.group(1))
    except (YAMLError, ValueError, RecursionError):
        return text, {}  # two rules around ordinary text are no front matter
    return (text[match.end() :], scalars(front)) if isinstance(front, dict) else (text, {})


def scalars(values: Mapping[object, object]) -> dict[str, Scalar]:
    """Metadata to compare by: lists joined by commas, mappings flattened to `outer.inner`.

    Lists of lists are left out.
    """
    flat: dict[str, Scalar] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= {clean(f"{key}.{inner}"): item for inner, item in scalars(value).items()}
        elif not isinstance(value, list) or not any(
            isinstance(item, list | Mapping) for item in value
        ):
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


def title_of(
    text: str, fallback: str, metadata: Mapping[str, Scalar], headings: bool = True
) -> str:
    """The title of a text, or the fallback.

    It is that of the metadata, else the Markdown heading that the text opens with, else the first
    one where it alone is of the first level, else a short first line.

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
    return (
        first
        if 0 < len(first) < _LONGEST_TITLE and not marked and not _is_sentence(first)
        else fallback
    )


def _title_heading(text: str) -> str:
    """The heading that names the whole text, or nothing: one further down may name a part."""
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


# --- HTML ----------------------------------------------------------------------------------------

# Not forms themselves: some pages are one form from top to bottom.
_DROPPED = (
    "script style noscript template nav svg iframe head button select datalist textarea rp rt"
).split()
# They stand by themselves as `div` does, which alone is known to the converter.
_BLOCKS = (
    "address aside center details dialog fieldset figure footer form header hgroup legend main "
    "summary"
).split()
_HIDDEN = '[hidden], [aria-hidden="true"], [role="navigation"]'
_BLANKS = re.compile(r"\n{3,}")
_TRAILING = re.compile(r"(?<![ \t\u00a0])[ \t\u00a0]+$", re.MULTILINE)
_RAISED = "sup, msup > :nth-child(2), msubsup > :nth-child(3)"
_EXPONENT = re.compile(r"[-+−–]?\w+(?:[.,]\d+)?")
_MOST_COPIED = 1_000_000  # cells and characters of a table that spanning cells are written into
_MOST_HEADER_ROWS, _MOST_COLUMNS = 3, 1000


class PageText(Record):
    """Readable text, the title that the file gives (or empty), metadata, and where pages start."""

    text: str
    title: str
    metadata: Mapping[str, Scalar] = Field(default_factory=dict)
    pages: tuple[int, ...] = ()
    tables: tuple[Table, ...] = ()


def join_pages(pages: Sequence[str], joints: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """The pages joined, each but the first after its joint, and where each starts."""
    text, starts = "", []
    for page, joint in zip(pages, joints, strict=True):
        text += joint if text and page else ""
        starts.append(len(text))
        text += page
    return text, tuple(starts)


def read_html(data: bytes) -> PageText:
    """The page without scripts and navigation: headings as `# …`, lists and tables as Markdown."""
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
    text = to_markdown(str(soup.body or soup))
    return PageText(text=text, title=clean(shortened(title)), metadata=metadata)


def check_markup(data: bytes, most: int = MOST_TAGS) -> None:
    """Raises `Unreadable` where markup has more tags than a tree of them should hold in memory."""
    if (tags := data.count(b"<")) > most:
        raise Unreadable(f"{tags:,} tags, more than {most:,}: divide it")


def to_markdown(markup: str) -> str:
    """Stored text of an HTML fragment; links and emphasis keep their words only."""
    try:
        soup = BeautifulSoup(markup, "html.parser")
        for tag in reversed(soup.select(_RAISED)):  # what is raised twice comes first
            tag.string = raised(tag.get_text())
        for table in [table for table in soup("table") if table.find("table")]:
            for tag in [table, *_parts_of(table)]:  # it places what it holds, and names nothing
                tag.name = "div"
        text = _Converter().convert_soup(soup)
    except RecursionError as error:
        raise Unreadable("its markup is nested too deep") from error
    text = clean(text).replace("\\\n", "\n")
    return _BLANKS.sub("\n\n", _TRAILING.sub("", text)).strip("\n")


def raised(text: str) -> str:
    """Text above the line behind `^` where it would change what it follows: `10^6`, `x^(n+1)`.

    Endings of ordinals, trade marks and notes in brackets stay: `21st`, `Orla™`, `1931[1]`.
    """
    said = one_line(text)
    counts = any(map(str.isdigit, said)) or (len(said) == 1 and said.isalpha())
    if not counts or said.startswith(("[", "(")):
        return said
    return f"^{said}" if _EXPONENT.fullmatch(said) else f"^({said})"


class _Converter(MarkdownConverter):
    """HTML as plain Markdown, its tables with one header row and each cell in its column."""

    class Options:
        """What the converter reads its defaults from."""

        heading_style = "ATX"
        bullets = "-"
        strip = ("a", "b", "strong", "i", "em", "img", "code")
        escape_asterisks = False
        escape_underscores = False
        escape_misc = False
        newline_style = "backslash"

    def convert_td(self, el: Tag, text: str, parent_tags: object) -> str:
        """What a cell says; its table reads its place."""
        return text

    convert_th = convert_tr = convert_td

    def convert_table(self, el: Tag, text: str, parent_tags: object) -> str:
        """A table in Markdown, its caption before it."""
        rows = list(el("tr"))
        grid = _grid(rows)
        head = _header_rows(rows)
        captions = [one_line(caption.get_text()) for caption in el("caption")]
        named = grid[: len(head)]
        captions += [row[0] for row in named if len(row) > 1 and len(set(row)) == 1]
        named = [row for row in named if len(row) == 1 or len(set(row)) > 1] or named[-1:]
        body = sorted(range(len(head), len(rows)), key=lambda place: _group(rows[place]) == "tfoot")
        lines = [_header_line(named)] if named else []
        lines += [grid[place] for place in body if any(grid[place])]
        if not lines:
            return "\n\n".join(["", *captions, ""])
        written = [
            f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
        ]
        written.insert(1, f"|{' --- |' * len(lines[0])}")
        return "\n\n".join(["", *filter(None, captions), "\n".join(written), ""])


def _parts_of(table: Tag) -> Iterator[Tag]:
    """The rows, cells and groups of a table itself, not of those in its cells."""
    for tag in table(["caption", "thead", "tbody", "tfoot", "tr", "td", "th"]):
        if tag.find_parent("table") is table:
            yield tag


def _group(row: Tag) -> str:
    return row.parent.name if row.parent else ""


def _grid(rows: Sequence[Tag]) -> list[list[str]]:
    """What each row says in each column; a cell that spans several says it in all of them."""
    left = _MOST_COPIED
    going_on: dict[
        int, tuple[str, int]
    ] = {}  # by column: the text and the rows that it still takes
    grid = []
    for row in rows:
        line: list[str] = []

        def copy_above(line: list[str] = line) -> None:
            while len(line) in going_on:
                text, more = going_on.pop(len(line))
                if more > 1:
                    going_on[len(line)] = text, more - 1
                line.append(text)

        for cell in row(["td", "th"], recursive=False):
            copy_above()
            text = one_line(cell.get_text(" "))
            across, down = _span(cell.get("colspan")), _span(cell.get("rowspan"))
            left -= (across * down - 1) * (len(text) + 1)
            if left < 0:
                across = down = 1
            for _ in range(across):
                if down > 1:
                    going_on[len(line)] = text, down - 1
                line.append(text)
        copy_above()
        grid.append(line)
    return grid


def _span(attribute: object) -> int:
    """How many columns or rows a cell takes; browsers read at most 1,000."""
    is_number = isinstance(attribute, str) and attribute.isdecimal()
    return min(max(int(str(attribute)[:6]), 1), 1000) if is_number else 1


def _header_rows(rows: Sequence[Tag]) -> list[Tag]:
    """The rows that name the columns: those of `thead`, else those of `th` alone, else the first.

    Where the first row's cells span rows, the rows beside them belong to it.
    """
    for is_head in (lambda row: _group(row) == "thead", lambda row: not row("td", limit=1)):
        head = list(takewhile(is_head, rows))
        if 0 < len(head) < len(rows) and len(head) <= _MOST_HEADER_ROWS:
            return head
    cells = rows[0](["td", "th"], recursive=False) if rows else []
    divided = any(
        _span(cell.get("colspan")) > 1 and _span(cell.get("rowspan")) == 1 for cell in cells
    )
    deep = max((_span(cell.get("rowspan")) for cell in cells), default=1) if divided else 1
    return list(rows[: deep if deep < len(rows) and deep <= _MOST_HEADER_ROWS else 1])


def _header_line(rows: Sequence[Sequence[str]]) -> list[str]:
    """One row of what several say above a column: `Fee / Winter`."""
    width = max(map(len, rows))
    columns = (
        [row[place] for row in rows if place < len(row)]
        for place in range(min(width, _MOST_COLUMNS))
    )
    return [" / ".join(dict.fromkeys(filter(None, column))) for column in columns]
