"""Answers from the tables of documents: a model plans, SQL computes (StructRAG, section 2.4).

Nothing that a model writes is executed: a plan names operations of this package on columns that
exist. The result has a Markdown table of its rows, a sentence, the bare values, and the cells
behind it. Figures stand as the documents write them; computed ones in the form of their inputs.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from prompts.engine.helper import helped
from prompts.engine.messages import first_fitting, rough_tokens
from prompts.plan_table import PlanTable, TablePlan
from prompts.structures import markdown_table
from prompts.text.evidence import Evidence
from storage.answer_records import Fallback, RouteDecision, SubQuestion, TableCell, TableResult
from storage.records import Chunk, Document, Span
from storage.tables import RowGroup
from tasks.answer import Note, StatedAnswer
from tasks.citations import Source, packed
from tasks.retrying import BRIEF
from tasks.step import step
from tasks.tables.relations import Cell, relations_of, written_figure
from tasks.tables.run_plan import DoesNotFit, PlanOutcome, misfit, run

# A line of up to LONGEST_LINE characters is the source of its cells; a longer one only AROUND them.
LONGEST_LINE, AROUND = 400, 120
MOST_ASKED = 64  # documents whose tables a question may ask
MOST_CITED = 5  # lines of a table: those that decide, and the one that names the columns
MOST_NAMED = 40  # groups in the sentence; the table has more

ChunkAt = Callable[[str, int], Chunk]


def documents_with_tables(
    pool: Sequence[Evidence],
    route: RouteDecision,
    named: Sequence[str] | None,
    planner: PlanTable,
) -> list[str]:
    """Return the documents whose tables are asked: those that the caller named, or those of the
    passages.

    There are none if no model plans, or the question is routed to another structure.
    """
    if route.type != "table" or planner.is_offline:
        return []
    if named and len(named) <= MOST_ASKED:
        return list(named)
    return list(dict.fromkeys(piece.document for piece in pool))[:MOST_ASKED]


@dataclass(frozen=True)
class TableAnswer:
    """The result of a plan, and the lines of documents that show its cells; both may be empty.

    `trusted` says that a large model planned. Of the plans of one with 1.5 billion parameters that
    could be computed, most answered another question (docs/benchmarks.md).
    """

    result: TableResult
    sources: Sequence[Source]
    trusted: bool = True

    @property
    def supports(self) -> bool:
        """Whether an answer may be called supported by this result."""
        return self.trusted

    @property
    def is_computed(self) -> bool:
        return bool(self.result.cells or self.result.values)

    @property
    def notes(self) -> list[Note]:
        if not self.is_computed:
            return []
        computed = "\n".join(filter(None, [self.result.sentence, self.result.plan]))
        notes = [
            Note(
                "Computed exactly from the tables of the documents",
                computed,
                computed=self.supports,
            )
        ]
        if self.result.table:
            notes.append(Note("Rows that this rests on", self.result.table, computed=self.supports))
        return notes

    @property
    def subquestions(self) -> tuple[SubQuestion, ...]:
        """The plan in the trace, with its result or the reason why it has none."""
        if not self.result.plan:
            return ()
        plan = self.result.plan if self.is_computed else f"Tables: {self.result.plan}"
        return (SubQuestion(question=plan, answer=self.result.sentence),)

    @property
    def stated(self) -> StatedAnswer:
        """The answer without a model: the sentence, and the lines that show it."""
        marks = "".join(f"[{number}]" for number, _ in enumerate(self.sources, 1))
        text = f"{self.result.sentence} {marks}".strip()
        fallback: Fallback = "none" if self.supports else "partial"
        return StatedAnswer(text, self.result.values, fallback, "table")


@step("tables", BRIEF, asks_model=True)
async def sourced_table_answer(
    question: str, documents: Mapping[str, Document], planner: PlanTable, chunk_at: ChunkAt
) -> TableAnswer:
    """Compute the answer from tables; it is empty if there are none, or the model makes no plan.

    `chunk_at` returns the chunk at an offset of a document. If the plan does not fit the tables,
    the result has no cells, and its `plan` says why.
    """
    # In a thread, because reading the cells takes CPU.
    relations = await asyncio.to_thread(relations_of, list(documents.values()))
    views = [relation.view for relation in relations]
    plan = None
    if views:

        def asked(step: PlanTable) -> Awaitable[TablePlan | None]:
            return step.run(question, views, lambda plan: misfit(plan, relations))

        plan = await helped(planner, asked, "nothing is computed")
    if plan is None:
        return TableAnswer(TableResult(), ())
    most = planner.policy.limits.structure
    try:
        outcome = await asyncio.to_thread(run, plan, relations)
    except DoesNotFit as problem:
        return TableAnswer(TableResult(plan=f"does not fit: {problem}"), ())
    result = table_result(outcome, most)
    sources = _cell_sources(result.cells, outcome.relation.headers, documents, chunk_at)
    return TableAnswer(result, packed(sources, most), planner.policy.profile == "large")


def _cell_sources(
    cells: Sequence[TableCell],
    headers: Mapping[str, Span],
    documents: Mapping[str, Document],
    chunk_at: ChunkAt,
) -> list[Source]:
    """Return the first lines that hold the cells, then the header; MOST_CITED in all."""
    lines = dict.fromkeys(
        (cell.document, *_line(documents[cell.document].text, cell.start, cell.end))
        for cell in cells
    )
    headed = [
        (cell.document, *headers[cell.document]) for cell in cells[:1] if cell.document in headers
    ]
    chosen = [*list(lines)[: MOST_CITED - len(headed)], *headed]
    return [_source(documents[name], start, end, chunk_at) for name, start, end in chosen]


def _source(document: Document, start: int, end: int, chunk_at: ChunkAt) -> Source:
    chunk = chunk_at(document.id, start)
    text = document.text[start:end]
    return Source(document.id, document.title, text, start, ((chunk.id, chunk.start),))


def _line(text: str, start: int, end: int) -> Span:
    """Return the line of a cell, or its part of a long line."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    last = len(text) if last < 0 else last
    if last - first > LONGEST_LINE:
        first, last = max(first, start - AROUND), min(last, end + AROUND)
    return first, last


