"""Which questions do the tables of whole documents, or chains of triples, answer before an answer is written?

A question that is restricted to documents is asked of all of them; any other one of those that its passages come from,
where the router has chosen a table, or that are tables row by row.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from flows.asking_view import View
from flows.contexts import Context
from prompts.engine.models import Models
from prompts.language.chain_question import ChainPlan, chain_plan_of, relation_of
from prompts.reading.evidence import Evidence
from prompts.structures.table import WriteTable
from prompts.structurize import Built
from prompts.utilize import PlanTable
from storage.records import Passage, RouteDecision, StructureType
from tasks.evidence import Pool
from tasks.filter import Kept
from tasks.structurize.step import Structured
from tasks.traverse.context import Stated
from tasks.utilize.chains import follow
from tasks.utilize.step import utilize

# Documents that an unrestricted question is asked of: those of its best passages.
MOST_DOCUMENTS = 8
# Documents that a question may name and have read whole; of more only those that its passages come from.
MOST_NAMED = 64
_EMPTY = Structured("graph", (), (), Pool((), ()))


async def utilized(
    view: View, passages: Sequence[Passage], route: RouteDecision, kept: Kept, models: Models
) -> Context | None:
    """The answer from tables or chains, or None where the question is none for them or they do not hold it."""
    if view.options.forced in {None, "graph"} and (plan := chain_plan_of(view.taken.text)):
        return _chained(view, plan, Context(passages, _EMPTY, route, kept))
    if view.options.forced not in {None, "table"}:
        return None
    named = view.options.documents
    documents = named if named and len(named) <= MOST_NAMED else _tabular(view, passages, route)
    chunks, planner = _Chunks(view), PlanTable(models)
    told = await utilize(
        view.taken, documents, view.documents, chunks.at, planner, route.type == "table", WriteTable(models)
    )
    if told is None:
        return None
    reason = route.reason if route.type == "table" else f"a plan over tables ({route.type}: {route.reason})"
    chosen = route.model_copy(update={"type": "table", "reason": reason})
    structured = _structured("table", told.pool.evidence, told.pool)
    return Context(passages, structured, chosen, kept, reading=told.reading, subquestions=told.subquestions)


def _chained(view: View, plan: ChainPlan, context: Context) -> Context | None:
    """The end of a chain of one relation, over all that the documents state of it."""
    only, facts = view.options.documents, view.session.facts
    stated = Stated(facts, view.session.index.chunk)
    for relation in facts.relations.values():
        known = relation_of(relation.predicate)
        if known is not None and known[0] == plan.relation:
            first = view.session.index.chunk(facts.places[relation.id][0].chunk)
            if only is None or first.document in only:
                stated.of(relation)
    pool = stated.pool()
    found = follow(view.taken, plan, pool)
    if found is None:
        return None
    cited = {number for claim in found.reading.claims for number in claim.evidence}
    elements = tuple(piece for piece in pool.evidence if piece.number in cited)
    chosen = context.route.model_copy(update={"type": "graph", "reason": "asks for the end of a chain"})
    return replace(
        context, structured=_structured("graph", elements, pool), route=chosen, reading=found.reading,
        subquestions=found.subquestions,
    )  # fmt: skip


def _tabular(view: View, passages: Sequence[Passage], route: RouteDecision) -> tuple[str, ...]:
    """The documents that the passages come from, all of them for a table, else those of passages with rows."""
    rows = {piece.document for piece in view.pool(passages).evidence if piece.cells}
    every = dict.fromkeys(passage.document for passage in passages)
    return tuple(one for one in every if route.type == "table" or one in rows)[:MOST_DOCUMENTS]


def _structured(structure: StructureType, elements: Sequence[Evidence], pool: Pool) -> Structured:
    """K and B: the elements that the answer rests on, by document."""
    by_document: dict[str, list[Evidence]] = {}
    for piece in elements:
        by_document.setdefault(piece.document, []).append(piece)
    built = tuple(
        Built(name, pieces[0].title, f"{pieces[0].title}: {len(pieces)} elements", tuple(pieces))
        for name, pieces in by_document.items()
    )
    return Structured(structure, tuple(elements), tuple(one.description for one in built), pool, built)


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
