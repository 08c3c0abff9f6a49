"""How is a question asked from Python? `ask` and `aask` answer; the Prefect flow `query` also records how."""

import asyncio
import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from flows.asking import AskOptions, answer_question
from flows.question import MODES
from flows.recording import begin, done, failed, flow, flow_run
from flows.sessions import SESSIONS
from flows.settings import load_settings
from flows.shown.answer import in_words, page
from flows.shown.artifacts import Page, put
from flows.shown.picture import walked
from flows.shown.text import plain, short
from flows.usage import rows_of
from prompts.engine.errors import EngineError
from prompts.engine.redact import redact
from storage.errors import TrellisError
from storage.records import Answer, Effort, Mode, StructureType
from tasks.retrieve.pages import FolderRetriever, Retriever
from tasks.rewrite import turns

logger = logging.getLogger(__name__)

# What the form offers: the modes that this version has, of all that the contract names.
OfferedMode = Annotated[Mode, Field(json_schema_extra={"enum": list(MODES)})]


def _run_name() -> str:
    return short(str(flow_run.parameters.get("question", "")), 70)


@flow(name="query", flow_run_name=_run_name, persist_result=False)
async def query(  # noqa: PLR0913, PLR0917 -- the fields of the form
    question: Annotated[str, Field(min_length=1)],
    workspace: str | None = None,
    mode: OfferedMode = "auto",
    structure: StructureType | None = None,
    k: Annotated[int, Field(ge=1, le=100)] = 8,
    documents: list[str] | None = None,
    where: str | None = None,
    as_of: Annotated[int, Field(ge=1)] | None = None,
    pages: str | None = None,
    effort: Effort | None = None,
    response: str = "",
) -> Answer:
    """Answer one question from the current generation, with a record of how.

    Args:
        question: In any language; the answer is in the language of the sources.
        workspace: The folder of state; without it the one of the settings (./.trellis).
        mode: How to retrieve and answer; auto decides by the question.
        structure: The structure to bring the evidence into, instead of the router's choice.
        k: How many passages to retrieve, 1 to 100.
        documents: Look only into the documents with these ids; without it into all.
        where: Look only into the documents that meet this filter, for example: year >= 2020 and title like '%bridge%'.
        as_of: The number of an older generation to ask; without it the current one.
        pages: A folder whose files are read beside the index.
        effort: How much is given to models: low, medium or high; without it what the settings say.
        response: The form that the answer shall have, in words: a list, one paragraph, in German.
    """
    only = None if documents is None else tuple(documents)
    try:
        settings = load_settings({"workspace": workspace})
        begin(settings)
        async with SESSIONS.use(workspace, as_of) as session:
            retriever = FolderRetriever(pages) if pages else None
            options = AskOptions(
                mode=mode, structure=structure, k=k, documents=only, where=_filters(where), retriever=retriever,
                effort=effort, response=response,
            )  # fmt: skip
            answer = await answer_question(question, options, session)
            way = walked(answer, session)
    except (TrellisError, EngineError) as error:
        return failed(error, Answer)
    except Exception as error:
        redact(error)  # Prefect tells the server its words
        raise
    said = in_words(answer)
    logger.info(said)
    if answer.trace.decision is not None:
        logger.info("Mode %s: %s.", answer.trace.mode, answer.trace.decision.reason)
    models: dict[str, str] = {role: choice.name for role, choice in settings.model_choices().items() if choice}
    shown = page(answer, way, rows_of(answer.usage, models))
    await put(Page(key="answer", markdown=shown, description=plain(question)))
    return done(said, answer)


def _filters(where: str | None) -> tuple[str, ...]:
    return () if where is None else (where,)


async def aask(  # noqa: PLR0913 -- the arguments of the public contract, all but the first by name
    question: str, *, workspace: str | Path | None = None, mode: Mode = "auto", structure: StructureType | None = None,
    k: int = 8, documents: Sequence[str] | None = None, history: Sequence[str | Mapping[str, object]] = (),
    where: str | None = None, as_of: int | None = None, retriever: Retriever | None = None,
    effort: Effort | None = None, response: str = "",
) -> Answer:  # fmt: skip
    """Answer one question from the current generation of a workspace (None: the one that the settings name).

    `documents` restricts the evidence to those ids, `where` to the documents that meet a filter; `history` holds the
    earlier turns, oldest first, as texts or as `{"role", "content"}` of a chat; `as_of` asks an older generation;
    `retriever` brings pages from outside the index; `effort` says how much is given to models, `response` in words what
    form the answer shall have. The workspace stays open between questions. Raises NoGeneration, UnknownGeneration,
    UnknownDocument, FilterError, NothingMatches, SettingsError, UsageError; EngineError where a model fails."""
    options = AskOptions(
        mode=mode, structure=structure, k=k, documents=None if documents is None else tuple(documents),
        where=_filters(where), retriever=retriever, history=turns(history), effort=effort, response=response,
    )  # fmt: skip
    async with SESSIONS.use(workspace, as_of) as session:
        return await answer_question(question, options, session)


def ask(  # noqa: PLR0913 -- as above
    question: str, *, workspace: str | Path | None = None, mode: Mode = "auto", structure: StructureType | None = None,
    k: int = 8, documents: Sequence[str] | None = None, history: Sequence[str | Mapping[str, object]] = (),
    where: str | None = None, as_of: int | None = None, retriever: Retriever | None = None,
    effort: Effort | None = None, response: str = "",
) -> Answer:  # fmt: skip
    """The same as `aask`, waiting for the answer. Works from any thread, also where an event loop is running."""
    answering = aask(
        question, workspace=workspace, mode=mode, structure=structure, k=k, documents=documents, history=history,
        where=where, as_of=as_of, retriever=retriever, effort=effort, response=response,
    )  # fmt: skip
    asked = asyncio.run_coroutine_threadsafe(answering, _LOOP.get())
    try:
        return asked.result()
    except BaseException:
        asked.cancel()
        raise


class _Loop:
    """One event loop in a thread of its own, for all that call `ask`: connections to models outlive a question."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def get(self) -> asyncio.AbstractEventLoop:
        """The running loop. A forked process gets a new one: threads do not survive a fork."""
        with self._lock:
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="trellis-ask", daemon=True)
                self._thread.start()
            return self._loop


_LOOP = _Loop()
