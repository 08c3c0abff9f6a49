"""Retry rules of steps: a step is retried only where a model could not be reached."""

from typing import Any

from prefect import State, Task
from prefect.client.schemas.objects import TaskRun
from prefect.context import TaskRunContext

from prompts.engine.errors import ModelUnavailable

# Seconds to wait before each retry: in an index run, and in a question that somebody waits for.
PATIENT = (30.0, 120.0)
BRIEF = (5.0, 20.0)


def model_is_away(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Say whether a step failed because a model cannot be reached."""
    return isinstance(state.data, ModelUnavailable)


def is_tried_again() -> bool:
    """Say whether Prefect retries the step that runs here if it raises ModelUnavailable."""
    context = TaskRunContext.get()
    return context is not None and context.task_run.run_count <= context.task.retries
