"""A run that is killed while many calls are under way: what it has stored is never asked again."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from tests.models.running import Place
from tests.patience import wait_for
from tests.server.client import ROOT
from tests.workspaces import quays, write_rows

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


def test_a_killed_run_repeats_only_calls_without_an_answer(place: Place, tmp_path: Path) -> None:
    """The server keeps all but the first answers to itself."""
    source, server = write_rows(tmp_path / "docs.jsonl", quays(PASSAGES)), place.server
    late = {"nth": ANSWERED + 1, "times": PASSAGES, "seconds": 600}
    server.misbehave({"kind": "hang", "step": "extract", **late})
    arguments = [str(place.workspace), str(source), server.base_url]
    command = [sys.executable, "-c", WRITER, *arguments]
    writer = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)})

    def is_in_the_middle() -> bool:
        in_flight = server.stats()["in_flight"]
        return bool(in_flight == AT_ONCE and server.calls() == ANSWERED + AT_ONCE)

    try:
        wait_for(is_in_the_middle, "the middle of the extraction")
        assert writer.poll() is None, "the run ended before it was killed"
    finally:
        writer.kill()
        writer.wait()
    wait_for(lambda: server.stats()["in_flight"] == 0, "the end of its calls")
    assert server.stats()["dropped_by_client"] == AT_ONCE
    server.misbehave()
    report = asyncio.run(place.index(source))
    assert server.calls() == PASSAGES + AT_ONCE
    assert server.stats()["repeated"] == AT_ONCE, "only what was under way is asked again"
    assert report.usage.by_step["extract"].cached_calls == ANSWERED
    assert report.chunks == PASSAGES
