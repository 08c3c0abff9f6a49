"""What stands in a Markdown table, also in one that a page break cut in two or glued to the text after it?

What PDF converters do, and is undone here: a page break starts a new table whose "header" is the next row; two tables
share a line (`|a|1||b|2|`); the header stands twice or comes again in the middle; a merged cell is repeated in each of
its columns; text follows the last bar.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tasks.structurize.grids import Above, Entry, Row, is_heading, label_of
from tasks.structurize.units import caption_of, figure_of, is_nil, open_figure_of

_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\|?\s*:?-{3,}:?\s*(?:\|\s*:?-{3,}:?\s*)*\|?")
_SIGN = re.compile(r"(?:US|HK|[CA])?[$€£¥]|[(（]|[)）]\s*%?|%")
_YEAR = re.compile(r"(?:19|20)\d\d")
_BREAK = re.compile(r"<br\s*/?>", re.I)
_HEADER_WORD = re.compile(
    r"期|年|金额|数量|比例|名称|项目|余额|发生额|增减|变动|原因|说明|性质|种类|状态|类别|\b(?:19|20)\d\d\b|ended|total|amount",
    re.I,
)
_LONGEST_WORDS = 60


@dataclass(slots=True)
class Pipes:
    """Reads the lines of pipe tables in order; what it knows of the table that it is in."""

    text: str
    above: Above
    columns: list[str] = field(default_factory=list)
    section: str = ""
    table: int = -1
    header_before: bool = False
    # Whether the label stands twice in each row, though not in the header.
    is_doubled: bool = False

    def line(self, start: int, end: int, following: str) -> Iterator[Row]:
        """The rows on a line at `start`..`end`, given the line that follows."""
        spans, tail = self._spans(start, end)
        if _RULE.fullmatch(self.text[start:end].strip()):
            return
        if _RULE.fullmatch(following.strip()) and following.strip():
            width = len(_BAR.findall(following.strip().strip("|"))) + 1
            before, spans = spans[: max(len(spans) - width, 0)], spans[-width:]
            if any(b > a for a, b in before):
                yield from self._row([span for span in before if span[1] > span[0]][: len(self.columns) or None])
            yield from self._first(spans)
        else:
            width = (len(self.columns) + self.is_doubled) or len(spans)
            yield from self._row(spans[:width])
            tail = tail or " ".join(self.text[a:b] for a, b in spans[width:])
        if tail.strip():
            self.above.add(tail)

    def _spans(self, start: int, end: int) -> tuple[list[tuple[int, int]], str]:
        """The cells between bars, without outer blanks, and what follows the last bar."""
        bars = [match.start() for match in _BAR.finditer(self.text, start, end)]
        tail = self.text[bars[-1] + 1 : end]
        closes = [*bars[1:]]
        if tail.strip() and len(bars) <= len(self.columns):
            closes.append(end)
            tail = ""
        spans = []
        for a, b in zip(bars, closes, strict=False):
            inner = self.text[a + 1 : b]
            left = a + 1 + len(inner) - len(inner.lstrip())
            spans.append((left, max(left, a + 1 + len(inner.rstrip()))))
        return spans, tail

    def _first(self, spans: list[tuple[int, int]]) -> Iterator[Row]:
        """The row above a rule: a header, or the first row after a page break."""
        texts = [self.text[a:b] for a, b in spans]
        is_row = any(_is_figure(text) and not _YEAR.fullmatch(text) for text in texts[1:]) or all(
            _is_empty(text) for text in texts[1:]
        )
        if is_row and self.columns and not any(is_heading(line) for line in self.above.lines) and self._fits(texts):
            self.above.lines.clear()
            yield from self._row(spans)
            return
        self.table, self.section, self.is_doubled = self.above.begin(), "", False
        for text in texts:
            self.above.caption = caption_of(label_of(text)) or self.above.caption
        if is_row:
            self.columns, self.header_before = [""] * len(spans), False
            yield from self._row(spans)
        else:
            self.columns, self.header_before = [label_of(text) for text in texts], True

    def _fits(self, texts: list[str]) -> bool:
        """Whether a row goes on under the columns so far, which may have the label's column once more, or once less."""
        more = len(texts) - len(self.columns)
        if more == -1 and len(self.columns) > 2 and self.columns[0] == self.columns[1]:
            del self.columns[1]
            return True
        self.is_doubled = more == 1 and texts[0] == texts[1]
        return more == 0 or self.is_doubled

    def _row(self, spans: list[tuple[int, int]]) -> Iterator[Row]:
        if self.is_doubled and len(spans) > 1:
            spans = [spans[0], *spans[2:]]
        texts = [self.text[a:b] for a, b in spans]
        if not texts or not any(texts):
            return
        if self._is_header(texts):
            labels = [label_of(text) for text in texts]
            self.columns = self._stacked(labels) if self.header_before else labels
            return
        self.header_before = False
        label = label_of(texts[0])
        others = texts[1:]
        if others and (
            all(label_of(text) == label for text in others)
            or (label.endswith(("：", ":")) and all(_is_empty(text) for text in others))
        ):
            self.section = "" if _is_empty(label) else label
            return
        entries = list(self._entries(spans, label))
        if entries:
            above = self.above
            yield Row(
                "" if label == "-" else label, spans[0][0], spans[-1][1], entries,
                above.heading, self.section, above.context, above.caption, self.table, hyphen_is_nil=False,
            )  # fmt: skip

    def _entries(self, spans: list[tuple[int, int]], label: str) -> Iterator[Entry]:
        """The cells beside the label; a merged cell once, signs in cells of their own not at all."""
        last = ("", "")
        texts = [self.text[a:b] for a, b in spans]
        parted = any(_SIGN.fullmatch(text) for text in texts)
        for place, (a, b) in enumerate(self._parts(spans)):
            column, text = self.columns[place] if place < len(self.columns) else "", self.text[a:b]
            if parted and not column:
                column = self._left_of(place)
            if not place or not text or (parted and _SIGN.fullmatch(text)):
                continue
            if (column, text) != last and label_of(text) != label and len(text) <= _LONGEST_WORDS:
                yield Entry(a, b, column)
            last = (column, text)

    def _left_of(self, place: int) -> str:
        """The header over the columns that a header cell spans: the next one to the left."""
        return next((name for name in reversed(self.columns[1 : place + 1]) if name), "")

    def _stacked(self, labels: list[str]) -> list[str]:
        """The header's lines joined, an upper cell over the columns that it spans."""
        joined = []
        for place, label in enumerate(labels):
            upper = self.columns[place] if place < len(self.columns) else ""
            upper = upper or (self._left_of(place) if label and place else "")
            joined.append(upper if upper == label else f"{upper} {label}".strip())
        return joined

    def _parts(self, spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The cells; of one with line breaks the first line where that is a figure."""
        for a, b in spans:
            cut = _BREAK.search(self.text, a, b)
            yield (a, cut.start()) if cut and _is_figure(self.text[a : cut.start()]) else (a, b)

    def _is_header(self, texts: list[str]) -> bool:
        """Whether a row names columns: no figures, several words, among them those that head columns."""
        words = [text for text in texts[1:] if not _is_empty(text)]
        if words and self.header_before and all(_YEAR.fullmatch(text) for text in words):
            return True
        if len(words) < 2 or any(_is_figure(text) for text in texts):
            return False
        telling = sum(1 for text in words if _HEADER_WORD.search(text) and len(text) < 40)
        return telling * 2 >= len(words) and (_is_empty(texts[0]) or telling == len(words))


def _is_figure(text: str) -> bool:
    return open_figure_of(text) is not None or bool((cut := _BREAK.search(text)) and figure_of(text[: cut.start()]))


def _is_empty(text: str) -> bool:
    return not text.strip() or text == "null" or is_nil(text)
