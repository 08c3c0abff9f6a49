"""The tables of all documents of a question: found in their stored text, then put together as relations.

Tables are rows that name their columns, Markdown, and columns kept by blanks. A reader only finds places: each cell is
a span of the text, so that its raw string is what stands there. Tables with the same columns are one relation, so that
documents can be compared.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

from prompts.plan_table import TableView
from prompts.text.amounts import amount_of, scale_stated
from prompts.text.regex import regex
from prompts.text.words import fold, fold_name
from storage.records import Document

DOCUMENT = "document"  # the further column of tables that several documents have
Span = tuple[int, int]
Word = tuple[Span, str]
# The names of columns, and rows of cells; the first column holds what the rows are called.
Read = tuple[Sequence[str], Sequence[Sequence[Span | None]]]
_SEGMENT = regex(r"\S+(?: \S+)*")
_BAR = regex(r"(?<!\\)\|")
_RULE = regex(r"\|?\s*:?-{3,}:?\s*(?:\|\s*:?-{3,}:?\s*)*\|?")
_MONEY_ALONE = regex(r"(?:US|HK|[CA])?[$€£¥￥]")
_CLOSING = regex(r"[)）]?\s*+%?\s*+[)）]?")
_YEAR = regex(r"(?:19|20)\d\d")
_TIME = regex(r"(?<!\d)(?:19|20)\d\d(?!\d)|\bended\b|[年月期]")
_PAGE = regex(r"\d{1,4}")
# Odd blanks become spaces: offsets stay as they are.
_BLANKS = str.maketrans(dict.fromkeys("\u200b\xa0\u2002\u2003\u2007\u2009\u202f\ufeff\t\u3000", " "))
_LONGEST_HEADING, _LONGEST_LABEL, _MOST_HEADER_LINES = 120, 150, 3
# From this column of a line on, words head columns; so far may a header stand from the figures below it.
_LABEL_WIDTH, _NEAR = 12, 12
NIL = frozenset({"", "-", "–", "—", "--", "——", "null", "n/a"})


@dataclass(frozen=True, slots=True)
class Grid:
    """A table as it stands: the labels of its columns, and for each row the span of each cell (None: empty).

    The first column holds what the rows are called. `scale` is what the lines above say of all figures.
    """

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Span | None, ...], ...]
    scale: float


@lru_cache(maxsize=64)
def grids_in(text: str) -> tuple[Grid, ...]:
    """All tables of a text, in order; what stands above a table names it."""
    flat, above, grids = text.translate(_BLANKS), _Above(), list[Grid]()
    for kind, lines in _blocks(flat):
        if not kind:
            above.note(flat[slice(*lines[0])])
        for columns, rows in _READERS[kind](flat, lines, above) if kind else ():
            wide = tuple((*row, *[None] * (len(columns) - len(row))) for row in rows)
            filled = tuple(row for row in wide if any(row[1:]))
            grids.append(Grid(above.heading, tuple(columns), filled, above.scale()))
    return tuple(grid for grid in grids if grid.rows)


class _Above:
    """The lines above a table: its heading, and what they say of all figures."""

    def __init__(self) -> None:
        self.heading = ""
        self.lines: list[str] = []

    def note(self, line: str) -> None:
        text = " ".join(line.split()).lstrip("# ").strip("*")
        if text:
            self.lines = [*self.lines[-5:], text[:300]]
            sentence = text[-1] in ".,;:。；，：" or " | " in text or len(text) > _LONGEST_HEADING
            if not sentence and scale_stated(text) == 1.0:
                self.heading = text

    def scale(self) -> float:
        lines, self.lines = self.lines, []
        return next((scale for line in reversed(lines) if (scale := scale_stated(line)) != 1.0), 1.0)


def _blocks(text: str) -> Iterator[tuple[str, list[Span]]]:
    """(kind, lines) of what reads as one table; a line of text comes alone, with no kind."""
    kind, block, start = "", list[Span](), 0
    for line in text.split("\n"):
        span, start = (start, start + len(line)), start + len(line) + 1
        if not line.strip():
            continue
        own = _kind(line)
        # Between aligned rows short lines of words are sections and the rest of labels; running text ends the table.
        if kind == "aligned" and not own and len(line.strip()) <= _LONGEST_LABEL and not line.strip().endswith("."):
            own = kind
        if block and (own != kind or not own):
            yield kind, block
            block = []
        kind = own
        block.append(span)
    if block:
        yield kind, block


def _kind(line: str) -> str:
    if line.lstrip().startswith("|"):
        return "bars"
    if len(_pieces(line)) > 1:
        return "named"
    parts = _segments(line)
    if len(parts) < 2:
        return ""
    heads = all(start >= _LABEL_WIDTH for (start, _), _ in parts)
    return "aligned" if heads or (not parts[0][1] and any(is_figure for _, is_figure in parts)) else ""


def _named(text: str, lines: Sequence[Span], above: _Above) -> Iterator[Read]:
    """Rows that name their columns: `Bridge: Orla | Length (m): 412`."""
    rows = []
    for start, end in lines:
        row: dict[str, Span] = {}
        for column, a, b in _pieces(text[start:end]):
            row.setdefault(column, _trimmed(text, start + a, start + b))
        rows.append(row)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    yield columns, [[row.get(column) for column in columns] for row in rows]


# --- Markdown --------------------------------------------------------------------------------------------------------


def _bars(text: str, lines: Sequence[Span], above: _Above) -> Iterator[Read]:
    columns: list[str] = []
    rows: list[list[Span | None]] = []
    ruled = [_RULE.fullmatch(text[start:end].strip()) is not None for start, end in lines] + [False]
    for place, (start, end) in enumerate(lines):
        if ruled[place]:
            continue
        cells = _cells(text, start, end)
        shown = [text[a:b] for a, b in cells]
        if ruled[place + 1] and not any(amount_of(cell) and not _YEAR.fullmatch(cell) for cell in shown[1:]):
            if rows:
                yield columns, rows
            columns, rows = [_label(cell) for cell in shown], []
        elif not rows and columns and all(cell in NIL or _YEAR.fullmatch(cell) for cell in shown[1:]):
            columns = _joined(columns, [_label(cell) for cell in shown])
        else:
            columns += [""] * (len(cells) - len(columns))
            rows.append(_row(text, columns, cells))
    if rows:
        yield columns, rows


def _row(text: str, columns: Sequence[str], cells: Sequence[Span]) -> list[Span | None]:
    """The cells; a sign of money or a closing bracket in a cell of its own is none, and a cell without a header
    under the next one to the left goes there."""
    row: list[Span | None] = []
    for place, (a, b) in enumerate(cells):
        cell = text[a:b]
        row.append(None if cell in NIL or _MONEY_ALONE.fullmatch(cell) or _CLOSING.fullmatch(cell) else (a, b))
        if place > 1 and row[place] and not columns[place]:
            left = next((p for p in range(place - 1, 0, -1) if columns[p]), 0)
            if left and row[left] is None:
                row[left], row[place] = row[place], None
    return row


def _joined(upper: Sequence[str], lower: Sequence[str]) -> list[str]:
    """Two lines of a header: an upper cell stands over the columns that it spans."""
    last, joined = "", []
    for place, (over, below) in enumerate(zip_longest(upper, lower, fillvalue="")):
        last = over or last
        joined.append(f"{last if below and place else over} {below}".strip())
    return joined


def _cells(text: str, start: int, end: int) -> list[Span]:
    bars = [match.start() for match in _BAR.finditer(text, start, end)]
    closes = bars[1:] if not text[bars[-1] + 1 : end].strip() else [*bars[1:], end]
    return [_trimmed(text, a + 1, b) for a, b in zip(bars, closes, strict=False)]


def _trimmed(text: str, a: int, b: int) -> Span:
    inner = text[a:b]
    left = a + len(inner) - len(inner.lstrip())
    return left, max(left, a + len(inner.rstrip()))


# --- columns kept by blanks, as in reports ----------------------------------------------------------------------------


def _aligned(text: str, lines: Sequence[Span], above: _Above) -> Iterator[Read]:
    head: list[list[Word]] = []
    columns: list[str] = []
    rows: list[list[Span | None]] = []
    for start, end in lines:
        line = text[start:end]
        parts = _segments(line)
        figures = [(span, line[slice(*span)]) for span, is_figure in parts if is_figure]
        words = [(span, line[slice(*span)]) for span, is_figure in parts if not is_figure]
        if figures and parts[0][0][0] >= _LABEL_WIDTH and all(_YEAR.fullmatch(figure) for _, figure in figures):
            words, figures = sorted(words + figures), []
        if not figures:
            heading = [word for word in words if word[0][0] >= _LABEL_WIDTH]
            if len(words) == 1 and not _TIME.search(words[0][1]):
                above.note(line)
                heading = []
            if len(heading) > 1 and rows:
                yield columns, rows
                head, rows = [], []
            head = [*head[1 - _MOST_HEADER_LINES :], heading] if heading and not rows else head
            continue
        if parts[0][1] or (len(figures) == 1 and not head and _PAGE.fullmatch(figures[0][1])):
            continue
        own = ["", *_headed(head, [span for span, _ in figures])]
        if rows and len(own) != len(columns):
            yield columns, rows
            rows = []
        columns = own
        label = (start + words[0][0][0], start + max(span[1] for span, _ in words if span[0] < figures[0][0][0]))
        rows.append([label, *((start + a, start + b) for (a, b), _ in figures)])
    if rows:
        yield columns, rows


_READERS: dict[str, Callable[[str, Sequence[Span], _Above], Iterator[Read]]] = {
    "named": _named, "bars": _bars, "aligned": _aligned
}  # fmt: skip


def _headed(head: Sequence[Sequence[Word]], figures: Sequence[Span]) -> list[str]:
    """The header above each figure: by order where there are as many, else by place."""
    parts: list[list[str]] = [[] for _ in figures]
    for line in head:
        for place, (a, b) in enumerate(figures):
            if len(line) == len(figures):
                parts[place].append(line[place][1])
            else:
                nearest = min(line, key=lambda word: max(word[0][0] - b, a - word[0][1]))
                if max(nearest[0][0] - b, a - nearest[0][1]) <= _NEAR or len(line) == 1:
                    parts[place].append(nearest[1])
    return [_label(" ".join(part)) for part in parts]


def _segments(line: str) -> list[tuple[Span, bool]]:
    """The parts of a line that two blanks or more keep apart, and which are figures; signs go with their figure."""
    segments: list[tuple[Span, bool]] = []
    for match in _SEGMENT.finditer(line):
        text, start, end = match.group(), match.start(), match.end()
        if _MONEY_ALONE.fullmatch(text):
            continue
        if segments and segments[-1][1] and _CLOSING.fullmatch(text):
            whole = line[segments[-1][0][0] : end]
            if amount_of(whole):
                segments[-1] = ((segments[-1][0][0], end), True)
            continue
        if sign := re.search(r"\s[$€£¥]$", text):
            end = start + sign.start()
            text = line[start:end]
        figure = amount_of(text)
        segments.append(((start, start + figure.end if figure else end), figure is not None))
    return segments


def _pieces(line: str) -> list[tuple[str, int, int]]:
    """(column, start, end) of each cell of a row that names its columns; nothing where most parts name none."""
    if " | " not in line or ": " not in line:
        return []
    cells: list[tuple[str, int, int]] = []
    at, unnamed = 0, 0
    for piece in line.split(" | "):
        column, colon, _ = piece.partition(": ")
        if colon and 0 < len(column.strip()) <= _LONGEST_HEADING:
            cells.append((_label(column), at + len(column) + 2, at + len(piece)))
        else:
            unnamed += 1
        at += len(piece) + 3
    return cells if len(cells) > 1 and unnamed <= len(cells) else []


def _label(text: str) -> str:
    """A label on one line, without marks of Markdown."""
    text = re.sub(r"<br\s*/?>", " ", text.replace("\\|", "|"))
    return " ".join(text.split()).strip(" *_`")


# --- relations -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GridCell:
    """A cell as written, with what it amounts to in full units, and the scale that a heading or its column gives it;
    `document` is empty where it stands in no text."""

    raw: str
    number: float | None = None
    scale: float = 1.0
    places: int = 0
    unit: str = ""
    document: str = ""
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class DocumentTable:
    """A relation: rows by columns. `label` is the column that says what a row is called."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[GridCell | None, ...], ...]
    label: int = 0

    @property
    def view(self) -> TableView:
        """The table as a planner sees it."""
        rows = tuple(tuple(cell.raw if cell else "" for cell in row) for row in self.rows)
        return TableView(self.name, self.columns, rows)


