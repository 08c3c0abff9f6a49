"""When a step is tried again: where a model cannot be reached, which time mends. What else fails
has failed.
"""

from typing import Any

from prefect import State, Task
from prefect.client.schemas.objects import TaskRun
from prefect.context import TaskRunContext

from prompts.engine.errors import ModelUnavailable

PATIENT = (
    30.0,
    120.0,
)  # seconds after which an index run, for which nobody waits, tries a step again
BRIEF = (5.0, 20.0)  # the same for a question, for which somebody may wait


def model_is_away(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Say whether a step failed because a model cannot be reached."""
    return isinstance(state.data, ModelUnavailable)


def is_tried_again() -> bool:
    """Say whether the step that runs here, if it raises ModelUnavailable, will be tried again."""
    context = TaskRunContext.get()
    return context is not None and context.task_run.run_count <= context.task.retries
