"""The model of every role, and how it is called: offline, through its server, or by a stand-in.

A role without a model is *offline*: its steps run their own deterministic, extractive implementation. The registry is
handed to each step explicitly, so that threads and tasks cannot fall back to offline by losing a context variable.
"""

import copy
import difflib
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from prompts.engine.calls import Call, Reply, Transport
from prompts.engine.client import AnswerCache, Client
from prompts.engine.effort import Policy
from prompts.engine.errors import ModelMisconfigured
from prompts.engine.limits import Clock, Limits, RateLimiter
from prompts.engine.providers import OFFLINE, ModelChoice, check, endpoint
from prompts.engine.spending import Meter, SpendBudget, Spent, price_of
from prompts.text.tokens import count_tokens

__all__ = ["OFFLINE", "CallSettings", "ModelChoice", "Models"]

Role = Literal[
    "extract", "resolve", "summarize", "report", "rewrite", "classify", "filter", "route", "structurize", "decompose",
    "answer", "judge", "tune", "synthesize",
]  # fmt: skip
ROLES: tuple[Role, ...] = get_args(Role)
# Nobody waits for these with a question on the screen.
BACKGROUND: frozenset[Role] = frozenset({"extract", "resolve", "summarize", "report", "judge", "tune", "synthesize"})

# The answer of a stand-in to a call, and about how many tokens a model would write.
Answerer = Callable[[Call], tuple[str, int]]
_FORMAT_TOKENS = 3  # what a chat format adds to each message, and to the whole


def priority(role: Role) -> int:
    """0 for a question's own calls, 1 for indexing, tuning and judging; the lower goes first."""
    return int(role in BACKGROUND)


@dataclass(frozen=True, slots=True)
class CallSettings:
    """How calls are made: limits for each server, seconds for each try, tokens for each answer."""

    concurrency: int = 16
    max_attempts: int = 6
    timeout: float = 120.0
    max_tokens: int = 4096


