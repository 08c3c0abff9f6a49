"""How does work on one answer not leave the next ones unread?"""

import asyncio
import threading
from weakref import WeakKeyDictionary


class Turns:
    """Lets one piece of work begin in each round of an event loop: between two the loop reads its sockets."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    async def next(self) -> None:
        """Returns when it is the caller's turn."""
        with self._lock:
            queue = self._queues.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with queue:
            await asyncio.sleep(0)
