"""May a call that failed be tried again, and when?"""

from prompts.engine.clock import Clock
from prompts.engine.faults import Failure
from prompts.engine.limits import Limits

LONGEST_WAIT = 60.0  # seconds
_FIRST_WAIT = 0.5
_MOST_ADAPTED = 6  # more than there is to leave out of a request


class Tries:
    """The tries of one call to a server; at most `most` of them fail."""

    def __init__(self, most: int, limits: Limits, clock: Clock) -> None:
        self._most = most
        self._limits = limits
        self._clock = clock
        self._failed = 0
        self._adapted = 0

    async def after(self, failure: Failure) -> None:
        """Returns when the call is to be tried again; raises the failure's error where it is not."""
        if failure.adapted and self._adapted < _MOST_ADAPTED:
            self._adapted += 1
            return
        self._failed += 1
        if not failure.retryable:
            raise failure.error from failure
        if self._failed == self._most:
            error = failure.error
            raise type(error)(f"{error.message} (after {self._failed} attempts)", error.remedy) from failure
        if failure.wait is not None:
            # All calls wait that long: they would be refused as well.
            self._limits.pause(min(failure.wait, LONGEST_WAIT))
        await self._clock.sleep(self._backoff(failure.wait))

    def _backoff(self, asked: float | None) -> float:
        """Seconds: what the server asks for and a tenth more by chance, else doubling with jitter; a minute at most."""
        chance = self._clock.chance()
        if asked is not None:
            return min(LONGEST_WAIT, asked * (1 + 0.1 * chance))
        return min(LONGEST_WAIT, _FIRST_WAIT * 2.0 ** (self._failed - 1)) * (0.5 + 0.5 * chance)