class Models:
    """The model of every role, the meter and cache that they share, and the limits of each server.

    `rate_limiter_of` gives the limiter of calls and tokens a minute for a server's address; without it there is none.
    """

    def __init__(
        self,
        choices: Mapping[Role, ModelChoice | None],
        meter: Meter | None = None,
        calls: CallSettings | None = None,
        cache: AnswerCache | None = None,
        clock: Clock | None = None,
        rate_limiter_of: Callable[[str], RateLimiter] | None = None,
    ) -> None:
        for role in choices:
            _check_role(role)
        self.choices = {role: choice for role, choice in choices.items() if choice and choice.name != OFFLINE}
        for choice in self.choices.values():
            check(choice)
        self.meter = meter or Meter()
        self.spend_budget = SpendBudget()
        self.policy = Policy()
        self.answerer: Answerer | None = None
        self.calls = calls or CallSettings()
        self.instructions: Mapping[str, str] = {}
        self.authors: Mapping[str, str] = {}
        self._cache = cache
        self._clock = clock or Clock()
        self._rate_limiter_of = rate_limiter_of
        self._lock = threading.RLock()
        self._clients: dict[ModelChoice, Client] = {}
        self._limits: dict[str, Limits] = {}

    @classmethod
    def offline(cls) -> "Models":
        """No role has a model."""
        return cls({})

    def metered(self, meter: Meter) -> "Models":
        """The same models with a ledger of their own (one question, say); connections and limits stay shared."""
        return self._with(meter=meter)

    def with_policy(self, policy: Policy) -> "Models":
        """The same models at another effort."""
        return self._with(policy=policy)

    def instructed(self, instructions: Mapping[str, str]) -> "Models":
        """The same models, told these instructions of a user's in place of ours, by step."""
        return self._with(instructions=dict(instructions))

    def counted_as(self, authors: Mapping[str, str]) -> "Models":
        """The same models whose work counts as that of these authors, by step: see `Step.author`."""
        return self._with(authors=dict(authors))

    def within(self, spend_budget: SpendBudget) -> "Models":
        """The same models with this to spend."""
        return self._reconnected(spend_budget=spend_budget)

    def without_cache(self) -> "Models":
        """The same models with every call made anew; nothing is kept."""
        return self._reconnected(_cache=None)

    def examined(self) -> "Models":
        """The same models with nothing answered from the cache and no limits shared: for an examination."""
        return self._reconnected(_cache=None, _rate_limiter_of=None, meter=Meter())

    def rehearsed(self, answerer: Answerer) -> "Models":
        """The same models with a stand-in where each server is: nothing is sent, and nothing is kept in the cache."""
        cache = _ReadOnlyCache(self._cache)
        return self._reconnected(_cache=cache, _rate_limiter_of=None, meter=Meter(), answerer=answerer)

    def _reconnected(self, **changes: object) -> "Models":
        """The same models with connections and a budget of their own."""
        return self._with(**{"_clients": {}, "_limits": {}, "spend_budget": SpendBudget(), **changes})

    def _with(self, **changes: object) -> "Models":
        view = copy.copy(self)
        vars(view).update(changes)
        return view

    def unpriced(self, roles: Iterable[Role]) -> list[str]:
        """The models of these roles whose price is unknown."""
        clients = {self.name(role): self.client(role) for role in roles}
        return sorted(name for name, client in clients.items() if client is not None and client.price is None)

    def name(self, role: Role) -> str:
        """The model's name, or "offline"."""
        choice = self.choices.get(role)
        return choice.name if choice else OFFLINE

    def is_offline(self, role: Role) -> bool:
        """Whether the role has no model. A role that does not exist is an error."""
        _check_role(role)
        return role not in self.choices

    def client(self, role: Role) -> Client | None:
        """The way to a role's model, or None where it is offline; ModelMisconfigured where a key is missing."""
        _check_role(role)
        choice = self.choices.get(role)
        if choice is None:
            return None
        with self._lock:
            if choice not in self._clients:
                self._clients[choice] = self._connect(choice)
            return self._clients[choice]

    def record(self, step: str, role: Role, spent: Spent) -> None:
        """Enter into the ledger what a step's call cost."""
        self.meter.record(step, self.name(role), spent)

    async def aclose(self) -> None:
        """Close the connections of this event loop. They close by themselves when the loop of `asyncio.run` ends."""
        for client in list(self._clients.values()):
            close = getattr(client.transport, "aclose", None)
            if close is not None:
                await close()

    def _connect(self, choice: ModelChoice) -> Client:
        from prompts.engine.dspy_api import DspyTransport
        from prompts.engine.openai_api import OpenAITransport

        where, calls = endpoint(choice, os.environ), self.calls
        transport: Transport = OpenAITransport(where, calls.timeout) if where else DspyTransport(choice, calls.timeout)
        if self.answerer is not None:
            transport = _StandIn(transport, self.answerer)
        address = transport.address
        if address not in self._limits:
            rate_limiter = self._rate_limiter_of(address) if self._rate_limiter_of else None
            self._limits[address] = Limits(calls.concurrency, rate_limiter, self._clock)
        listed = where.listed if where is not None else choice.base_url is None
        client = Client(
            transport,
            self._limits[address],
            cache=self._cache,
            price=price_of(choice.name) if listed else None,
            max_attempts=calls.max_attempts,
            clock=self._clock,
        )
        client.spend_budget = self.spend_budget
        return client


class _StandIn:
    """Answers in place of the server at the same address, so that both have the same keys in the cache."""

    def __init__(self, transport: Transport, answerer: Answerer) -> None:
        self.address = transport.address
        self.model = transport.model
        self.structured = transport.structured
        self._answer = answerer

    async def send(self, call: Call, show: Callable[[str], None] | None = None) -> Reply:
        text, written = self._answer(call)
        counted = count_tokens([message.content for message in call.messages])
        return Reply(text, "stop", _FORMAT_TOKENS + sum(count + _FORMAT_TOKENS for count in counted), written)


class _ReadOnlyCache:
    """A cache that is read, and written to in memory only."""

    def __init__(self, cache: AnswerCache | None) -> None:
        self._cache = cache
        self._own: dict[str, str | None] = {}

    def get(self, key: str) -> str | None:
        if key in self._own:
            return self._own[key]
        return self._cache.get(key) if self._cache is not None else None

    def put(self, key: str, answer: str) -> None:
        self._own[key] = answer

    def remove(self, key: str) -> None:
        self._own[key] = None


def _check_role(role: str) -> None:
    if role not in ROLES:
        near = difflib.get_close_matches(role, ROLES, n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise ModelMisconfigured(f"There is no role {role!r}", f"{meant}The roles are: {', '.join(ROLES)}.")
