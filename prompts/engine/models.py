"""The model of every role, and how it is called: offline, through its server, or by a stand-in.

A role without a model is *offline*: its steps run their own deterministic, extractive implementation. The registry is
handed to each step explicitly, so that threads and tasks cannot fall back to offline by losing a context variable.

A program's own model counts too: one given by `dspy.context(lm=…)` goes before the roles, one given by
`dspy.configure(lm=…)` serves where a role has none.
"""

import copy
import difflib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from prompts.engine.calls import Call, Reply, Transport
from prompts.engine.client import AnswerCache, CallLocks, Client
from prompts.engine.effort import Policy
from prompts.engine.errors import ModelMisconfigured
from prompts.engine.limits import Clock, Limits, RateLimiter
from prompts.engine.providers import ENCODER, LOCAL, OFFLINE, ModelChoice, check, endpoint
from prompts.engine.spending import Meter, SpendBudget, Spent, price_of
from prompts.text.tokens import count_tokens

if TYPE_CHECKING:
    import dspy

__all__ = ["OFFLINE", "CallSettings", "ModelChoice", "Models"]

Role = Literal[
    "extract", "resolve", "summarize", "report", "rewrite", "classify", "filter", "route", "structurize", "decompose",
    "answer", "judge", "tune", "synthesize",
]  # fmt: skip
ROLES: tuple[Role, ...] = get_args(Role)
# Nobody waits for these with a question on the screen.
BACKGROUND: frozenset[Role] = frozenset({"extract", "resolve", "summarize", "report", "judge", "tune", "synthesize"})

