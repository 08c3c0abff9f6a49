"""Structured search: passages, filtered, in the structure that the question needs (StructRAG, ERM4).

retrieve ─ filter ─ route ─ structurize ─ decompose. The mode `struct`, and what `auto` does where it searches.
"""

import re
from collections.abc import Sequence

from flows.modes.registry import mode
from flows.question import QuestionContext
from flows.response import ModeResult
from prompts.decompose import Decompose
from prompts.filter import Filter
from prompts.plan_table import PlanTable
from prompts.route import Route
from prompts.structurize import ReadSchema, Structurize
from storage.answer_records import Passage, RouteDecision, SubQuestion, TableResult
from tasks.answer import AnswerContext, Note, answer
from tasks.decompose import PartAnswer, answer_parts, decompose
from tasks.filter import FilterResult, filter_passages
from tasks.route import choose_structure, core_content, is_tabular
from tasks.sources import Source, merged, number_of, packed
from tasks.structurize import Structured, shown_of, structure_note, structurize
from tasks.tables.step import answer_from_tables, cell_sources, stated_by, table_notes

PART_PASSAGES = 8
# Documents whose tables an unrestricted question is asked of, and so many that a question may name.
MOST_DOCUMENTS, MOST_NAMED = 8, 64
MARKER_NUMBER = re.compile(r"(?<=\[)\d+(?=[\],])|(?<=, )\d+(?=[\],])")


@mode("struct")
async def search(question: QuestionContext) -> ModeResult:
    """The context of passages that a search finds."""
    return await structured_search(question, await question.search(question.queries, question.depth))


async def structured_search(question: QuestionContext, passages: Sequence[Passage]) -> ModeResult:
    """The context of passages that were retrieved or remembered."""
    models = question.models
    filtered = await filter_passages(question.filter_request(passages), passages, Filter(models))
    kept = [passage for passage in passages if passage.chunk in set(filtered.chunks)]
    pool = question.pool(kept)
    route = await choose_structure(
        question.parsed, core_content(pool), is_tabular(pool), Route(models), question.options.forced
    )
    table = await _from_tables(question, kept, route)
    unfit: tuple[SubQuestion, ...] = ()
    if table is not None and not (table.cells or table.values):
        # The trace tells why a plan computed nothing; passages answer then.
        unfit = (SubQuestion(question=f"Tables: {table.plan}", answer=""),)
        table = None
    if table is not None and models.is_offline("answer"):
        return _stated(table, passages, route, filtered, question)
    builder = Structurize(models, route.type)
    structured = await structurize(pool, question.relevance, builder, ReadSchema(models))
    parts = await _parts(question, structured)
    cited = [source for part in parts for source in part.cited]
    rows = _rows(table, question) if table else []
    sources = packed(merged([*rows, *cited, *question.sources(kept)]), models.policy.limits.answer)
    notes = [*_disagreements(filtered), *(table_notes(table) if table else [])]
    notes += [*structure_note(structured, sources), *_answers(parts, sources)]
    return ModeResult(
        context=AnswerContext(sources, notes), passages=passages, route=route, filtered=filtered,
        subquestions=(*unfit, *map(_told, parts)), structure=structured.type, structures=shown_of(structured),
    )  # fmt: skip


async def _from_tables(question: QuestionContext, kept: Sequence[Passage], route: RouteDecision) -> TableResult | None:
    """What a plan over the tables of whole documents computes: of those that the caller names, else of those that the
    passages come from; None where the question is none for tables, or the planner sees no plan."""
    planner, options = PlanTable(question.models), question.options
    if options.forced not in {None, "table"} or (not planner.is_offline and route.type != "table"):
        return None
    rows = {piece.document for piece in question.pool(kept).evidence if piece.cells}
    found = dict.fromkeys(passage.document for passage in kept)
    names = [name for name in found if route.type == "table" or name in rows][:MOST_DOCUMENTS]
    if options.documents and len(options.documents) <= MOST_NAMED:
        names = list(options.documents)
    if not names:
        return None
    return await answer_from_tables(question.text, list(question.documents(names).values()), planner)


def _rows(result: TableResult, question: QuestionContext) -> list[Source]:
    """The lines of the documents that the result rests on."""
    documents = question.documents(list(dict.fromkeys(cell.document for cell in result.cells)))
    return cell_sources(result.cells, documents, question.chunk_at)


def _stated(
    result: TableResult, passages: Sequence[Passage], route: RouteDecision, filtered: FilterResult,
    question: QuestionContext,
) -> ModeResult:  # fmt: skip
    """Without a model to write: the result's own sentence."""
    sources = _rows(result, question)
    reason = route.reason if route.type == "table" else f"a plan over tables ({route.type}: {route.reason})"
    told = SubQuestion(question=result.plan, answer=result.sentence)
    return ModeResult(
        context=AnswerContext(sources, table_notes(result)), passages=passages, stated=stated_by(result, sources),
        route=route.model_copy(update={"type": "table", "reason": reason}), filtered=filtered, structure="table",
        subquestions=(told,),
    )  # fmt: skip


async def _parts(question: QuestionContext, structured: Structured) -> list[PartAnswer]:
    """The answers to the parts of the question; nothing where it is one, or where no model answers."""
    if question.models.policy.effort == "low" and not question.models.is_offline("decompose"):
        question.models.meter.spare("decompose", "low effort: the question is answered whole")
        return []
    parts = await decompose(question.text, structured.descriptions, question.plain, Decompose(question.models))
    if len(parts) < 2 or question.models.is_offline("answer"):
        return []

    async def answered(part: str) -> PartAnswer:
        found = question.sources(await question.search([part], PART_PASSAGES), question.models.policy.limits.part)
        done = await answer(part, AnswerContext(found), question.writer(aloud=False), question.answer_options)
        cited = {(one.document, one.start, one.end) for one in done.citations}
        return PartAnswer(part, done, [one for one in found if any(one.holds(*place) for place in cited)])

    return await answer_parts(parts, answered)


def _answers(parts: Sequence[PartAnswer], sources: Sequence[Source]) -> list[Note]:
    """The answers to the parts, their markers those of the whole question's sources."""
    return [Note(f"Answer to: {part.question}", _renumbered(part, sources)) for part in parts]


def _renumbered(part: PartAnswer, sources: Sequence[Source]) -> str:
    numbers = {
        one.marker.strip("[]"): number_of(sources, one.document, one.start, one.end) for one in part.answered.citations
    }
    return MARKER_NUMBER.sub(lambda found: f"{numbers.get(found[0]) or '–'}", part.answered.text)


def _disagreements(filtered: FilterResult) -> list[Note]:
    """What the filter's model found to contradict other passages."""
    told = [f"{one.document} against {one.against_document}: {one.explanation}" for one in filtered.counts.conflicts]
    return [Note("Sources that disagree", "\n".join(told))] if told else []


def _told(part: PartAnswer) -> SubQuestion:
    chunks = dict.fromkeys(one.chunk for one in part.answered.citations)
    said = ", ".join(part.answered.values) or part.answered.text
    return SubQuestion(question=part.question, answer=said, evidence=tuple(chunks))
