"""How long calls wait for a server.

A slow machine reads a prompt for minutes before its first word and answers one call after the
other; a dead one must not hold up a run. So silence ends a wait, and a server counts as silent only
while it writes to none of its callers.
"""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from prompts.engine.messages import Call

T = TypeVar("T")
USUAL = 120.0  # seconds, where the user has set nothing
FIRST_WORD = 600.0  # seconds, for the user's own server: as long as OpenAI's client waits
# Tokens a second of the slowest machine that is worth asking: a few billion weights on two cores.
READS, WRITES = 40.0, 1.0


class Patience:
    """The waits for one server.

    `seconds` is what the user has set for each try. `own`: the server is the user's, not a
    provider's, whose machines are fast.
    """

    def __init__(self, seconds: float | None, own: bool) -> None:
        self.seconds = seconds or USUAL
        self.heard = 0.0  # when the server last wrote to anybody
        self._own = own
        self._grows = own and seconds is None

    def first(self, call: Call, streamed: bool) -> float:
        """Seconds until the first word of a stream, or until the whole answer."""
        if not self._grows:
            return self.seconds
        return FIRST_WORD + call.tokens() / READS + (0 if streamed else call.max_tokens / WRITES)

    async def wait(
        self, work: Coroutine[Any, Any, T], call: Call, first: float, heard: list[float]
    ) -> T:
        """The result of the work; TimeoutError where the server is silent for too long.

        The work appends to `heard` the time at which each piece of the answer came.
        """
        started, task = time.monotonic(), asyncio.ensure_future(work)
        try:
            while True:
                until = started + first
                if self._own and heard:
                    self.heard = max(self.heard, heard[-1])
                    whole = heard[0] + self.seconds + call.max_tokens / WRITES
                    until = min(heard[-1] + self.seconds, whole)
                elif self._own:  # the call may stand in the server's queue
                    until = max(started, self.heard) + first
                left = until - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                if (await asyncio.wait({task}, timeout=min(left, 1.0 if self._own else left)))[0]:
                    self.heard = time.monotonic()
                    return task.result()
        finally:
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await task
