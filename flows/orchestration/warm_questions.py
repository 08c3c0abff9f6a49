"""Questions to the deployment `ask`, answered in the process that serves it: index, models and memory stay open.

Prefect's runner starts a process for each run, which loads for seconds what then answers in a third of one.
"""

import flows.orchestration.recording  # noqa: F401 -- settles what Prefect tells its makers, before Prefect is imported

# isort: split
import asyncio
import logging
import threading
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
from prefect import Flow
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, FlowRunFilterState, FlowRunFilterStateType
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.exceptions import Abort, PrefectException
from prefect.flow_engine import run_flow_async
from prefect.states import Cancelled, Pending
from prefect.utilities.engine import propose_state

from flows.indexing.concurrency import background_task
from flows.session import SESSIONS
from prompts.engine.bridge import waiting
from prompts.engine.errors import EngineError
from storage.errors import NoGeneration, TrellisError

logger = logging.getLogger(__name__)

EVERY = 0.5  # seconds between two looks for questions, or for a first generation
AT_ONCE = 16  # others wait


@waiting
async def answer_questions(
    deployment: UUID, flow: Flow[..., Any], workspace: str | None, ended: threading.Event
) -> None:
    """Do the runs that are asked for of a deployment of the flow until `ended`; those that go on then are cancelled.

    Opens the workspace meanwhile, so that not even the first question waits for that.

    Blocks: for a thread of its own. The runs share the event loop of `ask`, so that signals of the process, for which
    Prefect's engine would listen in the main thread, are left to whoever serves.
    """
    running: dict[UUID, asyncio.Task[None]] = {}
    async with get_client() as client, background_task(opened(workspace, ended)):
        while not ended.is_set():
            running = {run: task for run, task in running.items() if not task.done()}
            try:
                for run in await _asked(deployment, AT_ONCE - len(running), client):
                    if run.id not in running:
                        running[run.id] = asyncio.create_task(_answer(run, flow, client))
                for run in await _unwanted(list(running), client):
                    if not running[run.id].cancelling():
                        running[run.id].cancel()
            except (httpx.HTTPError, PrefectException) as error:
                logger.warning("The server does not say what is asked: %s", error)
            await asyncio.sleep(EVERY)
        for task in running.values():
            task.cancel()
        await asyncio.gather(*running.values(), return_exceptions=True)
        await client.pause_deployment(deployment)


async def opened(workspace: str | None, ended: threading.Event) -> bool:
    """Open the workspace as soon as something is published in it; False where it cannot be opened or all `ended`."""
    while not ended.is_set():
        try:
            async with SESSIONS.use(workspace):
                return True
        except NoGeneration:
            await asyncio.sleep(EVERY)
        except (TrellisError, EngineError, OSError):  # each question says it
            return False
    return False


async def _asked(deployment: UUID, most: int, client: PrefectClient) -> list[FlowRun]:
    if not most:
        return []
    return await client.get_scheduled_flow_runs_for_deployments([deployment], datetime.now(UTC), limit=most)


async def _unwanted(running: list[UUID], client: PrefectClient) -> list[FlowRun]:
    """Those of the runs that somebody cancels."""
    if not running:
        return []
    cancelling = FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.CANCELLING]))
    return await client.read_flow_runs(
        flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=running), state=cancelling)
    )


async def _answer(run: FlowRun, flow: Flow[..., Any], client: PrefectClient) -> None:
    try:
        if (await propose_state(client, Pending(), flow_run_id=run.id)).is_pending():
            await run_flow_async(flow, run, run.parameters, return_type="state")
    except Abort:
        pass  # another process has it
    except asyncio.CancelledError:
        await client.set_flow_run_state(run.id, Cancelled(message="Cancelled before it was answered."), force=True)
    except Exception:  # one run that cannot be begun ends no other
        logger.exception("The question %s could not be put", run.name)
