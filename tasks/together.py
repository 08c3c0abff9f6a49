"""How is work done side by side, so that nothing goes on, and costs, after one part has failed?"""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import TypeVar

T = TypeVar("T")


async def together(work: Iterable[Coroutine[object, object, T]]) -> list[T]:
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
