"""Much work in one step, awaited concurrently."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextvars import Context, copy_context
from typing import TypeVar

from prompts.engine.errors import BudgetSpent, EngineError, ModelMisconfigured, ModelUnavailable
from storage.records import Chunk, DeadLetter
from tasks.edges import go_on_from
from tasks.retrying import is_tried_again

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


async def read_chunks(
    chunks: Sequence[Chunk], step: str, read: Callable[[Chunk], Awaitable[R]]
) -> tuple[list[tuple[Chunk, R]], list[DeadLetter]]:
    """Read chunks concurrently: return what each gave, and a dead letter for each that failed.

    Raises ModelMisconfigured and BudgetSpent at once, and ModelUnavailable after all chunks where
    the step will be retried: what the others got is cached by then.
    """
    unreached: list[ModelUnavailable] = []

    async def of_chunk(chunk: Chunk) -> tuple[Chunk, R] | DeadLetter:
        try:
            return chunk, await read(chunk)
        except (ModelMisconfigured, BudgetSpent):
            raise  # No other chunk would fare better.
        except EngineError as error:
            if isinstance(error, ModelUnavailable):
                unreached.append(error)
            return DeadLetter(item=chunk.id, step=step, error=error.message, remedy=error.remedy)

    results = await gather_or_cancel(map(of_chunk, chunks))
    if unreached and is_tried_again():
        raise unreached[0]
    return (
        [result for result in results if not isinstance(result, DeadLetter)],
        [result for result in results if isinstance(result, DeadLetter)],
    )
