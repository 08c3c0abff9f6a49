"""Four processes under one limit: `python -m tests.faults.shared_limit FOLDER [--rpm 60] [--tpm
60000]`.

Each indexes a workspace of its own on the scripted server; they share only `TRELLIS_CACHE_DIR`.
Prints one JSON object from the server's own log: calls, seconds, and the most calls and tokens
that came in within any 60 seconds.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.flows.conftest import row
from tests.server.client import ROOT, Server, serving
from tests.workspaces import write_rows

WINDOW, PROCESSES = 60.0, 4
Rows = Sequence[dict[str, Any]]


def requested(folder: Path, server: Server, rpm: int, tpm: int, documents: int) -> Rows:
    """The server's log of four processes that index so many documents each."""
    server.reset()
    settings = {
        "LM": "openai/m",
        "LM_BASE_URL": server.base_url,
        "LM_API_KEY": "k",
        "EMBEDDING": "none",
        "RPM": str(rpm),
        "TPM": str(tpm),
        "CACHE_DIR": str(folder / "shared"),
        "CONCURRENCY": "4",
    }
    environment = {**os.environ, **{f"TRELLIS_{name}": value for name, value in settings.items()}}
    started = []
    for number in range(PROCESSES):
        rows = map(row, range(number * documents, (number + 1) * documents))
        source = write_rows(folder / f"{number}.jsonl", rows)
        workspace = ("--workspace", str(folder / str(number)))
        command = [sys.executable, "-m", "flows", "index", str(source), *workspace]
        started.append(
            subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL)
        )
    assert [process.wait() for process in started] == [0] * PROCESSES
    return server.requests()


def figures(requests: Rows) -> dict[str, Any]:
    times = [one["at"] for one in requests]
    windows = [
        [one["tokens"] for one in requests if 0 <= one["at"] - start < WINDOW] for start in times
    ]
    return {
        "calls": len(requests),
        "tokens": sum(one["tokens"] for one in requests),
        "seconds": round(max(times) - min(times), 1),
        "most_calls": max(map(len, windows)),
        "most_tokens": max(map(sum, windows)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rpm", type=int, default=60)
    parser.add_argument("--tpm", type=int, default=60_000)
    parser.add_argument("--documents", type=int, default=25, help="of each process")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with serving() as server:
        found = figures(requested(given.folder, server, given.rpm, given.tpm, given.documents))
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
