"""The decorator `step`: a Prefect task inside a flow run, a plain call anywhere else."""

import tasks.prefect_environment  # noqa: F401 -- before Prefect

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from prefect import State, Task
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext, TaskRunContext
from prefect.states import Failed

from prompts.engine.errors import EngineError
from prompts.engine.key_masking import mask_error
from prompts.engine.spans import step_span
from storage.errors import TrellisError
from tasks.edges import step_ended, steps_before
from tasks.retrying import model_is_away
from tasks.watching import announced

P = ParamSpec("P")
R = TypeVar("R")
StepFunction = Callable[P, Awaitable[R]]

MODEL = "model"


def step(
    name: str, waits: Sequence[float] = (), asks_model: bool = False
) -> Callable[[StepFunction[P, R]], StepFunction[P, R]]:
    """Make a function a step of this name.

    Where a model cannot be reached, the step is retried after each of `waits` (seconds).
    """

    def decorate(function: StepFunction[P, R]) -> StepFunction[P, R]:
        task: Any = Task(
            _do,
            name=name,
            task_run_name=name,
            description=inspect.getdoc(function),
            tags=[MODEL] if asks_model else [],
            cache_policy=NO_CACHE,
            persist_result=False,
            retries=len(waits),
            retry_delay_seconds=list(waits),
            retry_jitter_factor=0.5,
            retry_condition_fn=model_is_away,
        )

        async def spanned(*args: P.args, **kwargs: P.kwargs) -> R:
            with step_span(name):
                return await function(*args, **kwargs)

        @wraps(function)
        async def run(*args: P.args, **kwargs: P.kwargs) -> R:
            with announced(name):
                if FlowRunContext.get() is None or TaskRunContext.get() is not None:
                    return await spanned(*args, **kwargs)
                results: list[R] = []

                async def work() -> None:
                    results.append(await spanned(*args, **kwargs))

                state = await task(work, wait_for=steps_before(), return_state=True)
                await state.aresult()
                step_ended(state)
                return results[-1]

        return run

    return decorate


async def _do(work: StepFunction[[], None]) -> State[None] | None:
    try:
        await work()
    except Exception as error:
        mask_error(error)
        if not isinstance(error, TrellisError | EngineError):
            raise
        return Failed(message=str(error), data=error)
    return None
