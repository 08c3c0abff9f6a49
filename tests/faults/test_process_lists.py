"""No process of a command shows a configured key in its command line, which everybody on the
machine may read.
"""

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
def watched_processes(mark: str) -> Iterator[list[str]]:
    """The command lines of all processes with this mark in their environment that there are inside
    the block.
    """
    lines, done = list[str](), threading.Event()

    def watch() -> None:
        known = set[str]()
        while not done.wait(0.01):
            for folder in Path("/proc").iterdir():
                with suppress(OSError):
                    if (
                        folder.name.isdecimal()
                        and mark.encode() in (folder / "environ").read_bytes()
                    ):
                        known.add(
                            f"{folder.name} "
                            f"{(folder / 'cmdline').read_bytes().decode(errors='replace')}"
                        )
        lines.extend(sorted(known))

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
    server_process: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server_process.reset()
    server_process.settle(latency_ms=20)
    service_key, service_row = new_key("reader", "admin")
    workspace, mark = tmp_path / "ws", f"mark-{os.getpid()}"
    settings = KEYS | {
        "TRELLIS_LM": "openai/m",
        "TRELLIS_EMBEDDING": "openai/e",
        "TRELLIS_RERANKER": "ranker",
        **{
            f"TRELLIS_{name}_BASE_URL": server_process.base_url
            for name in ("LM", "EMBEDDING", "RERANKER")
        },
        "TRELLIS_SERVICE_KEYS": service_row,
        "TRELLIS_WORKSPACE": str(workspace),
        "MARK": mark,
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    source = write_rows(tmp_path / "docs.jsonl", [row(number) for number in range(12)])
    asked = [f"Who planned Tern Rock {number} years ago?" for number in range(10)]
    questions = write_rows(
        tmp_path / "questions.jsonl", [{"question": one, "answers": ["Ana Korb"]} for one in asked]
    )
    of = ("--questions", str(questions))
    commands = [
        ["tune", str(source), "--force"],
        ["index", str(source)],
        ["ask", "Who planned Tern Rock?"],
        ["evaluate", *of],
        ["train", "answer", *of, "--by", "bootstrap", "--measure", "f1", "--use"],
    ]
    with watched_processes(mark) as lines:
        for command in commands:
            done = subprocess.run(
                [sys.executable, "-m", "flows", *command, "--json"],
                cwd=ROOT,
                check=False,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            assert done.returncode == 0, done.stdout + done.stderr
        write_rows(source, [row(number) for number in range(20)])
        with (
            served(log=tmp_path / "log") as (facts, _),
            httpx.Client(
                base_url=facts["service"],
                timeout=PATIENCE,
                trust_env=False,
                headers={"authorization": f"Bearer {service_key}"},
            ) as client,
        ):
            assert client.post(
                "/api/v1/ask", json={"question": "Who planned Tern Rock?"}
            ).is_success
            ended(client, client.post("/api/v1/index-runs", json={"sources": [str(source)]}).json())
    assert any("index_process" in line for line in lines), lines
    assert [line for line in lines for key in (*KEYS.values(), service_key) if key in line] == []
