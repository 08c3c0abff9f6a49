"""Processes beside each other: one limit for four of them, and edits by hand while another one indexes."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.shared_limit import WINDOW, figures, requested
from tests.flows.conftest import Command
from tests.flows.test_editing import ROWS, names
from tests.patience import wait_for
from tests.server.client import ROOT, Server
from tests.workspaces import write_rows

EDITS = {
    "merge": ("merge", "Ada Korb", "Captain Vell"),
    "split": ("split", "Velin", "--documents", "c"),
    "edit": ("edit", "Ida Moss", "--kind", "captain"),
}


@pytest.mark.patient
@pytest.mark.parametrize(("rpm", "tpm"), [(30, 10**6), (10**4, 40_000)], ids=["requests", "tokens"])
def test_four_processes_keep_one_limit(rpm: int, tpm: int, model_server: Server, tmp_path: Path) -> None:
    requests = requested(tmp_path, model_server, rpm, tpm, 24)
    found = figures(requests)
    assert found["seconds"] > WINDOW, "more than one window was needed"
    # Whatever the machine's load: a call comes in after it was counted, so never more have come than windows allow.
    first = min(one["at"] for one in requests)
    for one in requests:
        windows = 1 + (one["at"] - first) // WINDOW
        before = [other for other in requests if other["at"] <= one["at"]]
        assert len(before) <= rpm * (windows + 1)
        assert sum(other["tokens"] for other in before) <= tpm * (windows + 1)


def test_edits_beside_an_index_run_are_refused_in_words_or_kept(
    model_server: Server, fresh: Command, tmp_path: Path
) -> None:
    source = write_rows(tmp_path / "docs.jsonl", ROWS)
    assert fresh("index", str(source)).code == 0
    write_rows(source, [*ROWS, {"id": "d", "title": "More", "text": "Captain Vell met Ida Moss in Holm Light."}])
    model_server.settle(latency_ms=2_000)
    command = [sys.executable, "-m", "flows", "index", str(source), "--workspace", str(fresh.workspace)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as running:
        wait_for(lambda: model_server.stats()["in_flight"], "its first call")
        running.send_signal(signal.SIGSTOP)
        for edit in EDITS.values():
            refused = fresh("graph", *edit)
            assert refused.code == 4
            assert "is being written by process" in refused.err
            assert "Traceback" not in refused.err
        assert fresh("graph", "edits", "--json").json == []
        running.send_signal(signal.SIGCONT)
        model_server.settle(latency_ms=0)
        tried = dict.fromkeys(EDITS, 0)
        for name, edit in EDITS.items():  # while it goes on, and after: each is kept as soon as it is not refused
            while (done := fresh("graph", *edit)).code == 4:
                tried[name] += 1
            assert done.code == 0, done.err
    assert running.returncode == 0
    assert fresh("index", str(source), "--full").code == 0
    assert [edit["action"] for edit in fresh("graph", "edits", "--json").json] == ["merge", "split", "change"]
    assert names(fresh("graph", "Captain Vell", "--json")) == {"Ada Korb", "Captain Vell"}
    assert len(fresh("graph", "Velin", "--json").json["entities"]) == 2
    assert {one["kind"] for one in fresh("graph", "Ida Moss", "--json").json["entities"]} == {"captain"}
    assert fresh("status", "--json").json["counts"]["documents"] == len(ROWS) + 1
