"""What Prefect's server knows of a run; it learns of most things a moment later."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeVar
from uuid import UUID

from prefect import State
from prefect.artifacts import Artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterId,
    FlowRunFilterName,
    LogFilter,
    LogFilterFlowRunId,
)
from prefect.client.schemas.objects import TaskRun, TaskRunResult
from prefect.client.schemas.sorting import FlowRunSort

T = TypeVar("T")

WAIT = 90.0  # seconds
PAUSE = 0.2


async def until(look: Callable[[], Awaitable[T]], holds: Callable[[T], bool]) -> T:
    """What `look` finds, as soon as it is what a test waits for."""
    for _ in range(int(WAIT / PAUSE)):
        if holds(found := await look()):
            break
        await asyncio.sleep(PAUSE)
    return found


async def task_runs(
    flow_run: str | UUID, expected: Collection[str], count: int = 0
) -> list[tuple[str, set[str]]]:
    """The names of the task runs of a flow run, each with those that it follows, in the order of
    their starts, as soon as the expected ones, and as many as `count`, are there.
    """
    if isinstance(flow_run, UUID):
        wanted = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run]))
    else:
        wanted = FlowRunFilter(name=FlowRunFilterName(any_=[flow_run]))

    def complete(runs: list[TaskRun]) -> bool:
        known = {run.name for run in runs}
        begun = all(run.start_time for run in runs)
        return known.issuperset(expected) and len(runs) >= count and begun

    async with get_client() as client:
        runs = await until(lambda: client.read_task_runs(flow_run_filter=wanted), complete)
    names = {run.id: run.name for run in runs}

    def followed(run: TaskRun) -> set[str]:
        inputs = (up for ups in run.task_inputs.values() for up in ups)
        return {names[up.id] for up in inputs if isinstance(up, TaskRunResult)}

    in_order = sorted(runs, key=lambda run: str(run.start_time))
    return [(run.name, followed(run)) for run in in_order]


def end_of(run: Awaitable[State[T]]) -> State[T]:
    """The state in which a flow run ends, outside of an event loop."""

    async def wait() -> State[T]:
        return await run

    return asyncio.run(wait())


def id_of(state: State[Any]) -> UUID:
    """The id of the flow run that ended in a state."""
    assert state.state_details.flow_run_id is not None
    return state.state_details.flow_run_id


async def run_of(name: str) -> UUID:
    """The newest flow run whose name begins like this."""
    wanted = FlowRunFilter(name=FlowRunFilterName(like_=name))
    async with get_client() as client:
        found = await client.read_flow_runs(
            flow_run_filter=wanted, sort=FlowRunSort.START_TIME_DESC
        )
    return found[0].id


async def logs(flow_run: UUID, last: str = "prefect.flow_runs: Finished in state") -> list[str]:
    """The lines of a flow run's page, as soon as one of them says `last`."""
    wanted = LogFilter(flow_run_id=LogFilterFlowRunId(any_=[flow_run]))
    async with get_client() as client:

        async def lines() -> list[str]:
            return [f"{log.name}: {log.message}" for log in await client.read_logs(wanted)]

        return await until(lines, lambda found: any(last in line for line in found))


async def events(name: str, expected: int, of: str) -> list[dict[str, Any]]:
    """The events of a name about workspaces under the path `of`."""
    body = {"filter": {"event": {"name": [name]}, "order": "DESC"}, "limit": 50}
    async with get_client() as client:

        async def known() -> list[dict[str, Any]]:
            answer = (await client._client.post("/events/filter", json=body)).raise_for_status()
            found: list[dict[str, Any]] = answer.json()["events"]
            return [one for one in found if one["resource"]["prefect.resource.name"].startswith(of)]

        return await until(known, lambda found: len(found) >= expected)


async def artifact(key: str) -> str:
    """The data of the newest artifact with a key."""
    found = await Artifact.aget(key)
    assert found is not None
    return str(found.data)
