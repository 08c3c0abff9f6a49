"""Several processes on one workspace: readers while a run publishes, and a run that is killed."""

import json
import os
import subprocess
import sys
from pathlib import Path

from flows.index import IndexOptions, build_index
from flows.runtime import open_runtime
from flows.settings import load_settings
from storage.run_records import IndexReport
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
READER = """
import json, sys
from pathlib import Path
from flows.query import ask
last = False
while not last:
    last = Path(sys.argv[2]).exists()
    answer = ask("How long is Orla Bridge?", workspace=sys.argv[1])
    print(json.dumps([answer.generation, answer.values, [c.quote for c in answer.citations]]), flush=True)
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "TRELLIS_EMBEDDING": "none"}


def write(source: Path, metres: int, others: int = 0) -> None:
    rows = [{"id": "bridge", "title": "Orla Bridge", "text": f"Orla Bridge is {metres} metres long."}]
    rows += [
        {"id": f"d{i}", "title": f"Quay {i}", "text": f"Quay {i} of Velin was built by Ana Korb. " * 40}
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


async def test_two_processes_ask_while_runs_publish(tmp_path: Path) -> None:
    workspace, source = tmp_path / "ws", tmp_path / "docs.jsonl"
    write(source, 1000)
    metres = {(await publish(workspace, source)).generation: 1000}
    stop = tmp_path / "stop"
    readers = [start(READER, workspace, stop) for _ in range(2)]
    first = []
    for reader in readers:
        assert reader.stdout is not None
        first.append(reader.stdout.readline())
    for step in range(1, 4):
        write(source, 1000 + step)
        metres[(await publish(workspace, source)).generation] = 1000 + step
    stop.touch()
    for reader, line in zip(readers, first, strict=True):
        said, _ = reader.communicate(timeout=PATIENCE)
        answers = [json.loads(line) for line in (line + said).splitlines()]
        assert reader.returncode == 0
        assert len({generation for generation, _, _ in answers}) >= 2, "the reader never moved to a newer generation"
        for generation, values, quotes in answers:
            assert values == []
            assert f"Orla Bridge is {metres[generation]} metres long." in quotes