def relations_of(documents: Sequence[Document]) -> list[DocumentTable]:
    """The tables of the documents, those of one form as one."""
    alike: dict[tuple[str, ...], list[tuple[Document, Grid]]] = {}
    for document in documents:
        for grid in grids_in(document.text):
            key = (*(fold_name(column) for column in grid.columns), "" if any(grid.columns) else str(len(alike)))
            alike.setdefault(key, []).append((document, grid))
    titles = Counter(document.title for document in documents)
    # Where several have one title, or none, the id tells them apart.
    names = {
        document.id: f"{document.title} ({document.id})".strip()
        if titles[document.title] > 1 or not document.title
        else document.title
        for document in documents
    }
    return [_united(parts, names) for parts in alike.values()]


def _united(parts: Sequence[tuple[Document, Grid]], names: dict[str, str]) -> DocumentTable:
    """Tables of one form as one, with the document as a further column where they come from several."""
    first, grid = parts[0]
    several = len({document.id for document, _ in parts}) > 1
    rows = []
    for document, part in parts:
        for row in part.rows:
            read = tuple(
                _cell(document, part, column, span) if span else None
                for column, span in zip(part.columns, row, strict=True)
            )
            rows.append((*read, GridCell(names[document.id])) if several else read)
    heading = grid.heading if fold(grid.heading) != fold(first.title) else ""
    name = heading if several else ": ".join(filter(None, [first.title, heading]))
    columns = (*grid.columns, DOCUMENT) if several else grid.columns
    label = next((column for column in range(len(grid.columns)) if has_words(rows, column)), 0)
    return DocumentTable(name or "table", columns, tuple(rows), label)


def has_words(rows: Sequence[Sequence[GridCell | None]], column: int) -> bool:
    """Whether most cells of a column are no figures."""
    cells = [cell for row in rows if (cell := row[column])]
    return sum(cell.number is None for cell in cells) * 2 > len(cells)


def _cell(document: Document, grid: Grid, column: str, span: Span) -> GridCell:
    start, end = span
    raw = document.text[start:end]
    amount = amount_of(raw)
    if amount is None:
        return GridCell(raw, document=document.id, start=start, end=end)
    own = amount.scale != 1.0 or amount.unit == "%" or _YEAR.fullmatch(raw)
    stated = scale_stated(column)
    scale = 1.0 if own else stated if stated != 1.0 else grid.scale
    return GridCell(
        raw[amount.start : amount.end], round(amount.number * scale, 6), scale, amount.places, amount.unit,
        document.id, start + amount.start, start + amount.end,
    )  # fmt: skip
