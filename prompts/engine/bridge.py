"""How does code without an event loop (DSPy's optimisers and their threads) await one?

One loop in one thread of its own serves the process: connections and limits are shared, and each caller's context
variables (DSPy's trace and settings) hold inside.
"""

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """The result of the coroutine. Not from inside an event loop, which would stand still: use `acall` there."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        work.close()
        raise RuntimeError("A step was called like a function inside an event loop: use `await step.acall(…)`.")
    outcome: Future[T] = Future()
    context = contextvars.copy_context()
    loop = _loop()

    def begin() -> None:
        task = loop.create_task(work, context=context)
        task.add_done_callback(finish)

    def finish(task: asyncio.Task[T]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(task.result())

    loop.call_soon_threadsafe(begin)
    return outcome.result()


def _loop() -> asyncio.AbstractEventLoop:
    with _lock:
        if not _loops or _loops[0].is_closed():
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="trellis-models", daemon=True).start()
            _loops[:] = [loop]
        return _loops[0]
