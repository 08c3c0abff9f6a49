"""The tables of several documents as relations: tables with the same columns are one relation.

So documents can be compared. What stands above a table may give its figures a scale ("in
thousands"): tables of different scales are different relations.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prompts.plan_table import TableView
from prompts.text.amounts import Amount, amount_of, scale_stated
from prompts.text.words import fold, fold_name
from storage.records import Document, Span, Table, by_key
from storage.tables import CellColumn

DOCUMENT = "document"  # the further column of a relation that several documents share
MONEY = frozenset("$€£¥￥")
NIL = frozenset({"", "-", "–", "—", "--", "——", "null", "n/a"})


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell as written, and where; `document` is empty if it stands in no text."""

    raw: str
    document: str = ""
    start: int = 0
    end: int = 0

    @property
    def shown(self) -> str:
        """What an answer shows of it, and what a plan compares."""
        return self.raw

    @property
    def amount(self) -> Amount | None:
        return amount_of(self.raw)

    @property
    def parts(self) -> "Sequence[Cell]":
        """The cells in texts that it consists of: itself, or none where it stands in no text."""
        return (self,) if self.document else ()


@dataclass(frozen=True, slots=True)
class TableRelation:
    """Rows by columns; `headers` maps documents to the places of their header lines."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell | None, ...], ...]
    headers: dict[str, Span]

    @property
    def view(self) -> TableView:
        rows = tuple(tuple(cell.shown if cell else "" for cell in row) for row in self.rows)
        return TableView(self.name, self.columns, rows)

    @property
    def label(self) -> int:
        """The column that names the rows: the first whose cells are mostly no figures."""
        return next((place for place in range(len(self.columns)) if self._has_words(place)), 0)

    def scale(self, column: int) -> float:
        """Return the scale in the name of a column, or else of the table ("thousands": 1,000)."""
        stated = scale_stated(self.columns[column])
        return stated if stated != 1.0 else scale_stated(self.name)

    def column(self, place: int) -> CellColumn:
        cells = [row[place] for row in self.rows]
        amounts = [cell.amount if cell else None for cell in cells]
        return CellColumn(
            folded=[fold(cell.shown) if cell else None for cell in cells],
            raw=[cell.shown if cell else None for cell in cells],
            figures=[amount.number if amount else None for amount in amounts],
        )

    def spelt(self, value: str) -> str:
        """Return a value of a plan in the spelling of the cells, as far as that is known."""
        return value

    def bounds(self, column: int, value: str) -> tuple[float, float] | None:
        """Return the least and the greatest figure that a value of a plan means in a typed column;
        None where the column has no type.
        """
        return None

    def _has_words(self, column: int) -> bool:
        cells = [cell for row in self.rows if (cell := row[column])]
        return sum(cell.amount is None for cell in cells) * 2 > len(cells)


def written_figure(number: float, unit: str, places: int) -> str:
    """Write a computed figure with its unit and at most so many decimals."""
    text = f"{number:,.{places}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    if unit in MONEY:
        figure = text.removeprefix("-")
        return f"-{unit}{figure}" if figure != text else f"{unit}{text}"
    is_word = unit[:1].isascii() and unit[:1].isalpha()
    return f"{text}{' ' if is_word else ''}{unit}"


def relations_of(documents: Sequence[Document]) -> list[TableRelation]:
    """Return the tables of the documents, those with the same columns and scale as one."""
    titles = Counter(document.title for document in documents)
    alike = by_key(
        (_form(table), (document, table)) for document in documents for table in document.tables
    )
    return [_united(parts, titles) for parts in alike.values()]


def _form(table: Table) -> tuple[str, ...]:
    return (*(fold_name(column) for column in table.columns), str(scale_stated(table.name)))


def _united(parts: Sequence[tuple[Document, Table]], titles: Counter[str]) -> TableRelation:
    """Unite tables of one form; those of several documents get a column for the document."""
    first, table = parts[0]
    several = len({document.id for document, _ in parts}) > 1
    above = table.name if fold(table.name) != fold(first.title) else ""
    name = above if several else ": ".join(filter(None, [first.title, above]))
    rows = [
        (*row, Cell(_called(document, titles))) if several else row
        for document, part in parts
        for row in _rows(document, part)
    ]
    columns = (*table.columns, DOCUMENT) if several else table.columns
    headers = {document.id: part.header for document, part in reversed(parts) if part.header}
    return TableRelation(name or "table", columns, tuple(rows), headers)


def _called(document: Document, titles: Counter[str]) -> str:
    """Return the title, with the id if the title is empty or not unique."""
    if document.title and titles[document.title] == 1:
        return document.title
    return f"{document.title} ({document.id})".strip()


def _rows(document: Document, table: Table) -> Iterator[tuple[Cell | None, ...]]:
    for row in table.rows:
        cells = [_cell(document, span) if span else None for span in row]
        if any(cells[1:]):
            yield tuple(cells)


def _cell(document: Document, span: Span) -> Cell | None:
    raw = document.text[span[0] : span[1]]
    return None if raw.lower() in NIL else Cell(raw, document.id, *span)