# --- the outcome in words --------------------------------------------------------------------


def table_result(outcome: PlanOutcome, most: int) -> TableResult:
    """Describe an outcome, with as many of its rows as `most` tokens hold."""
    written = _WrittenOutcome(outcome)
    shown = first_fitting(
        outcome.rows, lambda row: rough_tokens(" | ".join(written.line(row))), most
    )
    return TableResult(
        table=written.markdown(shown),
        sentence=written.sentence(),
        values=tuple(dict.fromkeys(written.values())),
        cells=written.cells(shown),
        plan=written.plan(),
    )


class _WrittenOutcome:
    """Writes the names and figures of an outcome as the documents do."""

    def __init__(self, outcome: PlanOutcome) -> None:
        self.outcome, self.relation = outcome, outcome.relation
        self.operation, self.column = outcome.plan.operation, outcome.columns[0]
        self.label = self.relation.label
        conditions = [condition.column for condition in outcome.conditions]
        by = [] if outcome.by is None else [outcome.by]
        self.shown = list(dict.fromkeys([self.label, *by, *conditions, *outcome.columns]))
        # The cells that show the result: for rows that were only counted, those of the conditions.
        asked = [column for column in outcome.columns if column != self.label]
        self.deciding = list(dict.fromkeys(asked or conditions or [self.label]))

    def values(self) -> list[str]:
        groups = self.outcome.groups
        if self.outcome.number is not None:
            return [self.computed()]
        if self.operation in {"max", "min", "list", "sort"}:
            return [self.name(group) for group in groups]
        if self.operation == "compare":
            return [self.name(groups[0])]
        if self.operation == "lookup":
            return [cell.shown for group in groups for _, cell in self.asked_for(group)]
        return [self.figure(group) for group in groups]

    def sentence(self) -> str:
        groups = self.outcome.groups
        listed = "; ".join(map(self.described, groups[:MOST_NAMED]))
        if len(groups) > MOST_NAMED:
            listed += f" (+ {len(groups) - MOST_NAMED})"
        head = f"{self.operation} of {self.header(self.column)}"
        if self.operation in {"list", "lookup"}:
            return f"{listed}."
        if self.operation == "count":
            return f"{': '.join(filter(None, [self.computed(), listed]))}."
        if self.outcome.number is None:
            return f"{head}: {listed}."
        behind = f" ({listed})" if self.operation in {"difference", "ratio"} else ""
        return f"{head}: {self.computed()}{behind}."

    def described(self, group: RowGroup) -> str:
        name = self.name(group)
        counted = self.outcome.by is not None and self.outcome.plan.aggregate == "count"
        unnamed = self.outcome.columns == (self.label,) and not counted
        if self.operation in {"list", "count"} or unnamed:
            return name
        if self.operation == "lookup" or len(self.outcome.columns) > 1:
            cells = ", ".join(
                f"{self.header(at)}: {cell.shown}" for at, cell in self.asked_for(group)
            )
            return f"{name} – {cells}"
        return f"{name}: {self.figure(group)}"

    def asked_for(self, group: RowGroup) -> list[tuple[int, Cell]]:
        row = self.relation.rows[group.rows[0]]
        return [(column, cell) for column in self.outcome.columns if (cell := row[column])]

    def header(self, column: int) -> str:
        return self.relation.columns[column] or "figure"

    def name(self, group: RowGroup) -> str:
        """Return the cell by which a group was made, or the name of its row."""
        column = self.label if self.outcome.by is None else self.outcome.by
        return self.text(group.rows[0], column) or "–"

    def text(self, row: int, column: int) -> str:
        cell = self.relation.rows[row][column]
        return " ".join(cell.shown.split()) if cell else ""

    def figure(self, group: RowGroup) -> str:
        """Return the cell of a single row, or the computed figure of a group."""
        aggregate = "" if self.outcome.by is None else self.outcome.plan.aggregate
        if aggregate == "count" and self.operation not in {"sum", "average"}:
            return str(len(group.rows))
        if len(group.rows) == 1:
            return self.text(group.rows[0], self.column)
        if aggregate in {"max", "min"}:
            return self.text(self.best(group), self.column)
        averaged = "average" in {self.operation, aggregate}
        return self.written(group.number or 0.0, group.rows, averaged)

    def best(self, group: RowGroup) -> int:
        """Return the row of a group that has its figure."""
        cells = [(row, self.relation.rows[row][self.column]) for row in group.rows]
        amounts = ((row, cell.amount) for row, cell in cells if cell)
        return next(row for row, amount in amounts if amount and amount.number == group.number)

    def computed(self) -> str:
        number = self.outcome.number or 0.0
        if self.operation in {"count", "ratio"}:
            return f"{number:.4g}" if self.operation == "ratio" else f"{number:.0f}"
        number = abs(number) if self.operation == "difference" else number
        return self.written(number, self.outcome.rows, self.operation == "average")

    def written(self, number: float, rows: Sequence[int], averaged: bool) -> str:
        """Write a computed figure with the unit and the decimals of its cells."""
        cells = [self.relation.rows[row][column] for row in rows for column in self.outcome.columns]
        amounts = [amount for cell in cells if cell and (amount := cell.amount)]
        units = {amount.unit for amount in amounts}
        unit = units.pop() if len(units) == 1 else ""
        places = max((amount.places for amount in amounts), default=0) + 2 * averaged
        return written_figure(number, unit, places)

    def line(self, row: int) -> list[str]:
        return [self.text(row, column) for column in self.shown]

    def markdown(self, rows: Sequence[int]) -> str:
        lines = [self.line(row) for row in rows]
        if more := len(self.outcome.rows) - len(lines):
            lines.append([f"… {more} more rows", *[""] * (len(self.shown) - 1)])
        return (
            markdown_table([self.header(column) for column in self.shown], lines) if lines else ""
        )

    def cells(self, rows: Sequence[int]) -> tuple[TableCell, ...]:
        return tuple(
            TableCell(
                document=part.document,
                start=part.start,
                end=part.end,
                raw=part.raw,
                row=self.text(row, self.label),
                column=self.relation.columns[column],
            )
            for row in rows
            for column in self.deciding
            if (cell := self.relation.rows[row][column])
            for part in cell.parts
        )

    def plan(self) -> str:
        plan, columns = self.outcome.plan, self.relation.columns
        asked = ", ".join(columns[column] for column in self.outcome.columns)
        text = f"{self.operation} of {asked} in {self.relation.name}"
        if conditions := [f"{one.column} {one.comparison} {one.value}" for one in plan.filters]:
            text += f" where {' and '.join(conditions)}"
        if self.outcome.by is not None:
            text += f" by {columns[self.outcome.by]}"
            text += f" ({plan.aggregate})" if self.operation != "list" else ""
        return text + (f", first {plan.limit}" if plan.limit else "")
