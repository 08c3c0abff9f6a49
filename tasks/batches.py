"""Many items in one step: in portions of so many tokens, and calls side by side."""

import asyncio
import sys
from collections.abc import Coroutine, Iterable, Sequence
from contextvars import Context, copy_context
from typing import TypeVar

from tasks.edges import go_on_from

R = TypeVar("R")


def portions(sizes: Sequence[int], most: int, items: int = sys.maxsize) -> list[list[int]]:
    """Divide the places of the sizes, in order, into portions of at most `most` in sum and `items`
    in number.

    A size above `most` is a portion of its own.
    """
    batches: list[list[int]] = []
    room = 0
    for place, size in enumerate(sizes):
        if not batches or size > room or len(batches[-1]) == items:
            batches.append([])
            room = most
        batches[-1].append(place)
        room -= size
    return batches


async def gather_or_cancel(work: Iterable[Coroutine[object, object, R]]) -> list[R]:
    """Run coroutines side by side and give their results in order.

    Raises the first error as it is, after the other coroutines were cancelled.
    """
    since, contexts = copy_context(), list[Context]()
    running: list[asyncio.Task[R]] = []
    try:
        async with asyncio.TaskGroup() as group:
            for coroutine in work:
                contexts.append(copy_context())
                running.append(group.create_task(coroutine, context=contexts[-1]))
                await asyncio.sleep(0)  # answers that come while many begin are not left unread
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    go_on_from(contexts, since)
    return [task.result() for task in running]
