"""What the tables of documents answer: plan, compute, tell (StructRAG, section 2.4: decompose, extract, infer).

The question becomes a plan over the tables that are there, over which code selects, counts and computes.
Nothing that a model writes is run: a plan names operations of ours. The outcome is a Markdown table of its rows, one
sentence, the bare values, and the cells behind it; figures stand as the documents write them, computed ones as those
that they were computed of.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from prompts.engine.calls import first_fitting, rough_tokens
from prompts.engine.helper import helped
from prompts.plan_table import PlanTable
from prompts.structures import markdown_table
from prompts.text.amounts import scale_stated
from prompts.text.evidence import Evidence
from prompts.text.regex import regex
from prompts.text.words import is_han
from storage.answer_records import RouteDecision, SubQuestion, TableCell, TableResult
from storage.records import Chunk, Document
from tasks.answer import Note, StatedAnswer
from tasks.citations import Source, packed
from tasks.retrying import BRIEF
from tasks.step import step
from tasks.tables.relations import GridCell, relations_of
from tasks.tables.run_plan import DoesNotFit, Group, PlanOutcome, run

# A line of at most so many characters is the source of its cells; of a longer one so much on either side of a cell.
LONGEST_LINE, AROUND = 400, 120
MOST_ASKED = 64  # documents whose tables a question is asked of
MOST_CITED = 5  # lines of a table: those that decide, and the one that names the columns
_RULE_BELOW = regex(r"^(?P<header>\|[^\n]*)\n\|[ \t]*:?-{3,}[^\n]*", re.M)
MOST_NAMED = 40  # in the sentence; the table beside it goes on
_SCALES = {
    1e3: ("thousands", "千"), 1e4: ("ten thousands", "万"), 1e6: ("millions", "百万"), 1e8: ("hundred millions", "亿"),
    1e9: ("billions", "十亿"),
}  # fmt: skip
_LABELS = {
    "max": ("Highest", "最高"), "min": ("Lowest", "最低"), "sum": ("sum", "合计"), "average": ("average", "平均"),
    "difference": ("difference", "相差"), "ratio": ("ratio", "比值"),
}  # fmt: skip
MONEY = frozenset("$€£¥￥")

ChunkAt = Callable[[str, int], Chunk]


def documents_with_tables(
    pool: Sequence[Evidence],
    route: RouteDecision,
    named: Sequence[str] | None,
    planner: PlanTable,
) -> list[str]:
    """The documents whose tables are asked: those that the caller names, else those that the passages come from.

    Empty where no model plans, and for a question that is routed elsewhere.
    """
    if route.type != "table" or planner.is_offline:
        return []
    if named and len(named) <= MOST_ASKED:
        return list(named)
    return list(dict.fromkeys(piece.document for piece in pool))[:MOST_ASKED]


@step("tables", BRIEF, asks_model=True)
async def answer_from_tables(question: str, documents: Sequence[Document], planner: PlanTable) -> TableResult | None:
    """Compute the answer from tables; None where the documents have none or the planner sees no plan.

    A plan that does not fit the tables gives a result without cells, whose `plan` says why.
    """
    # New documents take CPU: other questions go on meanwhile.
    tables = await asyncio.to_thread(relations_of, documents) if documents else []
    views = [table.view for table in tables]
    plan = await helped(planner, lambda step: step.run(question, views), "nothing is computed") if tables else None
    if plan is None:
        return None
    try:
        outcome = await asyncio.to_thread(run, plan, tables)
        return table_result(question, outcome, planner.policy.limits.structure)
    except DoesNotFit as problem:
        return TableResult(plan=f"does not fit: {problem}")


@dataclass(frozen=True)
class TableAnswer:
    """The result of a plan over tables with the lines of documents that show its cells; empty where there is none."""

    result: TableResult
    sources: Sequence[Source]

    @property
    def is_computed(self) -> bool:
        """Whether the plan gave anything."""
        return bool(self.result.cells or self.result.values)

    @property
    def notes(self) -> list[Note]:
        """What was computed and the rows that it rests on."""
        if not self.is_computed:
            return []
        computed = "\n".join(filter(None, [self.result.sentence, self.result.plan]))
        notes = [Note("Computed exactly from the tables of the documents", computed)]
        return [*notes, Note("Rows that this rests on", self.result.table)] if self.result.table else notes

    @property
    def subquestions(self) -> tuple[SubQuestion, ...]:
        """The plan as the trace tells it with what came of it; one that computed nothing says why."""
        plan = self.result.plan if self.is_computed else f"Tables: {self.result.plan}"
        return (SubQuestion(question=plan, answer=self.result.sentence),) if self.result.plan else ()

    @property
    def stated(self) -> StatedAnswer:
        """The answer that needs no model: its sentence with the lines that show it."""
        marks = "".join(f"[{number}]" for number, _ in enumerate(self.sources, 1))
        return StatedAnswer(f"{self.result.sentence} {marks}".strip(), self.result.values, "none", "table")


async def sourced_table_answer(
    question: str, documents: Mapping[str, Document], planner: PlanTable, chunk_at: ChunkAt
) -> TableAnswer:
    """What a plan over the tables of the documents gives; `chunk_at` gives the chunk at an offset of a document."""
    result = await answer_from_tables(question, list(documents.values()), planner) or TableResult()
    sources = cell_sources(result.cells, documents, chunk_at)
    return TableAnswer(result, packed(sources, planner.policy.limits.structure))


def cell_sources(cells: Sequence[TableCell], documents: Mapping[str, Document], chunk_at: ChunkAt) -> list[Source]:
    """The first lines that hold the cells, each once, and the line that names their columns; MOST_CITED in all."""
    if not cells:
        return []
    header = _header(documents[cells[0].document].text, cells[0].start)
    places: dict[tuple[str, int], int] = {}  # the start of a line → its end
    for cell in cells:
        start, end = _line(documents[cell.document].text, cell.start, cell.end)
        places.setdefault((cell.document, start), end)
    lines = list(places.items())[: MOST_CITED - (header is not None)]
    if header is not None:
        lines.append(((cells[0].document, header[0]), header[1]))
    sources = []
    for (name, start), end in lines:
        document, chunk = documents[name], chunk_at(name, start)
        text, chunks = document.text[start:end], ((chunk.id, chunk.start),)
        sources.append(Source(name, document.title, text, start, chunks))
    return sources


def _header(text: str, start: int) -> tuple[int, int] | None:
    """The line above the rule of the Markdown table that an offset lies in; None for rows that name their columns."""
    rules = list(_RULE_BELOW.finditer(text, 0, start))
    if not rules or "\n\n" in text[rules[-1].end() : start]:
        return None
    return rules[-1].span("header")


def _line(text: str, start: int, end: int) -> tuple[int, int]:
    """The line, or the stretch of a long one, around a span."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    last = len(text) if last < 0 else last
    if last - first > LONGEST_LINE:
        first, last = max(first, start - AROUND), min(last, end + AROUND)
    return first, last


