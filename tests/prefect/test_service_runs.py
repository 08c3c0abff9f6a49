"""The service beside Prefect: its index runs are runs of Prefect's."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.patience import PATIENCE, wait_for
from tests.prefect.conftest import BIN, ROOT, Api, free_port, process
from tests.workspaces import quays, write_rows

pytestmark = [pytest.mark.prefect, pytest.mark.slow]
QUESTION = "Who designed Orla Bridge?"


def _first_line(text: str) -> Any:
    line, end, _ = text.partition("\n")
    return json.loads(line) if end else None


def test_the_service_starts_follows_and_cancels_runs_of_prefect_and_goes_on(source: Path, tmp_path: Path) -> None:
    where = ("--workspace", str(tmp_path / "ws"), "--listen", "0", "--port", str(free_port()), "--json")
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "PREFECT_HOME": str(tmp_path / "home"), "TRELLIS_EMBEDDING": "none"
    }  # fmt: skip
    log = tmp_path / "log"
    with process(
        str(BIN / "trellis"), "serve", str(source), *where, environment=environment, log=log, folder=tmp_path
    ) as serving:
        told = wait_for(lambda: _first_line(log.read_text()), "the start")
        api = Api(told["server"])
        with httpx.Client(base_url=told["service"], timeout=PATIENCE, trust_env=False) as client:

            def run(**wanted: object) -> Any:
                return client.post("/api/v1/index-runs", json=wanted).raise_for_status().json()

            def now(begun: Any) -> Any:
                return client.get(f"/api/v1/index-runs/{begun['id']}").json()

            long = run(sources=[str(write_rows(tmp_path / "many.jsonl", quays(5_000)))])
            assert (long["state"], long["url"].startswith(told["ui"])) == ("waiting", True)
            wait_for(lambda: now(long)["step"], "its first step")
            assert client.delete(f"/api/v1/index-runs/{long['id']}").json()["state"] == "cancelled"
            assert api.finished(long["id"])["state"]["type"] == "CANCELLED"
            short = run()
            done = wait_for(lambda: now(short)["report"], "the next run's report")
            assert (done["generation"], done["documents"]["added"]) == (1, 1)
            assert "Tomas Reyd" in client.post("/api/v1/ask", json={"question": QUESTION}).json()["answer"]
            runs = {row["id"]: row["state"] for row in client.get("/api/v1/index-runs").json()}
            assert runs == {long["id"]: "cancelled", short["id"]: "completed"}
            assert client.get("/api/v1/index-runs/none").status_code == 404
        assert serving.poll() is None
        serving.send_signal(signal.SIGTERM)
        assert serving.wait(timeout=PATIENCE) == 0
