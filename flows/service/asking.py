"""Questions to the service, their answers as records and as events; and the service as its routes
see it.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from flows.modes.lazy_search import forecast_question
from flows.operations.forget import names_in
from flows.query import answer_question, retrieve_passages
from flows.question import AUTO, AskOptions
from flows.service.access import CALLER, LONGEST_LOGGED, DayLimits, shown_error
from flows.service.metrics import Metrics
from flows.service.runs import IndexRuns
from flows.service.workspaces import DEFAULT, Workspaces
from flows.session import Session
from flows.setting_areas import ServiceSettings
from flows.settings import Settings
from prompts.engine.spending import Meter
from prompts.engine.streaming import Show, Withdrawn
from storage.answer_records import Answer, Effort, Mode, Retrieval, StructureType
from storage.conversations import Turn
from storage.filters import check_filter
from storage.records import Record, utc_now
from storage.run_records import QuestionForecast
from tasks.rewrite import turns
from tasks.watching import watched

MOST_KEPT = 200  # questions
MOST_BUDGET = 100_000  # passages that mode `lazy` tests
ConversationId = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,64}$")]


class RetrieveRequest(BaseModel):
    """A question with the options of its search."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    question: Annotated[str, Field(max_length=20_000, pattern=r"\S")]
    workspace: str = DEFAULT
    mode: Mode = AUTO
    """`auto` chooses by the question."""
    k: int | None = Field(default=None, ge=1, le=100)
    """How many passages are listed (default 8), and how many an answer may use (default: as many as
    fit)."""
    documents: tuple[str, ...] | None = None
    """Search only these documents, by id."""
    where: str | None = None
    """Search only documents that meet a filter, for example `year >= 2020`."""
    history: tuple[str | dict[str, object], ...] = ()
    """Earlier turns, oldest first: texts, or `{role, content}`."""
    as_of: int | None = Field(default=None, ge=1)
    """Search an older generation."""
    effort: Effort | None = None
    level: int | None = Field(default=None, ge=0)
    """The level of the reports that mode `global` reads; 0 is the broadest."""
    budget: int | None = Field(default=None, ge=1, le=MOST_BUDGET)
    """How many passages mode `lazy` tests for relevance."""

    def options(self) -> AskOptions:
        """Convert the request to the options of the pipeline. Raises FilterError."""
        if self.where is not None:
            check_filter(self.where)
        return AskOptions(
            mode=self.mode,
            k=self.k,
            documents=self.documents,
            where=() if self.where is None else (self.where,),
            history=turns(self.history),
            level=self.level,
            budget=self.budget,
            effort=self.effort,
            **self.model_dump(include={"structure", "response"}),
        )


class AskRequest(RetrieveRequest):
    """A question with the options of its answer."""

    structure: StructureType | None = None
    response: str = Field(default="", max_length=1000)
    """The form of the answer in words: "a list", "in German"."""
    conversation: ConversationId | None = None
    """Keep the question with its answer in this conversation of the user: an id of your choice.
    What was said in it is not read: `history` says that."""


class Event(Record):
    """An event while a question is answered.

    step: `{step, state}`; the state is "begins" or "ends". text: `{text}`, the next piece of the
    draft, whose markers may differ from those of the answer. withdrawn: the draft so far is
    invalid. The last event is either answer, the whole `Answer`, or error, `{type, message,
    remedy}`.
    """

    event: Literal["step", "text", "withdrawn", "answer", "error"]
    data: Answer | Mapping[str, str]


class AskedQuestion(Record):
    """A question that the service was asked, and what it took; an unanswered one has an `error`.

    `label` is the answer's `fallback`, or "excerpts" where no model answered.
    """

    workspace: str
    question: str
    asked: str
    seconds: float
    calls: int
    tokens: int
    cost_usd: float | None
    mode: str = ""
    label: str = ""
    error: str = ""


