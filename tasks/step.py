"""The decorator of a step, and how a step runs over many items: in portions of so many tokens, calls side by side.

A step is a Prefect task inside a flow run, a plain coroutine anywhere else. Outside a flow run nothing is paid: Prefect
is not even imported.
"""

import asyncio
import functools
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
Item = TypeVar("Item")

# Seconds that an index run, which nobody waits for, gives a model to come back.
PATIENT = (30.0, 120.0)

# Told the name of a step, and whether it begins or ends.
Watcher = Callable[[str, bool], None]
_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Tell `watcher` of every step that begins or ends meanwhile, as benchmarks do."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def _in_flow_run() -> bool:
    # Whoever runs a flow has imported Prefect; where it is not loaded there can be no flow run to belong to.
    if "prefect" not in sys.modules:
        return False
    from prefect.context import FlowRunContext

    return FlowRunContext.get() is not None


def step(name: str, waits: Sequence[float] = ()) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
    """Mark an async function as a step called `name`.

    Inside a Prefect flow run each call is a task run of that name; its arguments are neither hashed nor searched for
    futures, and its result is not persisted (records are large, and storage keeps what must last).

    There, where nobody waits, the step is tried again after each of `waits` (seconds) for as long as a model cannot be
    reached. That is the one error that time mends, after the tries that each call makes: what a server has answered
    comes from the cache. Whatever else fails has failed for good.
    """

    def decorate(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        @functools.wraps(function)
        async def run(*args: P.args, **kwargs: P.kwargs) -> R:
            watcher = _WATCHER.get()
            if watcher is not None:
                watcher(name, True)
            try:
                if not _in_flow_run():
                    return await function(*args, **kwargs)
                return await _as_task(name, waits, function)(*args, **kwargs)
            finally:
                if watcher is not None:
                    watcher(name, False)

        return run

    return decorate


class _Boxed(Generic[R]):
    """A result that Prefect hands on without a look inside: it would walk through every record for states.

    A plain class on purpose: of a data class it would walk through the fields.
    """

    def __init__(self, content: R) -> None:
        self.content = content


def _as_task(name: str, waits: Sequence[float], function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    from prefect import task
    from prefect.cache_policies import NO_CACHE
    from prefect.client.schemas.objects import State

    from prompts.engine.errors import ModelUnavailable
    from prompts.engine.key_masking import mask_error

    def may_pass(_task: object, _run: object, state: State[R]) -> bool:
        return isinstance(state.data, ModelUnavailable)

    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        # The arguments travel in the closure: Prefect would walk through every record to look for futures.
        async def body() -> _Boxed[R]:
            try:
                return _Boxed(await function(*args, **kwargs))
            except Exception as error:
                mask_error(error)  # Prefect tells the server its words
                raise

        prefect_task = task(
            name=name, task_run_name=name, cache_policy=NO_CACHE, persist_result=False, retries=len(waits),
            retry_delay_seconds=list(waits), retry_jitter_factor=0.5 if waits else None, retry_condition_fn=may_pass,
        )(body)  # fmt: skip
        return (await prefect_task()).content

    return call


# --- many items ------------------------------------------------------------------------------------------------------


def portions(sizes: Sequence[int], most: int, items: int = sys.maxsize) -> list[list[int]]:
    """The places of the sizes, in order, in portions of at most `most` together and of at most so many `items`; a
    larger one is alone."""
    batches: list[list[int]] = []
    room = 0
    for place, size in enumerate(sizes):
        if not batches or size > room or len(batches[-1]) == items:
            batches.append([])
            room = most
        batches[-1].append(place)
        room -= size
    return batches


def first_fitting(items: Iterable[Item], size: Callable[[Item], int], most: int) -> list[Item]:
    """The first of the items that fit into `most` together; at least one."""
    chosen: list[Item] = []
    for item in items:
        most -= size(item)
        if chosen and most < 0:
            break
        chosen.append(item)
    return chosen


async def gather_or_cancel(work: Iterable[Coroutine[object, object, R]]) -> list[R]:
    """What each gives, in order. The first error is raised as it is, after the others were cancelled."""
    tasks: list[asyncio.Task[R]] = []
    try:
        async with asyncio.TaskGroup() as group:
            for coroutine in work:
                tasks.append(group.create_task(coroutine))
                await asyncio.sleep(0)  # answers that come while many begin are not left unread
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
