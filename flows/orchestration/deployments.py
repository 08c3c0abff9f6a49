"""Deployments for Prefect, and one process that serves them.

The same deployments as in `prefect.yaml`, made from what is installed: no checkout is needed.
"""

import flows.orchestration.recording  # noqa: F401 -- settles what Prefect tells its makers, before Prefect is imported

# isort: split
import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from importlib.metadata import version
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.actions import DeploymentUpdate
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy, DeploymentStatus
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import ObjectNotFound
from prefect.runner import Runner
from prefect.schedules import Cron, Schedule
from prefect.settings import get_current_settings
from prefect.types.entrypoint import EntrypointType

from flows.index import index
from flows.orchestration.local_server import HEARTBEAT
from flows.orchestration.zombie_automation import TAG, end_silent_runs, end_with
from flows.query import query
from storage.errors import StorageError, UsageError
from storage.records import Record

SCHEDULED, ON_DEMAND = "scheduled", "on-demand"


class Plan(Record):
    """What to deploy. Without a `cron` nothing is scheduled; `timezone` is its own; no workspace: a run's settings."""

    sources: tuple[str, ...] = ()
    workspace: str | None = None
    cron: str | None = None
    timezone: str = "UTC"


async def deployments(plan: Plan) -> list[RunnerDeployment]:
    """The deployments of a plan, not registered yet. UsageError for a cron expression or a time zone that is none."""
    place = {"workspace": plan.workspace} if plan.workspace else {}
    sources = {"source": list(plan.sources)} if plan.sources else {}
    runner_deployments = [
        await index.ato_deployment(
            ON_DEMAND,
            parameters=sources | place,
            concurrency_limit=_one_at_a_time("ENQUEUE"),
            description="Bring a workspace up to date with its sources now. One run at a time: the next one waits.",
            entrypoint_type=EntrypointType.MODULE_PATH,
        ),
        await query.ato_deployment(
            ON_DEMAND,
            parameters={**place},
            description="Answer one question from the current generation.",
            entrypoint_type=EntrypointType.MODULE_PATH,
        ),
    ]
    if plan.cron:
        scheduled = await index.ato_deployment(
            SCHEDULED,
            parameters=sources | place,
            schedule=_schedule(plan.cron, plan.timezone),
            concurrency_limit=_one_at_a_time("CANCEL_NEW"),
            description="Bring a workspace up to date with its sources. Where the run before still goes on, skip one.",
            entrypoint_type=EntrypointType.MODULE_PATH,
        )
        runner_deployments.insert(0, scheduled)
    for deployment in runner_deployments:
        deployment.tags = [TAG]
        deployment.version = version("trellis-rag")
        deployment.paused = False  # a process that served before has paused it at its end
    return runner_deployments


async def serve(runner_deployments: Sequence[RunnerDeployment], ready: Callable[[], None]) -> None:
    """Register deployments and run what is scheduled or asked for, until Ctrl-C or SIGTERM; then cancel what runs.

    `ready` is called as soon as runs can be asked for. Raises StorageError where the server cannot be reached,
    UsageError where a deployment of that name is served by others.
    """
    async with get_client() as client:
        await _prepare(client)
        for deployment in runner_deployments:
            await _not_taken(client, deployment)
        runner = Runner()
        for deployment in runner_deployments:
            known = await runner.aadd_deployment(deployment)
            steps = [{f"{end_with.__module__}.{end_with.__name__}": {"parent": os.getpid()}}]
            await client.update_deployment(known, DeploymentUpdate(pull_steps=steps))
    running = asyncio.create_task(runner.start())
    await asyncio.sleep(0)  # it takes SIGTERM for itself, in a way that leaves the runs behind: ours comes after
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    ready()
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if stopped.is_set() and runner.started:
        await runner.astop()
    waiting.cancel()
    await running


async def register(runner_deployments: Sequence[RunnerDeployment], pool: str) -> None:
    """Register deployments for the workers of a pool, which have Trellis installed.

    Raises UsageError for a pool that does not exist, StorageError where the server cannot be reached.
    """
    async with get_client() as client:
        await _prepare(client)
        try:
            await client.read_work_pool(pool)
        except ObjectNotFound as error:
            raise UsageError(
                f"The Prefect server has no work pool {pool!r}.",
                f"Make it: `prefect work-pool create --type process {pool}`, or name another with --pool.",
            ) from error
    for deployment in runner_deployments:
        deployment.work_pool_name = pool
        deployment.job_variables = {"env": {"PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT)}}
        await deployment.aapply()


async def _prepare(client: PrefectClient) -> None:
    problem = await client.api_healthcheck()
    if problem is not None:
        raise StorageError(
            get_current_settings().api.url or "Prefect",
            f"the server cannot be reached ({str(problem) or type(problem).__name__})",
            "Start it (`prefect server start`), correct PREFECT_API_URL, or unset it: `trellis serve` starts its own.",
        )
    await end_silent_runs(client)


async def _not_taken(client: PrefectClient, deployment: RunnerDeployment) -> None:
    """A second one of that name would take the runs of the first."""
    try:
        other = await client.read_deployment_by_name(deployment.full_name)
    except ObjectNotFound:
        return
    if other.work_pool_name:
        raise UsageError(
            f"The deployment {deployment.full_name} belongs to the workers of pool {other.work_pool_name}.",
            f"Let them run it, or delete it first: `prefect deployment delete {deployment.full_name}`.",
        )
    workspace = other.parameters.get("workspace")
    if (
        other.status == DeploymentStatus.READY
        and not other.paused
        and workspace != deployment.parameters.get("workspace")
    ):
        raise UsageError(
            f"The deployment {deployment.full_name} is served for the workspace {workspace} now.",
            "End that one first, or unset PREFECT_API_URL and give a --port and a PREFECT_HOME of its own.",
        )


def _one_at_a_time(otherwise: str) -> ConcurrencyLimitConfig:
    return ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy[otherwise])


def _schedule(cron: str, timezone: str) -> Schedule:
    try:
        ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise UsageError(f"No time zone is called {timezone!r}.", "Use a name such as UTC or Europe/Berlin.") from error
    try:
        return Cron(cron, timezone=timezone)
    except ValueError as error:
        raise UsageError(
            f"{cron!r} is no cron expression.",
            'Use five fields: minute, hour, day, month, weekday. "0 3 * * *" is every night at three.',
        ) from error
