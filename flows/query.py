"""How is a question asked from Python? `ask` and `aask` answer; the Prefect flow `query` also records how."""

import asyncio
import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from flows.asking import AskOptions, answer_question
from flows.asking_view import MODES
from flows.recording import begin, done, failed, flow, flow_run
from flows.sessions import SESSIONS
from flows.settings import load_settings
from flows.shown.answer import in_words, page
from flows.shown.artifacts import Page, put
from flows.shown.picture import walked
from flows.shown.text import plain, short
from flows.usage import rows_of
from prompts.engine.errors import EngineError
from storage.errors import TrellisError
from storage.records import Answer, Mode, StructureType
from tasks.redact import redact

logger = logging.getLogger(__name__)

# What the form offers: the modes that this version has, of all that the contract names.
OfferedMode = Annotated[Mode, Field(json_schema_extra={"enum": list(MODES)})]


def _run_name() -> str:
    return short(str(flow_run.parameters.get("question", "")), 70)


@flow(name="query", flow_run_name=_run_name, persist_result=False)
async def query(
    question: Annotated[str, Field(min_length=1)],
    workspace: str | None = None,
    mode: OfferedMode = "auto",
    structure: StructureType | None = None,
    k: Annotated[int, Field(ge=1, le=100)] = 8,
    documents: list[str] | None = None,
) -> Answer:
    """Answer one question from the current generation, with a record of how.

    Args:
        question: In any language; the answer is in the language of the sources.
        workspace: The folder of state; without it the one of the settings (./.trellis).
        mode: How to retrieve and answer; auto decides by the question.
        structure: The structure to bring the evidence into, instead of the router's choice.
        k: How many passages to retrieve, 1 to 100.
        documents: Look only into the documents with these ids; without it into all.
    """
    only = None if documents is None else tuple(documents)
    try:
        settings = load_settings({"workspace": workspace})
        begin(settings)
        async with SESSIONS.use(workspace) as session:
            options = AskOptions(mode=mode, structure=structure, k=k, documents=only)
            answer = await answer_question(question, options, session)
            way = walked(answer, session)
    except (TrellisError, EngineError) as error:
        return failed(error, Answer)
    except Exception as error:
        redact(error)  # Prefect tells the server its words
        raise
    said = in_words(answer)
    logger.info(said)
    models: dict[str, str] = {role: choice.name for role, choice in settings.model_choices().items() if choice}
    shown = page(answer, way, rows_of(answer.usage, models))
    await put(Page(key="answer", markdown=shown, description=plain(question)))
    return done(said, answer)


async def aask(  # noqa: PLR0913 -- the arguments of the public contract, all but the first by name
    question: str, *, workspace: str | Path | None = None, mode: Mode = "auto", structure: StructureType | None = None,
    k: int = 8, documents: Sequence[str] | None = None, history: Sequence[str] = (),
) -> Answer:  # fmt: skip
    """Answer one question from the current generation of a workspace (None: the one that the settings name).

    `documents` restricts the evidence to those ids; `history` holds the earlier turns, oldest first. The workspace
    stays open between questions. Raises NoGeneration, UnknownDocument, SettingsError; EngineError where a model fails.
    """
    options = AskOptions(
        mode=mode, structure=structure, k=k, documents=None if documents is None else tuple(documents),
        history=tuple(history),
    )  # fmt: skip
    async with SESSIONS.use(workspace) as session:
        return await answer_question(question, options, session)


def ask(  # noqa: PLR0913 -- as above
    question: str, *, workspace: str | Path | None = None, mode: Mode = "auto", structure: StructureType | None = None,
    k: int = 8, documents: Sequence[str] | None = None, history: Sequence[str] = (),
) -> Answer:  # fmt: skip
    """The same as `aask`, waiting for the answer. Works from any thread, also where an event loop is running."""
    answering = aask(
        question, workspace=workspace, mode=mode, structure=structure, k=k, documents=documents, history=history
    )
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
