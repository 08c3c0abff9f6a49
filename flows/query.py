"""Answering: a question becomes an answer, with its sources and a trace of how it was found.

rewrite → trigger check → retrieve → rerank → filter → route → structurize → decompose → answer → remember

The story is told here, one call a step; another mode (`flows/modes/`) has its own. `query` is the Prefect flow.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.modes.auto import answer_in_turn
from flows.modes.registry import AUTO, SEARCH, RegisteredMode, call_with, find_mode
from flows.question import AskOptions, ModeResult, Resources, Response, answer_of, part_answer, resources_for, written
from flows.session import SESSIONS, Session
from prompts.decompose import Decompose
from prompts.engine.bridge import waiting
from prompts.filter import Filter
from prompts.plan_table import PlanTable
from prompts.route import Route
from prompts.structurize import Structurize
from storage.answer_records import Answer, Effort, Mode, Passage, StructureType
from storage.errors import UsageError
from tasks.answer import AnswerContext
from tasks.citations import LazySequence, first_units, openings, pool_of
from tasks.decompose import answer_parts, decompose
from tasks.filter import disagreement_notes, filter_passages, filter_request
from tasks.memory import Lesson, check_trigger, remember
from tasks.retrieve.pages import Retriever
from tasks.rewrite import turns
from tasks.route import FIRST_UNITS, choose_structure, core_content, is_tabular
from tasks.structurize import structure_note, structurize, traced_structures
from tasks.tables.answer import documents_with_tables, sourced_table_answer

if TYPE_CHECKING:
    from flows.orchestration.recorded_flows import query as query  # noqa: PLC0414 -- for who imports it from here


async def answer_question(question: str, options: AskOptions, session: Session) -> Answer:
    """Answer from the session's generation. The answer's fields are described at `storage.answer_records.Answer`."""
    started = time.monotonic()
    resources = await resources_for(question, options, session)  # rewrite
    response = await (answer_in_turn(resources, respond) if options.mode == AUTO else respond(resources, options.mode))
    return await answer_of(question, resources, response, started)


async def respond(resources: Resources, mode: Mode) -> Response:
    """The answer in one mode. The search looks into memory first, and keeps what it has found."""
    question, memory, search = resources.question, resources.memory, resources.search
    if mode != SEARCH:
        result = await mode_result(resources.in_mode(mode), find_mode(mode))
        return Response(mode, result, await written(resources, result))
    recall = await check_trigger(question.queries, memory)  # trigger check
    if recall.used:
        remembered = [search.passage(name, 1 - rank / len(recall.chunks)) for rank, name in enumerate(recall.chunks)]
        result = await structured_search(resources, remembered)
        answered = await written(resources, result)
        if recall.suffices(answered.fallback):
            return Response(mode, result, answered, recall)
        recall = recall.passed_over()  # memory does not answer this wording: the documents are searched
        resources.withdraw_draft()
    retrieved = await search.passages(question.queries, search.candidates(search.depth))  # retrieve
    reranked = await search.reranked(question.text, retrieved, search.depth)  # rerank, where a model is set for it
    result = await structured_search(resources, reranked.passages)  # filter → route → structurize → decompose
    answered = await written(resources, result)  # answer
    lesson = Lesson(question.text, answered, result.passages, result.filtered.entailed, result.subquestions)
    await remember(lesson, memory, search.passage)  # remember
    return Response(mode, replace(result, reranking=reranked.trace), answered, recall)


async def mode_result(resources: Resources, mode: RegisteredMode) -> ModeResult:
    """What a mode brings; a structure that the caller asks for is made of the passages that it finds."""
    if (structure := resources.question.options.structure) is None:
        return await call_with(mode.run, resources)
    if mode.retrieve is None:
        raise UsageError(
            f"This mode finds no passages to make a {structure} of.", "Leave the structure or the mode out."
        )
    retrieved = await call_with(mode.retrieve, resources, k=resources.search.candidates(resources.search.depth))
    reranked = await resources.search.best(resources.question.text, retrieved)
    return replace(await structured_search(resources, reranked.passages), reranking=reranked.trace)


async def structured_search(resources: Resources, passages: Sequence[Passage]) -> ModeResult:
    """The context of an answer from passages that were retrieved or remembered (StructRAG, ERM4).

    filter → route → (tables) → structurize → decompose, and an answer to each part; what comes of it are sources within
    the tokens of an answer, and notes that refer to them by number.
    """
    question, search, models = resources.question, resources.search, resources.models
    forced = question.options.structure
    request = filter_request(question.text, passages, resources.writes)
    filtered = await filter_passages(request, passages, Filter(models))  # filter
    kept_passages = filtered.kept(passages)
    chunks, planner = search.chunks(kept_passages), PlanTable(models)
    pool, core = LazySequence(lambda: pool_of(chunks)), LazySequence(lambda: core_content(openings(chunks)))
    tabular = is_tabular(first_units(chunks, FIRST_UNITS))
    route = await choose_structure(question.parsed, core, tabular, Route(models), forced)  # route
    documents = search.documents(documents_with_tables(pool, route, question.only, planner))
    table = await sourced_table_answer(question.text, documents, planner, search.chunk_at)
    if table.is_computed and not resources.writes:  # where a model writes, it is a note for that below
        return ModeResult(
            AnswerContext(table.sources, table.notes), passages, table.stated, route=route, filtered=filtered,
            structure="table", subquestions=table.subquestions,
        )  # fmt: skip
    structured = await structurize(pool, question.text, Structurize(models, route.type), wanted=forced is not None)
    parts = await decompose(question.text, structured.descriptions, question.plain, Decompose(models))  # decompose
    several = parts if len(parts) > 1 else []
    answers = await answer_parts(several, lambda part: part_answer(resources, part))
    cited = [source for part in answers for source in part.cited]
    sources = search.joined([*table.sources, *cited, *search.sources(kept_passages)])
    notes = [*disagreement_notes(filtered), *table.notes, *structure_note(structured, sources)]
    return ModeResult(
        AnswerContext(sources, [*notes, *(part.note(sources) for part in answers)]), passages, route=route,
        filtered=filtered, subquestions=(*table.subquestions, *(part.subquestion for part in answers)),
        structure=structured.type, structures=traced_structures(structured),
    )  # fmt: skip


async def aask(  # noqa: PLR0913 -- the arguments of the public contract, all but the first by name
    question: str, *, workspace: str | Path | None = None, mode: Mode = AUTO, structure: StructureType | None = None,
    k: int | None = None, documents: Sequence[str] | None = None, history: Sequence[str | Mapping[str, object]] = (),
    where: str | None = None, as_of: int | None = None, retriever: Retriever | None = None,
    effort: Effort | None = None, response: str = "",
) -> Answer:  # fmt: skip
    """Answer one question from the current generation of a workspace (None: the one that the settings name).

    Options as of `AskOptions`: `where` is one filter, `history` holds texts or `{"role", "content"}` of a chat; `as_of`
    asks an older generation. The workspace stays open. Raises NoGeneration, UnknownGeneration, UnknownDocument,
    FilterError, NothingMatches, SettingsError, UsageError; EngineError where a model fails."""
    options = AskOptions(
        mode=mode, structure=structure, k=k, documents=None if documents is None else tuple(documents), effort=effort,
        where=() if where is None else (where,), retriever=retriever, history=turns(history), response=response,
    )  # fmt: skip
    async with SESSIONS.use(workspace, as_of) as session:
        return await answer_question(question, options, session)


ask = waiting(aask)


def __getattr__(name: str) -> Any:
    """The Prefect flow `query`, loaded when it is first used: Prefect takes a second to load."""
    if name == "query":
        from flows.orchestration.recorded_flows import query

        return query
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
