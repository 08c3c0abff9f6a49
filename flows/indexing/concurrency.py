"""Work done side by side, with no more of it begun than memory shall hold and none left running behind."""

import asyncio
import gc
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# New objects before the collector looks at them, and how many looks before one at older objects; Python's own are
# 700, 10, 10.
_RARELY = (20_000, 20, 20)


async def side_by_side(works: Iterable[Callable[[], Awaitable[T]]], at_once: int) -> AsyncGenerator[T]:
    """The results as they come; at most `at_once` works are begun and not done. An error ends the others.

    Close the generator (`aclosing`) where it is not read to its end.
    """
    running: set[asyncio.Task[T]] = set()
    done: set[asyncio.Task[T]] = set()
    try:
        for work in works:
            running.add(asyncio.create_task(_awaited(work)))
            if len(running) >= at_once:
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    yield task.result()
        while running:
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
    finally:
        await _ended(running | done)


@asynccontextmanager
async def background_task(work: Awaitable[T]) -> AsyncIterator[asyncio.Future[T]]:
    """Do `work` during the block, and wait for its end after it; an error in the block ends it, its own is raised."""
    task = asyncio.ensure_future(work)
    try:
        yield task
        await task
    finally:
        await _ended([task])


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a function that runs in a thread. Whoever is cancelled waits for its end: nothing writes later."""
    running = asyncio.get_running_loop().run_in_executor(None, partial(function, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


async def _ended(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Those that still run are cancelled; what any of them raised is not raised again."""
    all_of_them = list(tasks)
    for task in all_of_them:
        task.cancel()
    await asyncio.gather(*all_of_them, return_exceptions=True)


class _RareCollection(AbstractContextManager[None]):
    """Garbage is looked for rarely while anybody, in any thread, is inside; then as before the first one came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._usual = gc.get_threshold()

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._usual = gc.get_threshold()
                gc.set_threshold(*_RARELY)
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                gc.set_threshold(*self._usual)


_RARE_COLLECTION = _RareCollection()


def relaxed_gc() -> AbstractContextManager[None]:
    """Look for cyclic garbage rarely during the block.

    An index run, and a session that opens, make hundreds of thousands of records that live as long as they do; by
    default the collector walks through all of them again and again, which is an eighth of the processor time of a run
    and a sixth of that of an opening, and finds nothing.
    """
    return _RARE_COLLECTION
