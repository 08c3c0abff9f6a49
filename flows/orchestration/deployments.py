"""Deployments for Prefect, and one process that serves them.

The same deployments as in `prefect.yaml`, made from what is installed: no checkout is needed.
"""

import flows.orchestration.recording  # noqa: F401 -- settles what Prefect tells its makers, before Prefect is imported

# isort: split
import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import httpx
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.actions import DeploymentUpdate
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import (
    ConcurrencyLimitConfig,
    ConcurrencyLimitStrategy,
    DeploymentStatus,
    StateType,
)
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import ObjectNotFound, PrefectException
from prefect.runner import Runner
from prefect.schedules import Cron, Schedule
from prefect.settings import get_current_settings
from prefect.types.entrypoint import EntrypointType

from flows.index import index
from flows.orchestration.local_server import HEARTBEAT, REMEDY, check_server
from flows.orchestration.warm_questions import answer_questions
from flows.orchestration.zombie_automation import TAG, end_silent_runs, end_with
from flows.query import query
from storage.errors import StorageError, UsageError
from storage.records import Record

logger = logging.getLogger(__name__)

NIGHTLY, NOW, ASK = "index-nightly", "index-now", "ask"
RENAMED_EVERY = 10.0  # seconds between two looks for runs that Prefect has scheduled


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
            NOW,
            parameters=sources | place,
            concurrency_limit=_one_at_a_time("ENQUEUE"),
            description="Bring a workspace up to date with its sources now. One run at a time: the next one waits.",
            entrypoint_type=EntrypointType.MODULE_PATH,
        ),
        await query.ato_deployment(
            ASK,
            parameters={**place},
            description="Answer one question from the documents that are indexed, with its sources.",
            entrypoint_type=EntrypointType.MODULE_PATH,
        ),
    ]
    if plan.cron:
        scheduled = await index.ato_deployment(
            NIGHTLY,
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
    await check_server(get_current_settings().api.url or "")
    async with get_client() as client:
        await _prepare(client)
        for deployment in runner_deployments:
            await _not_taken(client, deployment)
        runner, ended = Runner(), threading.Event()
        known: dict[str, UUID] = {}
        for deployment in runner_deployments:
            if deployment.name == ASK:
                known[ASK] = await deployment.aapply()
                continue
            known[deployment.name] = await runner.aadd_deployment(deployment)
            steps = [{f"{end_with.__module__}.{end_with.__name__}": {"parent": os.getpid()}}]
            await client.update_deployment(known[deployment.name], DeploymentUpdate(pull_steps=steps))
    place = next(row.parameters.get("workspace") for row in runner_deployments if row.name == ASK)
    answering = asyncio.create_task(asyncio.to_thread(answer_questions, known[ASK], query, place, ended))
    naming = asyncio.create_task(_name_scheduled_runs(known))
    running = asyncio.create_task(runner.start())
    await asyncio.sleep(0)  # it takes SIGTERM for itself, in a way that leaves the runs behind: ours comes after
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    ready()
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.wait({running, waiting, answering}, return_when=asyncio.FIRST_COMPLETED)
    ended.set()
    if runner.started:
        await runner.astop()
    for task in (waiting, naming):
        task.cancel()
    await asyncio.gather(running, answering)


async def _name_scheduled_runs(deployments: Mapping[str, UUID]) -> None:
    """Give runs that are scheduled names that say what and when; a run that begins takes its flow's own.

    Prefect calls them by two words at random, and so those that are skipped stay called.
    """
    names = {deployment: name for name, deployment in deployments.items()}
    waiting = FlowRunFilter(
        deployment_id=FlowRunFilterDeploymentId(any_=list(names)),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.SCHEDULED])),
    )
    async with get_client() as client:
        while True:
            try:
                for run in await client.read_flow_runs(flow_run_filter=waiting):
                    if run.auto_scheduled and run.deployment_id and run.expected_start_time:
                        name = f"{names[run.deployment_id]} {run.expected_start_time:%Y-%m-%d %H:%M} UTC"
                        if run.name != name:
                            await client.update_flow_run(run.id, name=name)
            except (httpx.HTTPError, PrefectException) as error:
                logger.warning("Scheduled runs could not be named: %s", error)
            await asyncio.sleep(RENAMED_EVERY)


async def register(runner_deployments: Sequence[RunnerDeployment], pool: str) -> None:
    """Register deployments for the workers of a pool, which have Trellis installed.

    Raises UsageError for a pool that does not exist, StorageError where the server cannot be reached.
    """
    await check_server(get_current_settings().api.url or "")
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
            REMEDY,
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