class Questions:
    """Answers questions, a limited number at a time, within the daily limits of each key.

    `latest` holds the latest questions, newest first, as long as the service runs.
    """

    def __init__(self, workspaces: Workspaces, metrics: Metrics, settings: ServiceSettings) -> None:
        self._workspaces = workspaces
        self._metrics = metrics
        self._places = asyncio.Semaphore(settings.at_once)
        self._limits = DayLimits(settings.tokens_a_day, settings.usd_a_day)
        self._kept_turns = settings.kept_turns
        self.latest = deque[AskedQuestion](maxlen=MOST_KEPT)

    async def ask(
        self, name: str, question: str, options: AskOptions, as_of: int | None = None
    ) -> Answer:
        """Answer from a workspace. Raises like `flows.query.aask`, UnknownWorkspace, TooOften.

        `options.on_text` is called in another thread.
        """
        begun, asked, ended = time.monotonic(), utc_now(), {"error": "cancelled"}
        async with self.turn(name) as meter:
            metered = replace(options, meter=meter)
            try:
                answer = await self._workspaces.ask(
                    name, lambda session: answer_question(question, metered, session), as_of
                )
                found, mode = answer.trace.answered_by == "excerpts", answer.trace.mode
                ended = {"mode": mode, "label": "excerpts" if found else answer.fallback}
            except Exception as error:
                ended = {"error": shown_error(error)["message"]}
                raise
            finally:
                spent = [row for _, _, row in meter.rows()]
                costs = [row.cost_usd for row in spent]
                entry = AskedQuestion(
                    workspace=name,
                    question=question,
                    asked=asked,
                    seconds=round(time.monotonic() - begun, 3),
                    calls=sum(row.calls for row in spent),
                    tokens=sum(row.input_tokens + row.output_tokens for row in spent),
                    cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
                    **ended,
                )
                self.latest.appendleft(entry)
        self._metrics.answer(name, answer)
        return answer

    async def retrieve(
        self, name: str, question: str, options: AskOptions, as_of: int | None = None
    ) -> Retrieval:
        """Find the best passages of a workspace. Raises the same errors as `ask`."""
        async with self.turn(name) as meter:
            metered = replace(options, meter=meter)
            return await self._workspaces.ask(
                name, lambda session: retrieve_passages(question, metered, session), as_of
            )

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[Meter]:
        """Wait for a free place and yield the meter of one question, which counts even if the
        question fails. Raises TooOften if the caller has reached a limit of the day.
        """
        async with self._places:
            self._limits.check()
            meter = Meter()
            try:
                yield meter
            finally:
                self._limits.add(meter)
                self._metrics.spent(name, meter)

    async def forecast(self, asked: AskRequest) -> QuestionForecast:
        """Forecast a request in mode `lazy`; no model is called. Raises UsageError for another
        mode, and UnknownWorkspace.
        """
        return await self._workspaces.read(
            asked.workspace,
            lambda session: forecast_question(asked.options(), session),
            asked.as_of,
        )

    async def answer(self, asked: AskRequest, on_text: Show | None = None) -> Answer:
        """Answer a request. Raises the same errors as `ask`."""
        options = replace(asked.options(), on_text=on_text)
        answer = await self.ask(asked.workspace, asked.question, options, asked.as_of)
        if asked.conversation:
            await self._keep(asked.workspace, asked.conversation, answer)
        return answer

    async def _keep(self, name: str, conversation: str, answer: Answer) -> None:
        """Keep a turn of the caller's conversation, without what was forgotten meanwhile."""
        owner, turn = CALLER.get().user, Turn(asked=utc_now(), answer=answer)

        def keep(session: Session) -> None:
            store = session.runtime.workspace.database.conversations
            store.put(owner, conversation, turn, self._kept_turns)

        def forget_again(session: Session) -> None:
            named = names_in(session.generation.documents.forgotten())
            if session.number != answer.generation and named(turn.model_dump_json()):
                session.runtime.workspace.database.conversations.forget_where(named)

        await self._workspaces.read(name, keep)
        # With a newer session: what is published later finds the turn and removes it itself.
        await self._workspaces.read(name, forget_again)

    async def events(self, asked: AskRequest) -> AsyncIterator[Event]:
        """Answer a request and yield events meanwhile; closing the iterator cancels the answer.

        An error is the last event and is not raised.
        """
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[Event | None]()

        def put(event: Event | None) -> None:  # called in the thread that answers
            with suppress(RuntimeError):  # the loop has closed
                loop.call_soon_threadsafe(queue.put_nowait, event)

        def show(piece: str | Withdrawn) -> None:
            if isinstance(piece, Withdrawn):
                put(Event(event="withdrawn", data={}))
            else:
                put(Event(event="text", data={"text": piece}))

        def step(name: str, begins: bool) -> None:
            put(Event(event="step", data={"step": name, "state": "begins" if begins else "ends"}))

        async def work() -> Answer:
            with watched(step):
                return await self.answer(asked, show)

        task = asyncio.create_task(work())
        task.add_done_callback(lambda _: put(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
            error = task.exception()
            if error is None:
                yield Event(event="answer", data=task.result())
            elif isinstance(error, Exception):
                yield Event(event="error", data=shown_error(error))
        finally:
            task.cancel()


def note_question(request: Request, settings: Settings, asked: RetrieveRequest) -> None:
    """Add workspace and mode to the log line of a request, and the question if settings allow."""
    words = {"question": asked.question} if settings.service.log_texts else {}
    place = {"workspace": asked.workspace[:LONGEST_LOGGED], "mode": asked.mode[:LONGEST_LOGGED]}
    request.scope["log"] = {**place, **words}


@dataclass(frozen=True)
class Service:
    """The state of one service; `prefect` is the address of Prefect's pages, if it runs."""

    settings: Settings
    workspaces: Workspaces
    questions: Questions
    runs: IndexRuns
    metrics: Metrics
    prefect: str | None = None
    sources: tuple[str, ...] = ()


def service_of(request: Request) -> Service:
    """Return the service of a request; a dependency of routes."""
    service: Service = request.app.state.service
    return service
