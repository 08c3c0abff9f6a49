"""A recorded run that is stopped during extraction, in a process of its own."""

import asyncio
import sys
from pathlib import Path

import pytest
from prefect.client.orchestration import get_client

from flows.index import index
from storage.layout import WriterLock
from storage.run_records import IndexReport
from tests.flows.recorded.conftest import Api, process
from tests.flows.recorder import run_of
from tests.patience import PATIENCE, wait_for
from tests.server.client import Server
from tests.workspaces import quays, write_rows

pytestmark = pytest.mark.slow
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


async def test_a_run_after_a_terminated_one_repeats_no_call(
    api: Api, tmp_path: Path, model_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_EMBEDDING", "none")
    later = {"nth": ANSWERED + 1, "times": DOCUMENTS, "seconds": 600}
    model_server.misbehave({"kind": "hang", "step": "extract", **later})
    source = write_rows(tmp_path / "docs.jsonl", quays(DOCUMENTS))
    workspace, now = tmp_path / "ws", tmp_path / "now"
    command = (sys.executable, "-c", IN_A_TASK, *map(str, (source, workspace, now)))
    with process(
        *command, environment=api.environment(), log=tmp_path / "log", folder=tmp_path
    ) as running:
        # When all slots wait, all answers given before have been stored.
        await asyncio.to_thread(
            wait_for, lambda: model_server.calls() >= ANSWERED + IN_FLIGHT, "the extraction"
        )
        now.touch()
        assert running.wait(timeout=PATIENCE) != 0
    async with get_client() as client:
        state = (await client.read_flow_run(await run_of(f"index {source}"))).state
    assert state is not None
    assert state.is_crashed()
    assert list((workspace / "staging").iterdir()) == []
    WriterLock(workspace / "LOCK").release()
    before = model_server.calls()
    model_server.misbehave()
    report = await index(str(source), workspace=str(workspace))
    assert isinstance(report, IndexReport)
    assert report.documents.added == DOCUMENTS
    assert model_server.calls() - before == DOCUMENTS - ANSWERED
