"""Deployments, `trellis serve`, calls under a limit of Prefect's, and runs without a network."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.__main__ import main
from flows.orchestration.run_folder import PAGE, RECORDED
from flows.orchestration.zombie_automation import NAME, automation, end_silent_runs
from tests.flows.conftest import KEY, Command
from tests.flows.recorded.conftest import BIN, ROOT, SOON, Api, free_port, process, worker
from tests.patience import PATIENCE, wait_for
from tests.server.client import Server

pytestmark = [pytest.mark.prefect, pytest.mark.slow]
QUESTION = "Who designed Orla Bridge?"


def test_all_deployments_are_registered_as_they_are(deployed: Api) -> None:
    scheduled = deployed.deployment("index/index-nightly")
    assert [(one["schedule"]["cron"], one["active"]) for one in scheduled["schedules"]] == [
        ("0 3 * * *", False)
    ]
    assert scheduled["concurrency_options"]["collision_strategy"] == "CANCEL_NEW"
    now = deployed.deployment("index/index-now")
    assert now["concurrency_options"]["collision_strategy"] == "ENQUEUE"
    assert {one["global_concurrency_limit"]["limit"] for one in (scheduled, now)} == {1}
    query = deployed.deployment("query/ask")
    for one in (scheduled, now, query):
        assert one["tags"] == ["trellis"]
        assert one["description"]
        assert one["job_variables"]["env"] == {"PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30"}


def test_a_worker_works_and_an_automation_asks_after_it(
    deployed: Api, documents: Path, tmp_path: Path
) -> None:
    example = (ROOT / "examples/deploy/on-published.yaml").read_text()
    mine, workspace = tmp_path / "mine.yaml", str(tmp_path / "ws")
    mine.write_text(example.replace(str(UUID(int=0)), deployed.deployment("query/ask")["id"]))
    create = [str(BIN / "prefect"), "automation", "create", "--from-file", str(mine)]
    subprocess.run(create, env=deployed.environment(), check=True, timeout=PATIENCE)

    def by_the_automation() -> bool:
        expected = {"question": "What has changed?", "workspace": workspace}
        given = [run["parameters"] for run in deployed.runs("query/ask")]
        return any(expected.items() <= one.items() for one in given)

    with worker(deployed, tmp_path / "worker"):
        made = deployed.ended("index/index-now", source=[str(documents)], workspace=workspace)
        assert made["state"]["message"].startswith("Published generation 1 (1 added;")
        asked = deployed.ended("query/ask", question=QUESTION, workspace=workspace)
        assert asked["state"]["message"].startswith("excerpts, not an answer")
        assert "Tomas Reyd" in page_of(workspace, asked["id"])
        wait_for(by_the_automation, "the question that the automation asks")


def page_of(workspace: str | Path, run: str) -> str:
    """What a run has kept in its workspace for people."""
    return Path(workspace, RECORDED, run, PAGE).read_text("utf-8")


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what the command changes in its process."""
    for name in ("PREFECT_FLOWS_HEARTBEAT_FREQUENCY", "PYTHONSAFEPATH"):
        monkeypatch.setenv(name, "60")
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("signal.signal", lambda *_: before)


@pytest.fixture
def no_server() -> Iterator[None]:
    """No server is configured, whatever the tests before have started."""
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        yield


