"""Runs steps that only help: the work goes on where their model gives no usable answer.

What the user has to repair (no connection, a bad key, a spent budget) ends a question in any step.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from prompts.engine.errors import NoUsableAnswer
from prompts.engine.key_masking import mask_keys
from prompts.engine.step import Step

_MOST_SHOWN = 300  # characters of an error, which may quote what the model wrote
S = TypeVar("S", bound=Step)
T = TypeVar("T")


async def helped(
    step: S,
    run: Callable[[S], Awaitable[T]],
    instead: str,
    *,
    otherwise: Callable[[], T] | None = None,
    wanted: bool = False,
) -> T:
    """What `run` makes with the step, or a substitute where its model has no usable answer.

    The substitute is the result of `otherwise`, or else of `run` without the model; `instead`
    describes it in the trace. The profile does not spare a step that the user `wanted`.
    """
    if step.is_offline:
        return await run(step)
    meter = step.models.meter
    if not wanted and (reason := step.policy.spared(step.step)):
        meter.spare(step.step, reason)
    else:
        try:
            return await run(step)
        except NoUsableAnswer as error:
            reason = " ".join(mask_keys(error.message).split())[:_MOST_SHOWN]
            meter.degrade(step.step, reason, instead)
    return otherwise() if otherwise is not None else await run(step.without_model())
