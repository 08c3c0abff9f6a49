"""Index runs of the service: uploads are indexed, forgotten and cancelled, and questions go on
meanwhile.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx

from flows.runtime import open_runtime
from flows.settings import load_settings
from tests.patience import PATIENCE
from tests.service.conftest import QUESTION, Start, client_of
from tests.workspaces import write_rows

ROOT = Path(__file__).resolve().parents[2]
LETTER = "Quillon Tower was designed by Peta Lorne in 1999."


def ended(client: httpx.Client, run: dict[str, Any]) -> dict[str, Any]:
    """A run when it is over."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        now: dict[str, Any] = client.get(f"/api/v1/index-runs/{run['id']}").json()
        if now["finished"]:
            return now
        time.sleep(0.05)
    raise AssertionError(f"the run goes on: {now}")


def test_what_is_uploaded_is_answered_from_until_it_is_forgotten(
    start: Start, workspace: Path
) -> None:
    client = start()
    run = client.put("/api/v1/documents/towers/quillo\u0301n.txt", content=LETTER.encode()).json()
    assert (run["workspace"], run["sources"]) == ("default", [str(workspace / "uploads")])
    over = ended(client, run)
    assert (over["state"], over["report"]["generation"], over["error"]) == ("completed", 2, None)
    assert over["report"]["documents"]["added"] == 1
    assert client.get("/api/v1/index-runs").json() == [over]
    asked = {"question": "Who designed Quillon Tower?"}
    answer = client.post("/api/v1/ask", json=asked).json()
    assert ("Peta Lorne" in answer["answer"], answer["generation"]) == (True, 2)
    named = "/api/v1/documents/towers/quill\u00f3n.txt"  # the accent is one sign here
    assert "Peta Lorne" in client.get(named).json()["text"]
    report = client.delete(named).json()
    assert (report["generation"], report["held"]) == (3, [])
    assert not list((workspace / "uploads").rglob("*.txt"))
    assert "Peta Lorne" not in client.post("/api/v1/ask", json=asked).text
    assert [row["number"] for row in client.get("/api/v1/generations").json()] == [1, 3]
    text = LETTER.encode()
    assert not [
        path for path in workspace.rglob("*") if path.is_file() and text in path.read_bytes()
    ]


def test_a_run_that_fails_says_why(start: Start, tmp_path: Path) -> None:
    client = start()
    assert (
        client.post("/api/v1/index-runs", json={}).json()["error"]["message"]
        == "There is nothing to index."
    )
    missing = {"sources": [str(tmp_path / "none")]}
    over = ended(client, client.post("/api/v1/index-runs", json=missing).json())
    assert (over["state"], over["error"]["type"]) == ("failed", "SourceNotFound")
    assert client.get("/api/v1/index-runs/run_none").status_code == 404


def test_a_run_is_cancelled_without_a_trace(start: Start, workspace: Path) -> None:
    client = start()
    for number in range(3):
        client.put(
            f"/api/v1/documents/{number}.txt?index=false",
            content=LETTER.replace("Q", str(number)).encode(),
        )
    first, second = (client.post("/api/v1/index-runs", json={}).json() for _ in range(2))
    assert (
        client.delete(f"/api/v1/index-runs/{second['id']}").json()["state"] == "cancelled"
    )  # it waits for the first
    state = client.delete(f"/api/v1/index-runs/{first['id']}").json()[
        "state"
    ]  # it may be done before it is told
    numbers = [row["number"] for row in client.get("/api/v1/generations").json()]
    assert (state, numbers) in [("cancelled", [1]), ("completed", [1, 2])]
    assert ended(client, client.post("/api/v1/index-runs", json={}).json())["state"] == "completed"


def test_questions_go_on_while_runs_publish(start: Start) -> None:
    client, over = start(), threading.Event()
    seen: list[dict[str, Any]] = []

    def ask() -> None:
        while not over.is_set():
            seen.append(client.post("/api/v1/ask", json={"question": QUESTION}).json())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(2):
        # The bridge gets another designer with each generation, so an answer tells which it is
        # from.
        words = f"Orla Bridge was designed by Designer Number{number}."
        run = client.put("/api/v1/documents/bridge.txt", content=words.encode()).json()
        assert ended(client, run)["state"] == "completed"
    over.set()
    for thread in threads:
        thread.join()
    assert all("error" not in answer for answer in seen)
    last = client.post("/api/v1/ask", json={"question": QUESTION}).json()
    assert last["generation"] == 3
    texts = {1: "", 2: "Number0", 3: "Number1"}
    for answer in [*seen, last]:
        named = {
            word
            for word in ("Number0", "Number1")
            if any(word in row["text"] for row in answer["passages"])
        }
        assert named <= {texts[answer["generation"]]}, answer["generation"]


def test_a_run_ends_with_the_service(workspace: Path) -> None:
    with client_of(workspace) as client:
        run = client.put("/api/v1/documents/a.txt", content=LETTER.encode()).json()
        while client.get(f"/api/v1/index-runs/{run['id']}").json()["state"] == "waiting":
            time.sleep(0.02)
    stored = open_runtime(load_settings({"workspace": workspace})).workspace
    with stored.write():  # nobody else writes
        assert stored.current() in {1, 2}  # it may have published before the service ended


def test_a_run_that_is_told_to_end_says_nothing(workspace: Path, tmp_path: Path) -> None:
    source = write_rows(
        tmp_path / "rows.jsonl", [{"id": str(i), "text": f"{LETTER} {i}"} for i in range(200)]
    )
    command = [sys.executable, "-P", "-m", "flows.service.index_process"]
    order = {
        "run": "run_1",
        "workspace": str(workspace),
        "full": False,
        "allow_removals": False,
        "remake": False,
    }
    with subprocess.Popen(
        command,
        cwd=ROOT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps({**order, "sources": [str(source)]}) + "\n")
        process.stdin.close()  # at once, before it listens
        rest = process.stdout.read()
        assert process.stderr.read() == ""
    assert process.returncode == (0 if "report" in rest else 130)
