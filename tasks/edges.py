"""The edges between the steps of a flow run: which steps each step follows.

Steps that run in sequence form a chain. Steps that run concurrently all follow the same steps; the
code that awaits them calls `go_on_from`, so that the next step follows the last step of each.
"""

from collections.abc import Iterable
from contextvars import Context, ContextVar

from prefect import State
from prefect.context import FlowRunContext

_LAST: ContextVar[tuple[State[None], ...]] = ContextVar("last", default=())


def steps_before() -> list[State[None]]:
    """Return the final states of the steps that the next step of this flow run follows."""
    context = FlowRunContext.get()
    flow_run = context.flow_run if context is not None else None
    return [
        state
        for state in _LAST.get()
        if flow_run and state.state_details.flow_run_id == flow_run.id
    ]


def step_ended(state: State[None]) -> None:
    """Make the next step follow the step that ended in this state."""
    _LAST.set((state,))


def go_on_from(contexts: Iterable[Context], since: Context) -> None:
    """Make the next step follow the last steps that ran in these contexts.

    `since` is the context in which the concurrent work began: its last steps are already behind.
    """
    ends = {state.id: state for context in contexts for state in context.get(_LAST, ())}
    behind = {state.id for state in since.get(_LAST, ())}
    ahead = [state for state in ends.values() if state.id not in behind]
    if ahead:
        _LAST.set(tuple(ahead))
