"""Which model does each role use, and how is it called?

A role without a model is *offline*: its steps run their own deterministic, extractive implementation. The registry is
handed to each step explicitly, so that threads and tasks cannot fall back to offline by losing a context variable.
"""

import copy
import difflib
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from prompts.engine.budget import Budget, LocalBudget
from prompts.engine.client import AnswerCache, Client
from prompts.engine.clock import Clock
from prompts.engine.effort import Policy
from prompts.engine.errors import ModelMisconfigured
from prompts.engine.limits import Limits
from prompts.engine.meter import Meter, Spent
from prompts.engine.prices import price_of
from prompts.engine.providers import OFFLINE, ModelChoice, check, endpoint
from prompts.engine.purse import Purse
from prompts.engine.roles import ROLES, Role

if TYPE_CHECKING:
    import dspy

    from prompts.engine.calls import Transport
    from prompts.engine.rehearsal import Answerer

__all__ = ["OFFLINE", "CallSettings", "ModelChoice", "Models"]


@dataclass(frozen=True, slots=True)
class CallSettings:
    """How calls are made: limits for each server, seconds for each try, tokens for each answer."""

    concurrency: int = 16
    rpm: int | None = None
    tpm: int | None = None
    max_attempts: int = 6
    timeout: float = 120.0
    max_tokens: int = 4096


class Models:
    """The model of every role, the meter and cache that they share, and the limits of each server.

    `budget_of` gives the budget of a server's address where other processes share it; else each process counts alone.
    """

    def __init__(
        self,
        choices: Mapping[Role, ModelChoice | None],
        meter: Meter | None = None,
        calls: CallSettings | None = None,
        cache: AnswerCache | None = None,
        clock: Clock | None = None,
        budget_of: Callable[[str], Budget] | None = None,
    ) -> None:
        for role in choices:
            _known(role)
        self.choices = {role: choice for role, choice in choices.items() if choice and choice.name != OFFLINE}
        for choice in self.choices.values():
            check(choice)
        self.meter = meter or Meter()
        self.purse = Purse()
        self.policy = Policy()
        self.answerer: Answerer | None = None
        self.calls = calls or CallSettings()
        self.instructions: Mapping[str, str] = {}
        self.authors: Mapping[str, str] = {}
        self._cache = cache
        self._clock = clock or Clock()
        self._budget_of = budget_of or self._own_budget
        self._lock = threading.RLock()
        self._clients: dict[ModelChoice, Client] = {}
        self._limits: dict[str, Limits] = {}

    @classmethod
    def offline(cls) -> "Models":
        """No role has a model."""
        return cls({})

    def metered(self, meter: Meter) -> "Models":
        """The same models with a ledger of their own (one question, say); connections and limits stay shared."""
        view = copy.copy(self)
        view.meter = meter
        return view

    def with_policy(self, policy: Policy) -> "Models":
        """The same models at another effort."""
        view = copy.copy(self)
        view.policy = policy
        return view

    def within(self, purse: Purse) -> "Models":
        """The same models with this to spend."""
        view = Models(self.choices, self.meter, self.calls, self._cache, self._clock, self._budget_of)
        view.purse = purse
        return self._of_ours(view)

    def instructed(self, instructions: Mapping[str, str]) -> "Models":
        """The same models, told these instructions of a user's in place of ours, by step."""
        view = copy.copy(self)
        view.instructions = dict(instructions)
        return view

    def counted_as(self, authors: Mapping[str, str]) -> "Models":
        """The same models whose work counts as that of these authors, by step: see `Step.author`."""
        view = copy.copy(self)
        view.authors = dict(authors)
        return view

    def rehearsed(self, answerer: "Answerer") -> "Models":
        """The same models with a stand-in where each server is: nothing is sent, and nothing is kept in the cache."""
        from prompts.engine.rehearsal import Aside

        calls = replace(self.calls, rpm=None, tpm=None)
        view = Models(self.choices, Meter(), calls, Aside(self._cache), self._clock)
        view.answerer = answerer
        return self._of_ours(view)

    def unpriced(self, roles: Iterable[Role]) -> list[str]:
        """The models of these roles whose price is unknown."""
        clients = {self.name(role): self.client(role) for role in roles}
        return sorted(name for name, client in clients.items() if client is not None and client.price is None)

    def without_cache(self) -> "Models":
        """The same models and limits with every call made anew; nothing is kept."""
        return self._of_ours(Models(self.choices, self.meter, self.calls, None, self._clock, self._budget_of))

    def uncached(self) -> "Models":
        """The same models with nothing answered from the cache and no limits shared: for an examination."""
        return self._of_ours(Models(self.choices, Meter(), self.calls, None, self._clock))

    def name(self, role: Role) -> str:
        """The model's name, or "offline"."""
        choice = self.choices.get(role)
        return choice.name if choice else OFFLINE

    def is_offline(self, role: Role) -> bool:
        """Whether the role has no model. A role that does not exist is an error."""
        _known(role)
        return role not in self.choices

    def client(self, role: Role) -> Client | None:
        """The way to a role's model, or None where it is offline; ModelMisconfigured where a key is missing."""
        _known(role)
        choice = self.choices.get(role)
        if choice is None:
            return None
        with self._lock:
            if choice not in self._clients:
                self._clients[choice] = self._connect(choice)
            return self._clients[choice]

    def lm(self, role: Role) -> "dspy.LM | None":
        """A plain DSPy model for a role, as teacher or for an optimiser; None where the role is offline."""
        from prompts.engine.dspy_api import connect

        _known(role)
        choice = self.choices.get(role)
        return connect(choice, self.calls.timeout, self.calls.max_tokens) if choice else None

    def record(self, step: str, role: Role, spent: Spent) -> None:
        """Enter into the ledger what a step's call cost."""
        self.meter.record(step, self.name(role), spent)

    async def aclose(self) -> None:
        """Close the connections of this event loop. They close by themselves when the loop of `asyncio.run` ends."""
        for client in list(self._clients.values()):
            close = getattr(client.transport, "aclose", None)
            if close is not None:
                await close()

    def _of_ours(self, other: "Models") -> "Models":
        other.instructions, other.authors, other.policy = self.instructions, self.authors, self.policy
        return other

    def _connect(self, choice: ModelChoice) -> Client:
        from prompts.engine.dspy_api import DspyTransport
        from prompts.engine.openai_api import OpenAITransport

        where = endpoint(choice, os.environ)
        transport: Transport
        if where is not None:
            transport = OpenAITransport(where, self.calls.timeout)
        else:
            transport = DspyTransport(choice, self.calls.timeout)
        if self.answerer is not None:
            from prompts.engine.rehearsal import StandIn

            transport = StandIn(transport, self.answerer)
        listed = where.listed if where is not None else choice.base_url is None
        calls = self.calls
        if transport.address not in self._limits:
            budget = self._budget_of(transport.address)
            self._limits[transport.address] = Limits(calls.concurrency, budget, self._clock)
        limits = self._limits[transport.address]
        client = Client(
            transport,
            limits,
            cache=self._cache,
            price=price_of(choice.name) if listed else None,
            max_attempts=calls.max_attempts,
            clock=self._clock,
        )
        client.purse = self.purse
        return client

    def _own_budget(self, _: str) -> Budget:
        return LocalBudget(self.calls.rpm, self.calls.tpm, self._clock)


def _known(role: str) -> None:
    if role not in ROLES:
        near = difflib.get_close_matches(role, ROLES, n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise ModelMisconfigured(f"There is no role {role!r}", f"{meant}The roles are: {', '.join(ROLES)}.")
