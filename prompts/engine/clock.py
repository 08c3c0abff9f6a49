"""Where do time, waiting and chance come from? From here, so that a test need not wait."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """`now` in monotonic seconds, `sleep` for so many of them, `chance` in [0, 1)."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = random.random
