"""Batching: what goes together into one call, and calls side by side of which none goes on after one has failed."""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import TypeVar


def portions(sizes: Sequence[int], most: int) -> list[list[int]]:
    """The places of the sizes, in order, in portions of at most `most` together; a larger one is alone."""
    found: list[list[int]] = []
    room = 0
    for place, size in enumerate(sizes):
        if not found or size > room:
            found.append([])
            room = most
        found[-1].append(place)
        room -= size
    return found


T = TypeVar("T")


async def gather_or_cancel(work: Iterable[Coroutine[object, object, T]]) -> list[T]:
    """What each gives, in order. The first error is raised as it is, after the others were cancelled."""
    tasks: list[asyncio.Task[T]] = []
    try:
        for one in work:
            tasks.append(asyncio.ensure_future(one))
            await asyncio.sleep(0)  # answers that come while many begin are not left unread
            if any(task.done() and (task.cancelled() or task.exception()) for task in tasks):
                break
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
