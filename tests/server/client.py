"""Starts the scripted model server for a test or a benchmark, steers it and reads its counters."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Server:
    """A running server. `url` is its root, `base_url` ends in `/v1`."""

    url: str
    base_url: str
    client: httpx.Client

    def misbehave(self, *rules: Mapping[str, object]) -> None:
        """Replace the rules in force: `misbehave({"kind": "quota", "nth": 2})`."""
        self._ask("POST", "/misbehave", list(rules))

    def reset(self) -> None:
        """Zero the counters, forget bodies and rules; latency stays."""
        self._ask("POST", "/reset", {})

    def settle(self, **settings: float) -> None:
        """Set `latency_ms`, the time from a request to its answer."""
        self._ask("POST", "/settings", settings)

    def stats(self) -> dict[str, Any]:
        """The counters of `Ledger.stats`."""
        found: dict[str, Any] = self._ask("GET", "/stats")
        return found

    def calls(self, step: str = "extract") -> int:
        """How often a step was asked."""
        return int(self.stats()["steps"].get(step, {}).get("calls", 0))

    def requests(self) -> list[dict[str, Any]]:
        """The last requests, oldest first: see `Ledger.arrive`."""
        found: list[dict[str, Any]] = self._ask("GET", "/requests")
        return found

    def sent(self, step: str) -> list[list[dict[str, str]]]:
        """The messages of each request of a step."""
        return [it["body"]["messages"] for it in self.requests() if it["step"] == step]

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        response = self.client.request(method, path, json=body, timeout=PATIENCE)
        if not response.is_success:
            raise ValueError(f"{method} {path}: {response.text}")
        return response.json()


@contextmanager
def serving() -> Iterator[Server]:
    """A server in a process of its own, which ends with the block or this process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.server", "--until-stdin-closes"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server ended with {process.wait()}; its output says why")
        address = json.loads(line)
        with httpx.Client(base_url=address["url"], trust_env=False) as client:
            yield Server(address["url"], address["base_url"], client)
    finally:
        process.stdin.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
