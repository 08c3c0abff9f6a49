"""Deployments for Prefect, and one process that serves them.

They equal those in `prefect.yaml`, but are made from what is installed: no checkout is needed.
"""

import tasks.prefect_environment  # noqa: F401 -- before Prefect

import asyncio
import signal
from collections.abc import Callable, Sequence
from importlib.metadata import version
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.objects import (
    ConcurrencyLimitConfig,
    ConcurrencyLimitStrategy,
    DeploymentStatus,
)
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import ObjectNotFound
from prefect.runner import Runner
from prefect.schedules import Cron, Schedule
from prefect.settings import get_current_settings
from prefect.types.entrypoint import EntrypointType

from flows.index import index
from flows.orchestration.local_server import HEARTBEAT, check_server
from flows.orchestration.zombie_automation import TAG, end_silent_runs
from flows.query import query
from storage.errors import UsageError
from storage.records import Record
from storage.system import on_signals

NIGHTLY, NOW, ASK = "index-nightly", "index-now", "ask"


class Plan(Record):
    """What to deploy. Without a workspace a run takes the one of its settings; without a `cron`
    nothing is scheduled.
    """

    sources: tuple[str, ...] = ()
    workspace: str | None = None
    cron: str | None = None
    timezone: str = "UTC"


async def deployments(plan: Plan) -> list[RunnerDeployment]:
    """Make the deployments of a plan, not registered yet.

    Raises UsageError for an invalid cron expression or time zone.
    """
    place = {"workspace": plan.workspace} if plan.workspace else {}
    parameters = {**({"source": list(plan.sources)} if plan.sources else {}), **place}
    module = EntrypointType.MODULE_PATH
    made: list[RunnerDeployment] = []
    if plan.cron:
        made.append(
            await index.ato_deployment(
                NIGHTLY,
                parameters=parameters,
                schedule=_schedule(plan.cron, plan.timezone),
                concurrency_limit=_one_at_a_time("CANCEL_NEW"),
                description=(
                    "Bring a workspace up to date with its sources; skipped where the run before "
                    "still goes on."
                ),
                entrypoint_type=module,
            )
        )
    made += [
        await index.ato_deployment(
            NOW,
            parameters=parameters,
            concurrency_limit=_one_at_a_time("ENQUEUE"),
            description=(
                "Bring a workspace up to date with its sources now. One run at a time: the next one"
                " waits."
            ),
            entrypoint_type=module,
        ),
        await query.ato_deployment(
            ASK,
            parameters=place,
            description=(
                "Answer one question from the documents that are indexed, with its sources."
            ),
            entrypoint_type=module,
        ),
    ]
    for deployment in made:
        deployment.tags = [TAG]
        deployment.version = version("trellis-rag")
        deployment.paused = False  # the last process that served it paused it at its end
    return made


async def serve(runner_deployments: Sequence[RunnerDeployment], ready: Callable[[], None]) -> None:
    """Register deployments and execute their runs until Ctrl-C or SIGTERM; then cancel those that
    still run.

    `ready` is called as soon as runs can be requested. Raises StorageError where the server cannot
    be reached, UsageError where others serve a deployment of that name.
    """
    runner = Runner()
    async with get_client() as client:
        await _prepare(client)
        for deployment in runner_deployments:
            await _refuse_taken(client, deployment)
    for deployment in runner_deployments:
        await runner.aadd_deployment(deployment)
    running = asyncio.create_task(runner.start())
    # The runner installs a handler of SIGTERM that would leave the runs behind: ours replaces it.
    await asyncio.sleep(0)
    signalled = asyncio.Event()
    on_signals((signal.SIGINT, signal.SIGTERM), signalled.set)
    ready()
    stopping = asyncio.create_task(signalled.wait())
    await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if runner.started:
        await runner.astop()
    await running


async def register(runner_deployments: Sequence[RunnerDeployment], pool: str) -> None:
    """Register deployments for the workers of a pool, which have Trellis installed.

    Raises UsageError for a pool that does not exist, StorageError where the server cannot be
    reached.
    """
    async with get_client() as client:
        await _prepare(client)
        try:
            await client.read_work_pool(pool)
        except ObjectNotFound as error:
            raise UsageError(
                f"The Prefect server has no work pool {pool!r}.",
                f"Make it: `prefect work-pool create --type process {pool}`, or name another with "
                "--pool.",
            ) from error
    for deployment in runner_deployments:
        deployment.work_pool_name = pool
        deployment.job_variables = {"env": {"PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT)}}
        await deployment.aapply()


async def _prepare(client: PrefectClient) -> None:
    if address := get_current_settings().api.url:
        await check_server(address)
    await end_silent_runs(client)


async def _refuse_taken(client: PrefectClient, deployment: RunnerDeployment) -> None:
    """Raise UsageError where others serve a deployment of that name: ours would take its runs."""
    try:
        other = await client.read_deployment_by_name(deployment.full_name)
    except ObjectNotFound:
        return
    if other.work_pool_name:
        raise UsageError(
            f"The deployment {deployment.full_name} belongs to the workers of pool "
            f"{other.work_pool_name}.",
            "Let them run it, or delete it first: `prefect deployment delete "
            f"{deployment.full_name}`.",
        )
    workspace, is_served = other.parameters.get("workspace"), other.status == DeploymentStatus.READY
    if is_served and not other.paused and workspace != deployment.parameters.get("workspace"):
        raise UsageError(
            f"The deployment {deployment.full_name} is served for the workspace {workspace} now.",
            "End that one first, or unset PREFECT_API_URL and give a --port and a PREFECT_HOME of "
            "its own.",
        )


def _one_at_a_time(otherwise: str) -> ConcurrencyLimitConfig:
    return ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy[otherwise])


def _schedule(cron: str, timezone: str) -> Schedule:
    try:
        ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise UsageError(
            f"No time zone is called {timezone!r}.", "Use a name such as UTC or Europe/Berlin."
        ) from error
    try:
        return Cron(cron, timezone=timezone)
    except ValueError as error:
        raise UsageError(
            f"{cron!r} is no cron expression.",
            'Use five fields: minute, hour, day, month, weekday. "0 3 * * *" is every night at '
            "three.",
        ) from error
