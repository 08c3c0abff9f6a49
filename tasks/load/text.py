"""Text and HTML: turn them into stored text, a title, metadata and tables.

Stored text has `\\n` as its only line break (form feeds and the like become one), and no lone
surrogates or control characters but newline and tab: offsets mean the same to every reader.
"""

import datetime
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, takewhile, zip_longest
from pathlib import PurePosixPath

from bs4 import BeautifulSoup, Tag
from bs4.dammit import EncodingDetector
from markdownify import MarkdownConverter
from pydantic import Field
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from prompts.text.segment import heading_words
from storage.records import Recognized, Record, Scalar, Table
from tasks.load.encodings import Unreadable as Unreadable  # noqa: PLC0414 - others import it here
from tasks.load.encodings import decode

# Bytes of one document, unpacked: its reader needs some ten times as much memory.
LARGEST_DOCUMENT = 100_000_000
MOST_TAGS = 2_000_000  # opening and closing: about a kilobyte of memory each
_BREAKS = re.compile("\r\n|[\r\v\f\x85]")
_UNWANTED = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")


class PageText(Record):
    """The text of a document, its title (or an empty one), and the offsets where pages start.

    `unread` says what in it could not be read, and what to do.
    """

    text: str
    title: str
    metadata: Mapping[str, Scalar] = Field(default_factory=dict)
    pages: tuple[int, ...] = ()
    tables: tuple[Table, ...] = ()
    recognized: tuple[Recognized, ...] = ()
    unread: tuple[str, ...] = ()


def clean(text: str) -> str:
    """Return the text as it is stored."""
    return _UNWANTED.sub("", _BREAKS.sub("\n", text.removeprefix("\ufeff")))


def read_text(data: bytes) -> str:
    """Return the stored text of a text file; raises `Unreadable`."""
    return not_empty(clean(decode(data)))


def not_empty(text: str) -> str:
    """Return the text; raises `Unreadable` where it holds only white space."""
    if not text.strip():
        raise Unreadable("empty")
    return text


def one_line(text: str) -> str:
    """Return the text with each run of white space as one space."""
    return " ".join(text.split())


