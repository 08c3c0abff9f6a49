"""Work done side by side, with no more of it begun than memory shall hold and none left running
behind.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar

from tasks.edges import go_on_from

P = ParamSpec("P")
T = TypeVar("T")


async def side_by_side(
    works: Iterable[Callable[[], Awaitable[T]]], at_once: int
) -> AsyncGenerator[T]:
    """The results as they come; at most `at_once` works are begun and not done. An error ends the
    others.

    Close the generator (`aclosing`) where it is not read to its end.
    """
    running: set[asyncio.Task[T]] = set()
    done: set[asyncio.Task[T]] = set()
    since, contexts = copy_context(), list[Context]()
    try:
        for work in works:
            contexts.append(copy_context())
            running.add(asyncio.create_task(_awaited(work), context=contexts[-1]))
            if len(running) >= at_once:
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    yield task.result()
        while running:
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
        go_on_from(contexts, since)
    finally:
        await _ended(running | done)


@asynccontextmanager
async def background_task(work: Awaitable[T]) -> AsyncIterator[asyncio.Future[T]]:
    """Do `work` during the block, and wait for its end after it; an error in the block ends it, its
    own is raised.
    """
    since, context = copy_context(), copy_context()
    task = asyncio.create_task(_awaited(lambda: work), context=context)
    try:
        yield task
        await task
        go_on_from([copy_context(), context], since)
    finally:
        await _ended([task])


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a function that runs in a thread. Whoever is cancelled waits for its end:
    nothing writes later.
    """
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
