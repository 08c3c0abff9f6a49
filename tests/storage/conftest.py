"""Starts processes of the storage tests."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts an action of `tests.storage.worker`, and kills it at the end of the test."""
    started: list[subprocess.Popen[str]] = []

    def begin(action: str, root: Path, argument: str = "") -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.storage.worker", action, str(root), argument],
            cwd=Path(__file__).parents[2],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def next_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()
