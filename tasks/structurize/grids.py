"""What does every form of table come down to? Rows with a label, and entries under column labels, each with its place.

Readers find the places; what the entries mean (number, unit, period) is decided in `tables.py` for all forms alike.
"""

import re
from collections import deque
from dataclasses import dataclass, field

from tasks.structurize.units import Caption, caption_of

# Characters that only hold a place: offsets stay as they are, since each becomes one space.
_BLANKS = str.maketrans(dict.fromkeys("\u200b\xa0\u2002\u2003\u2007\u2009\u202f\ufeff\t\u3000", " "))
_STATEMENT = re.compile(
    r"balance sheets?|statements? of|financial (?:condition|position)|schedule of|income statement|cash flows?$|"
    r"资产负债表|利润表|现金流量表|权益变动表",
    re.I,
)
_PERIOD_LINE = re.compile(
    r"(?:months?|years?|quarters?|periods?) ended|^(?:as of |at |for the )|^\s*\d{4}\s*年\s*\d{1,2}\s*[月—–-]", re.I
)
_NUMBERED = re.compile(r"(?:[（(]?[一二三四五六七八九十]+[)）、]|[（(]?\d{1,2}[)）、.]|note \d|第.{1,3}节)", re.I)
_NO_HEADING = re.compile(
    r"^[□√区]|适用|是否|^编制|accompanying notes|^see notes|^（?.{0,6}单位|法定代表人|^公司负责人|^[*†]|^see\b|"
    r"unaudited\)?$|^(?:\w+ )?\w+\.? \d{1,2}, \d{4}$|^\(?(?:audited|continued)\)?$|"
    r"^\d+$|^table of contents$|^F-\d+$|^\(?(?:amounts |dollars |expressed |stated )?in \w+",
    re.I,
)
_LONGEST_HEADING = 120
_REMEMBERED = 7
STATED_IN_SENTENCE = -1


@dataclass(frozen=True, slots=True)
class Entry:
    """A cell's text at `start`..`end` of the document, under its column label."""

    start: int
    end: int
    column: str


@dataclass(slots=True)
class Row:
    """A line of a table at `start`..`end`; `context` is what the lines above the table say of its time."""

    label: str
    start: int
    end: int
    entries: list[Entry]
    heading: str
    section: str
    context: str
    caption: Caption
    table: int
    # Whether a hyphen stands for nil; in Markdown it also fills what is empty.
    hyphen_is_nil: bool = True


@dataclass(slots=True)
class Above:
    """The short lines of text read since the last table: its title, its caption and its dates are among them."""

    lines: deque[str] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    heading: str = ""
    context: str = ""
    caption: Caption = field(default_factory=Caption)
    tables: int = 0

    def add(self, line: str) -> None:
        """A line of text that belongs to no table."""
        text = " ".join(line.split()).lstrip("# ")
        if not text:
            return
        if len(text) > _LONGEST_HEADING and not caption_of(text[:_LONGEST_HEADING]):
            self.lines.clear()
        self.lines.append(text[: 2 * _LONGEST_HEADING])

    def drop_from(self, text: str) -> None:
        """Forget the lines from one on: they belong to the table itself."""
        while text in self.lines and self.lines.pop() != text:
            pass

    def begin(self) -> int:
        """A new table: its heading, context and caption by the lines above it; its ordinal."""
        named = [line for line in self.lines if _may_name(line)]
        statements = [line for line in named if _STATEMENT.search(line)]
        if statements or named:
            self.heading = (statements or [line for line in named if not _PERIOD_LINE.search(line)] or named)[-1]
        if self.lines:
            lines = list(self.lines)
            # What stands before the heading belongs to something else.
            below = lines[lines.index(self.heading) + 1 :] if self.heading in lines else lines
            self.context = " ".join([self.heading, *(line for line in below if _PERIOD_LINE.search(line))])
            stated = [found for line in self.lines if (found := caption_of(line))]
            self.caption = stated[-1] if stated else Caption()
        self.lines.clear()
        self.tables += 1
        return self.tables - 1


def _may_name(line: str) -> bool:
    """Whether a line may be a heading: short, not cut off, and no remark or signature."""
    return (
        len(line) <= _LONGEST_HEADING
        and not line[0].islower()
        and not line.endswith((",", " and", ";"))
        and not _NO_HEADING.search(line)
    )


def is_statement(line: str) -> bool:
    """Whether a line names a financial statement."""
    return _STATEMENT.search(line) is not None and len(line) <= _LONGEST_HEADING


def is_heading(line: str) -> bool:
    """Whether a line says that another table follows: a numbered or a statement's heading, a caption, a period."""
    return bool(_NUMBERED.match(line) or _STATEMENT.search(line) or _PERIOD_LINE.search(line) or caption_of(line))


def flattened(text: str) -> str:
    """The text with every odd blank as a space, and the same offsets."""
    return text.translate(_BLANKS)


def label_of(text: str) -> str:
    """A label on one line: line breaks of cells and runs of blanks are one space, none between Chinese characters."""
    if text == "null":
        return ""
    text = re.sub(r" ?<br ?/?> ?", " ", " ".join(text.replace("\\|", "|").split()))
    return re.sub(r"(?<=[\u4e00-\u9fff（）、]) (?=[\u4e00-\u9fff（）、])", "", text).strip(" *")
