"""The search itself: passages are retrieved, filtered and brought into the structure that suits the
question (ERM4, StructRAG).

trigger check → recognize → retrieve → rerank → search further → filter → route → structurize →
decompose → answer → remember

A question like an earlier one is answered from memory where that suffices.
"""

from collections.abc import Sequence
from dataclasses import replace

from flows.helped_search import searched
from flows.question import ModeResult, Resources, Response, part_answer, written
from prompts.decompose import Decompose
from prompts.filter import Filter
from prompts.plan_table import PlanTable
from prompts.route import Route
from prompts.structurize import Structurize
from storage.answer_records import Passage
from tasks.answer import AnswerContext
from tasks.citations import LazySequence, first_units, openings, pool_of
from tasks.decompose import answer_parts, decompose
from tasks.filter import disagreement_notes, filter_passages, filter_request
from tasks.memory import Lesson, check_trigger, remember
from tasks.route import FIRST_UNITS, SEARCH, choose_structure, core_content, is_tabular
from tasks.structurize import structure_note, structurize, traced_structures
from tasks.tables.answer import documents_with_tables, sourced_table_answer


async def answer_by_search(resources: Resources) -> Response:
    """Answer from memory where that suffices, else from a search; remember what was found."""
    question, memory, search = resources.question, resources.memory, resources.search
    recall = await check_trigger(question.queries, memory)  # trigger check
    if recall.used:
        remembered = [
            search.passage(name, 1 - rank / len(recall.chunks))
            for rank, name in enumerate(recall.chunks)
        ]
        result = await structured_search(resources, remembered)
        answered = await written(resources, result)
        if recall.suffices(answered.fallback):
            return Response(SEARCH, result, answered, recall)
        # Memory does not answer this wording: the documents are searched.
        recall = recall.passed_over()
        resources.withdraw_draft()
    # recognize → retrieve → rerank → further searches, each where it is wanted
    found = await searched(resources, question.queries, search.depth)
    # filter → route → structurize → decompose
    result = await structured_search(resources, found.passages)
    answered = await written(resources, result)  # answer
    lesson = Lesson(
        question.text, answered, result.passages, result.filtered.entailed, result.subquestions
    )
    await remember(lesson, memory, search.passage)  # remember
    result = replace(
        result,
        reranking=found.reranking,
        recognition=found.recognition,
        subquestions=(*found.steps, *result.subquestions),
    )
    return Response(SEARCH, result, answered, recall)


async def structured_search(resources: Resources, passages: Sequence[Passage]) -> ModeResult:
    """Make the context of an answer from passages that were retrieved or remembered.

    filter → route → (tables) → structurize → decompose, and an answer to each part. The context
    holds sources within the tokens of an answer, and notes that refer to them by number.
    """
    question, search, models = resources.question, resources.search, resources.models
    forced = question.options.structure
    request = filter_request(question.text, passages, resources.writes)
    filtered = await filter_passages(request, passages, Filter(models))  # filter
    kept = filtered.kept(passages)
    chunks, planner = search.chunks(kept), PlanTable(models)
    pool = LazySequence(lambda: pool_of(chunks))
    core = LazySequence(lambda: core_content(openings(chunks)))
    tabular = is_tabular(first_units(chunks, FIRST_UNITS))
    route = await choose_structure(question.parsed, core, tabular, Route(models), forced)  # route
    documents = search.documents(documents_with_tables(pool, route, question.only, planner))
    table = await sourced_table_answer(question.text, documents, planner, search.chunk_at)
    # Where a model writes, a computed table is a note for the answer below.
    if table.is_computed and not resources.writes:
        return ModeResult(
            AnswerContext(table.sources, table.notes),
            passages,
            table.stated,
            route=route,
            filtered=filtered,
            structure="table",
            subquestions=table.subquestions,
        )
    structured = await structurize(
        pool, question.text, Structurize(models, route.type), wanted=forced is not None
    )
    parts = await decompose(
        question.text, structured.descriptions, question.plain, Decompose(models)
    )  # decompose
    several = parts if len(parts) > 1 else []
    answers = await answer_parts(several, lambda part: part_answer(resources, part))
    cited = [source for part in answers for source in part.cited]
    sources = search.joined([*table.sources, *cited, *search.sources(kept)])
    notes = [*disagreement_notes(filtered), *table.notes, *structure_note(structured, sources)]
    return ModeResult(
        AnswerContext(sources, [*notes, *(part.note(sources) for part in answers)]),
        passages,
        route=route,
        filtered=filtered,
        subquestions=(*table.subquestions, *(part.subquestion for part in answers)),
        structure=structured.type,
        structures=traced_structures(structured),
    )
