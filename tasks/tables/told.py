"""A table result as the context of an answer: the lines that its cells stand in as sources, and what was computed."""

from collections.abc import Callable, Mapping, Sequence

from storage.records import Chunk, Document, TableCell, TableResult
from tasks.answer import Note, StatedAnswer
from tasks.sources import Source, number_of

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
