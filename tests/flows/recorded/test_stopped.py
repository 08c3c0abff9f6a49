"""A recorded run that is stopped in the middle of extraction, in a process of its own, as a worker starts it."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from flows.index import index
from storage.layout import WriterLock
from storage.run_records import IndexReport
from tests.flows.recorder import logs, run_of
from tests.patience import PATIENCE, wait_for, waited_for
from tests.server.client import Server
from tests.workspaces import quays, write_rows

pytestmark = [pytest.mark.usefixtures("api"), pytest.mark.slow]

ROOT = Path(__file__).parents[3]
DOCUMENTS, ANSWERED, IN_FLIGHT = 100, 40, 16
# The signal comes while a task runs that catches everything.
IN_A_TASK = """
import asyncio, os, signal, sys
from pathlib import Path
from flows.index import index

async def look():
    while not Path(sys.argv[3]).exists():
        await asyncio.sleep(0.05)
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        sum(range(1000))
    except BaseException:
        pass

async def main():
    looking = asyncio.create_task(look())
    await index(sys.argv[1], workspace=sys.argv[2])

asyncio.run(main())
"""
SERVE = "from flows.index import index; index.serve(name='stopped', print_starting_message=False)"


@contextmanager
def process(code: str, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    from prefect.settings import PREFECT_API_URL

    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PREFECT_API_URL": str(PREFECT_API_URL.value())}
    environment["PREFECT_RUNNER_POLL_FREQUENCY"] = "1"
    # Who is started in the background of a shell ignores SIGINT, by which Prefect ends what it has started.
    code = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n{code}"
    started = subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], env=environment)
    try:
        yield started
    finally:
        if started.poll() is None:
            started.terminate()
        try:
            started.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


@pytest.fixture
def source(tmp_path: Path, model_server: Server, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRELLIS_EMBEDDING", "none")
    # The rest it keeps to itself: where the run is stopped does not depend on how fast anything is.
    model_server.misbehave({"kind": "hang", "step": "extract", "nth": ANSWERED + 1, "times": DOCUMENTS, "seconds": 600})
    return write_rows(tmp_path / "docs.jsonl", quays(DOCUMENTS))


async def in_mid_extraction(server: Server) -> None:
    """As many calls wait as may be under way at once: all that were answered have been stored, or their slots were not
    free."""
    await asyncio.to_thread(wait_for, lambda: server.calls() >= ANSWERED + IN_FLIGHT, "the middle of the extraction")


async def is_clean_and_can_go_on(workspace: Path, source: Path, server: Server) -> None:
    """Nothing is left behind or held, and the next run repeats none but the calls that had no answer yet."""
    assert list((workspace / "staging").iterdir()) == []
    WriterLock(workspace / "LOCK").release()
    before = server.calls()
    server.misbehave()
    report = await index(str(source), workspace=str(workspace))
    assert isinstance(report, IndexReport)
    assert report.documents.added == DOCUMENTS
    assert server.calls() - before == DOCUMENTS - ANSWERED


async def test_a_terminated_run_leaves_the_workspace_clean(source: Path, tmp_path: Path, model_server: Server) -> None:
    from prefect.client.orchestration import get_client

    workspace, now = tmp_path / "ws", tmp_path / "now"
    with process(IN_A_TASK, source, workspace, now) as running:
        await in_mid_extraction(model_server)
        now.touch()
        assert running.wait(timeout=PATIENCE) != 0
    async with get_client() as client:
        state = (await client.read_flow_run(await run_of(f"index {source}"))).state
    assert state is not None
    assert state.is_crashed()
    assert state.message
    await is_clean_and_can_go_on(workspace, source, model_server)


async def test_a_run_cancelled_in_the_user_interface_ends_as_cancelled(
    source: Path, tmp_path: Path, model_server: Server
) -> None:
    from prefect.client.orchestration import get_client
    from prefect.states import Cancelling

    workspace = tmp_path / "ws"
    async with get_client() as client:
        with process(SERVE):
            deployment = await served("index/stopped")
            parameters = {"source": str(source), "workspace": str(workspace)}
            run = await client.create_flow_run_from_deployment(deployment, parameters=parameters)
            await in_mid_extraction(model_server)
            await client.set_flow_run_state(run.id, Cancelling())

            async def ended() -> Any:
                state = (await client.read_flow_run(run.id)).state
                return state if state and state.is_final() else None

            assert (await waited_for(ended, "the end of a run that was cancelled")).is_cancelled()
    assert "The run was cancelled. Nothing is published" in "\n".join(await logs(run.id, until="was cancelled."))
    await is_clean_and_can_go_on(workspace, source, model_server)


async def served(name: str) -> UUID:
    """The deployment, as soon as the process that serves it has made it."""
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    async with get_client() as client:

        async def made() -> UUID | None:
            with suppress(ObjectNotFound):
                return (await client.read_deployment_by_name(name)).id
            return None

        found: UUID = await waited_for(made, f"the deployment {name}")
    return found
