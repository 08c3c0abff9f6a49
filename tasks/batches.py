"""Many items in one step: divided into portions, and awaited concurrently."""

import asyncio
import sys
from collections.abc import Coroutine, Iterable, Sequence
from contextvars import Context, copy_context
from typing import TypeVar

from tasks.edges import go_on_from

R = TypeVar("R")


def portions(sizes: Sequence[int], most: int, items: int = sys.maxsize) -> list[list[int]]:
    """Divide the indices of `sizes`, in order, into portions.

    A portion holds at most `items` indices, and their sizes sum to at most `most`. A larger size
    is a portion of its own.
    """
    batches: list[list[int]] = []
    room = 0
    for index, size in enumerate(sizes):
        if not batches or size > room or len(batches[-1]) == items:
            batches.append([])
            room = most
        batches[-1].append(index)
        room -= size
    return batches


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