# The saved state of a compiled step.
Program = Mapping[str, object]
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
        self._kept_offline = {role for role, choice in choices.items() if choice and choice.name == OFFLINE}
        for role, choice in self.choices.items():
            check(choice)
            if choice.name.startswith(ENCODER) and choice.base_url is None and role != "filter":
                raise ModelMisconfigured(
                    f"{choice.name!r} labels passages and writes nothing: it cannot do the role {role!r}.",
                    "Set it as TRELLIS_LM_FILTER alone.",
                )
        self.meter = meter or Meter()
        self.spend_budget = SpendBudget()
        self.policy = Policy()
        self.answerer: Answerer | None = None
        self.calls = calls or CallSettings()
        self.instructions: Mapping[str, str] = {}
        self.authors: Mapping[str, str] = {}
        self.programs: Sequence[Program] = ()
        self._cache = cache
        self._clock = clock or Clock()
        self._rate_limiter_of = rate_limiter_of
        self._lock = threading.RLock()
        self._clients: dict[ModelChoice | dspy.BaseLM, Client] = {}
        self._limits: dict[str, Limits] = {}
        self._locks = CallLocks()
        self._compared = False

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

    def programmed(self, programs: Sequence[Program]) -> "Models":
        """The same models, whose steps are the compiled programs that fit them; of several the last."""
        return self._with(programs=tuple(programs))

    def counted_as(self, authors: Mapping[str, str]) -> "Models":
        """The same models whose work counts as that of these authors, by step: see `Step.author`."""
        return self._with(authors=dict(authors))

    def within(self, spend_budget: SpendBudget) -> "Models":
        """The same models with this to spend."""
        return self._reconnected(spend_budget=spend_budget)

    def beside(self, others: "Models") -> "Models":
        """The same models under the limits and the budget of these others, to be compared with them: an equal call is
        made once, and counted for each as if it had been made (`prompts/engine/client.py`)."""
        shared = {"_limits": others._limits, "_locks": others._locks, "spend_budget": others.spend_budget}  # noqa: SLF001 -- its own kind
        return self._with(_clients={}, _compared=True, **shared)

    def without_cache(self) -> "Models":
        """The same models with every call made anew; nothing is kept."""
        return self._reconnected(_cache=None)

    def examined(self) -> "Models":
        """The same models with nothing answered from the cache and no limits shared: for an examination."""
        return self._reconnected(_cache=None, _rate_limiter_of=None, meter=Meter())

    def rehearsed(self, answerer: Answerer) -> "Models":
        """The same models with a stand-in where each server is: nothing is sent, and nothing is kept in the cache."""
        cache = _ReadOnlyCache(self._cache)
        return self._reconnected(
            _cache=cache, _rate_limiter_of=None, meter=Meter(), answerer=answerer, _compared=False
        )  # fmt: skip

    def _reconnected(self, **changes: object) -> "Models":
        """The same models with connections and a budget of their own."""
        return self._with(**{"_clients": {}, "_limits": {}, "spend_budget": SpendBudget(), **changes})

    def _with(self, **changes: object) -> "Models":
        view = copy.copy(self)
        vars(view).update(changes)
        return view

    def __deepcopy__(self, memo: dict[int, object]) -> "Models":
        return self  # copies of a step share its models

    def unpriced(self, roles: Iterable[Role]) -> list[str]:
        """The models of these roles whose price is unknown."""
        clients = {self.name(role): self.client(role) for role in roles if self.encoder(role) is None}
        return sorted(name for name, client in clients.items() if client is not None and client.price is None)

    def name(self, role: Role) -> str:
        """The model's name, or "offline"."""
        model = self._model(role)
        return OFFLINE if model is None else model.name if isinstance(model, ModelChoice) else str(model.model)

    def is_offline(self, role: Role) -> bool:
        """Whether the role has no model. A role that does not exist is an error."""
        return self._model(role) is None

    def is_given(self, role: Role) -> bool:
        """Whether the role's model is one that the program gave to DSPy."""
        return not isinstance(self._model(role), ModelChoice | None)

    def lm(self, role: Role) -> "dspy.BaseLM":
        """A role's model as DSPy has it, for what is no step of ours, such as an optimiser's own prompts."""
        client = self.client(role)
        if client is None:
            raise ModelMisconfigured(f"The role {role!r} has no model.", "Set TRELLIS_LM.")
        lm: dspy.BaseLM = client.transport.lm  # type: ignore[attr-defined]  # a server's, since it has one
        return lm

    def encoder(self, role: Role) -> str | None:
        """The cross-encoder that a role has in place of a language model."""
        model = self._model(role)
        encodes = isinstance(model, ModelChoice) and model.base_url is None and model.name.startswith(ENCODER)
        return model.name.removeprefix(ENCODER) if isinstance(model, ModelChoice) and encodes else None

    def client(self, role: Role, lm: "dspy.BaseLM | None" = None) -> Client | None:
        """The way to a role's model, or to this one; None where it is offline; ModelMisconfigured where a key is
        missing."""
        model = lm or self._model(role)
        if model is None:
            return None
        with self._lock:
            if model not in self._clients:
                ours = (client for client in self._clients.values() if getattr(client.transport, "lm", None) is model)
                self._clients[model] = next(ours, None) or self._connect(model)
            return self._clients[model]

    def _model(self, role: Role) -> "ModelChoice | dspy.BaseLM | None":
        """The role's model, or the program's own where that goes before or there is no other."""
        _check_role(role)
        in_context, configured = lms_of_program()
        choice = self.choices.get(role)
        return in_context or choice or (None if role in self._kept_offline else configured)

    def record(self, step: str, model: str, spent: Spent) -> None:
        """Enter into the ledger what a step's call cost."""
        self.meter.record(step, model, spent)

    async def aclose(self) -> None:
        """Close the connections of this event loop. They close by themselves when the loop of `asyncio.run` ends."""
        for client in list(self._clients.values()):
            close = getattr(client.transport, "aclose", None)
            if close is not None:
                await close()

    def _connect(self, model: "ModelChoice | dspy.BaseLM") -> Client:
        from prompts.engine.lm import LmTransport

        calls, own = self.calls, isinstance(model, ModelChoice)
        at_once = calls.concurrency
        if isinstance(model, ModelChoice) and model.name.startswith(LOCAL) and model.base_url is None:
            server, listed, at_once = LmTransport.of_machine(model, calls.timeout), False, 1
        elif isinstance(model, ModelChoice):
            where = endpoint(model, os.environ)
            server = LmTransport.of(where, calls.timeout) if where else LmTransport.of_provider(model, calls.timeout)
            listed = where.listed if where is not None else model.base_url is None
        else:
            server = LmTransport.of_program(model, calls.timeout)
            at_provider = isinstance(getattr(model, "engine", None), str)
            listed = at_provider and not {"api_base", "base_url"} & set(model.kwargs)
        address, name = server.address, server.model
        transport: Transport = server if self.answerer is None else _StandIn(server, self.answerer)
        if address not in self._limits:
            rate_limiter = self._rate_limiter_of(address) if self._rate_limiter_of else None
            self._limits[address] = Limits(at_once, rate_limiter, self._clock)
        client = Client(
            transport,
            self._limits[address],
            cache=self._cache if own else None,  # DSPy keeps the answers of a program's own model, if it is to
            price=price_of(name) if listed else None,
            max_attempts=calls.max_attempts,
            clock=self._clock,
        )
        client.spend_budget, client.locks, client.compared = self.spend_budget, self._locks, self._compared
        return client


def lms_of_program() -> "tuple[dspy.BaseLM | None, dspy.BaseLM | None]":
    """What the program gave to DSPy: by `dspy.context(lm=…)` around this call, and by `dspy.configure(lm=…)`.

    One model given in both ways counts as configured: DSPy's contexts hold what was configured too.
    """
    if "dspy" not in sys.modules:  # nobody can have given it one
        return None, None
    from dspy.dsp.utils.settings import main_thread_config, thread_local_overrides

    in_context, configured = thread_local_overrides.get().get("lm"), main_thread_config.get("lm")
    return (None if in_context is configured else in_context), configured


class _StandIn:
    """Answers in place of the server at the same address, so that both have the same keys in the cache."""

    def __init__(self, transport: Transport, answerer: Answerer) -> None:
        self.address = transport.address
        self.model = transport.model
        self.defaults = transport.defaults
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
