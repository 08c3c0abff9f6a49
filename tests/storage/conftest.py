"""How do the storage tests start a process of their own?"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Start = Callable[..., "subprocess.Popen[str]"]

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts an action of `tests.storage.worker`; whatever still runs when the test ends is
    killed.
    """
    started: list[subprocess.Popen[str]] = []

    def begin(action: str, root: Path, argument: str = "") -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.storage.worker", action, str(root), argument],
            cwd=PROJECT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
