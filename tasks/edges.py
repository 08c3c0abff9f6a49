"""The edges of a flow run: from which steps a step goes on.

Steps one after another form a chain. Work that is done side by side goes on from the same steps,
and whoever has waited for it calls `go_on_from`: the next step then goes on from the last steps of
all of it.
"""

from collections.abc import Iterable
from contextvars import Context, ContextVar

from prefect import State
from prefect.context import FlowRunContext

_LAST: ContextVar[tuple[State[None], ...]] = ContextVar("last", default=())


def steps_before() -> list[State[None]]:
    """Give the final states of the steps that the next step of this flow run goes on from."""
    context = FlowRunContext.get()
    flow_run = context.flow_run if context is not None else None
    return [
        state
        for state in _LAST.get()
        if flow_run and state.state_details.flow_run_id == flow_run.id
    ]


def step_ended(state: State[None]) -> None:
    """Let the next step go on from the one that ended in this state."""
    _LAST.set((state,))


def go_on_from(contexts: Iterable[Context], since: Context) -> None:
    """Let the next step go on from the last steps of work that ran in these contexts.

    `since` is the context in which that work began: its own last steps are behind those of the
    work.
    """
    ends = {state.id: state for context in contexts for state in context.get(_LAST, ())}
    behind = {state.id for state in since.get(_LAST, ())}
    ahead = [state for state in ends.values() if state.id not in behind]
    if ahead:
        _LAST.set(tuple(ahead))
