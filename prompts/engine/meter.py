"""What did the models cost? Calls, tokens, money and seconds, by step and model; safe to use from many threads."""

import threading
from collections import defaultdict
from dataclasses import dataclass


@dataclass(slots=True)
class Spent:
    """Totals of one step on one model. `cost_usd` is None as soon as one call's price is unknown."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_calls: int = 0
    cost_usd: float | None = 0.0
    seconds: float = 0.0

    def add(self, other: "Spent") -> None:
        self.calls += other.calls
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cached_calls += other.cached_calls
        self.cost_usd = None if self.cost_usd is None or other.cost_usd is None else self.cost_usd + other.cost_usd
        self.seconds += other.seconds


class Meter:
    """A ledger of (step, model) pairs, and of the calls that were spared."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent: dict[tuple[str, str], Spent] = defaultdict(Spent)
        self._spared: dict[str, str] = {}

    def record(self, step: str, model: str, spent: Spent) -> None:
        with self._lock:
            self._spent[step, model].add(spent)

    def rows(self) -> list[tuple[str, str, Spent]]:
        """(step, model, totals), ordered by step and model."""
        with self._lock:
            return [(step, model, spent) for (step, model), spent in sorted(self._spent.items())]

    def spare(self, step: str, reason: str) -> None:
        """Enter that a step's model was not asked, and why that is harmless."""
        with self._lock:
            self._spared.setdefault(step, reason)

    def spared(self) -> list[tuple[str, str]]:
        """(step, reason) of the calls that were spared, in the order in which they were."""
        with self._lock:
            return list(self._spared.items())
