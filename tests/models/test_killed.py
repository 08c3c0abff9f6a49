"""A run that is killed while many calls are on their way: what it had stored is never asked
again.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.models.running import Place
from tests.patience import wait_for
from tests.workspaces import quays, write_rows

ROOT = Path(__file__).parents[2]
WRITER = """
import asyncio, sys
from flows.index import IndexOptions, build_index
from flows.runtime import open_runtime
from flows.settings import load_settings
lm = {"lm": "openai/m", "lm_base_url": sys.argv[3], "lm_api_key": "k"}
named = {"workspace": sys.argv[1], "embedding": "none", **lm}
asyncio.run(build_index([sys.argv[2]], IndexOptions(), open_runtime(load_settings(named))))
"""
PASSAGES, ANSWERED, AT_ONCE = 96, 48, 16


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "docs.jsonl", quays(PASSAGES))


@contextmanager
def killed_at_the_end(place: Place, source: Path) -> Iterator[None]:
    """An index run in a process of its own; a `kill -9` ends it with the block, and the server has
    seen it go.
    """
    command = [
        sys.executable,
        "-c",
        WRITER,
        str(place.workspace),
        str(source),
        place.server.base_url,
    ]
    writer = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        yield
        assert writer.poll() is None, "the run ended before it was killed"
    finally:
        writer.kill()
        writer.wait()
    wait_for(lambda: place.server.stats()["in_flight"] == 0, "the end of its calls")


def test_a_killed_run_repeats_only_the_calls_that_had_no_answer(place: Place, source: Path) -> None:
    """The server keeps all answers but the first to itself: those had been stored, or their slots
    were not free.
    """
    place.server.misbehave(
        {"kind": "hang", "step": "extract", "nth": ANSWERED + 1, "times": PASSAGES, "seconds": 600}
    )
    with killed_at_the_end(place, source):
        wait_for(
            lambda: (
                place.server.stats()["in_flight"] == AT_ONCE
                and place.server.calls() == ANSWERED + AT_ONCE
            ),
            "the middle of the extraction",
        )
    assert place.server.stats()["dropped_by_client"] == AT_ONCE
    place.server.misbehave()
    report = asyncio.run(place.index(source))
    assert place.server.calls() == PASSAGES + AT_ONCE
    assert place.server.stats()["repeated"] == AT_ONCE, "only what was on its way is asked again"
    assert report.usage.by_step["extract"].cached_calls == ANSWERED
    assert report.chunks == PASSAGES
