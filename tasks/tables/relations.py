"""The tables of all documents of a question as relations: tables with the same columns are one, and what reports state
in rows under dates becomes a row for each document and date, so that documents can be compared."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prompts.plan_table import TableView
from prompts.text.amounts import amount_of, scale_stated
from prompts.text.words import fold, fold_name
from storage.records import Document
from storage.table_query import Value
from tasks.tables.reading import Grid, Span, grids_in

DOCUMENT, PERIOD = "document", "period"
# What the rows of such a table may be called in a question.
_REPORTS = "documents by date (reports, companies, firms, 公司, 企业, 报告)"
_TIME = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)|\bended\b|[期年月]")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell as written, with what it amounts to in full units; `document` is empty where it stands in no text."""

    raw: str
    number: float | None = None
    scale: float = 1.0
    places: int = 0
    document: str = ""
    start: int = 0
    end: int = 0

    @property
    def value(self) -> Value:
        """The cell as it is compared."""
        return Value(text=fold(self.raw), number=self.number)


@dataclass(frozen=True, slots=True)
class Table:
    """A relation: rows by columns. `label` is the column that says what a row is called."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell | None, ...], ...]
    label: int = 0
    # Whether its rows are documents at dates.
    of_reports: bool = False

    @property
    def view(self) -> TableView:
        """The table as a planner sees it."""
        rows = tuple(tuple(cell.raw if cell else "" for cell in row) for row in self.rows)
        return TableView(self.name, self.columns, rows)


def relations_of(documents: Sequence[Document]) -> list[Table]:
    """The tables of the documents, those of reports last."""
    read = [(document, grid) for document in documents for grid in grids_in(document.text)]
    alike: dict[tuple[str, ...], list[tuple[Document, Grid]]] = {}
    for document, grid in read:
        key = (*(fold_name(column) for column in grid.columns), "" if any(grid.columns) else str(len(alike)))
        alike.setdefault(key, []).append((document, grid))
    names = names_of(documents)
    tables = [_united(parts, names) for parts in alike.values()]
    reports = _reports([(document, grid) for document, grid in read if _is_dated(grid)], names)
    return [*tables, reports] if reports else tables


def names_of(documents: Sequence[Document]) -> dict[str, str]:
    """What each document is called: its title, with its id where several have that title."""
    titles = [document.title for document in documents]
    return {
        one.id: one.title if titles.count(one.title) == 1 and one.title else f"{one.title} ({one.id})".strip()
        for one in documents
    }


def _united(parts: Sequence[tuple[Document, Grid]], names: dict[str, str]) -> Table:
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
            rows.append((*read, Cell(names[document.id])) if several else read)
    heading = grid.heading if grid.heading and fold(grid.heading) != fold(first.title) else ""
    name = heading if several else f"{first.title}: {heading}" if heading else first.title
    columns = (*grid.columns, DOCUMENT) if several else grid.columns
    return Table(name or "table", columns, tuple(rows), _label(rows, len(grid.columns)))


def _label(rows: Sequence[Sequence[Cell | None]], width: int) -> int:
    """The column that says what a row is called: the first one of words."""
    for column in range(width):
        cells = [cell for row in rows if (cell := row[column])]
        if sum(cell.number is None for cell in cells) * 2 > len(cells):
            return column
    return 0


def _cell(document: Document, grid: Grid, column: str, span: Span) -> Cell:
    start, end = span
    raw = document.text[start:end]
    amount = amount_of(raw)
    if amount is None:
        return Cell(raw, None, 1.0, 0, document.id, start, end)
    stated = scale_stated(column)
    scale = stated if stated != 1.0 else grid.scale if amount.scale == 1.0 and amount.unit != "%" else 1.0
    if _is_bare_year(raw):
        scale = 1.0
    number = round(amount.number * scale, 6)
    return Cell(
        document.text[start + amount.start : start + amount.end], number, scale * amount.scale, amount.places,
        document.id, start + amount.start, start + amount.end,
    )  # fmt: skip


def _is_bare_year(raw: str) -> bool:
    return re.fullmatch(r"(?:19|20)\d\d", raw) is not None


def _is_dated(grid: Grid) -> bool:
    """Whether a table states things in rows under dates, as statements do."""
    heads = [column for column in grid.columns[1:] if column]
    return bool(heads) and all(_TIME.search(column) for column in heads)


def _reports(parts: Sequence[tuple[Document, Grid]], names: dict[str, str]) -> Table | None:
    """A row for each document and date, a column for each thing stated; None unless several documents have such."""
    if len({document.id for document, _ in parts}) < 2:
        return None
    columns: dict[str, str] = {}
    rows: dict[tuple[str, str], dict[str, Cell]] = {}
    for document, grid in parts:
        for row in grid.rows:
            label = " ".join(document.text[slice(*row[0])].split()) if row[0] else ""
            key = fold_name(label)
            if not key or amount_of(label):
                continue
            columns.setdefault(key, label)
            for head, span in zip(grid.columns[1:], row[1:], strict=True):
                if span:
                    cells = rows.setdefault((document.id, head), {})
                    cells.setdefault(key, _cell(document, grid, head, span))
    made = tuple(
        (Cell(names[document]), Cell(head), *(cells.get(key) for key in columns))
        for (document, head), cells in rows.items()
    )
    return Table(_REPORTS, (DOCUMENT, PERIOD, *columns.values()), made, of_reports=True)
