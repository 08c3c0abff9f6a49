"""Do the cells that a model wrote stand in the text that it read? Those that do get their place; others are refused."""

from collections.abc import Sequence
from dataclasses import dataclass

from prompts.structures.table import CellWritten
from storage.records import Document
from storage.structures import Cell
from tasks.structurize.grids import STATED_IN_SENTENCE
from tasks.structurize.tables import cells_in
from tasks.structurize.units import figure_of


@dataclass(frozen=True, slots=True)
class Placed:
    """The cells that stand in their source, each with its place, and how many were refused."""

    cells: tuple[Cell, ...]
    refused: int


def placed(
    document: Document, spans: Sequence[tuple[int, int]], attributes: Sequence[str], written: Sequence[CellWritten]
) -> Placed:
    """What a model wrote of the sentences at `spans`, compared with the text.

    A figure that is only written otherwise ("1308463" for "$1,308,463") becomes the one in the text; one that is not in
    its sentence ("138463") is refused. Number, unit and period are read from the text where it is a table.
    """
    known = {(cell.start, cell.end): cell for cell in cells_in(document)}
    cells = []
    for one in written:
        start, end = spans[one.sentence]
        found = _place(one.raw, document.text, start, end, known)
        if found is not None:
            cells.append(_cell(document, spans[one.sentence], found, attributes[one.attribute], one, known))
    return Placed(tuple(cells), len(written) - len(cells))


def _place(raw: str, text: str, start: int, end: int, known: dict[tuple[int, int], Cell]) -> tuple[int, int] | None:
    """Where a value stands in a sentence: as written, whole, or as the figure of the same amount."""
    at = text.find(raw, start, end) if raw.strip() else -1
    while at >= 0:
        before, after = text[at - 1 : at] if at > start else "", text[at + len(raw) : at + len(raw) + 1]
        if not (_joins(before, raw[0]) or _joins(raw[-1], after)):
            return at, at + len(raw)
        at = text.find(raw, at + 1, end)
    figure = figure_of(raw)
    same = [
        span
        for span, cell in known.items()
        if figure and cell.number is not None and start <= span[0] and span[1] <= end
        if figure.number in (cell.number, cell.number / cell.scale)
    ]
    return same[0] if len(same) == 1 else None


def _joins(left: str, right: str) -> bool:
    """Whether two characters belong to one figure, so that what ends or begins between them is a part of it."""
    return ((left.isdigit() or left in {",", "."}) and right.isdigit()) or (left.isdigit() and right in {",", "."})


def _cell(
    document: Document,
    sentence: tuple[int, int],
    place: tuple[int, int],
    attribute: str,
    written: CellWritten,
    known: dict[tuple[int, int], Cell],
) -> Cell:
    read = known.get(place)
    if read is not None:
        return read.model_copy(update={"attribute": attribute, "period": read.period or written.period})
    raw = document.text[slice(*place)]
    figure = figure_of(raw)
    return Cell(
        document=document.id,
        title=document.title,
        row=written.thing,
        column=attribute,
        raw=raw,
        number=figure.number if figure else None,
        unit=figure.unit if figure else "",
        period=written.period,
        quote=document.text[slice(*sentence)],
        start=place[0],
        end=place[1],
        quote_start=sentence[0],
        table=STATED_IN_SENTENCE,
        attribute=attribute,
    )
