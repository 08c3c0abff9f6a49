"""The cost of models: list prices, the ledger of a run, and its budget.

Prices come from the installed LiteLLM's list. The price of the user's own server or a proxy is
unknown, never zero. Before a call, the most that it can cost is set aside; after its reply, what it
did cost is entered. A call for which too little is left waits for those under way; when there are
none, the budget is closed for good.
"""

import asyncio
import json
import re
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from prompts.engine.errors import BudgetSpent, ModelMisconfigured

_RELEASED = re.compile(r"(?:-(?:\d{8}|\d{4}|\d{2})){1,6}\Z")
_PAUSE = 0.02  # seconds between two checks of the budget


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars a million tokens, in and out."""

    input: float
    output: float

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


@cache
def _rows() -> Mapping[str, Mapping[str, Any]]:
    """LiteLLM's list, read from its file because importing LiteLLM takes two seconds."""
    spec = find_spec("litellm")
    folder = next(iter((spec and spec.submodule_search_locations) or ("",)))
    file = Path(folder, "model_prices_and_context_window_backup.json")
    rows: Mapping[str, Mapping[str, Any]] = json.loads(file.read_bytes()) if file.is_file() else {}
    return rows


def _row(model: str) -> Mapping[str, Any]:
    """The row of `provider/model`, with or without a date at its end; empty where unknown."""
    provider, _, name = model.partition("/")
    for known in (name, _RELEASED.sub("", name)):
        for key in (f"{provider}/{known}", known):
            if _rows().get(key, {}).get("litellm_provider") == provider:
                return _rows()[key]
    return {}


def price_of(model: str) -> Price | None:
    """The price of `provider/model`; None where it is unknown or zero."""
    row = _row(model)
    read, written = row.get("input_cost_per_token"), row.get("output_cost_per_token", 0)
    return Price(round(read * 1e6, 6), round(written * 1e6, 6)) if read else None


def window_of(model: str) -> int | None:
    """The context window of `provider/model` in tokens; None where it is unknown."""
    window = _row(model).get("max_input_tokens")
    return window if isinstance(window, int) else None


@dataclass(slots=True)
class Spent:
    """Totals of one step on one model. `cost_usd` is None as soon as one price is unknown.

    `seconds` is the sum over all calls, `busy_seconds` the time with at least one under way.
    `unread_lines` counts lines of answers that were left out because they were not in form.
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
        for it in fields(self):
            mine, others = getattr(self, it.name), getattr(other, it.name)
            setattr(self, it.name, None if mine is None or others is None else mine + others)


@dataclass(frozen=True, slots=True)
class Degraded:
    """A step that went on without its model's answer: why, what was done instead, how often."""

    step: str
    reason: str
    instead: str
    times: int = 1


class Meter:
    """A ledger of costs, spared calls, and steps that went on without an answer. Thread-safe."""

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
            return [(*key, spent) for key, spent in sorted(self._spent.items())]

    def spare(self, step: str, reason: str) -> None:
        """Enter why a step's model was not asked."""
        with self._lock:
            self._spared.setdefault(step, reason)

    def spared(self) -> list[tuple[str, str]]:
        """(step, reason) of the spared calls, in order."""
        with self._lock:
            return list(self._spared.items())

    def degrade(self, step: str, reason: str, instead: str) -> None:
        """Enter why a step had no usable answer, and what was done instead."""
        with self._lock:
            known = self._degraded.get((step, instead), Degraded(step, reason, instead, 0))
            self._degraded[step, instead] = replace(known, times=known.times + 1)

    def degraded(self) -> list[Degraded]:
        """The steps that went on without an answer, in the order of their first time."""
        with self._lock:
            return list(self._degraded.values())


@dataclass(slots=True)
class MeteredCall:
    """One call: set the tokens (in, out) that it `used`; one without a reply is not counted."""

    most: tuple[int, int]
    price: Price | None
    used: tuple[int, int] = (0, 0)

    def sums(self, tokens: tuple[int, int]) -> dict[str, float]:
        """These tokens in the budget's units."""
        usd = self.price.cost(*tokens) if self.price else 0.0
        return {"tokens": sum(tokens), "USD": usd}


@dataclass
class SpendBudget:
    """Tokens (in and out together) and US dollars that may be spent; None: any amount.

    Threads and event loops may share it.
    """

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
    async def reserved(
        self, tokens_in: int, tokens_out: int, price: Price | None
    ) -> AsyncIterator[MeteredCall]:
        """Reserve the most that the call in this block can take; BudgetSpent if it is too much."""
        bill = MeteredCall((tokens_in, tokens_out), price)
        while self.limited and not self._begin(bill):  # noqa: ASYNC110 -- others may be threads
            await asyncio.sleep(_PAUSE)
        try:
            yield bill
        finally:
            self._end(bill)

    @contextmanager
    def reserved_in_thread(self, tokens_in: int, price: Price | None) -> Iterator[MeteredCall]:
        """`reserved` for a thread that may block."""
        bill = MeteredCall((tokens_in, 0), price)
        while self.limited and not self._begin(bill):
            time.sleep(_PAUSE)
        try:
            yield bill
        finally:
            self._end(bill)

    def _begin(self, bill: MeteredCall) -> bool:
        """Set aside the most that the call may cost; False where others have to end first."""
        if self.usd is not None and bill.price is None:
            raise ModelMisconfigured(
                "A model of unknown price was called under a budget in US dollars.",
                "Set a budget in tokens.",
            )
        with self._lock:
            if self._closed is not None:
                raise BudgetSpent(*self._closed)
            needed, limits = bill.sums(bill.most), {"tokens": self.tokens, "USD": self.usd}
            aside = [other.sums(other.most) for other in self._under_way.values()]
            for unit, limit in limits.items():
                spent = self._spent[unit]
                total = spent + needed[unit] + sum(it[unit] for it in aside)
                if limit is None or total <= limit:
                    continue
                if self._under_way:
                    return False
                self._closed = spent, limit, needed[unit], unit
                raise BudgetSpent(*self._closed)
            self._under_way[id(bill)] = bill
            return True

    def _end(self, bill: MeteredCall) -> None:
        with self._lock:
            if self._under_way.pop(id(bill), None) is not None:
                for unit, amount in bill.sums(bill.used).items():
                    self._spent[unit] += amount
