"""A run that is killed while many calls are on their way: what was answered is never asked again."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.models.running import Place, write_rows

ROOT = Path(__file__).parents[2]
WRITER = """
import asyncio, sys
from flows.indexing import IndexOptions, build_index
from flows.runtime import open_runtime
from flows.settings import load_settings
named = {"workspace": sys.argv[1], "lm": "openai/m", "lm_base_url": sys.argv[3], "lm_api_key": "k", "embedding": "none"}
asyncio.run(build_index([sys.argv[2]], IndexOptions(), open_runtime(load_settings(named))))
"""
PASSAGES, AT_ONCE = 96, 16
LATENCY = 0.25  # seconds: a killed process has long written down what came with the wave before


def wait_until(holds: Callable[[], bool], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it never came to that"
        time.sleep(0.01)


def test_a_killed_run_repeats_no_answered_call(place: Place, tmp_path: Path) -> None:
    rows = [
        {"id": f"d{i}", "title": f"Quay {i}", "text": f"Quay {i} was built by Ana Korb in {1800 + i}."}
        for i in range(PASSAGES)
    ]
    source = write_rows(tmp_path / "docs.jsonl", rows)
    server = place.server
    server.settle(latency_ms=LATENCY * 1000)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(place.workspace), str(source), server.base_url], env=environment
    )

    def is_half_done() -> bool:
        stats = server.stats()
        return bool(stats["in_flight"] == AT_ONCE and stats["calls"] - AT_ONCE >= PASSAGES / 2)

    try:
        wait_until(is_half_done)
        time.sleep(LATENCY / 5)
        writer.send_signal(signal.SIGKILL)
    finally:
        writer.kill()
        writer.wait()
    wait_until(lambda: server.stats()["in_flight"] == 0)
    before = server.stats()
    answered = before["steps"]["extract"]["calls"] - before["dropped_by_client"]
    assert PASSAGES / 2 <= answered <= PASSAGES - AT_ONCE
    assert before["dropped_by_client"] == AT_ONCE
    server.settle(latency_ms=0)
    report = asyncio.run(place.index(source))
    after = server.stats()
    assert after["steps"]["extract"]["calls"] - before["steps"]["extract"]["calls"] == PASSAGES - answered
    assert after["repeated"] == before["dropped_by_client"], "only what was on its way is asked again"
    assert report.usage.by_step["extract"].cached_calls == answered
    assert report.chunks == PASSAGES
