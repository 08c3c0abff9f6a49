"""Which figures does a document hold, each tied to its characters, and which of them answer an attribute?

The table structure of StructRAG (section 2.3): every cell carries the raw string, what it amounts to, and its place.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from prompts.language.words import CJK
from storage.records import Document
from storage.structures import Cell, Schema
from tasks.structurize.grids import STATED_IN_SENTENCE, Entry, Row, flattened
from tasks.structurize.matching import best_cells
from tasks.structurize.periods import Own, own_period, period_of, period_of_row
from tasks.structurize.reading import rows_in
from tasks.structurize.sentences import COUNTED, unit_after
from tasks.structurize.units import is_nil, open_figure_of, scaled

_KEPT = 32
NOT_FOUND = "not found"
_REGISTRANT = re.compile(r"\(?exact name of (?:the )?(?:registrant|small)", re.I)
_SHORT_NAME = re.compile(
    r"(?:证券|股票|公司|A股)简称\s*[：:|]\s*(?P<name>[^\s：:|，。]{2,12}?)(?=\s|[|，。]|公告|证券|股票|编号|$)"
)
_LONG_NAME = re.compile(rf"(?P<name>[{CJK}（）()·]{{4,30}}?(?:股份|集团|责任)?有限(?:责任)?公司)")
_DEFINED = re.compile(r"\|(?P<name>(?:本?公司|本集团)[^|\n]{0,30})\|指\|(?P<full>[^|\n]{4,40})\|")
_HEAD = 6_000
_SCALE_NAMES = {
    1e3: "in thousands",
    1e4: "in ten thousands",
    1e6: "in millions",
    1e8: "in hundred millions",
    1e9: "in billions",
}
_NO_NAME = re.compile(r"^(?:本?公司|本集团|集团|上市公司|发行人)$")


def cells_in(document: Document) -> tuple[Cell, ...]:
    """All cells of a document's whole text in order; `document.text[cell.start:cell.end] == cell.raw` for each."""
    return _cells(document.id, document.title, document.text)


@lru_cache(maxsize=_KEPT)
def _cells(document: str, title: str, text: str) -> tuple[Cell, ...]:
    own = own_period(title, text)
    return tuple(cell for row in rows_in(flattened(text)) for cell in _of_row(document, title, text, row, own))


def _of_row(document: str, title: str, text: str, row: Row, own: Own) -> Iterator[Cell]:
    quote = text[row.start : row.end]
    heading = f"{row.heading} > {row.section}" if row.section and row.section != row.heading else row.heading
    for entry in row.entries:
        number, unit, scale, start, end = _amount(text, row, entry)
        period = period_of(entry.column, own, row.context) or period_of_row(row.label) or period_of_row(row.section)
        yield Cell.model_construct(
            document=document,
            title=title,
            row=row.label,
            column=entry.column,
            raw=text[start:end],
            number=number,
            unit=unit,
            scale=scale,
            period=period,
            quote=quote,
            start=start,
            end=end,
            quote_start=row.start,
            heading=heading,
            table=row.table,
            attribute="",
        )


def _amount(text: str, row: Row, entry: Entry) -> tuple[float | None, str, float, int, int]:
    """(number, unit, scale, start, end) of an entry; the end leaves out remarks after the figure."""
    raw = flattened(text[entry.start : entry.end])
    figure = open_figure_of(raw)
    if figure is None:
        nil = is_nil(raw) and (row.hyphen_is_nil or raw.strip() in {"—", "–"})
        return (0.0 if nil else None), "", 1.0, entry.start, entry.end
    span = entry.start + figure.start, entry.start + figure.end
    if row.table == STATED_IN_SENTENCE and (counted := COUNTED.match(text, entry.end)):
        return figure.number, "股" if counted.group().endswith("股") else "shares", 1.0, *span
    if row.table == STATED_IN_SENTENCE and not figure.unit and (unit := unit_after(text, entry.end)):
        return figure.number, unit, 1.0, *span
    number, unit, scale = scaled(figure, row.caption, row.label, entry.column, row.section)
    return number, unit, scale, *span


def matching(schema: Schema, cells: Sequence[Cell], most: int = 12) -> dict[str, list[Cell]]:
    """For each attribute of the schema its cells of this document, best first; an empty list: not found.

    `cells` are those of one document. A row that names the attribute comes before others: of the document's own period,
    of a consolidated statement, then sentences.
    """
    return {attribute: best_cells(attribute, cells, schema, most) for attribute in schema.attributes}


def thing_of(document: Document) -> tuple[str, ...]:
    """The names by which a document's own subject is called: its title and, of a report, the reporting company."""
    head = flattened(document.text[:_HEAD])
    names = [document.title]
    names += [*_registrant(head), *(match["name"] for match in _SHORT_NAME.finditer(head))]
    if document.language == "zh":
        names += [match["name"] for match in _LONG_NAME.finditer(head[:800])][:1]
        for match in _DEFINED.finditer(head):
            names += [*re.split(r"[、，,/]", match["name"]), match["full"]]
    cleaned = (name.strip(' *_|“”"') for name in names)
    return tuple(dict.fromkeys(name for name in cleaned if len(name) > 1 and not _NO_NAME.match(name)))


def _registrant(head: str) -> list[str]:
    """The name above "(Exact name of registrant …)"."""
    found = _REGISTRANT.search(head)
    lines = [line.strip(" _–—-") for line in head[: found.start()].split("\n")] if found else []
    return [line for line in lines if line][-1:]


def markdown(schema: Schema, found: Sequence[tuple[str, Mapping[str, Sequence[Cell]]]]) -> str:
    """K of StructRAG as a Markdown table: a row for each named thing, a column for each attribute, figures raw.

    A cell shows its best figure with what the heading of its table says ("in thousands") and its period, or
    "not found".
    """
    lines = [_line(["", *schema.attributes]), _line(["---"] * (len(schema.attributes) + 1))]
    for name, cells in found:
        lines.append(_line([name, *(_shown(cells.get(attribute, ())) for attribute in schema.attributes)]))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def _shown(cells: Sequence[Cell]) -> str:
    if not cells:
        return NOT_FOUND
    best = cells[0]
    said = [_SCALE_NAMES.get(best.scale, ""), "" if best.unit in best.raw else best.unit, best.period]
    remark = ", ".join(part for part in said if part)
    return f"{best.raw} ({remark})" if remark else best.raw
