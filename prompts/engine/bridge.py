"""A bridge for callers without an event loop to code that needs one.

One loop in one thread of its own serves the process: connections and limits are shared, and each
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
    """The result of the coroutine. It must not be called from inside an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_anywhere(work)
    work.close()
    raise RuntimeError("A step was called inside an event loop: use `await step.acall(…)`.")


def waiting(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The same function, waiting for its result, from any thread."""

    @functools.wraps(function)
    def wait(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_anywhere(function(*args, **kwargs))

    return wait


def run_anywhere(work: Coroutine[Any, Any, T]) -> T:
    """The result of the coroutine; an event loop of the calling thread stands still meanwhile.

    Where the caller is interrupted, the work is cancelled.
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
    """The result of the coroutine, which runs in the bridge's loop however busy this one is."""
    loop = _loop()
    if asyncio.get_running_loop() is loop:
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """Stop what still runs: it holds objects that DuckDB would report as leaked."""
    if thread.is_alive():
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=1.0)


def _loop() -> asyncio.AbstractEventLoop:
    """The running loop. A forked process gets a new one: threads do not survive a fork."""
    with _lock:
        if not _threads or not _threads[0][1].is_alive():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="trellis-loop", daemon=True)
            thread.start()
            atexit.register(_end, loop, thread)
            _threads[:] = [(loop, thread)]
        return _threads[0][0]
