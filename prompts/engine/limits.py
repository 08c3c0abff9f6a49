"""When may the next call go out? Calls in flight, requests a minute and tokens a minute, the urgent first.

One instance stands for one server and is shared by all threads and event loops of the process. In no 60 seconds do more
requests start than `rpm`, nor more tokens than `tpm` (as estimated at the start, corrected when the reply tells; a call
larger than `tpm` goes alone).
"""

import asyncio
import heapq
import itertools
import threading
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from prompts.engine.clock import Clock

WINDOW = 60.0


@dataclass(slots=True)
class Start:
    """A request in the window; `tokens` may be corrected."""

    at: float
    tokens: int


@dataclass(slots=True, order=True)
class _Ticket:
    priority: int
    number: int
    tokens: int = field(compare=False)
    loop: asyncio.AbstractEventLoop = field(compare=False)
    called: asyncio.Event = field(compare=False)
    start: Start | None = field(default=None, compare=False)
    delay: float | None = field(default=None, compare=False)
    gone: bool = field(default=False, compare=False)

    def call(self) -> None:
        with suppress(RuntimeError):  # no loop runs in this thread
            if asyncio.get_running_loop() is self.loop:
                self.called.set()  # waking a loop from outside costs a system call
                return
        with suppress(RuntimeError):  # its loop has ended, and with it whoever waited
            self.loop.call_soon_threadsafe(self.called.set)


class Limits:
    """Admission to one server."""

    def __init__(
        self, concurrency: int, rpm: int | None = None, tpm: int | None = None, clock: Clock | None = None
    ) -> None:
        self.concurrency = concurrency
        self.rpm = rpm
        self.tpm = tpm
        self.in_flight = 0
        self._clock = clock or Clock()
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._waiting: list[_Ticket] = []
        self._window: deque[Start] = deque()
        self._paused_until = float("-inf")

    @asynccontextmanager
    async def slot(self, priority: int, tokens: int) -> AsyncIterator[Start]:
        """Room for one call of about so many tokens; a lower priority number goes first."""
        start = await self._admitted(priority, tokens)
        try:
            yield start
        finally:
            with self._lock:
                self.in_flight -= 1
                self._admit()

    def pause(self, seconds: float) -> None:
        """Let nothing start for so long: the server has said that it is too much."""
        with self._lock:
            self._paused_until = max(self._paused_until, self._clock.now() + seconds)

    async def _admitted(self, priority: int, tokens: int) -> Start:
        ticket = _Ticket(priority, next(self._numbers), tokens, asyncio.get_running_loop(), asyncio.Event())
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
                self._withdraw(ticket)
                self._admit()
            raise
        return ticket.start

    async def _nap(self, ticket: _Ticket) -> None:
        """Until called; the first in the queue also wakes by itself when the window has room again."""
        delay, ticket.delay = ticket.delay, None
        if delay is None:
            await ticket.called.wait()
        else:
            sleeping = asyncio.ensure_future(self._clock.sleep(delay))
            called = asyncio.ensure_future(ticket.called.wait())
            try:
                await asyncio.wait((sleeping, called), return_when=asyncio.FIRST_COMPLETED)
            finally:
                sleeping.cancel()
                called.cancel()
        ticket.called.clear()

    def _withdraw(self, ticket: _Ticket) -> None:
        ticket.gone = True
        if ticket.start is not None:
            self.in_flight -= 1
            with suppress(ValueError):
                self._window.remove(ticket.start)

    def _admit(self) -> None:
        """Starts all that may start now, in order; tells the first of the others how long to sleep. Holds the lock."""
        while self._waiting:
            first = self._waiting[0]
            if first.gone or first.loop.is_closed():
                heapq.heappop(self._waiting)
                continue
            if self.in_flight >= self.concurrency:
                return
            now = self._clock.now()
            delay = self._delay(first.tokens, now)
            if delay > 0:
                if first.delay is None:
                    first.delay = delay
                    first.call()
                return
            heapq.heappop(self._waiting)
            first.start = Start(now, first.tokens)
            self._window.append(first.start)
            self.in_flight += 1
            first.call()

    def _delay(self, tokens: int, now: float) -> float:
        while self._window and now - self._window[0].at >= WINDOW:
            self._window.popleft()
        delay = self._paused_until - now
        if self.rpm is not None and len(self._window) >= self.rpm:
            delay = max(delay, self._window[-self.rpm].at + WINDOW - now)
        if self.tpm is not None:
            used = tokens + sum(start.tokens for start in self._window)
            for start in self._window:
                if used <= self.tpm:
                    break
                used -= start.tokens
                delay = max(delay, start.at + WINDOW - now)
        return delay
