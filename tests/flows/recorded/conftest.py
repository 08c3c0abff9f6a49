"""One Prefect server with the deployments of this checkout, and one worker."""

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from prefect.context import _temporary_global_settings_context, get_settings_context
from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogHandler
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.workers.process import ProcessWorker

from flows.orchestration.local_server import own_server
from tests.patience import PATIENCE, wait_for

ROOT = Path(__file__).parents[3]
BIN = Path(sys.executable).parent
POOL = "trellis"
# Workers look for new runs each second.
SOON = {"PREFECT_WORKER_QUERY_SECONDS": "1", "PREFECT_RUNNER_POLL_FREQUENCY": "1"}
HTTP = httpx.Client(timeout=PATIENCE, trust_env=False)
FINAL = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass(frozen=True)
class Api:
    """A running server; `url` ends in /api."""

    url: str

    @property
    def ui(self) -> str:
        return self.url.removesuffix("/api")

    def environment(self, **more: str) -> dict[str, str]:
        """For a process that talks to this server."""
        return {
            **os.environ,
            "PREFECT_API_URL": self.url,
            "TRELLIS_EMBEDDING": "none",
            "PYTHONPATH": str(ROOT),
            **SOON,
            **more,
        }

    def post(self, path: str, body: object) -> httpx.Response:
        """Try again while the server is busy (503: its database is locked), as Prefect does."""
        for pause in (0.5, 1, 2, 4):
            answer = HTTP.post(f"{self.url}/{path}", json=body)
            if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                return answer
            time.sleep(pause)
        return answer

    def get(self, path: str) -> Any:
        return HTTP.get(f"{self.url}/{path}").raise_for_status().json()

    def answers(self) -> bool:
        try:
            return HTTP.get(f"{self.url}/health", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def deployment(self, name: str) -> Any:
        return self.get(f"deployments/name/{name}")

    def start(self, deployment: str, **parameters: object) -> httpx.Response:
        path = f"deployments/{self.deployment(deployment)['id']}/create_flow_run"
        return self.post(path, {"parameters": parameters})

    def finished(self, run: str) -> Any:
        def over() -> Any:
            found = self.get(f"flow_runs/{run}")
            return found if found["state"]["type"] in FINAL else None

        return wait_for(over, f"the end of run {run}")

    def ended(self, deployment: str, **parameters: object) -> Any:
        return self.finished(self.start(deployment, **parameters).raise_for_status().json()["id"])

    def runs(self, deployment: str) -> list[Any]:
        """The runs of a deployment that have begun, the oldest first."""
        known = self.deployment(deployment)["id"]
        wanted = {"deployments": {"id": {"any_": [known]}}, "sort": "START_TIME_ASC"}
        found: list[Any] = self.post("flow_runs/filter", wanted).raise_for_status().json()
        return [run for run in found if run["start_time"]]

    def artifacts(self, run: str) -> list[Any]:
        wanted = {"artifacts": {"flow_run_id": {"any_": [run]}}}
        found: list[Any] = self.post("artifacts/filter", wanted).raise_for_status().json()
        return found


@contextmanager
def process(
    *command: str, environment: dict[str, str], log: Path, folder: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a session of its own, ended after the block with all that it has started."""
    with log.open("wb") as output:
        started = subprocess.Popen(
            command,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
        )
        try:
            yield started
        finally:
            for number, patience in ((signal.SIGTERM, 20), (signal.SIGKILL, 5)):
                try:
                    os.killpg(started.pid, number)
                    started.wait(timeout=patience)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    continue


@pytest.fixture(scope="package")
def api(network_attempts: list[str]) -> Iterator[Api]:
    """The server of all recorded runs in this folder."""
    home = Path(os.environ["PREFECT_HOME"])
    with own_server(free_port(), home) as url, temporary_settings({PREFECT_API_URL: url}):
        with (
            closing(sqlite3.connect(home / "prefect.db")) as made,
            closing(sqlite3.connect(home / "empty.db")) as empty,
        ):
            made.backup(empty)
        with _temporary_global_settings_context(get_settings_context()):  # for threads
            yield Api(url)
        APILogHandler().flush()
        EventsWorker.drain_all()


@pytest.fixture
def home(api: Api, tmp_path: Path) -> Path:
    """A folder for another server, with the empty tables that would take it seconds to make."""
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(Path(os.environ["PREFECT_HOME"], "empty.db"), home / "prefect.db")
    return home


@pytest.fixture(scope="package")
def deployed(api: Api) -> Api:
    """The server with the deployments of `prefect.yaml`."""
    template = ProcessWorker.get_default_base_job_template()
    pool = {"name": POOL, "type": "process", "base_job_template": template}
    api.post("work_pools/", pool).raise_for_status()
    done = subprocess.run(
        [str(BIN / "prefect"), "--no-prompt", "deploy", "--all"],
        env=api.environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return api


@contextmanager
def worker(api: Api, folder: Path, **environment: str) -> Iterator["subprocess.Popen[bytes]"]:
    folder.mkdir()
    command = (str(BIN / "prefect"), "worker", "start", "--pool", POOL)
    with process(
        *command, environment=api.environment(**environment), log=folder / "log", folder=folder
    ) as started:
        yield started


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A folder with one document."""
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "bridge.md").write_text(
        "# Orla Bridge\n\nOrla Bridge was designed by Tomas Reyd. It opened in 1931.\n"
    )
    return folder
