"""How does an async function become a step: a Prefect task inside a flow run, a plain coroutine anywhere else?

Outside a flow run nothing is paid: Prefect is not even imported.
"""

import functools
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

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


def step(name: str, retries: int = 0) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
    """Mark an async function as a step called `name`.

    Inside a Prefect flow run each call is a task run of that name; its arguments are neither hashed nor searched for
    futures, and its result is not persisted (records are large, and storage keeps what must last).
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
                return await _as_task(name, retries, function)(*args, **kwargs)
            finally:
                if watcher is not None:
                    watcher(name, False)

        return run

    return decorate


def _as_task(name: str, retries: int, function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    from prefect import task
    from prefect.cache_policies import NO_CACHE

    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        # The arguments travel in the closure: Prefect would walk through every record to look for futures.
        async def body() -> R:
            return await function(*args, **kwargs)

        made = task(name=name, task_run_name=name, retries=retries, cache_policy=NO_CACHE, persist_result=False)(body)
        return await made()

    return call
