"""Much work in one step, awaited concurrently."""

import asyncio
from collections.abc import Coroutine, Iterable
from contextvars import Context, copy_context
from typing import TypeVar

from tasks.edges import go_on_from

R = TypeVar("R")


async def gather_or_cancel(work: Iterable[Coroutine[object, object, R]]) -> list[R]:
    """Run coroutines concurrently and return their results in order.

    Cancels the others and raises the error itself as soon as one fails.
    """
    since, contexts = copy_context(), list[Context]()
    running: list[asyncio.Task[R]] = []
    try:
        async with asyncio.TaskGroup() as group:
            for coroutine in work:
                contexts.append(copy_context())
                running.append(group.create_task(coroutine, context=contexts[-1]))
                await asyncio.sleep(0)  # Let running calls read their answers while others start.
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    go_on_from(contexts, since)
    return [task.result() for task in running]
