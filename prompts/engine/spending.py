"""What models cost: list prices, the ledger of a run by step and model, and the budget that a run keeps to.

Prices are those of the installed LiteLLM's list. An own server and a proxy have no list price: theirs is unknown, never
zero.

Before a call is sent, the most that it can cost is set aside; when its reply has come, what it did cost is entered. A
call for which too little is left waits for those under way: they may cost less than was set aside. When none is under
way and it still is too much, the budget is closed for good.
"""

import asyncio
import json
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from prompts.engine.errors import BudgetSpent, ModelMisconfigured
from prompts.text.regex import regex

_RELEASED = regex(r"(?:-(?:\d{8}|\d{4}|\d{2})){1,6}\Z")
_PAUSE = 0.02  # seconds between two looks at the budget


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars a million tokens, in and out."""

    input: float
    output: float

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        """US dollars."""
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


@cache
def _rows() -> dict[str, Mapping[str, Any]]:
    """LiteLLM's list by `provider/model`; its file is read, for importing LiteLLM takes two seconds."""
    spec = find_spec("litellm")
    folder = next(iter((spec and spec.submodule_search_locations) or ("",)))
    file = Path(folder, "model_prices_and_context_window_backup.json")
    rows = json.loads(file.read_bytes()) if file.is_file() else {}  # without it no price is known, and none told
    return {
        f"{row['litellm_provider']}/{name.removeprefix(row['litellm_provider'] + '/')}": row
        for name, row in rows.items()
        if "litellm_provider" in row
    }


def _row(model: str) -> Mapping[str, Any]:
    """Of `provider/model`, with or without the date of its release at the end; empty where it is unknown."""
    return _rows().get(model) or _rows().get(_RELEASED.sub("", model), {})


def price_of(model: str) -> Price | None:
    """The price of `provider/model`; None where it is unknown, as of what costs nothing: that is served by its user."""
    row = _row(model)
    if not row.get("input_cost_per_token"):
        return None
    return Price(round(row["input_cost_per_token"] * 1e6, 6), round(row.get("output_cost_per_token", 0) * 1e6, 6))


def window_of(model: str) -> int | None:
    """The context window of `provider/model` in tokens; None where it is unknown."""
    window = _row(model).get("max_input_tokens")
    return window if isinstance(window, int) else None


@dataclass(slots=True)
class Spent:
    """Totals of one step on one model. `cost_usd` is None as soon as one call's price is unknown.

    `seconds` are those of all calls, `busy_seconds` those in which at least one was under way. `unread_lines` are those
    of answers that were not in form and were left out.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_calls: int = 0
    cost_usd: float | None = 0.0
    seconds: float = 0.0
    busy_seconds: float = 0.0
    unread_lines: int = 0

    def add(self, other: "Spent") -> None:
        self.calls += other.calls
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cached_calls += other.cached_calls
        self.cost_usd = None if self.cost_usd is None or other.cost_usd is None else self.cost_usd + other.cost_usd
        self.seconds += other.seconds
        self.busy_seconds += other.busy_seconds
        self.unread_lines += other.unread_lines


@dataclass(frozen=True, slots=True)
class Degraded:
    """A step that went on without its model's answer: why, what was done instead, and how many times."""

    step: str
    reason: str
    instead: str
    times: int = 1


class Meter:
    """A ledger of (step, model) pairs, of the calls that were spared, and of the steps that went on without an
    answer; safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent: dict[tuple[str, str], Spent] = defaultdict(Spent)
        self._spared: dict[str, str] = {}
        self._degraded: dict[tuple[str, str], Degraded] = {}

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

    def degrade(self, step: str, reason: str, instead: str) -> None:
        """Enter that a step's model gave no usable answer, and what was done instead; the first reason stays."""
        with self._lock:
            known = self._degraded.get((step, instead), Degraded(step, reason, instead, 0))
            self._degraded[step, instead] = replace(known, times=known.times + 1)

    def degraded(self) -> list[Degraded]:
        """The steps that went on without an answer, in the order in which they first did."""
        with self._lock:
            return list(self._degraded.values())


@dataclass(slots=True)
class MeteredCall:
    """One call: set the tokens, in and out, that it used when the reply tells. One without a reply is not counted."""

    most: tuple[int, int]
    price: Price | None
    used: tuple[int, int] = (0, 0)


@dataclass
class SpendBudget:
    """Tokens (in and out together) and US dollars that may be spent; None: any amount. For any threads and loops."""

    tokens: int | None = None
    usd: float | None = None
    _spent: dict[str, float] = field(default_factory=lambda: {"tokens": 0, "USD": 0.0})
    _under_way: dict[int, MeteredCall] = field(default_factory=dict, repr=False)
    _closed: tuple[float, float, float, str] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def limited(self) -> bool:
        return self.tokens is not None or self.usd is not None

    @asynccontextmanager
    async def reserved(self, tokens_in: int, tokens_out: int, price: Price | None) -> AsyncIterator[MeteredCall]:
        """Around one call that takes at most so many tokens. Raises BudgetSpent where that is too much."""
        bill = MeteredCall((tokens_in, tokens_out), price)
        while self.limited and not self._begin(bill):  # noqa: ASYNC110 -- others may run in other threads and loops
            await asyncio.sleep(_PAUSE)
        try:
            yield bill
        finally:
            self._end(bill)

    @contextmanager
    def reserved_in_thread(self, tokens_in: int, price: Price | None) -> Iterator[MeteredCall]:
        """The same in a thread that may wait."""
        bill = MeteredCall((tokens_in, 0), price)
        while self.limited and not self._begin(bill):
            time.sleep(_PAUSE)
        try:
            yield bill
        finally:
            self._end(bill)

    def _begin(self, bill: MeteredCall) -> bool:
        """Set aside what the call may cost; False where others have to end first."""
        if self.usd is not None and bill.price is None:
            raise ModelMisconfigured(
                "A model of unknown price was called under a budget in US dollars.", "Set a budget in tokens."
            )
        with self._lock:
            if self._closed is not None:
                raise BudgetSpent(*self._closed)
            limits = {"tokens": self.tokens, "USD": self.usd}
            needed = _sums(bill, bill.most)
            for unit, limit in limits.items():
                aside = sum(_sums(other, other.most)[unit] for other in self._under_way.values())
                if limit is not None and self._spent[unit] + aside + needed[unit] > limit:
                    if self._under_way:
                        return False
                    self._closed = self._spent[unit], limit, needed[unit], unit
                    raise BudgetSpent(*self._closed)
            self._under_way[id(bill)] = bill
            return True

    def _end(self, bill: MeteredCall) -> None:
        with self._lock:
            if self._under_way.pop(id(bill), None) is not None:
                for unit, amount in _sums(bill, bill.used).items():
                    self._spent[unit] += amount


def _sums(bill: MeteredCall, tokens: tuple[int, int]) -> dict[str, float]:
    return {"tokens": sum(tokens), "USD": bill.price.cost(*tokens) if bill.price else 0.0}
