"""What takes minutes to show: a schedule, and a run that is killed and found out."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from flows.orchestration.local_server import own_server
from tests.flows.recorded.conftest import BIN, POOL, ROOT, Api, free_port, process, worker
from tests.patience import PATIENCE, wait_for
from tests.server.client import serving

pytestmark = [pytest.mark.prefect, pytest.mark.patient]
PASSAGES, ANSWERED, AT_ONCE = 120, 60, 16


def publishes_second(run: dict[str, Any]) -> bool:
    message = run["state"]["message"] or ""
    return bool(message.startswith("Published generation 2 (1 added, 1 changed"))


def test_a_schedule_picks_up_changes_and_ends_with_its_owner(tmp_path: Path) -> None:
    source, port = tmp_path / "documents", str(free_port())
    source.mkdir()
    (source / "bridge.md").write_text("Orla Bridge was designed by Tomas Reyd.")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PREFECT_HOME": str(tmp_path / "home")}
    words = (str(BIN / "trellis"), "serve", str(source), "--cron", "* * * * *", "--port", port)
    api = Api(f"http://127.0.0.1:{port}/api")
    with process(*words, environment=environment, log=tmp_path / "log", folder=tmp_path) as served:
        wait_for(lambda: "Serving on" in (tmp_path / "log").read_text(), "the start")
        first = api.finished(
            wait_for(lambda: api.runs("index/index-nightly"), "the first run")[0]["id"]
        )
        assert first["state"]["message"].startswith("Published generation 1 (1 added;")
        (source / "bridge.md").write_text("Orla Bridge was designed by Tomas Reyd in 1931.")
        (source / "quay.md").write_text("The quay of Velin was built by Ana Korb.")
        # A run that begins while the one before it still works is told to wait for the next time.
        second = wait_for(
            lambda: next(filter(publishes_second, api.runs("index/index-nightly")), None),
            "a run that publishes the changes",
        )
        served.send_signal(signal.SIGKILL)
        wait_for(lambda: not api.answers(), "the end of a server whose owner was killed")
    assert first["expected_start_time"] < second["expected_start_time"]


def test_a_killed_run_is_marked_and_the_next_one_goes_on(tmp_path: Path) -> None:
    source = tmp_path / "documents"
    source.mkdir()
    for number in range(PASSAGES):
        (source / f"{number:03}.md").write_text(
            f"Quay {number} was built by Ana Korb in {1800 + number}."
        )
    with serving() as model, own_server(free_port(), tmp_path / "home") as url:
        api = Api(url)
        models = {
            "TRELLIS_LM": "openai/m",
            "TRELLIS_LM_BASE_URL": model.base_url,
            "TRELLIS_LM_API_KEY": "made-up",
        }
        for words in (
            ["prefect", "work-pool", "create", "--type", "process", POOL],
            ["trellis", "serve", "--pool", POOL],
        ):
            subprocess.run(
                [str(BIN / words[0]), *words[1:]],
                env=api.environment(**models),
                check=True,
                timeout=PATIENCE,
            )
        asked = {"source": [str(source)], "workspace": str(tmp_path / "ws")}
        # When all slots wait, all answers given before have been stored.
        later = {"nth": ANSWERED + 1, "times": PASSAGES, "seconds": 600}
        model.misbehave({"kind": "hang", "step": "extract", **later})
        with worker(api, tmp_path / "first", **models) as first:
            run = api.start("index/index-now", **asked).raise_for_status().json()["id"]
            wait_for(lambda: model.calls() >= ANSWERED + AT_ONCE, "the middle of the extraction")
            number = int(api.get(f"flow_runs/{run}")["infrastructure_pid"].rpartition(":")[2])
            for one in (first.pid, number):
                os.kill(one, signal.SIGKILL)
        wait_for(lambda: model.stats()["in_flight"] == 0, "the end of the calls")
        assert model.stats()["dropped_by_client"] == AT_ONCE
        over = api.finished(run)
        assert over["state"]["type"] == "CRASHED"
        assert "killed" in over["state"]["message"]
        model.misbehave()
        with worker(api, tmp_path / "second", **models):
            again = api.ended("index/index-now", **asked)
        assert again["state"]["message"].startswith(f"Published generation 1 ({PASSAGES} added;")
        assert model.stats()["repeated"] == AT_ONCE, "only what was on its way is asked again"
