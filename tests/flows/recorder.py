"""What Prefect's server knows of a run. It learns of most things a moment later, so these ask until it does."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeVar
from uuid import UUID

WAIT = 90.0  # seconds
PAUSE = 0.2
T = TypeVar("T")


async def told(ask: Callable[[], Awaitable[T]], enough: Callable[[T], bool]) -> T:
    """What the server says, as soon as it is enough."""
    for _ in range(int(WAIT / PAUSE)):
        if enough(found := await ask()):
            break
        await asyncio.sleep(PAUSE)
    return found


async def task_runs(flow_run: str, expected: Collection[str], count: int = 0) -> list[str]:
    """The names of a flow run's task runs, in the order in which they started, as soon as these, and so many, are
    there."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterName

    wanted = FlowRunFilter(name=FlowRunFilterName(any_=[flow_run]))
    async with get_client() as client:
        found = await told(
            lambda: client.read_task_runs(flow_run_filter=wanted),
            lambda runs: (
                {run.name for run in runs}.issuperset(expected)
                and len(runs) >= count
                and all(run.start_time for run in runs)
            ),
        )
    return [run.name for run in sorted(found, key=lambda run: str(run.start_time))]


async def run_of(name: str) -> UUID:
    """The newest flow run whose name begins like this."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterName
    from prefect.client.schemas.sorting import FlowRunSort

    wanted = FlowRunFilter(name=FlowRunFilterName(like_=name))
    async with get_client() as client:
        found = await client.read_flow_runs(flow_run_filter=wanted, sort=FlowRunSort.START_TIME_DESC)
    return found[0].id


async def logs(flow_run: UUID, until: str = "Finished in state") -> list[str]:
    """The lines of a flow run's page, as soon as one of them says `until`."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId

    wanted = LogFilter(flow_run_id=LogFilterFlowRunId(any_=[flow_run]))
    async with get_client() as client:
        found = await told(lambda: client.read_logs(wanted), lambda logs: any(until in log.message for log in logs))
    return [f"{log.name}: {log.message}" for log in found]


async def events(name: str, expected: int, of: str) -> list[dict[str, Any]]:
    """The events of a name about workspaces under the path `of`."""
    from prefect.client.orchestration import get_client

    body = {"filter": {"event": {"name": [name]}, "order": "DESC"}, "limit": 50}

    async def ask() -> list[dict[str, Any]]:
        answer = await client._client.post("/events/filter", json=body)
        answer.raise_for_status()
        return [one for one in answer.json()["events"] if one["resource"]["prefect.resource.name"].startswith(of)]

    async with get_client() as client:
        return await told(ask, lambda found: len(found) >= expected)


async def artifact(key: str) -> str:
    """The data of the newest artifact with a key."""
    from prefect.artifacts import Artifact

    found = await Artifact.aget(key)
    assert found is not None
    return str(found.data)
