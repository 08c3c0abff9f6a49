"""What does Prefect's server know of a run? It learns of most things a moment later, so these ask
until it does.
"""

import asyncio
from collections.abc import Awaitable, Collection
from typing import Any, TypeVar
from uuid import UUID

from prefect import State

T = TypeVar("T")

WAIT = 90.0  # seconds
PAUSE = 0.2


async def task_runs(
    flow_run: str | UUID, expected: Collection[str], count: int = 0
) -> list[tuple[str, set[str]]]:
    """The names of a flow run's task runs, each with the names of those that it goes on from, in
    the order in which they started, as soon as these, and so many, are there.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, FlowRunFilterName
    from prefect.client.schemas.objects import TaskRunResult

    if isinstance(flow_run, UUID):
        wanted = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run]))
    else:
        wanted = FlowRunFilter(name=FlowRunFilterName(any_=[flow_run]))
    async with get_client() as client:
        for _ in range(int(WAIT / PAUSE)):
            found = await client.read_task_runs(flow_run_filter=wanted)
            known = {run.name for run in found}
            if (
                known.issuperset(expected)
                and len(found) >= count
                and all(run.start_time for run in found)
            ):
                break
            await asyncio.sleep(PAUSE)
    names = {run.id: run.name for run in found}
    return [
        (
            run.name,
            {
                names[up.id]
                for inputs in run.task_inputs.values()
                for up in inputs
                if isinstance(up, TaskRunResult)
            },
        )
        for run in sorted(found, key=lambda run: str(run.start_time))
    ]


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
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterName
    from prefect.client.schemas.sorting import FlowRunSort

    wanted = FlowRunFilter(name=FlowRunFilterName(like_=name))
    async with get_client() as client:
        found = await client.read_flow_runs(
            flow_run_filter=wanted, sort=FlowRunSort.START_TIME_DESC
        )
    return found[0].id


async def logs(flow_run: UUID, until: str = "prefect.flow_runs: Finished in state") -> list[str]:
    """The lines of a flow run's page, as soon as one of them says `until`."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId

    wanted = LogFilter(flow_run_id=LogFilterFlowRunId(any_=[flow_run]))
    async with get_client() as client:
        for _ in range(int(WAIT / PAUSE)):
            found = [f"{log.name}: {log.message}" for log in await client.read_logs(wanted)]
            if any(until in line for line in found):
                break
            await asyncio.sleep(PAUSE)
    return found


async def events(name: str, expected: int, of: str) -> list[dict[str, Any]]:
    """The events of a name about workspaces under the path `of`."""
    from prefect.client.orchestration import get_client

    body = {"filter": {"event": {"name": [name]}, "order": "DESC"}, "limit": 50}
    async with get_client() as client:
        for _ in range(int(WAIT / PAUSE)):
            answer = await client._client.post("/events/filter", json=body)
            answer.raise_for_status()
            found = [
                one
                for one in answer.json()["events"]
                if one["resource"]["prefect.resource.name"].startswith(of)
            ]
            if len(found) >= expected:
                break
            await asyncio.sleep(PAUSE)
    return found


async def artifact(key: str) -> str:
    """The data of the newest artifact with a key."""
    from prefect.artifacts import Artifact

    found = await Artifact.aget(key)
    assert found is not None
    return str(found.data)
