"""Command lines, which everybody on a machine may read, show no configured key."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from flows.service.access import new_key
from tests.flows.conftest import row
from tests.patience import PATIENCE
from tests.server.client import ROOT, Server
from tests.service.test_runs import ended
from tests.service.test_serve import served
from tests.workspaces import write_rows

KEYS = {
    f"TRELLIS_{name}_API_KEY": f"sk-{name.lower()}-shown-nowhere-4711"
    for name in ("LM", "EMBEDDING", "RERANKER", "CHROMA")
}


@contextmanager
def watched_processes(mark: str) -> Iterator[set[str]]:
    """Collect the command lines of all processes that have the mark in their environment."""
    lines, done = set[str](), threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            for folder in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    if mark.encode() in (folder / "environ").read_bytes():
                        lines.add((folder / "cmdline").read_bytes().decode(errors="replace"))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield lines
    finally:
        done.set()
        watching.join()


@pytest.mark.patient
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc here")
def test_no_process_shows_a_key(
    model_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_server.settle(latency_ms=20)
    service_key, service_row = new_key("reader", "admin")
    mark = f"mark-{os.getpid()}"
    named = {"LM": "openai/m", "EMBEDDING": "openai/e", "RERANKER": "ranker"}
    settings = KEYS | {
        **{f"TRELLIS_{role}": model for role, model in named.items()},
        **{f"TRELLIS_{role}_BASE_URL": model_server.base_url for role in named},
        "TRELLIS_SERVICE_KEYS": service_row,
        "TRELLIS_WORKSPACE": str(tmp_path / "ws"),
        "MARK": mark,
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    source = write_rows(tmp_path / "docs.jsonl", map(row, range(12)))
    asked = [f"Who planned Tern Rock {number} years ago?" for number in range(10)]
    rows = [{"question": one, "answers": ["Ana Korb"]} for one in asked]
    questions = ("--questions", str(write_rows(tmp_path / "questions.jsonl", rows)))
    with watched_processes(mark) as lines:
        for command in (
            ("tune", str(source), "--force"),
            ("index", str(source)),
            ("ask", "Who planned Tern Rock?"),
            ("evaluate", *questions),
            ("train", "answer", *questions, "--by", "bootstrap", "--measure", "f1", "--use"),
        ):
            done = subprocess.run(
                [sys.executable, "-m", "flows", *command, "--json"],
                cwd=ROOT,
                check=False,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            assert done.returncode == 0, done.stdout + done.stderr
        write_rows(source, map(row, range(20)))
        headers = {"authorization": f"Bearer {service_key}"}
        with (
            served(log=tmp_path / "log") as (facts, _),
            httpx.Client(
                base_url=facts["service"], timeout=PATIENCE, trust_env=False, headers=headers
            ) as client,
        ):
            question = {"question": "Who planned Tern Rock?"}
            assert client.post("/api/v1/ask", json=question).is_success
            ended(client, client.post("/api/v1/index-runs", json={"sources": [str(source)]}).json())
    assert any("index_process" in line for line in lines), lines
    assert [line for line in lines for key in (*KEYS.values(), service_key) if key in line] == []