# --- the outcome in words --------------------------------------------------------------------------------------------


def table_result(question: str, outcome: PlanOutcome, most: int) -> TableResult:
    """The result of an outcome, its sentence in the question's language, with as many rows as `most` tokens hold."""
    return _Writer(outcome, is_han(question), most).result()


class _Writer:
    """An outcome's names and figures as they are written."""

    def __init__(self, outcome: PlanOutcome, chinese: bool, most: int) -> None:
        self.outcome, self.plan, self.table, self.chinese = outcome, outcome.plan, outcome.table, chinese
        self.operation, self.column = outcome.plan.operation, outcome.columns[0]
        self.names = [self.name(group) for group in outcome.groups]
        # The rows behind the result, those of the result first.
        self.rows = list(dict.fromkeys([*(row for group in outcome.groups for row in group.rows), *outcome.rows]))
        used = [self.table.label, outcome.by, *(condition.column for condition in outcome.conditions), *outcome.columns]
        self.columns = list(dict.fromkeys(column for column in used if column is not None))
        self.shown = first_fitting(self.rows, lambda row: rough_tokens(" | ".join(self.line(row))), most)

    def result(self) -> TableResult:
        return TableResult(
            table=self.markdown(), sentence=self.sentence(), values=tuple(dict.fromkeys(self.values())),
            cells=self.cells(), plan=self.described(),
        )  # fmt: skip

    def values(self) -> list[str]:
        if self.outcome.number is not None:
            return [self.computed()]
        if self.operation in {"max", "min", "list", "compare", "sort"}:
            return self.names[: 1 if self.operation == "compare" else None]
        if self.operation == "lookup":
            return [cell.raw for group in self.outcome.groups for _, cell in self.asked_for(group)]
        return [self.figure(group) for group in self.outcome.groups]

    def sentence(self) -> str:
        colon, join, stop = ("：", "、", "。") if self.chinese else (": ", "; ", ".")
        shown = []
        for name, group in zip(self.names[:MOST_NAMED], self.outcome.groups, strict=False):
            if self.operation in {"list", "count"} or self.outcome.columns == (self.table.label,):
                shown.append(name)
            elif self.operation == "lookup" or len(self.outcome.columns) > 1:
                cells = self.asked_for(group)
                lines = (f"{self.header(at)}{colon}{cell.raw}{self.remark([cell])}" for at, cell in cells)
                shown.append(f"{name} – {', '.join(lines)}")
            else:
                shown.append(f"{name}{colon}{self.figure(group)}")
        listed = join.join(shown) + (f" (+ {len(self.names) - len(shown)})" if len(self.names) > len(shown) else "")
        if self.operation in {"list", "lookup"}:
            return listed + stop
        if self.operation == "count":
            return colon.join(filter(None, [self.computed(), listed])) + stop
        head, label = self.header(self.column), _LABELS.get(self.operation, ("", ""))[self.chinese]
        if self.outcome.number is not None:
            behind = f" ({listed})" if self.operation in {"difference", "ratio"} else ""
            return f"{head} ({label}){colon}{self.computed()}{self.remark(self.figures(self.rows))}{behind}{stop}"
        return f"{label} {head}".strip() + f"{colon}{listed}{stop}"

    def asked_for(self, group: Group) -> list[tuple[int, GridCell]]:
        """The cells of a row in the columns asked for."""
        row = self.table.rows[group.rows[0]]
        return [(column, cell) for column in self.outcome.columns if (cell := row[column])]

    def header(self, column: int) -> str:
        return self.table.columns[column] or ("数值" if self.chinese else "figure")

    def figures(self, rows: Sequence[int]) -> list[GridCell]:
        """The cells with a figure that rows were computed on."""
        cells = (self.table.rows[row][column] for row in rows for column in self.outcome.columns)
        return [cell for cell in cells if cell and cell.number is not None]

    def figure(self, group: Group) -> str:
        """A group's figure: the cell itself where it is of one row, else as its cells are written."""
        if self.outcome.by is not None and self.plan.aggregate == "count":
            return str(len(group.rows))
        cells = self.figures(group.rows)
        return (cells[0].raw if len(cells) == 1 else self.written(group.number, cells)) + self.remark(cells)

    def computed(self) -> str:
        number = self.outcome.number or 0.0
        if self.operation in {"count", "ratio"}:
            return f"{number:.4g}" if self.operation == "ratio" else f"{number:.0f}"
        return self.written(abs(number) if self.operation == "difference" else number, self.figures(self.rows))

    def written(self, number: float, cells: Sequence[GridCell]) -> str:
        """A computed figure in the form of the cells that it was computed of: sign of money, unit, commas, decimals."""
        averaged = "average" in {self.operation, self.outcome.by is not None and self.plan.aggregate}
        number, units = number / _scale(cells), {cell.unit for cell in cells}
        unit = units.pop() if len(units) == 1 else ""
        comma = "," if any("," in cell.raw for cell in cells) or abs(number) >= 1e5 else ""
        text = f"{number:{comma}.{max((cell.places for cell in cells), default=0) + 2 * averaged}f}"
        text = text.rstrip("0").rstrip(".") if averaged else text
        if unit in MONEY:
            return f"{unit}{text}"
        return f"{text}{' ' if unit.isascii() and unit.isalpha() else ''}{unit}"

    def remark(self, cells: Sequence[GridCell]) -> str:
        """What the heading of the table says of its figures, where their column does not."""
        scale = _scale(cells)
        if scale not in _SCALES or scale_stated(self.header(self.column)) != 1.0:
            return ""
        return f"（{_SCALES[scale][1]}）" if self.chinese else f" (in {_SCALES[scale][0]})"

    def name(self, group: Group) -> str:
        """What a group of rows is called: the cell that it was put together by, or its row's name."""
        cell = self.table.rows[group.rows[0]][self.table.label if self.outcome.by is None else self.outcome.by]
        return " ".join(cell.raw.split()) if cell else "–"

    def markdown(self) -> str:
        """The rows as a table of the columns that the plan is about."""
        lines = [self.line(row) for row in self.shown]
        if len(self.rows) > len(lines):
            lines.append([f"… {len(self.rows) - len(lines)} more rows", *[""] * (len(self.columns) - 1)])
        return markdown_table([self.header(column) for column in self.columns], lines) if lines else ""

    def line(self, row: int) -> list[str]:
        """A row's cells in the columns that the plan is about."""
        return [cell.raw if (cell := self.table.rows[row][column]) else "" for column in self.columns]

    def cells(self) -> tuple[TableCell, ...]:
        """The cells of the rows shown that are computed on or asked for; of rows only counted those of conditions."""
        label = self.table.label
        columns = [*self.outcome.columns] if self.outcome.columns != (label,) else []
        columns = columns or [condition.column for condition in self.outcome.conditions] or [label]
        cells = []
        for row in (self.table.rows[place] for place in self.shown):
            name = " ".join(cell.raw.split()) if (cell := row[label]) else ""
            for column, cell in ((column, row[column]) for column in dict.fromkeys(columns)):
                if cell is not None and cell.document:
                    named = {"row": name, "column": self.table.columns[column]}
                    cells.append(
                        TableCell(document=cell.document, start=cell.start, end=cell.end, raw=cell.raw, **named)
                    )
        return tuple(cells)

    def described(self) -> str:
        """What was done, for the trace."""
        columns = ", ".join(self.table.columns[column] for column in self.outcome.columns)
        text = f"{self.operation} of {columns} in {self.table.name}"
        conditions = [f"{condition.column} {condition.comparison} {condition.value}" for condition in self.plan.filters]
        text += f" where {' and '.join(conditions)}" if conditions else ""
        if self.outcome.by is not None:
            text += f" by {self.table.columns[self.outcome.by]}"
            text += f" ({self.plan.aggregate})" if self.operation != "list" else ""
        return text + (f", first {self.plan.limit}" if self.plan.limit else "")


def _scale(cells: Sequence[GridCell]) -> float:
    """The scale that a heading gives all figures; 1 where they differ."""
    scales = {cell.scale for cell in cells if cell.number is not None}
    return scales.pop() if len(scales) == 1 else 1.0
