"""Questions to the service: what may be asked, the answer, the answer as events while it comes
about; and the service itself, as its routes work with it.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from flows.question import AUTO, AskOptions
from flows.service.access import LONGEST_LOGGED, DayLimits, shown_error
from flows.service.metrics import Metrics
from flows.service.runs import IndexRuns
from flows.service.workspaces import DEFAULT, Workspaces
from flows.setting_areas import ServiceSettings
from flows.settings import Settings
from prompts.engine.spending import Meter
from prompts.engine.streaming import Show, Withdrawn
from storage.answer_records import Answer, Effort, Mode, Retrieval, StructureType
from storage.filters import check_filter
from storage.records import Record
from tasks.rewrite import turns
from tasks.watching import watched


class RetrieveRequest(BaseModel):
    """A question, and where its answer is looked for."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    question: Annotated[str, Field(max_length=20_000, pattern=r"\S")]
    workspace: str = DEFAULT
    mode: Mode = AUTO
    """`auto` chooses by the question."""
    k: int | None = Field(default=None, ge=1, le=100)
    """How many passages are listed (without it eight), and the most that an answer is written from
    (without it as many as fit)."""
    documents: tuple[str, ...] | None = None
    """Look only into these, by id."""
    where: str | None = None
    """Only documents with, for example, `year >= 2020`."""
    history: tuple[str | dict[str, object], ...] = ()
    """Earlier turns, oldest first: texts, or `{role, content}`."""
    as_of: int | None = Field(default=None, ge=1)
    """An older generation."""
    effort: Effort | None = None
    level: int | None = Field(default=None, ge=0)
    """Of the reports that mode `global` reads; 0: broadest."""

    def options(self) -> AskOptions:
        """What the pipeline is asked with. Raises FilterError."""
        if self.where is not None:
            check_filter(self.where)
        return AskOptions(
            mode=self.mode,
            k=self.k,
            documents=self.documents,
            where=() if self.where is None else (self.where,),
            history=turns(self.history),
            level=self.level,
            effort=self.effort,
            **self.model_dump(include={"structure", "response"}),
        )


class AskRequest(RetrieveRequest):
    """A question, and how it is to be answered."""

    structure: StructureType | None = None
    response: str = Field(default="", max_length=1000)
    """The form of the answer in words: a list, in German."""


class Event(Record):
    """Something that happens while a question is answered.

    step: `{step, state}`, which begins or ends. text: `{text}`, a further piece of the draft, whose
    markers are not yet those of the answer. withdrawn: the draft so far does not hold. answer: the
    whole `Answer`, the last event. error: `{type, message, remedy}`, also the last.
    """

    event: Literal["step", "text", "withdrawn", "answer", "error"]
    data: Answer | Mapping[str, str]


class Questions:
    """Answers questions, at most so many at once: others wait for their turn. What a key may take
    in a day is held.
    """

    def __init__(self, workspaces: Workspaces, metrics: Metrics, settings: ServiceSettings) -> None:
        self._workspaces = workspaces
        self._metrics = metrics
        self._places = asyncio.Semaphore(settings.at_once)
        self._limits = DayLimits(settings.tokens_a_day, settings.usd_a_day)

    async def ask(
        self, name: str, question: str, options: AskOptions, as_of: int | None = None
    ) -> Answer:
        """Answer from a workspace. Errors as of `flows.query.aask`, UnknownWorkspace, TooOften."""
        async with self.turn(name) as meter:
            options = replace(options, meter=meter)
            answer = await self._workspaces.ask(name, question, options, as_of)
        self._metrics.answer(name, answer)
        return answer

    async def retrieve(
        self, name: str, question: str, options: AskOptions, as_of: int | None = None
    ) -> Retrieval:
        """Find the best passages of a workspace, without an answer."""
        async with self.turn(name) as meter:
            options = replace(options, meter=meter)
            return await self._workspaces.retrieve(name, question, options, as_of)

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[Meter]:
        """Give the ledger of what the caller asks; it counts however the block ends.

        Raises TooOften where the caller has used up what a day has.
        """
        async with self._places:
            self._limits.check()
            meter = Meter()
            try:
                yield meter
            finally:
                self._limits.add(meter)
                self._metrics.spent(name, meter)

    async def answer(self, asked: AskRequest, on_text: Show | None = None) -> Answer:
        """Answer a request."""
        options = replace(asked.options(), on_text=on_text)
        return await self.ask(asked.workspace, asked.question, options, asked.as_of)

    async def events(self, asked: AskRequest) -> AsyncIterator[Event]:
        """Tell what happens, as it happens; closing this ends the work.

        An error is the last event and is not raised.
        """
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[Event | None]()

        def put(event: Event | None) -> None:  # from the thread that answers
            with suppress(RuntimeError):  # our loop has ended
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
    """Put into the log what is asked where; the words only where the settings say so."""
    words = {"question": asked.question} if settings.service.log_texts else {}
    place = {"workspace": asked.workspace[:LONGEST_LOGGED], "mode": asked.mode[:LONGEST_LOGGED]}
    request.scope["log"] = {**place, **words}


@dataclass(frozen=True)
class Service:
    """One service, made once by `create_app`.

    `prefect` is the address of Prefect's pages, None without Prefect.
    """

    settings: Settings
    workspaces: Workspaces
    questions: Questions
    runs: IndexRuns
    metrics: Metrics
    prefect: str | None = None
    sources: tuple[str, ...] = ()


def service_of(request: Request) -> Service:
    """Give the service that a request came to: a dependency of routes."""
    service: Service = request.app.state.service
    return service
