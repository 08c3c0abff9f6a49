"""Index runs of the service: uploads are indexed, forgotten and cancelled while questions go on."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from flows.runtime import open_runtime
from flows.service.runs import IndexRuns, RunRequest
from flows.settings import load_settings
from prompts.engine.errors import ModelUnavailable
from tests.patience import wait_for
from tests.service.conftest import ASK, ASKED, DOCUMENTS, Start, client_of
from tests.workspaces import write_rows

ROOT = Path(__file__).resolve().parents[2]
RUNS = "/api/v1/index-runs"
LETTER = "Quillon Tower was designed by Peta Lorne in 1999."


def run_of(client: httpx.Client, run: dict[str, Any]) -> dict[str, Any]:
    now: dict[str, Any] = client.get(f"{RUNS}/{run['id']}").json()
    return now


def ended(client: httpx.Client, run: dict[str, Any]) -> dict[str, Any]:
    """A run when it is over."""
    wait_for(lambda: run_of(client, run)["finished"], "the end of the run")
    return run_of(client, run)


def test_an_upload_is_answered_from_until_it_is_forgotten(start: Start, workspace: Path) -> None:
    client = start()
    run = client.put(f"{DOCUMENTS}/towers/quillo\u0301n.txt", content=LETTER.encode()).json()
    assert (run["workspace"], run["sources"]) == ("default", [str(workspace / "uploads")])
    over = ended(client, run)
    assert (over["state"], over["report"]["generation"], over["error"]) == ("completed", 2, None)
    assert over["report"]["documents"]["added"] == 1
    assert client.get(RUNS).json() == [over]
    asked = {"question": "Who designed Quillon Tower?"}
    answer = client.post(ASK, json=asked).json()
    assert ("Peta Lorne" in answer["answer"], answer["generation"]) == (True, 2)
    named = f"{DOCUMENTS}/towers/quill\u00f3n.txt"  # another spelling of the same name
    assert "Peta Lorne" in client.get(named).json()["text"]
    report = client.delete(named).json()
    assert (report["generation"], report["held"]) == (3, [])
    assert not list((workspace / "uploads").rglob("*.txt"))
    assert "Peta Lorne" not in client.post(ASK, json=asked).text
    assert [row["number"] for row in client.get("/api/v1/generations").json()] == [1, 3]
    files = [path for path in workspace.rglob("*") if path.is_file()]
    assert not [path for path in files if LETTER.encode() in path.read_bytes()]


def test_a_run_that_fails_says_why(start: Start, tmp_path: Path) -> None:
    client = start()
    nothing = client.post(RUNS, json={}).json()["error"]
    assert nothing["message"] == "There is nothing to index."
    missing = {"sources": [str(tmp_path / "none")]}
    over = ended(client, client.post(RUNS, json=missing).json())
    assert (over["state"], over["error"]["type"]) == ("failed", "SourceNotFound")


async def test_what_is_published_and_cannot_be_opened_is_told(
    workspace: Path, tmp_path: Path
) -> None:
    async def opened(_: str) -> None:
        raise ModelUnavailable("The embedding server is away.", "Start it.")

    runs = IndexRuns(opened)
    source = write_rows(tmp_path / "rows.jsonl", [{"id": "tower", "text": LETTER}])
    begun = runs.start("default", workspace, RunRequest(sources=(str(source),)))
    await asyncio.to_thread(wait_for, lambda: runs.get(begun.id).finished, "the end of the run")
    over = runs.get(begun.id)
    assert (over.state, over.error) == (
        "completed",
        {
            "type": "ModelUnavailable",
            "message": "The embedding server is away.",
            "remedy": "Start it.",
        },
    )
    assert over.report is not None
    assert open_runtime(load_settings({"workspace": workspace})).workspace.current() == 2


async def test_a_fault_of_the_program_is_in_the_log(
    workspace: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def opened(_: str) -> None:
        raise ZeroDivisionError

    runs = IndexRuns(opened)
    source = write_rows(tmp_path / "rows.jsonl", [{"id": "tower", "text": LETTER}])
    begun = runs.start("default", workspace, RunRequest(sources=(str(source),)))
    await asyncio.to_thread(wait_for, lambda: runs.get(begun.id).finished, "the end of the run")
    assert (runs.get(begun.id).error or {})["message"] == "The service failed at this."
    assert "ZeroDivisionError" in caplog.text


def test_a_run_is_cancelled_without_a_trace(start: Start) -> None:
    client = start()
    for number in range(3):
        text = LETTER.replace("Q", str(number))
        client.put(f"{DOCUMENTS}/{number}.txt?index=false", content=text.encode())
    first, second = (client.post(RUNS, json={}).json() for _ in range(2))
    waiting = client.delete(f"{RUNS}/{second['id']}").json()
    assert waiting["state"] == "cancelled"
    state = client.delete(f"{RUNS}/{first['id']}").json()["state"]
    numbers = [row["number"] for row in client.get("/api/v1/generations").json()]
    # It may have published before it was cancelled.
    assert (state, numbers) in [("cancelled", [1]), ("completed", [1, 2])]
    assert ended(client, client.post(RUNS, json={}).json())["state"] == "completed"


def test_questions_go_on_while_runs_publish(start: Start) -> None:
    client, over = start(), threading.Event()
    answers: list[dict[str, Any]] = []

    def ask() -> None:
        while not over.is_set():
            answers.append(client.post(ASK, json=ASKED).json())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(2):
        # The designer changes with each generation, so a passage tells its generation.
        words = f"Orla Bridge was designed by Designer Number{number}."
        run = client.put(f"{DOCUMENTS}/bridge.txt", content=words.encode()).json()
        assert ended(client, run)["state"] == "completed"
    over.set()
    for thread in threads:
        thread.join()
    last = client.post(ASK, json=ASKED).json()
    assert last["generation"] == 3
    allowed = {1: set[str](), 2: {"Number0"}, 3: {"Number1"}}
    for answer in [*answers, last]:
        assert "error" not in answer
        text = " ".join(row["text"] for row in answer["passages"])
        named = {word for word in ("Number0", "Number1") if word in text}
        assert named <= allowed[answer["generation"]]


def test_a_run_ends_with_the_service(workspace: Path) -> None:
    with client_of(workspace) as client:
        run = client.put(f"{DOCUMENTS}/a.txt", content=LETTER.encode()).json()
        wait_for(lambda: run_of(client, run)["state"] != "waiting", "the start of the run")
    stored = open_runtime(load_settings({"workspace": workspace})).workspace
    with stored.write():  # nobody else writes
        assert stored.current() in {1, 2}  # It may have published before the service ended.


def test_a_run_whose_input_is_closed_ends_silently(workspace: Path, tmp_path: Path) -> None:
    rows = [{"id": str(number), "text": f"{LETTER} {number}"} for number in range(200)]
    source = write_rows(tmp_path / "rows.jsonl", rows)
    order: dict[str, object] = {
        "run": "run_1",
        "workspace": str(workspace),
        "sources": [str(source)],
    }
    order |= dict.fromkeys(("full", "allow_removals", "remake"), False)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "flows.service.index_process"],
        cwd=ROOT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input=json.dumps(order) + "\n",  # closed at once, before the run begins
        capture_output=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == (0 if "report" in done.stdout else 130)
