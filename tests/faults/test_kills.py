"""kill -9 at named points of an index run, without a model and with one: readers go on, and the
next run gives what an undisturbed one gives.
"""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from flows.index import IndexOptions, build_index
from flows.runtime import Runtime, open_runtime
from storage.export import Export, export
from tests.copying import copy_of
from tests.faults.run_killed import CALLS, PUT_IN_PLACE
from tests.flows.conftest import row
from tests.server.client import ROOT, Server
from tests.settings import load_settings
from tests.workspaces import write_rows

STEPS = (
    "load",
    "sync",
    "chunk",
    "extract",
    "dedupe",
    "summarize",
    "detect-communities",
    "report",
    "embed",
    "publish",
)
POINTS = [
    *(f"{step} {at}" for step in (*STEPS, *CALLS) for at in ("begins", "ends")),
    *PUT_IN_PLACE,
    # The other steps store nothing of these documents.
    *(f"{step} middle" for step in STEPS if step not in {"load", "summarize"}),
]
QUICK = {
    "offline": {"extract ends", "report begins", "manifest.json", "CURRENT"},
    "model": {"extract ends"},
}
CASES = [
    pytest.param(kind, point, marks=() if point in quick else pytest.mark.patient)
    for kind, quick in QUICK.items()
    for point in POINTS
]


class Place(NamedTuple):
    """A workspace with one generation, the next source, and both graphs."""

    workspace: Path
    source: Path
    before: Export
    after: Export


def runtime_of(workspace: Path, server: str = "") -> Runtime:
    model = {"lm": "openai/m", "lm_base_url": server, "lm_api_key": "k"} if server else {}
    return open_runtime(
        load_settings({"workspace": workspace, "vector_store": "chroma", **model}, {})
    )


def index(workspace: Path, source: Path, server: str) -> None:
    asyncio.run(build_index([source], IndexOptions(full=True), runtime_of(workspace, server)))


def graph_of(workspace: Path) -> tuple[int, Export]:
    with runtime_of(workspace).workspace.read() as generation:
        return generation.number, export(generation)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory, server_process: Server) -> dict[str, Place]:
    made = {}
    for kind in QUICK:
        folder = tmp_path_factory.mktemp(kind)
        server_process.reset()
        server = server_process.base_url if kind == "model" else ""
        source = write_rows(folder / "docs.jsonl", map(row, range(6)))
        index(folder / "ws", source, server)
        before = graph_of(folder / "ws")[1]
        write_rows(source, map(row, range(9)))
        undisturbed = copy_of(folder / "ws", folder / "undisturbed")
        index(undisturbed, source, server)
        made[kind] = Place(folder / "ws", source, before, graph_of(undisturbed)[1])
    return made


@pytest.mark.parametrize(("kind", "point"), CASES)
def test_a_kill_loses_nothing(
    kind: str, point: str, places: dict[str, Place], tmp_path: Path, server_process: Server
) -> None:
    indexed, source, before, after = places[kind]
    server = server_process.base_url if kind == "model" else ""
    server_process.reset()
    workspace = copy_of(indexed, tmp_path / "ws")
    step, _, at = point.rpartition(" ") if " " in point else (point, "", "")
    given = (workspace, source, server, step, at.removesuffix("ends"))
    command = [sys.executable, "-m", "tests.faults.run_killed", *map(str, given)]
    ended = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT, check=False
    )
    assert ended.returncode == -signal.SIGKILL, "the run comes to this point"
    number, graph = graph_of(workspace)
    assert graph == (after if number == 2 else before), "readers see one whole generation"
    index(workspace, source, server)
    assert graph_of(workspace)[1] == after
    assert list((workspace / "staging").iterdir()) == []
