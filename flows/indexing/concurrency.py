"""Concurrent work with a limit, of which nothing is left running after an error."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from functools import partial
from itertools import islice
from typing import Any, ParamSpec, TypeVar

from tasks.edges import go_on_from

P = ParamSpec("P")
T = TypeVar("T")


async def side_by_side(
    works: Iterable[Callable[[], Awaitable[T]]], at_once: int
) -> AsyncGenerator[T]:
    """Yield results as they come, of at most `at_once` works at a time; an error ends the others.

    Close the generator (`aclosing`) unless it is read to its end.
    """
    running: set[asyncio.Task[T]] = set()
    done: set[asyncio.Task[T]] = set()
    since, contexts, waiting = copy_context(), list[Context](), iter(works)
    try:
        while True:
            for work in islice(waiting, at_once - len(running)):
                contexts.append(copy_context())
                running.add(asyncio.create_task(_awaited(work), context=contexts[-1]))
            if not running:
                break
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
        go_on_from(contexts, since)
    finally:
        await _ended(running | done)


@asynccontextmanager
async def background_task(work: Awaitable[T]) -> AsyncIterator[asyncio.Future[T]]:
    """Do `work` during the block, and wait for it afterwards; an error in the block cancels it."""
    since, context = copy_context(), copy_context()
    task = asyncio.create_task(_awaited(lambda: work), context=context)
    try:
        yield task
        await task
        go_on_from([copy_context(), context], since)
    finally:
        await _ended([task])


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function in a thread; a cancelled caller waits for its end, so that it writes nothing
    later.
    """
    work = partial(copy_context().run, function, *args, **kwargs)
    running = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


async def _ended(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel the tasks that still run, and wait for all without raising their errors."""
    all_of_them = list(tasks)
    for task in all_of_them:
        task.cancel()
    await asyncio.gather(*all_of_them, return_exceptions=True)
