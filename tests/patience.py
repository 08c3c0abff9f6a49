"""How long a test waits for what must happen: long, since none may depend on how fast or busy the machine is."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

PATIENCE = 1_200.0  # seconds
PAUSE = 0.1


def wait_for(holds: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """The first true value of `holds`."""
    until = time.monotonic() + seconds
    while not (found := holds()):
        if time.monotonic() > until:
            pytest.fail(f"not within {seconds:.0f} s: {what}")
        time.sleep(PAUSE)
    return found


async def waited_for(holds: Callable[[], Awaitable[Any]], what: str, seconds: float = PATIENCE) -> Any:
    """The same, while the loop does other work."""
    async with asyncio.timeout(seconds):
        while not (found := await holds()):  # noqa: ASYNC110 -- it happens elsewhere
            await asyncio.sleep(PAUSE)
    return found
