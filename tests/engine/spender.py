"""A process that calls a server as fast as the shared budget lets it: `BASE_URL FOLDER RPM WINDOW SECONDS`.

Prints "ready" once it has called the server outside the budget (the first call is a slow one), begins with a line on
standard input, and prints how many calls were answered.
"""

import asyncio
import contextlib
import itertools
import os
import sys
import time
from pathlib import Path

from prompts.engine.models import CallSettings, ModelChoice, Models, Role
from prompts.extract import Extract
from storage.budget import SCHEMA, CallBudget
from storage.sqlite import SideDatabase


async def spend(base_url: str, folder: Path, rpm: int, window: float, seconds: float) -> int:
    """Eight calls at once until the time is up; how many were answered."""
    choices: dict[Role, ModelChoice | None] = {"extract": ModelChoice("openai/scripted", base_url, "made-up")}
    await Extract(Models(choices)).run("Quay", f"Quay {os.getpid()} warms up.")
    print("ready", flush=True)  # noqa: T201 -- the test reads it
    sys.stdin.readline()
    database = SideDatabase(folder / "limits.sqlite", SCHEMA)
    models = Models(
        choices,
        calls=CallSettings(concurrency=8, rpm=rpm),
        rate_limiter_of=lambda server: CallBudget(database, server, rpm, None, window=window),
    )
    extract = Extract(models)
    until, numbers, answered = time.monotonic() + seconds, itertools.count(), 0

    async def ask() -> None:
        nonlocal answered
        while time.monotonic() < until:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(until - time.monotonic()):
                    await extract.run("Quay", f"Quay {os.getpid()} {next(numbers)} was built by Ana Korb.")
                    answered += 1

    await asyncio.gather(*(ask() for _ in range(8)))
    await models.aclose()
    return answered


if __name__ == "__main__":
    url, folder, rpm, window, seconds = sys.argv[1:]
    print(asyncio.run(spend(url, Path(folder), int(rpm), float(window), float(seconds))))  # noqa: T201
