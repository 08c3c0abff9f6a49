"""Admission to a model server: calls in flight, requests and tokens a minute, urgent ones first.

All threads and event loops of the process share one `Limits` for a server. It counts calls in
flight; the server's rate limiter, which other processes share, counts requests and tokens a minute.
A call takes the most tokens that it may use when it starts, and gives back the rest at its reply.
"""

import asyncio
import heapq
import itertools
import random
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Clock:
    """`now` in monotonic seconds, `sleep` for some seconds, `chance` in [0, 1)."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = random.random


class RateLimiter(Protocol):
    """Counts requests and tokens a minute of one server. One thread at a time calls it."""

    def take(self, tokens: int, priority: int) -> tuple[float, float]:
        """(the time at which the call was entered, 0.0), or (0.0, seconds until the next try).

        A lower priority number goes first where the limiter knows of both.
        """

    def correct(self, entered: float, calls: int, tokens: int) -> None:
        """Add to what was entered at that time; negative numbers give back."""


@dataclass(slots=True)
class AdmittedCall:
    """A call that has begun; set `tokens` to what it used."""

    at: float
    tokens: int
    reserved: int


@dataclass(slots=True, order=True)
class _Ticket:
    priority: int
    number: int
    tokens: int = field(compare=False)
    loop: asyncio.AbstractEventLoop = field(compare=False)
    called: asyncio.Event = field(compare=False)
    start: AdmittedCall | None = field(default=None, compare=False)
    delay: float | None = field(default=None, compare=False)
    gone: bool = field(default=False, compare=False)

    def call(self) -> None:
        with suppress(RuntimeError):  # its loop has ended, and with it the waiting call
            self.loop.call_soon_threadsafe(self.called.set)


class Limits:
    """Admission to one server; without a `rate_limiter` there is no limit a minute."""

    def __init__(
        self, concurrency: int, rate_limiter: RateLimiter | None = None, clock: Clock | None = None
    ) -> None:
        self.concurrency = concurrency
        self.in_flight = 0
        self._clock = clock or Clock()
        self._rate_limiter = rate_limiter
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._waiting: list[_Ticket] = []
        self._paused_until = float("-inf")

    @property
    def a_minute(self) -> bool:
        """Whether requests or tokens a minute are limited."""
        return self._rate_limiter is not None

    @asynccontextmanager
    async def slot(self, priority: int, tokens: int) -> AsyncIterator[AdmittedCall]:
        """Wait for room for one call of at most `tokens`; a lower priority number goes first."""
        loop = asyncio.get_running_loop()
        ticket = _Ticket(priority, next(self._numbers), tokens, loop, asyncio.Event())
        with self._lock:
            heapq.heappush(self._waiting, ticket)
            self._admit()
        try:
            while ticket.start is None:
                await self._nap(ticket)
                with self._lock:
                    self._admit()
        except BaseException:
            with self._lock:
                ticket.gone = True
                if ticket.start is not None:
                    self._end(ticket.start, calls=-1, tokens=-ticket.start.reserved)
                self._admit()
            raise
        start = ticket.start
        try:
            yield start
        finally:
            with self._lock:
                self._end(start, calls=0, tokens=start.tokens - start.reserved)
                self._admit()

    def pause(self, seconds: float) -> None:
        """Let no call start for some seconds: the server is overloaded."""
        with self._lock:
            self._paused_until = max(self._paused_until, self._clock.now() + seconds)

    def _end(self, start: AdmittedCall, calls: int, tokens: int) -> None:
        self.in_flight -= 1
        if self._rate_limiter and (calls or tokens):
            self._rate_limiter.correct(start.at, calls, tokens)

    async def _nap(self, ticket: _Ticket) -> None:
        """Sleep until called, or, first in the queue, until the minute has room again."""
        delay, ticket.delay = ticket.delay, None
        waits: list[asyncio.Future[object]] = [asyncio.ensure_future(ticket.called.wait())]
        if delay is not None:
            waits.append(asyncio.ensure_future(self._clock.sleep(delay)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        ticket.called.clear()

    def _admit(self) -> None:
        """Start all calls that may start now, in order; let the next one sleep until it may."""
        while self._waiting:
            first = self._waiting[0]
            if first.gone or first.loop.is_closed():
                heapq.heappop(self._waiting)
                continue
            if self.in_flight >= self.concurrency:
                return
            at, delay = 0.0, self._paused_until - self._clock.now()
            if delay <= 0 and self._rate_limiter:
                at, delay = self._rate_limiter.take(first.tokens, first.priority)
            if delay > 0:
                if first.delay is None:
                    first.delay = delay
                    first.call()
                return
            heapq.heappop(self._waiting)
            first.start = AdmittedCall(at, first.tokens, first.tokens)
            self.in_flight += 1
            first.call()
