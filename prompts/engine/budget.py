"""How many calls and tokens may start in a minute?

A budget belongs to one server. `LocalBudget` counts for this process; one that several processes share, or several
machines, is handed in by whoever opens the models: it has the same two methods.
"""

from typing import Protocol

from prompts.engine.clock import Clock

WINDOW = 60.0


class Budget(Protocol):
    """What may start, and what did. Called by one thread of the process at a time, and must not block for long."""

    def take(self, tokens: int, priority: int) -> tuple[float, float]:
        """(when the call was entered, 0.0), or (0.0, the seconds after which to ask again).

        A lower priority number goes first, as far as the budget can tell.
        """

    def correct(self, entered: float, calls: int, tokens: int) -> None:
        """Add to what was entered at that time; negative numbers give back."""


class LocalBudget:
    """In no 60 seconds start more calls than `rpm`, nor more tokens than `tpm`; a call larger than `tpm` goes alone."""

    def __init__(self, rpm: int | None, tpm: int | None, clock: Clock) -> None:
        self._rpm = rpm
        self._tpm = tpm
        self._clock = clock
        self._entered: dict[float, tuple[int, int]] = {}
        self._calls = 0
        self._tokens = 0

    def take(self, tokens: int, priority: int) -> tuple[float, float]:
        """`priority` is not looked at: who asks has the most urgent call of this process."""
        now = self._clock.now()
        if self._rpm is None and self._tpm is None:
            return now, 0.0
        while self._entered and now - (oldest := next(iter(self._entered))) >= WINDOW:
            self._enter(oldest, *(-number for number in self._entered[oldest]))
            del self._entered[oldest]
        calls, total, wait = self._calls + 1, self._tokens + tokens, 0.0
        for at, (earlier, spent) in self._entered.items():
            if (self._rpm is None or calls <= self._rpm) and (self._tpm is None or total <= self._tpm):
                break
            calls, total, wait = calls - earlier, total - spent, at + WINDOW - now
        if wait > 0:
            return 0.0, wait
        self._enter(now, 1, tokens)
        return now, 0.0

    def correct(self, entered: float, calls: int, tokens: int) -> None:
        """What has left the window is not corrected."""
        if entered in self._entered:
            self._enter(entered, calls, tokens)

    def _enter(self, at: float, calls: int, tokens: int) -> None:
        before, spent = self._entered.get(at, (0, 0))
        self._entered[at] = (before + calls, spent + tokens)
        self._calls += calls
        self._tokens += tokens
