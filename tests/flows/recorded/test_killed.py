"""A recorded command without a server of its user's, in a process of its own, which is killed."""

import os
import sys
from pathlib import Path

import pytest

from tests.flows.recorded.conftest import ROOT, process
from tests.patience import wait_for
from tests.workspaces import quays, write_rows


def children_of(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.patient  # a Prefect server is started
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are listed as Linux does")
def test_a_killed_recorded_run_leaves_no_server(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "docs.jsonl", quays(2000))
    command = (sys.executable, "-m", "flows", "index", str(source), "--record", "--workspace", str(tmp_path / "ws"))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment = {**kept, "PYTHONPATH": str(ROOT), "PREFECT_HOME": str(tmp_path / "home"), "TRELLIS_EMBEDDING": "none"}
    log = tmp_path / "log"
    with process(*command, environment=environment, log=log, folder=tmp_path) as running:
        wait_for(lambda: "Task run 'load'" in log.read_text(errors="replace"), "the first step")
        (server,) = children_of(running.pid)
        running.kill()
        running.wait()
    wait_for(lambda: not Path(f"/proc/{server}").exists(), "the end of the server")
