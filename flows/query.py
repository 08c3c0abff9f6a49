"""Answering: a question becomes an answer, with its sources and a trace of how it was found.

rewrite → choose a mode → find the evidence → answer

`query` is the Prefect flow, whose runs Prefect records; `ask` and `aask` do the same work without
Prefect. Each mode has a file in `flows/modes/`; the main search is `structured_search.py`.
"""

import tasks.prefect_environment  # noqa: F401 -- before Prefect

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from prefect import flow
from pydantic import Field

from flows.answer_page import answer_in_words
from flows.helped_search import searched
from flows.modes.auto import answer_in_turn
from flows.modes.query_mode import QueryMode
from flows.modes.registry import check_mode, find_mode, mode_names
from flows.modes.structured_search import answer_by_search, structured_search
from flows.orchestration.recording import ends_in_words, recorded
from flows.orchestration.shown_runs import show_answer
from flows.question import (
    AUTO,
    LISTED,
    AskOptions,
    ModeResult,
    Resources,
    Response,
    answer_of,
    resources_for,
    written,
)
from flows.runtime import usage_of
from flows.session import SESSIONS, Session
from flows.settings import load_settings
from flows.tracing import note_usage
from prompts.engine.bridge import waiting
from prompts.engine.spans import note, note_texts, span
from prompts.engine.spending import Meter
from storage.answer_records import Answer, Effort, Mode, Passage, Retrieval, StructureType
from storage.errors import UsageError
from tasks.retrieve.pages import FolderRetriever, Retriever
from tasks.rewrite import turns
from tasks.route import SEARCH

logger = logging.getLogger(__name__)

OfferedMode = Annotated[Mode, Field(json_schema_extra={"enum": list(mode_names())})]


@flow(flow_run_name="question in mode {mode}", persist_result=False)
@ends_in_words(answer_in_words)
async def query(  # noqa: PLR0913, PLR0917 -- the fields of the form in Prefect's page
    question: Annotated[str, Field(min_length=1)],
    workspace: str | None = None,
    mode: OfferedMode = AUTO,
    structure: StructureType | None = None,
    k: Annotated[int, Field(ge=1, le=100)] | None = None,
    history: list[str] | None = None,
    documents: list[str] | None = None,
    where: str | None = None,
    as_of: Annotated[int, Field(ge=1)] | None = None,
    pages: str | None = None,
    level: Annotated[int, Field(ge=0)] | None = None,
    budget: Annotated[int, Field(ge=1)] | None = None,
    effort: Effort | None = None,
    response: str = "",
) -> Answer:
    """Answer one question from the current generation, and record how.

    Args:
        question: In any language; the answer is in the language of the sources.
        workspace: The folder of state (default: the one in the settings, or ./.trellis).
        mode: How to retrieve and answer; auto chooses by the question.
        structure: The structure to bring the evidence into, instead of the router's choice.
        k: The most passages that the answer is written from, 1 to 100 (default: as many as fit).
        history: Earlier turns of the conversation, oldest first, that the question may refer to.
        documents: Search only the documents with these ids.
        where: Search only the documents that pass this filter, for example: year >= 2020 and
            title like '%bridge%'.
        as_of: The number of an older generation to ask (default: the current one).
        pages: A folder whose files are read in addition to the index.
        level: The level of the community reports that mode global reads, 0 the broadest
            (default: the relevant ones).
        budget: How many passages mode lazy tests for relevance (default: by the effort).
        effort: How much work the models do: low, medium or high (default: as in the settings).
        response: The form of the answer in words: a list, one paragraph, in German.
    """
    options = AskOptions(
        mode=mode,
        structure=structure,
        k=k,
        documents=None if documents is None else tuple(documents),
        where=() if where is None else (where,),
        retriever=FolderRetriever(pages) if pages else None,
        history=turns(history or ()),
        effort=effort,
        response=response,
        level=level,
        budget=budget,
    )
    async with (
        recorded(load_settings({"workspace": workspace})),
        SESSIONS.use(workspace, as_of) as session,
    ):
        with session.runtime.query_models.without_history():
            answer = await answer_question(question, options, session)
        await show_answer(answer, session)
    logger.info(answer_in_words(answer))
    return answer


