"""How is the same question asked only once, when several ask it at the same time?"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Flight:
    outcome: Future[str] = field(default_factory=Future)
    waiting: int = 0
    cancel: Callable[[], object] | None = None


class Flights:
    """Work in progress by key, over all threads and event loops of the process.

    Who leaves does not end the work for the others; the last to leave does.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[str, _Flight] = {}

    async def join(self, key: str, work: Callable[[], Awaitable[str]]) -> tuple[str, bool]:
        """(what the work gives, whether this caller started it)."""
        while True:
            with self._lock:
                flight = self._flights.get(key)
                leads = flight is None
                if flight is None:
                    flight = self._flights[key] = _Flight()
                    self._depart(key, flight, work)
                flight.waiting += 1
            try:
                return await asyncio.wrap_future(_view(flight.outcome)), leads
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if leads or task is None or task.cancelling() or not flight.outcome.cancelled():
                    raise
                # The loop that did the work has ended: this one does it.
            finally:
                with self._lock:
                    flight.waiting -= 1
                    if flight.waiting == 0 and not flight.outcome.done() and flight.cancel is not None:
                        flight.cancel()

    def _depart(self, key: str, flight: _Flight, work: Callable[[], Awaitable[str]]) -> None:
        loop = asyncio.get_running_loop()

        async def fly() -> str:
            return await work()

        task = loop.create_task(fly())
        flight.cancel = lambda: loop.call_soon_threadsafe(task.cancel) if not loop.is_closed() else None

        def arrive(done: asyncio.Task[str]) -> None:
            with self._lock:
                self._flights.pop(key, None)
            if done.cancelled():
                flight.outcome.cancel()
            elif (error := done.exception()) is not None:
                flight.outcome.set_exception(error)
            else:
                flight.outcome.set_result(done.result())

        task.add_done_callback(arrive)


def _view(outcome: Future[str]) -> Future[str]:
    """A future of one's own: cancelling it leaves the other alone."""
    own: Future[str] = Future()

    def pass_on(done: Future[str]) -> None:
        if done.cancelled():
            own.cancel()
        if not own.set_running_or_notify_cancel():
            return
        error = done.exception()
        if error is not None:
            own.set_exception(error)
        else:
            own.set_result(done.result())

    outcome.add_done_callback(pass_on)
    return own
