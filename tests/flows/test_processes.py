"""Several processes on one workspace: readers while a run publishes, and a run that is killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flows.index import IndexOptions, build_index
from flows.runtime import open_runtime
from flows.settings import load_settings
from storage.run_records import IndexReport
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
READER = """
import json, sys, time
from pathlib import Path
from flows.query import ask
last = False
while not last:
    last = Path(sys.argv[2]).exists()
    answer = ask("How long is Orla Bridge?", workspace=sys.argv[1])
    print(json.dumps([answer.generation, answer.values, [c.quote for c in answer.citations]]), flush=True)
    time.sleep(0.1)
"""
WRITER = """
import asyncio, sys
from flows.index import IndexOptions, build_index
from flows.runtime import open_runtime
from flows.settings import load_settings
def said(step, done, total):
    print(step, done, flush=True)
runtime = open_runtime(load_settings({"workspace": sys.argv[1], "embedding": "none"}), said)
report = asyncio.run(build_index([sys.argv[2]], IndexOptions(), runtime))
print("published", report.generation, flush=True)
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "TRELLIS_EMBEDDING": "none"}


def write(source: Path, metres: int, others: int = 0) -> None:
    rows = [{"id": "bridge", "title": "Orla Bridge", "text": f"Orla Bridge is {metres} metres long."}]
    rows += [
        {"id": f"d{i}", "title": f"Quay {i}", "text": f"Quay {i} of Velin was built by Ana Korb. " * 10}
        for i in range(others)
    ]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


async def publish(workspace: Path, source: Path) -> IndexReport:
    runtime = open_runtime(load_settings({"workspace": workspace, "embedding": "none"}))
    return await build_index([source], IndexOptions(), runtime)


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    )


@pytest.mark.slow
async def test_two_processes_ask_while_runs_publish_and_one_is_killed(tmp_path: Path) -> None:
    workspace, source, stop = tmp_path / "ws", tmp_path / "docs.jsonl", tmp_path / "stop"
    write(source, 1000)
    metres = {(await publish(workspace, source)).generation: 1000}
    readers = [start(READER, workspace, stop) for _ in range(2)]
    first = []
    for reader in readers:
        assert reader.stdout is not None
        first.append(reader.stdout.readline())
    write(source, 1001)
    metres[(await publish(workspace, source)).generation] = 1001
    write(source, 2000, others=150)
    writer = start(WRITER, workspace, source)
    assert writer.stdout is not None
    assert writer.stdout.readline().startswith("extract"), "the run should be in the middle of extraction"
    writer.send_signal(signal.SIGKILL)
    writer.wait(timeout=PATIENCE)
    after = await publish(workspace, source)
    assert (after.documents.added, after.documents.changed, after.generation in metres) == (150, 1, False)
    metres[after.generation] = 2000
    stop.touch()
    for reader, line in zip(readers, first, strict=True):
        said, _ = reader.communicate(timeout=PATIENCE)
        answers = [json.loads(line) for line in (line + said).splitlines()]
        assert reader.returncode == 0
        assert len({generation for generation, _, _ in answers}) >= 2, "the reader never moved to a newer generation"
        for generation, values, quotes in answers:
            assert values == []
            assert f"Orla Bridge is {metres[generation]} metres long." in quotes
