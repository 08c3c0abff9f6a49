"""What the tables of documents answer: plan, compute, tell (StructRAG, section 2.4: decompose, extract, infer).

The question becomes a plan over the tables that are there, and SQL over them selects, counts and computes.
Nothing that a model writes is run: a plan names operations of ours.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from prompts.plan_table import PlanTable
from storage.answer_records import TableCell, TableResult
from storage.records import Chunk, Document
from tasks.answer import Note, StatedAnswer
from tasks.sources import Source, number_of
from tasks.step import step
from tasks.tables.relations import relations_of
from tasks.tables.run import DoesNotFit, run
from tasks.tables.tell import tell


@step("tables")
async def answer_from_tables(question: str, documents: Sequence[Document], planner: PlanTable) -> TableResult | None:
    """The result for a question, or None where the documents have no tables or the planner sees no plan.

    A plan that does not fit the tables gives a result without cells, whose `plan` says why.
    """
    # New documents take CPU: other questions go on meanwhile.
    tables = await asyncio.to_thread(relations_of, documents)
    plan = await planner.run(question, [table.view for table in tables]) if tables else None
    if plan is None:
        return None
    try:
        return tell(question, await asyncio.to_thread(run, plan, tables))
    except DoesNotFit as problem:
        return TableResult(plan=f"does not fit: {problem}")


MOST_SOURCES = 24
# A line of at most so many characters is the source of its cells; of a longer one so much on either side of a cell.
LONGEST_LINE, AROUND = 400, 120

ChunkAt = Callable[[str, int], Chunk]


def cell_sources(cells: Sequence[TableCell], documents: Mapping[str, Document], chunk_at: ChunkAt) -> list[Source]:
    """The lines that hold the cells, each once, in the order of the cells; of many the first."""
    found: dict[tuple[str, int], Source] = {}
    for cell in cells:
        document = documents[cell.document]
        start, end = _line(document.text, cell.start, cell.end)
        if len(found) < MOST_SOURCES and (cell.document, start) not in found:
            chunk = chunk_at(cell.document, cell.start)
            text = document.text[start:end]
            found[cell.document, start] = Source(cell.document, document.title, text, start, ((chunk.id, chunk.start),))
    return list(found.values())


def _line(text: str, start: int, end: int) -> tuple[int, int]:
    """The line, or the stretch of a long one, around a span."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    last = len(text) if last < 0 else last
    if last - first > LONGEST_LINE:
        first, last = max(first, start - AROUND), min(last, end + AROUND)
    return first, last


def table_notes(result: TableResult) -> list[Note]:
    """What was computed and the rows that it rests on; of a plan that does not fit, why."""
    if not result.cells and not result.values:
        return []
    computed = "\n".join(filter(None, [result.sentence, result.plan]))
    notes = [Note("Computed exactly from the tables of the documents", computed)]
    return [*notes, Note("Rows that this rests on", result.table)] if result.table else notes


def stated_by(result: TableResult, sources: Sequence[Source]) -> StatedAnswer:
    """The result as an answer that needs no model: its sentence with the lines that show it."""
    numbers = [number_of(sources, cell.document, cell.start, cell.end) for cell in result.cells]
    marks = "".join(f"[{number}]" for number in dict.fromkeys(numbers) if number)
    return StatedAnswer(f"{result.sentence} {marks}".strip(), result.values, "none", "table")
