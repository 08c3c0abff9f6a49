"""What stands in a table that was flattened to lines of text, its columns kept by blanks?

`Cash and cash equivalents      $     11,464    $     18,364`: cells are parted by two blanks or more; the header lines
above tell the columns by where they stand; long labels go on in the next line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tasks.structurize.grids import Above, Entry, Row, is_heading, is_statement, label_of
from tasks.structurize.units import Caption, caption_of, figure_of, is_nil

_SEGMENT = re.compile(r"\S+(?: \S+)*")
_SIGN = re.compile(r"(?:US|HK|[CA])?[$€£¥]")
_CLOSING = re.compile(r"[)）]?\s*%?\s*[)）]?")
_NEXT_SIGN = re.compile(r"\s*[$€£¥]$")
_YEAR = re.compile(r"(?:19|20)\d\d")
_FOOT = re.compile(r"[-–—]?\s*(?:[A-Z]-\d{1,3}|page \d+(?: of \d+)?|[ivx]{1,5})\s*[-–—]?", re.I)
_BARE = re.compile(r"\d{1,4}")
_TIME = re.compile(
    r"ended|months|quarter|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b|"
    r"\b(?:19|20)\d\d\b|as of|as at",
    re.I,
)
_NO_COLUMN = re.compile(r"\(?\s*(?:un)?audited\s*\)?|[$*%]|\(?note(?:s|\s\d+)?\)?", re.I)
_BULLET = re.compile(r"[•●○▪◦·*–-]|\(?(?:[a-z]|[ivx]+|\d{1,2})[.)]|item \d\w?\.?|part [ivx]+\.?", re.I)
_GOES_ON = re.compile(r"(?:,|;|\b(?:and|or|of|to|in|by|for|at|the|from|with|on|per|net)|[-–(])$", re.I)
_PROSE, _LONG_CELL, _LABEL_COLUMN = 150, 45, 12
# How far a header may stand from the figures below it, in characters, unless it speaks of time (which spans columns).
_NEAR = 10
# How far the figures of a table that goes on may have moved.
_DRIFT = 3
_MOST_CONTINUED, _MOST_HEADER_LINES = 4, 6


@dataclass(frozen=True, slots=True)
class _Segment:
    start: int
    end: int
    text: str
    is_figure: bool = False


@dataclass(slots=True)
class Layout:
    """Reads lines of text in order; what it knows of the table that it is in. Offsets of columns are within a line."""

    text: str
    above: Above
    header: list[list[_Segment]] = field(default_factory=list)
    section: str = ""
    table: int = -1
    rows: int = 0
    caption: Caption = field(default_factory=Caption)
    pending: Row | None = None
    continued: int = 0
    last_was_total: bool = False
    # Of the last table that had columns: its header, and where the figures of its last row ended.
    former: list[list[_Segment]] = field(default_factory=list)
    edges: list[int] = field(default_factory=list)

    def line(self, start: int, end: int) -> Iterator[Row]:
        """The row that a line completes: a row is complete when the next line is no part of its label."""
        segments = _segments(self.text[start:end])
        if not segments or (len(segments) == 1 and _FOOT.fullmatch(segments[0].text)) or self._goes_on(segments):
            return
        yield from self._complete()
        label, figures = _split(segments)
        if figures and not _is_header(label, figures):
            self._row(start, label, figures)
        elif not figures and _is_words(segments, bool(self.rows)):
            self._words(segments)
        else:
            self._head(segments)

    def labelled(self, start: int, end: int) -> int:
        """Where the words of a line end: at its first cell where the line has just been read as a row."""
        if self.pending is not None and start <= self.pending.start < end:
            return self.pending.entries[0].start
        return end

    def close(self) -> Iterator[Row]:
        """The table ends: another form of table, or the text, follows."""
        yield from self._complete()
        self._end()

    def _end(self) -> None:
        self.former = self.header or self.former
        self.header, self.section, self.rows = [], "", 0

    def _complete(self) -> Iterator[Row]:
        if self.pending is not None:
            yield self.pending
        self.pending, self.continued = None, 0

    def _goes_on(self, segments: list[_Segment]) -> bool:
        """Whether a line is the rest of the label above it; then it is added."""
        if self.pending is None or len(segments) > 1 or segments[0].is_figure or self.continued >= _MOST_CONTINUED:
            return False
        text, label = segments[0].text, self.pending.label
        is_open = label.count("(") > label.count(")")
        if (
            len(text) > _PROSE
            or text.endswith(":")
            or not (segments[0].start == 1 or text[0].islower() or is_open or _GOES_ON.search(label))
        ):
            return False
        self.pending.label = f"{label} {label_of(text)}".strip()
        self.continued += 1
        return True

    def _row(self, start: int, label: list[_Segment], figures: list[_Segment]) -> None:
        if len(figures) == 1 and _BARE.fullmatch(figures[0].text) and not (label and self._columns(figures)[0]):
            return  # the number of a page, or a line of a table of contents
        if not self.rows and not self.header:
            if self._resumes(figures):
                self.header = self.former
            else:
                self._begin()
        self.edges = [cell.end for cell in figures] if len(figures) > 1 else self.edges
        if self.last_was_total:
            self.section, self.last_was_total = "", False
        self.rows += 1
        name = label_of(self.text[start + label[0].start : start + label[-1].end]) if label else ""
        columns = self._columns(figures)
        entries = [Entry(start + c.start, start + c.end, column) for c, column in zip(figures, columns, strict=True)]
        first = label[0] if label else figures[0]
        self.pending = Row(
            name, start + first.start, start + figures[-1].end, entries,
            self.above.heading, self.section, self.above.context, self.caption, self.table,
        )  # fmt: skip
        self.last_was_total = name[:5].lower() == "total"

    def _resumes(self, figures: list[_Segment]) -> bool:
        """Whether a row goes on under the columns of the last table: a page break or a remark stood between."""
        ends = [cell.end for cell in figures]
        return (
            bool(self.former)
            and len(ends) == len(self.edges)
            and all(abs(a - b) <= _DRIFT for a, b in zip(ends, self.edges, strict=True))
            and not any(is_heading(line) for line in self.above.lines)
        )

    def _begin(self) -> None:
        self.table = self.above.begin()
        self.caption, self.section = self.above.caption, ""

    def _head(self, segments: list[_Segment]) -> None:
        """A line that names columns; after rows it begins the next table."""
        if self.rows or not self.header:
            self.header, self.rows = [], 0
            self._begin()
        for segment in segments:
            if stated := caption_of(segment.text):
                self.caption = stated
        named = [s for s in segments if not _NO_COLUMN.fullmatch(s.text) and s.start >= _LABEL_COLUMN]
        if named:
            self.header = [*self.header[1 - _MOST_HEADER_LINES :], named]

    def _words(self, segments: list[_Segment]) -> None:
        """A line of words: a section of the table, a title, or running text, which ends the table."""
        text = " ".join(segment.text for segment in segments)
        if len(text) > _PROSE or (text.endswith(".") and text.count(" ") > 8):
            self._end()
        elif self.header or self.rows:
            self.section, self.last_was_total = text.rstrip(":"), False
            if stated := caption_of(text):
                self.caption = stated
        if self.header and not self.rows and is_statement(text):
            self.header = []  # what looked like a header stood above the title
        self.above.add(text)

    def _columns(self, figures: list[_Segment]) -> list[str]:
        """The header above each figure of a row, its lines joined: by order where there are as many, else by place."""
        parts: list[list[str]] = [[] for _ in figures]
        for line in self.header:
            if len(line) == len(figures) > 1:
                for part, segment in zip(parts, line, strict=True):
                    part.append(segment.text)
                continue
            for part, cell in zip(parts, figures, strict=True):
                nearest = min(line, key=lambda segment: _apart(segment, cell))
                spans_all = _TIME.search(nearest.text) and not _is_year(nearest)
                if spans_all or (
                    _apart(nearest, cell) <= _NEAR and cell is min(figures, key=lambda one: _apart(nearest, one))
                ):
                    part.append(nearest.text)
        return [label_of(" ".join(part)) for part in parts]


def _apart(header: _Segment, cell: _Segment) -> float:
    """How far a header stands from a figure: negative where one is above the other."""
    return max(header.start - cell.end, cell.start - header.end)


def _segments(line: str) -> list[_Segment]:
    """The parts of a line that two blanks or more keep apart; signs belong to the figure that they stand at."""
    found: list[_Segment] = []
    for match in _SEGMENT.finditer(line):
        text, end = match.group(), match.end()
        if _SIGN.fullmatch(text):
            continue
        if found and found[-1].is_figure and _CLOSING.fullmatch(text):
            found[-1] = _merged(line, found[-1], end)
            continue
        if sign := _NEXT_SIGN.search(text):
            text, end = text[: sign.start()], match.start() + sign.start()
        figure = figure_of(text) or figure_of(f"{text})" if text.startswith(("(", "$(", "$ (")) else "")
        if figure is not None or (is_nil(text) and match.start() >= _LABEL_COLUMN):
            length = min(figure.end, len(text)) if figure else len(text)
            found.append(_Segment(match.start(), match.start() + length, text[:length], is_figure=True))
        else:
            found.append(_Segment(match.start(), end, text))
    return found


def _merged(line: str, figure: _Segment, end: int) -> _Segment:
    """A figure with the bracket or the per cent sign that stands apart from it, where the two make one figure."""
    text = line[figure.start : end]
    return _Segment(figure.start, end, text, is_figure=True) if figure_of(text) else figure


def _split(segments: list[_Segment]) -> tuple[list[_Segment], list[_Segment]]:
    """The label's segments and the figures after it."""
    count = next((place for place, segment in enumerate(segments) if segment.is_figure), len(segments))
    first = segments[0]
    if count == 0 and len(segments) > 1 and first.start < _LABEL_COLUMN and not _is_year(segments[1]):
        count = 1
    return segments[:count], [segment for segment in segments[count:] if segment.is_figure]


def _is_year(segment: _Segment) -> bool:
    return _YEAR.fullmatch(segment.text) is not None


def _is_header(label: list[_Segment], figures: list[_Segment]) -> bool:
    """Whether a line of figures is one of years, which name columns."""
    return all(_is_year(figure) for figure in figures) and figures[0].start >= _LABEL_COLUMN


def _is_words(segments: list[_Segment], within: bool) -> bool:
    """Whether a line without figures is text, not the header of columns; `within` a table only times head columns."""
    first = segments[0]
    if len(segments) == 1:
        is_left = first.start < 2 * _LABEL_COLUMN or len(first.text) > 2 * _LONG_CELL
        return is_left or (within and not _TIME.search(first.text))
    rest = segments[1:]
    return bool(_BULLET.fullmatch(first.text)) or any(len(s.text) > _LONG_CELL or "：" in s.text for s in rest)