async def answer_question(question: str, options: AskOptions, session: Session) -> Answer:
    """Answer from the session's generation. Raises SettingsError for an unknown mode."""
    check_mode(options.mode)
    started = time.monotonic()
    with span("question"):
        note_texts(question=question)
        resources = await resources_for(question, options, session)  # rewrite
        response = await (
            answer_in_turn(resources, respond)
            if options.mode == AUTO
            else respond(resources, options.mode)
        )
        answer = await answer_of(question, resources, response, started)
        note_texts(answer=answer.answer)
        note_usage(answer.usage, answer.generation)
        note(mode=answer.trace.mode, label=answer.fallback, citations=len(answer.citations))
    return answer


async def respond(resources: Resources, mode: Mode) -> Response:
    """Answer in one mode."""
    if mode == SEARCH:
        return await answer_by_search(resources)
    result = await mode_result(resources.in_mode(mode), find_mode(mode))
    return Response(mode, result, await written(resources, result))


async def mode_result(resources: Resources, mode: QueryMode) -> ModeResult:
    """Run a mode; bring its passages into a structure if the caller asks for one."""
    if (structure := resources.question.options.structure) is None:
        return await mode.run(resources)
    if mode.retrieve is None:
        raise UsageError(
            f"This mode finds no passages to make a {structure} of.",
            "Leave the structure or the mode out.",
        )
    retrieved = await mode.retrieve(resources, resources.search.candidates(resources.search.depth))
    reranked = await resources.search.best(resources.question.text, retrieved)
    return replace(await structured_search(resources, reranked.passages), reranking=reranked.trace)


async def retrieve_passages(question: str, options: AskOptions, session: Session) -> Retrieval:
    """Return the k best passages for a question. Raises SettingsError for an unknown mode."""
    check_mode(options.mode)
    started, k = time.monotonic(), options.k or LISTED
    with span("search"):
        note_texts(question=question)
        passages, meter = await _passages(question, options, session, k)
        usage = usage_of(meter, time.monotonic() - started)
        note_usage(usage, session.number)
    return Retrieval(question=question, passages=passages, usage=usage, generation=session.number)


async def _passages(
    question: str, options: AskOptions, session: Session, k: int
) -> tuple[tuple[Passage, ...], Meter]:
    resources = await resources_for(question, options, session)
    own_search = find_mode(options.mode).retrieve if options.mode not in {AUTO, SEARCH} else None
    search, text = resources.search, resources.question.text
    if own_search is None:
        passages = (await searched(resources, [text], k)).passages
    else:
        retrieved = await own_search(resources, search.candidates(k))
        passages = (await search.reranked(text, retrieved, k)).passages
    return tuple(passages), resources.models.meter


async def aask(  # noqa: PLR0913 -- the arguments of the public contract, all but the first by name
    question: str,
    *,
    workspace: str | Path | None = None,
    mode: Mode = AUTO,
    structure: StructureType | None = None,
    k: int | None = None,
    documents: Sequence[str] | None = None,
    history: Sequence[str | Mapping[str, object]] = (),
    where: str | None = None,
    as_of: int | None = None,
    retriever: Retriever | None = None,
    budget: int | None = None,
    effort: Effort | None = None,
    response: str = "",
) -> Answer:
    """Answer one question from a workspace (None: that of the settings), which stays open.

    The options are those of `AskOptions`; `where` is one filter, `history` holds texts or messages
    `{"role", "content"}` of a chat, `as_of` is the number of an older generation. Raises
    NoGeneration, UnknownGeneration, UnknownDocument, FilterError, NothingMatches, SettingsError,
    UsageError; EngineError if a model fails.
    """
    options = AskOptions(
        mode=mode,
        structure=structure,
        k=k,
        documents=None if documents is None else tuple(documents),
        effort=effort,
        where=() if where is None else (where,),
        retriever=retriever,
        history=turns(history),
        budget=budget,
        response=response,
    )
    async with SESSIONS.use(workspace, as_of) as session:
        return await answer_question(question, options, session)


ask = waiting(aask)
