"""How long calls wait for a server.

A slow machine reads a prompt for minutes before its first word, and answers one call after the
other; a dead one must not hold a run. So it is silence that ends a wait, and a server is silent
only while it writes to none of its callers.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

from prompts.engine.calls import Call

USUAL = 120.0  # seconds, where nobody has set another number
FIRST_WORD = 600.0  # seconds, of a server of one's own: as long as OpenAI's and Anthropic's own clients wait
# What the slowest machine that is worth asking does in a second: a model of a few billion weights on two cores.
READS, WRITES = 40.0, 1.0  # tokens


class Patience:
    """The waits for one server. `seconds` is what the user has set for each try; `own`: it is no
    provider's, whose machines are fast."""

    def __init__(self, seconds: float | None, own: bool) -> None:
        self._seconds = seconds or USUAL
        self._grows = own and seconds is None
        self._own = own
        self._waits = WeakKeyDictionary[asyncio.AbstractEventLoop, set[Wait]]()

    def first(self, call: Call, streamed: bool) -> float:
        """Seconds until the first word of a stream, or until the whole answer. The server may have
        to read a long prompt, to load the model, and to answer other programs before."""
        if not self._grows:
            return self._seconds
        return FIRST_WORD + call.tokens() / READS + (0 if streamed else call.max_tokens / WRITES)

    @asynccontextmanager
    async def wait(self, call: Call, streamed: bool) -> AsyncIterator["Wait"]:
        """Around one try; TimeoutError where it took too long."""
        loop = asyncio.get_running_loop()
        waits = self._waits.setdefault(loop, set())
        first = self.first(call, streamed)
        async with asyncio.timeout(first) as limit:
            wait = Wait(limit, first, self._seconds, self._seconds + call.max_tokens / WRITES, waits)
            if self._own:
                waits.add(wait)
            try:
                yield wait
                wait.others_go_on()
            finally:
                waits.discard(wait)


class Wait:
    """One try: `first` seconds until its first word, then `pause` between two words and `whole` for
    all of them."""

    def __init__(self, limit: asyncio.Timeout, first: float, pause: float, whole: float, waits: "set[Wait]") -> None:
        self.first = first
        self._limit = limit
        self._pause = pause
        self._whole = whole
        self._waits = waits
        self._begun: float | None = None

    @property
    def seconds(self) -> float:
        """How long it could last from here."""
        return self.first if self._begun is None else self._pause

    @property
    def begun(self) -> bool:
        return self._begun is not None

    def heard(self) -> None:
        """A piece of the answer has come."""
        if self not in self._waits:
            return  # a provider's: bounded as a whole
        now = asyncio.get_running_loop().time()
        self._begun = self._begun or now
        self._until(min(now + self._pause, self._begun + self._whole))
        self.others_go_on()

    def others_go_on(self) -> None:
        """The server is alive: whoever waits for a first word may stand in its queue."""
        now = asyncio.get_running_loop().time()
        for wait in self._waits:
            if wait is not self and not wait.begun:
                wait._until(now + wait.first)  # noqa: SLF001 -- one of its own class

    def _until(self, when: float) -> None:
        if not self._limit.expired():
            self._limit.reschedule(when)
