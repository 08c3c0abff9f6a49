"""A bridge for callers without an event loop (`ask`, DSPy's optimisers and their threads) to code that needs one.

One loop in one thread of its own serves the process: connections and limits are shared, and each caller's context
variables (DSPy's trace and settings) hold inside.
"""

import asyncio
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
    """The result of the coroutine. Not from inside an event loop, which would stand still: use `acall` there."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_anywhere(work)
    work.close()
    raise RuntimeError("A step was called like a function inside an event loop: use `await step.acall(…)`.")


def waiting(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The same function, waiting for its result. Works from any thread, also where an event loop is running."""

    @functools.wraps(function)
    def wait(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_anywhere(function(*args, **kwargs))

    return wait


def run_anywhere(work: Coroutine[Any, Any, T]) -> T:
    """The result of the coroutine, from any thread; an event loop that runs in it stands still until then.

    Where the caller is interrupted, the work is cancelled.
    """
    outcome = asyncio.run_coroutine_threadsafe(work, _loop())  # in a copy of the caller's context
    try:
        return outcome.result()
    except concurrent.futures.CancelledError as error:
        raise asyncio.CancelledError from error
    except BaseException:
        outcome.cancel()
        raise


async def run_beside(work: Coroutine[Any, Any, T]) -> T:
    """The result of the coroutine, for a caller in another event loop, which goes on meanwhile.

    Where the caller is cancelled, the work is too.
    """
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _loop()))


def _loop() -> asyncio.AbstractEventLoop:
    """The running loop. A forked process gets a new one: threads do not survive a fork."""
    with _lock:
        if not _threads or not _threads[0][1].is_alive():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="trellis-loop", daemon=True)
            thread.start()
            _threads[:] = [(loop, thread)]
        return _threads[0][0]
