"""Runs coroutines for callers without an event loop.

One loop in a thread of its own serves the process, so connections and limits are shared. Each
caller's context variables (DSPy's trace and settings) hold inside.
"""

import asyncio
import atexit
import concurrent.futures
import functools
import threading
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_lock = threading.Lock()
_threads: list[tuple[asyncio.AbstractEventLoop, threading.Thread]] = []


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """The result of the coroutine. Raises RuntimeError inside an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_anywhere(work)
    work.close()
    raise RuntimeError("A step was called inside an event loop: use `await step.acall(…)`.")


def waiting(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The function made blocking, for any thread."""

    @functools.wraps(function)
    def wait(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_anywhere(function(*args, **kwargs))

    return wait


def run_anywhere(work: Coroutine[Any, Any, T]) -> T:
    """The result of the coroutine; it blocks the caller's own event loop, if there is one.

    An interruption of the caller cancels the work.
    """
    outcome = asyncio.run_coroutine_threadsafe(work, _loop())  # in the caller's context
    try:
        return outcome.result()
    except concurrent.futures.CancelledError as error:
        raise asyncio.CancelledError from error
    except BaseException:
        outcome.cancel()
        raise


async def apart(work: Coroutine[Any, Any, T]) -> T:
    """The result of the coroutine, run in the bridge's loop however busy the caller's is."""
    loop = _loop()
    if asyncio.get_running_loop() is loop:
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Stop the loop, whose work holds objects that DuckDB would report as leaked."""
    if thread.is_alive():
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=1.0)


def _loop() -> asyncio.AbstractEventLoop:
    """The running loop; a forked process gets a new one, since threads do not survive a fork."""
    with _lock:
        if not _threads or not _threads[0][1].is_alive():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="trellis-loop", daemon=True)
            thread.start()
            atexit.register(_end, loop, thread)
            _threads[:] = [(loop, thread)]
        return _threads[0][0]
