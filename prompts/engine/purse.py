"""How does a run spend no more than it may, with many calls under way at once?

Before a call is sent, the most that it can cost is set aside; when its reply has come, what it did cost is entered. A
call for which too little is left waits for those under way: they may cost less than was set aside. When none is under
way and it still is too much, the purse is closed for good.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from prompts.engine.errors import BudgetSpent, ModelMisconfigured
from prompts.engine.prices import Price

_PAUSE = 0.02  # seconds between two looks


@dataclass(slots=True)
class Bill:
    """One call: set what it used when the reply tells. A call without a reply is not counted."""

    most: tuple[int, int]
    price: Price | None
    used: tuple[int, int] = (0, 0)

    def cost(self, tokens: tuple[int, int]) -> "_Sum":
        return _Sum(sum(tokens), self.price.cost(*tokens) if self.price else 0.0)


@dataclass(frozen=True, slots=True)
class _Sum:
    tokens: int = 0
    usd: float = 0.0

    def plus(self, other: "_Sum") -> "_Sum":
        return _Sum(self.tokens + other.tokens, self.usd + other.usd)

    def minus(self, other: "_Sum") -> "_Sum":
        return _Sum(self.tokens - other.tokens, self.usd - other.usd)


@dataclass
class Purse:
    """Tokens (in and out together) and US dollars that may be spent; None: any amount. For any threads and loops."""

    tokens: int | None = None
    usd: float | None = None
    _spent: _Sum = _Sum()
    _aside: _Sum = _Sum()
    _under_way: int = 0
    _closed: tuple[float, float, float, str] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def limited(self) -> bool:
        return self.tokens is not None or self.usd is not None

    @asynccontextmanager
    async def spending(self, tokens_in: int, tokens_out: int, price: Price | None) -> AsyncIterator[Bill]:
        """Around one call that takes at most so many tokens. Raises BudgetSpent where that is too much."""
        bill = Bill((tokens_in, tokens_out), price)
        while self.limited and not self._begin(bill):  # noqa: ASYNC110 -- others may run in other threads and loops
            await asyncio.sleep(_PAUSE)
        try:
            yield bill
        finally:
            self._end(bill)

    @contextmanager
    def spending_here(self, tokens_in: int, price: Price | None) -> Iterator[Bill]:
        """The same in a thread that may wait."""
        bill = Bill((tokens_in, 0), price)
        while self.limited and not self._begin(bill):
            time.sleep(_PAUSE)
        try:
            yield bill
        finally:
            self._end(bill)

    def _begin(self, bill: Bill) -> bool:
        """Set aside what the call may cost; False where others have to end first."""
        if self.usd is not None and bill.price is None:
            raise ModelMisconfigured(
                "A model of unknown price was called under a budget in US dollars.", "Set a budget in tokens."
            )
        most = bill.cost(bill.most)
        with self._lock:
            if self._closed is not None:
                raise BudgetSpent(*self._closed)
            if (too_much := self._too_much(self._spent.plus(self._aside).plus(most))) is None:
                self._aside = self._aside.plus(most)
                self._under_way += 1
                return True
            if self._under_way:
                return False
            unit, budget = too_much
            spent, needed = (getattr(part, unit) for part in (self._spent, most))
            self._closed = spent, budget, needed, "tokens" if unit == "tokens" else "USD"
            raise BudgetSpent(*self._closed)

    def _too_much(self, whole: _Sum) -> tuple[str, float] | None:
        """The unit of which there is too little, and how much of it there is."""
        if self.tokens is not None and whole.tokens > self.tokens:
            return "tokens", self.tokens
        return ("usd", self.usd) if self.usd is not None and whole.usd > self.usd else None

    def _end(self, bill: Bill) -> None:
        if not self.limited:
            return
        with self._lock:
            self._aside = self._aside.minus(bill.cost(bill.most))
            self._spent = self._spent.plus(bill.cost(bill.used))
            self._under_way -= 1
