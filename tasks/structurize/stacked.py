"""What stands in a table whose cells were flattened to a line each: a label, then its figures below one another?"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tasks.structurize.grids import Above, Entry, Row, label_of
from tasks.structurize.units import Caption, figure_of

# A figure by itself: a bare number may be a page's.
_FIGURE = re.compile(r"[^\d]{0,4}(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+)[^\d]{0,3}")
_COLUMN = re.compile(r"期末|期初|本期|上期|年初|上年|本报告期|\d{4}\s*年|\d{4}-\d\d|\b(?:19|20)\d\d\b|ended", re.I)
_LONGEST_LABEL, _MOST_COLUMNS, _REMEMBERED = 60, 6, 12


@dataclass(slots=True)
class Stacked:
    """Reads lines in order; what it knows of the table that it is in."""

    text: str
    above: Above
    words: list[tuple[int, int]] = field(default_factory=list)
    figures: list[tuple[int, int]] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    caption: Caption = field(default_factory=Caption)
    table: int = -1

    def line(self, start: int, end: int) -> Iterator[Row]:
        """The row that a line completes."""
        first, last = self._trimmed(start, end)
        if is_lone_figure(self.text[first:last]):
            self.figures.append((first, last))
            return
        yield from self.close()
        if last - first <= _LONGEST_LABEL:
            self.words = [*self.words[1 - _REMEMBERED :], (first, last)]
        else:
            self.words, self.columns = [], []

    def close(self) -> Iterator[Row]:
        """The row that is complete, if its label is known and it has figures."""
        figures, self.figures = self.figures, []
        if not figures or not self.words or len(figures) > _MOST_COLUMNS:
            return
        label = self.words[-1]
        headers = [label_of(self.text[a:b]) for a, b in self.words[:-1]]
        named = [name for name in headers if _COLUMN.search(name) and not name.endswith(("：", "日"))]
        if len(named) >= len(figures):
            self.columns = named[-len(figures) :]
            self.above.drop_from(self.columns[0])
            self.table = self.above.begin()
            self.caption = self.above.caption
        if len(self.columns) < len(figures):
            self.words = self.words[-1:]
            return
        self.words = [label]
        columns = self.columns if len(figures) == len(self.columns) else [""] * len(figures)
        entries = [Entry(a, b, column) for (a, b), column in zip(figures, columns, strict=True)]
        above = self.above
        yield Row(
            label_of(self.text[slice(*label)]), label[0], figures[-1][1], entries,
            above.heading, "", above.context, self.caption, self.table,
        )  # fmt: skip

    def _trimmed(self, start: int, end: int) -> tuple[int, int]:
        piece = self.text[start:end]
        return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


def is_lone_figure(line: str) -> bool:
    """Whether a line is one figure and nothing else."""
    return _FIGURE.fullmatch(line) is not None and figure_of(line) is not None
