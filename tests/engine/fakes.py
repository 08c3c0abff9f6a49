"""Fakes at the engine's seams: time, a scripted model, the cache."""

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dspy import lm15
from dspy.adapters.chat_adapter import ChatAdapter, FieldInfoWithName

from prompts.engine.limits import Clock
from prompts.engine.lm import ServedLM, Terms
from prompts.engine.messages import Call, Message, Reply
from storage.budget import SCHEMA, CallBudget
from storage.sqlite import SqliteFile


class ManualTime:
    """Time that passes only when nobody has anything to do but sleep."""

    def __init__(self, chance: float = 0.0, now: float = 0.0) -> None:
        self.now = now
        self.slept: list[float] = []
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        self.clock = Clock(lambda: self.now, self._sleep, lambda: chance)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        sleeper = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + seconds, next(self._numbers), sleeper))
        await sleeper

    async def run(self, *work: Awaitable[object]) -> list[object]:
        """Do all the work at once; returns each result (an exception where it fails)."""
        gathered = asyncio.ensure_future(asyncio.gather(*work, return_exceptions=True))
        while not gathered.done():
            for _ in range(50):
                await asyncio.sleep(0)
            while self._sleepers and not gathered.done():
                due, _, sleeper = heapq.heappop(self._sleepers)
                if not sleeper.done():
                    self.now = max(self.now, due)
                    sleeper.set_result(None)
                    break
        return list(await gathered)


def budget(
    folder: Path,
    time: ManualTime,
    rpm: int | None = None,
    tpm: int | None = None,
    server: str = "server",
) -> CallBudget:
    """Limits a minute in that time, counted in slots of a quarter second."""
    file = SqliteFile(folder / "limits.sqlite", SCHEMA)
    return CallBudget(file, server, rpm, tpm, clock=lambda: time.now)


@dataclass(frozen=True)
class Broken:
    """A stream that fails after this much of its text."""

    text: str
    failure: Exception


Said = str | Reply | Broken | Exception
Script = Sequence[Said] | Callable[[Call], Awaitable[Said]]


class NoEngine:
    """An engine that no call may reach: the script answers before it."""

    supports_response_schema = True

    async def complete(self, request: lm15.Request) -> lm15.Response:
        raise AssertionError("a call went past the script to the engine")


class Scripted(ServedLM):
    """A model that says one of `said` for each call, in order, or what a function says."""

    def __init__(self, said: Script, terms: Terms) -> None:
        super().__init__("openai/scripted", "http://scripted/v1", terms, engine=NoEngine())
        self.calls: list[Call] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self._said = said

    async def send(self, call: Call, show: Callable[[str], None] | None = None) -> Reply:
        said = await self._next(call)
        if show is not None:
            for at in range(0, len(said.text), 4):
                show(said.text[at : at + 4])
        if isinstance(said, Broken):
            raise said.failure
        return said

    async def _next(self, call: Call) -> Reply | Broken:
        self.calls.append(call)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if callable(self._said):
                said = await self._said(call)
            else:
                said = self._said[len(self.calls) - 1]
        finally:
            self.in_flight -= 1
        if isinstance(said, Exception):
            raise said
        return Reply(said, "stop", 10, 5) if isinstance(said, str) else said


class AsWritten(ChatAdapter):
    """Lets the fake model say an answer as it stands, without DSPy's headings."""

    def format_field_with_value(
        self, fields_with_values: dict[FieldInfoWithName, Any], *_: object
    ) -> str:
        return str(next(iter(fields_with_values.values())))


class MemoryCache:
    """An answer cache in a dictionary."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}

    def get(self, key: str) -> str | None:
        return self.rows.get(key)

    def put(self, key: str, answer: str) -> None:
        self.rows[key] = answer

    def remove(self, key: str) -> None:
        self.rows.pop(key, None)


def call_of(text: str = "hello", max_tokens: int = 100) -> Call:
    return Call("probe", (Message("system", "Step: probe"), Message("user", text)), max_tokens)
