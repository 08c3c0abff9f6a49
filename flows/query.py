"""How is a question asked from Python? `ask` and `aask` answer; the Prefect flow `query` also records how."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

from flows.asking import AskOptions, answer_question
from flows.recording import acreate_markdown_artifact, done, failed, flow, flow_run, plain
from flows.sessions import SESSIONS
from flows.settings import load_settings
from flows.usage import ledger, rows_of
from prompts.engine.errors import EngineError
from storage.errors import TrellisError
from storage.records import Answer, Mode, StructureType

SHOWN_CHARACTERS = 70


def _run_name() -> str:
    question = " ".join(str(flow_run.parameters.get("question", "")).split())
    return question if len(question) <= SHOWN_CHARACTERS else question[: SHOWN_CHARACTERS - 1] + "…"


@flow(name="query", flow_run_name=_run_name, persist_result=False)
async def query(
    question: str, workspace: str | None = None, mode: Mode = "auto", structure: StructureType | None = None, k: int = 8
) -> Answer:
    """Answer one question from the current generation, with a record of how.

    Args:
        question: In any language; the answer is in the language of the sources.
        workspace: The folder of state; without it the one of the settings (./.trellis).
        mode: How to retrieve and answer; auto decides by the question.
        structure: The structure to bring the evidence into, instead of the router's choice.
        k: How many passages to retrieve.
    """
    try:
        answer = await aask(question, workspace=workspace, mode=mode, structure=structure, k=k)
    except (TrellisError, EngineError) as error:
        return failed(error, Answer)
    choices = load_settings({"workspace": workspace}).model_choices()
    used = rows_of(answer.usage, {role: choice.name for role, choice in choices.items() if choice})
    markdown = f"{_markdown(answer)}\n\n{ledger(used)}"
    await acreate_markdown_artifact(key="answer", markdown=markdown, description=plain(question))
    return done(_in_words(answer), answer)


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


def _in_words(answer: Answer) -> str:
    """How the question ended, as one sentence."""
    cited = len({citation.document for citation in answer.citations})
    sources = "1 document" if cited == 1 else f"{cited} documents"
    ends = {
        "none": f"Answered from {sources}",
        "partial": f"Answered in part, from {sources}",
        "ungrounded": "Answered by the model alone: no document supports it",
        "abstained": "Not answered: the documents do not say",
    }
    return f"{ends[answer.fallback]} (generation {answer.generation}, {answer.usage.seconds:.2f} s)."


def _markdown(answer: Answer) -> str:
    """The answer, its sources and the decisions behind it."""
    trace = answer.trace
    lines = [f"# {plain(answer.question)}", plain(answer.answer), _in_words(answer)]
    if answer.citations:
        lines.append("## Sources")
    for citation in answer.citations:
        page = f", p. {citation.page}" if citation.page else ""
        lines.append(f"{plain(citation.marker)} {plain(citation.title)} ({plain(citation.document)}{page})")
        lines.append(f"> {plain(citation.quote)}")
    route = trace.route
    lines.append("## Decisions")
    lines.append(
        f"- mode {trace.mode}, question type {plain(trace.question_type)}\n"
        f"- route {route.type} (confidence {route.confidence:.2f}, margin {route.margin:.2f}): {plain(route.reason)}\n"
        f"- structure used: {plain(trace.structure)}\n"
        f"- searched for: {plain('; '.join(trace.queries))}"
    )
    lines += [f"- {plain(step.question)} → {plain(step.answer)}" for step in trace.subquestions]
    return "\n\n".join(lines)