def join_pages(pages: Sequence[str], joints: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Join pages, each but the first after its joint; return the text and where pages start."""
    text, starts = "", []
    for page, joint in zip(pages, joints, strict=True):
        text += joint if text and page else ""
        starts.append(len(text))
        text += page
    return text, tuple(starts)


# --- front matter ---

_FRONT = re.compile(r"---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|$)\n*", re.DOTALL)
_LONGEST_FRONT = 65_536


def split_front_matter(text: str) -> tuple[str, dict[str, Scalar]]:
    """Return the text after its YAML front matter, and the front matter, empty where none is."""
    match = _FRONT.match(text)
    if not match or len(match.group(1)) > _LONGEST_FRONT:
        return text, {}
    try:
        front = YAML(typ="safe", pure=False).load(match.group(1))
    except (YAMLError, ValueError, RecursionError):
        return text, {}  # Two rules around ordinary text are not front matter.
    return (text[match.end() :], scalars(front)) if isinstance(front, dict) else (text, {})


def scalars(values: Mapping[object, object]) -> dict[str, Scalar]:
    """Return metadata that can be compared: lists joined by commas, mappings as `outer.inner`.

    Lists that hold lists or mappings are dropped.
    """
    flat: dict[str, Scalar] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= {clean(f"{key}.{inner}"): item for inner, item in scalars(value).items()}
        elif not isinstance(value, list):
            flat[clean(str(key))] = _scalar(value)
        elif not any(isinstance(item, list | Mapping) for item in value):
            flat[clean(str(key))] = clean(", ".join(map(str, value)))
    return flat


def _scalar(value: object) -> Scalar:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such number.
    if value is None or isinstance(value, bool | int | float):
        return value
    return value.isoformat() if isinstance(value, datetime.date) else clean(str(value))


# --- titles ---

_HEADING = re.compile(r"^(?:(#{1,6})[ \t]+\S.*|(\S.*)\n={3,}[ \t]*$)", re.MULTILINE)
# Tags, images and links that decorate the top of a page.
_DECORATION = re.compile(
    r"<[^<>]{1,1000}>|\[?!\[[^\]]{0,500}\]\([^)]{0,500}\)(?:\]\([^)]{0,500}\))?"
)
_FIELDS = re.compile(r"(?:[\w-]{1,40}:[ \t].*(?:\n|$)){2}")
_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_MARKUP = re.compile(
    r"!?\[([^\]]{0,500})\]\([^)]{0,500}\)|[*`]{1,3}(?=\S)|(?<=\S)[*`]{1,3}|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)"
)
_OPENING = 5_000  # characters
_LONGEST_FIRST_LINE = 100  # characters of a first line that may be a title
_LONGEST_TITLE = 500
_WORDS_OF_A_SENTENCE = 5


def title_of(
    text: str, fallback: str, metadata: Mapping[str, Scalar], headings: bool = True
) -> str:
    """Return the title of a text.

    It is that of the metadata, else the Markdown heading that the text opens with, else its first
    heading where that alone has level one, else a short first line that is neither a sentence nor
    one of several fields ("From: …"), else the fallback.
    """
    title = metadata.get("title")
    if isinstance(title, str) and title.strip():
        return shortened(one_line(title))
    if headings and (heading := _title_heading(text)):
        return one_line(_MARKUP.sub(r"\1", heading[:_LONGEST_TITLE]))
    opening = _DECORATION.sub("", text[:_OPENING]).lstrip()
    first = one_line(opening[:500].split("\n", 1)[0]).lstrip("#").strip()
    is_markup = first.startswith(("http://", "https://", "|", "---", "```"))
    names = not (is_markup or _FIELDS.match(opening) or _is_sentence(first))
    return first if 0 < len(first) < _LONGEST_FIRST_LINE and names else fallback


def _title_heading(text: str) -> str:
    """Return the heading that names the whole text: one further down may name a part."""
    if "```" in text or "~~~" in text:
        text = _FENCED.sub("", text)
    found = list(_HEADING.finditer(text))
    if not found:
        return ""
    first = found[0]
    opens = not _DECORATION.sub("", text[: min(first.start(), _OPENING)]).strip()
    top_level = [heading for heading in found if heading[1] in ("#", None)]
    if not opens and top_level != [first]:
        return ""
    return heading_words(first[0]) if first[1] else first[2]


def _is_sentence(line: str) -> bool:
    """Say whether a line is a sentence; "Nordlicht Ltd." is too short for one."""
    return line.endswith(("。", "！", "；")) or (
        line.endswith((".", "!", ";")) and line.count(" ") >= _WORDS_OF_A_SENTENCE
    )


def shortened(title: str) -> str:
    """Return the beginning of a title, as it is stored and shown to models."""
    return title[:_LONGEST_TITLE].rstrip()


def stem(name: str) -> str:
    """Return a file name without its folder and ending (`.jsonl.gz` counts as one)."""
    return PurePosixPath(name.removesuffix(".gz")).stem


def pretty_stem(name: str) -> str:
    """Return a file name as words: `bridge_report-2020.md` is "Bridge report 2020"."""
    words = one_line(re.sub(r"[_\-]+", " ", stem(name)))
    return words[:1].upper() + words[1:] or name


# --- HTML ---

# Not forms themselves: some pages are one form from top to bottom.
_DROPPED = (
    "script style noscript template nav svg iframe head button select datalist textarea rp rt"
).split()
# Blocks that are renamed to `div`, the only one that the converter knows.
_BLOCKS = (
    "address aside center details dialog fieldset figure footer form header hgroup legend main "
    "summary"
).split()
_HIDDEN = '[hidden], [aria-hidden="true"], [role="navigation"], [role="doc-backlink"]'
_BLANK_LINES = re.compile(r"\n{3,}")
_TRAILING = re.compile(r"(?<![ \t\u00a0])[ \t\u00a0]+$", re.MULTILINE)
_RAISED = "sup, msup > :nth-child(2), msubsup > :nth-child(3)"
_EXPONENT = re.compile(r"[-+−–]?\w+(?:[.,]\d+)?")
_CELLS = ["td", "th"]
_MOST_COPIED = 1_000_000  # cells and characters that spanning cells of a table are copied into
_MOST_HEADER_ROWS, _MOST_COLUMNS = 3, 1000


def read_html(data: bytes) -> PageText:
    """Read a page without scripts and navigation; headings, lists and tables as Markdown."""
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
    """Raise `Unreadable` where markup has more tags than fit into memory as a tree."""
    if (tags := data.count(b"<")) > most:
        raise Unreadable(f"{tags:,} tags, more than {most:,}: divide it")


def to_markdown(markup: str) -> str:
    """Return the stored text of HTML; links and emphasis keep only their words."""
    try:
        soup = BeautifulSoup(markup, "html.parser")
        for tag in reversed(soup.select(_RAISED)):  # Inner ones come first.
            tag.string = raised(tag.get_text())
        for table in [table for table in soup("table") if table.find("table")]:
            for tag in [table, *_parts_of(table)]:  # A table around tables is only layout.
                tag.name = "div"
        text = _Converter().convert_soup(soup)
    except RecursionError as error:
        raise Unreadable("its markup is nested too deep") from error
    text = clean(f"{text}\n").replace("\\\n", "\n")
    return _BLANK_LINES.sub("\n\n", _TRAILING.sub("", text)).strip("\n")


def raised(text: str) -> str:
    """Write raised text after `^` where it changes what it follows: `10^6`, `x^(n+1)`.

    Ordinals, trade marks and notes in brackets need no sign: `21st`, `Orla™`, `1931[1]`.
    """
    words = one_line(text)
    counts = any(map(str.isdigit, words)) or (len(words) == 1 and words.isalpha())
    if not counts or words.startswith(("[", "(")):
        return words
    return f"^{words}" if _EXPONENT.fullmatch(words) else f"^({words})"


class _Converter(MarkdownConverter):
    """Converts HTML to plain Markdown, each table with one header row and no spanning cells."""

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
        return text  # `convert_table` reads the cells itself.

    convert_th = convert_tr = convert_td

    def convert_table(self, el: Tag, text: str, parent_tags: object) -> str:
        rows = list(el("tr"))
        grid = _grid(rows)
        head = _count_header_rows(rows)
        captions = [one_line(caption.get_text()) for caption in el("caption")]
        header = grid[:head]
        # One cell across the whole header is a caption.
        captions += [row[0] for row in header if len(row) > 1 and len(set(row)) == 1]
        header = [row for row in header if len(row) == 1 or len(set(row)) > 1] or header[-1:]
        body = sorted(range(head, len(rows)), key=lambda place: _group(rows[place]) == "tfoot")
        lines = [header_line(header)[:_MOST_COLUMNS]] if header else []
        lines += [grid[place] for place in body if any(grid[place])]
        if not lines:
            return "\n\n".join(["", *captions, ""])
        written = [
            f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
        ]
        written.insert(1, f"|{' --- |' * len(lines[0])}")
        return "\n\n".join(["", *filter(None, captions), "\n".join(written), ""])


def _parts_of(table: Tag) -> Iterator[Tag]:
    """Yield the rows, cells and groups of a table, without those of tables in its cells."""
    for tag in table(["caption", "thead", "tbody", "tfoot", "tr", "td", "th"]):
        if tag.find_parent("table") is table:
            yield tag


def _group(row: Tag) -> str:
    return row.parent.name if row.parent else ""


def _grid(rows: Sequence[Tag]) -> list[list[str]]:
    """Return the text of each row by column; a spanning cell is copied to all that it spans."""
    room = _MOST_COPIED
    grid: list[dict[int, str]] = [{} for _ in rows]
    for number, row in enumerate(rows):
        column = 0
        for cell in row(_CELLS, recursive=False):
            while column in grid[number]:
                column += 1
            text = one_line(cell.get_text(" "))
            across, down = _span(cell, "colspan"), _span(cell, "rowspan")
            room -= (across * down - 1) * (len(text) + 1)
            if room < 0:
                across = down = 1
            for line in grid[number : number + down]:
                line.update(dict.fromkeys(range(column, column + across), text))
    return [[line[column] for column in takewhile(line.__contains__, count())] for line in grid]


def _span(cell: Tag, attribute: str) -> int:
    """Return how many columns or rows a cell takes; browsers read at most 1,000."""
    value = str(cell.get(attribute))
    return min(max(int(value[:6]), 1), 1000) if value.isdecimal() else 1


def _count_header_rows(rows: Sequence[Tag]) -> int:
    """Count the rows that name the columns: those of `thead`, else those of `th` alone, else one.

    Where a cell of the first row spans rows beside one that spans columns, so many rows count.
    """
    tests: list[Callable[[Tag], bool]] = [
        lambda row: _group(row) == "thead",
        lambda row: not row("td", limit=1),
    ]
    for is_header in tests:
        head = len(list(takewhile(is_header, rows)))
        if 0 < head < len(rows) and head <= _MOST_HEADER_ROWS:
            return head
    spans = [
        (_span(cell, "colspan"), _span(cell, "rowspan"))
        for cell in (rows[0](_CELLS, recursive=False) if rows else [])
    ]
    if not any(across > 1 and down == 1 for across, down in spans):
        return 1
    deep = max(down for _, down in spans)
    return deep if deep < len(rows) and deep <= _MOST_HEADER_ROWS else 1


def header_line(rows: Sequence[Sequence[str]]) -> list[str]:
    """Join the rows of a header into one (`Fee / Winter`); equal words stand once."""
    columns = zip_longest(*rows, fillvalue="")
    return [" / ".join(dict.fromkeys(filter(None, column))) for column in columns]
