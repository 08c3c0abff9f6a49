"""Work done side by side, with no more of it begun than memory shall hold and none left running behind."""

import asyncio
import gc
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
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


@contextmanager
def relaxed_gc() -> Iterator[None]:
    """Look for cyclic garbage rarely during the block.

    An index run makes hundreds of thousands of records that live as long as it does; by default the collector walks
    through all of them again and again, which is an eighth of a run's processor time, and finds nothing.
    """
    usual = gc.get_threshold()
    gc.set_threshold(*_RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