@pytest.mark.usefixtures("restored", "no_server")
def test_what_cannot_be_served_is_refused_in_words(
    api: Api, documents: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nightly = ("--cron", "0 3 * * *")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken, used = str(other.getsockname()[1]), api.ui.rpartition(":")[2]
        for words, arguments in {
            "nowhere": (str(tmp_path / "nowhere"),),
            "no SOURCE is named": nightly,
            "'every night' is no cron expression": (str(documents), "--cron", "every night"),
            "'Mars'": (str(documents), *nightly, "--timezone", "Mars"),
            "'docs' means nothing there": ("docs", "--pool", "trellis"),
            f"Port {taken} cannot be used": (str(documents), "--port", taken),
            f"PREFECT_API_URL={api.url}": (str(documents), "--port", used),
        }.items():
            workspace = () if "--pool" in arguments else ("--workspace", str(tmp_path / "ws"))
            assert main(["serve", *arguments, *workspace]) == 2
            assert words in capsys.readouterr().err
    silent = f"http://127.0.0.1:{free_port()}/api"
    for url, options, code, remedy in (
        (silent, ("--workspace", str(tmp_path / "ws")), 1, "correct PREFECT_API_URL"),
        (api.url, ("--pool", "nowhere"), 2, "prefect work-pool create --type process nowhere"),
    ):
        with temporary_settings({PREFECT_API_URL: url}):
            assert main(["serve", *options]) == code
        assert remedy in capsys.readouterr().err


@pytest.mark.usefixtures("model_server")
def test_it_serves_until_it_is_told_to_end(documents: Path, home: Path, tmp_path: Path) -> None:
    port, log = str(free_port()), tmp_path / "log"
    when = ("--cron", "0 3 * * *", "--timezone", "Europe/Berlin")
    where = ("--listen", "0", "--port", port, "--workspace", str(tmp_path / "ws"))
    words = (str(BIN / "trellis"), "serve", str(documents), *when, *where, "--json")
    api = Api(f"http://127.0.0.1:{port}/api")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PREFECT_HOME": str(home),
        "TRELLIS_EMBEDDING": "none",
        **SOON,
    }

    def served() -> Any:
        first, end, _ = log.read_text().partition("\n")
        return json.loads(first) if end else None

    with process(*words, environment=environment, log=log, folder=tmp_path) as one:
        told = wait_for(served, "the start")
        assert (told["server"], told["own"]) == (api.url, True)
        assert told["deployments"] == ["index/index-nightly", "index/index-now", "query/ask"]
        scheduled = api.deployment("index/index-nightly")
        assert scheduled["schedules"][0]["schedule"]["timezone"] == "Europe/Berlin"
        assert scheduled["parameters"] == {
            "source": [str(documents)],
            "workspace": str(tmp_path / "ws"),
        }
        assert KEY not in api.post("deployments/filter", {}).text
        assert [found["name"] for found in api.post("automations/filter", {}).json()] == [NAME]
        with httpx.Client(base_url=told["service"], timeout=PATIENCE, trust_env=False) as client:
            the_service_indexes_and_answers(client)
        run = [str(BIN / "prefect"), *"deployment run query/ask --watch --param".split()]
        asked = subprocess.run(
            [*run, f"question={QUESTION}"],
            env=api.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert asked.returncode == 0, asked.stdout + asked.stderr
        (answered,) = api.runs("query/ask")
        assert "Tomas Reyd" in page_of(tmp_path / "ws", answered["id"])
        assert one.poll() is None
        one.send_signal(signal.SIGTERM)
        assert one.wait(timeout=PATIENCE) == 0
    assert not api.answers()
    assert "All deployments have been paused" in log.read_text()


def the_service_indexes_and_answers(client: httpx.Client) -> None:
    begun = client.post("/api/v1/index-runs", json={}).raise_for_status().json()
    done = wait_for(
        lambda: client.get(f"/api/v1/index-runs/{begun['id']}").json()["report"], "its report"
    )
    assert (done["generation"], done["documents"]["added"]) == (1, 1)
    assert "Tomas Reyd" in client.post("/api/v1/ask", json={"question": QUESTION}).json()["answer"]


@pytest.mark.usefixtures("api")
def test_an_automation_that_was_switched_off_stays_off() -> None:
    async def made() -> list[bool]:
        async with get_client() as client:
            await end_silent_runs(client)
            for one in await client.read_automations_by_name(NAME):
                await client.update_automation(
                    one.id, automation().model_copy(update={"enabled": False})
                )
            await end_silent_runs(client)
            return [one.enabled for one in await client.read_automations_by_name(NAME)]

    assert asyncio.run(made()) == [False]


CUT_OFF = (
    *"unshare --user --map-root-user --net sh -c".split(),
    'ip link set lo up && exec "$@"',
    "sh",
)
TRACE = "strace -f --seccomp-bpf -e trace=connect,sendto,sendmsg,sendmmsg -o".split()
BOTH = """
import asyncio, sys
from flows.index import index
from flows.query import query
async def both():
    await index(sys.argv[1], workspace=sys.argv[2])
    return await query("Who designed Orla Bridge?", workspace=sys.argv[2])
print(asyncio.run(both()).answer)
"""
# An address as strace writes it.
ADDRESS = re.compile(r'(?:inet_addr\("|inet_pton\(AF_INET6, ")([^"]+)')


def test_recorded_runs_try_no_network(documents: Path, home: Path, tmp_path: Path) -> None:
    if missing := [tool for tool in ("unshare", "ip", "strace") if not shutil.which(tool)]:
        pytest.skip(f"not installed: {', '.join(missing)} (util-linux iproute2 strace)")
    probe = [*CUT_OFF, "strace", "-o", os.devnull, "true"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody make a network of its own, or trace a process")
    log = tmp_path / "calls"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    }
    traced = [*CUT_OFF, *TRACE, str(log), sys.executable, "-c", BOTH]
    done = subprocess.run(
        [*traced, str(documents), str(tmp_path / "ws")],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert "Tomas Reyd" in done.stdout
    assert set(ADDRESS.findall(log.read_text(errors="replace"))) == {"127.0.0.1"}


def test_each_call_takes_a_slot_of_the_named_limit(
    api: Api, documents: Path, fresh: Command, model_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_PREFECT_LIMIT", "calls")
    refused = fresh("index", str(documents))
    assert refused.code == 1, refused.err
    assert "prefect gcl create calls" in refused.err
    made = {"name": "calls", "limit": 1000, "slot_decay_per_second": 0.0001}
    api.post("v2/concurrency_limits/", made).raise_for_status()
    done = fresh("index", str(documents))
    assert done.code == 0, done.err
    calls = sum(row["calls"] for row in model_server.stats()["steps"].values())
    assert calls > 0
    assert api.get("v2/concurrency_limits/calls")["active_slots"] == calls
