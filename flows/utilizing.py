"""Questions that the tables of whole documents answer: before an answer is written, their figures are computed.

A question that is restricted to documents is asked of all of them; any other one of those that its passages come from,
where the router has chosen a table, or that are tables row by row.
"""

from bisect import bisect_right
from collections.abc import Sequence

from flows.asking_view import View
from flows.contexts import Context
from prompts.engine.models import Models
from prompts.plan_table import PlanTable
from prompts.reading.claims import Claim, Reading
from prompts.reading.evidence import Evidence
from prompts.structurize import Built
from storage.records import Passage, RouteDecision, SubQuestion
from storage.structures import TableResult
from tasks.evidence import Place, Pool
from tasks.filter import Kept
from tasks.structurize.step import Structured
from tasks.tables.step import answer_from_tables

# Documents that an unrestricted question is asked of: those of its best passages.
MOST_DOCUMENTS = 8
# Documents that a question may name and have read whole; of more only those that its passages come from.
MOST_NAMED = 64
MOST_CITED = 16


async def utilized(
    view: View, passages: Sequence[Passage], route: RouteDecision, kept: Kept, models: Models
) -> Context | None:
    """The answer from tables, or None where the question is none for them or they do not hold it.

    A model with the role `answer` gets the rows and the figure computed of them, and writes the answer itself.
    """
    if view.options.forced not in {None, "table"}:
        return None
    named = view.options.documents
    names = named if named and len(named) <= MOST_NAMED else _tabular(view, passages, route)
    planner = PlanTable(models)
    if not names or (not planner.is_offline and route.type != "table"):
        return None  # the router's model has chosen another structure
    result = await answer_from_tables(view.question, list(view.documents(names).values()), planner)
    if result is None or not (result.cells or result.values):
        return None
    reason = route.reason if route.type == "table" else f"a plan over tables ({route.type}: {route.reason})"
    chosen = route.model_copy(update={"type": "table", "reason": reason})
    pool = _pool(view, result)
    part = SubQuestion(
        question=result.plan, answer=result.sentence, evidence=tuple(place.chunk for place in pool.places)
    )
    claims = tuple(Claim(f"{piece.label}: {piece.text}", (piece.number,)) for piece in pool.evidence[:MOST_CITED])
    reading = Reading(claims, result.values, "none", result.sentence) if models.is_offline("answer") else None
    return Context(passages, _structured(pool), chosen, kept, reading=reading, subquestions=(part,))


def _pool(view: View, result: TableResult) -> Pool:
    """The cells of a result as evidence with its places."""
    documents, chunks = view.documents(list(dict.fromkeys(cell.document for cell in result.cells))), _Chunks(view)
    evidence, places = [], []
    for number, cell in enumerate(result.cells):
        title, chunk = documents[cell.document].title, chunks.at(cell.document, cell.start)
        evidence.append(
            Evidence(
                number, cell.document, title, cell.raw, label=cell.row, attribute=cell.column, value=cell.raw,
                prior=1.0,
            )
        )  # fmt: skip
        places.append(Place(document=cell.document, title=title, chunk=chunk, start=cell.start, end=cell.end))
    return Pool(tuple(evidence), tuple(places))


def _tabular(view: View, passages: Sequence[Passage], route: RouteDecision) -> tuple[str, ...]:
    """The documents that the passages come from, all of them for a table, else those of passages with rows."""
    rows = {piece.document for piece in view.pool(passages).evidence if piece.cells}
    every = dict.fromkeys(passage.document for passage in passages)
    return tuple(one for one in every if route.type == "table" or one in rows)[:MOST_DOCUMENTS]


def _structured(pool: Pool) -> Structured:
    """K and B: the cells that the answer rests on, by document."""
    by_document: dict[str, list[Evidence]] = {}
    for piece in pool.evidence:
        by_document.setdefault(piece.document, []).append(piece)
    built = tuple(
        Built(name, pieces[0].title, f"{pieces[0].title}: {len(pieces)} elements", tuple(pieces))
        for name, pieces in by_document.items()
    )
    return Structured("table", pool.evidence, tuple(one.description for one in built), pool, built)


class _Chunks:
    """The chunks of documents by offset."""

    def __init__(self, view: View) -> None:
        self._index = view.session.index
        self._outside = view.outside.chunks

    def at(self, document: str, offset: int) -> str:
        """The id of the last chunk that begins at or before an offset."""
        own = [self._index.chunks[place] for place in self._index.documents.get(document, ())]
        own = own or [chunk for chunk in self._outside.values() if chunk.document == document]
        own.sort(key=lambda chunk: chunk.start)
        place = bisect_right([chunk.start for chunk in own], offset) - 1
        return own[max(place, 0)].id
