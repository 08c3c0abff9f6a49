"""The model of every role, and how it is called: offline, or through its server.

A role without a model is *offline*: its steps run their own deterministic, extractive implementation. The registry is
handed to each step explicitly, so that threads and tasks cannot fall back to offline by losing a context variable.

A program's own model counts too: one given by `dspy.context(lm=…)` goes before the roles, one given by
`dspy.configure(lm=…)` serves where a role has none.
"""

import difflib
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from prompts.engine.client import AnswerCache, CallLocks, Client
from prompts.engine.effort import Policy
from prompts.engine.errors import ModelMisconfigured
from prompts.engine.limits import Clock, Limits, RateLimiter
from prompts.engine.patience import USUAL
from prompts.engine.providers import ENCODER, OFFLINE, ModelChoice, check, endpoint
from prompts.engine.spending import Meter, Price, SpendBudget, price_of

if TYPE_CHECKING:
    import dspy

    from prompts.engine.lm import LmTransport

__all__ = ["OFFLINE", "CallSettings", "ModelChoice", "Models"]

Role = Literal[
    "extract", "resolve", "summarize", "report", "rewrite", "classify", "filter", "route", "structurize", "decompose",
    "answer", "judge", "tune", "synthesize",
]  # fmt: skip
ROLES: tuple[Role, ...] = get_args(Role)
# Nobody waits for these with a question on the screen.
BACKGROUND: frozenset[Role] = frozenset({"extract", "resolve", "summarize", "report", "judge", "tune", "synthesize"})

# The roles of an index run, whose calls may go in batches.
INDEXING: frozenset[Role] = frozenset({"extract", "resolve", "summarize", "report"})

# The saved state of a compiled step.
Program = Mapping[str, object]


def priority(role: Role) -> int:
    """0 for a question's own calls, 1 for indexing, tuning and judging; the lower goes first."""
    return int(role in BACKGROUND)


@dataclass(frozen=True)
class GgufSettings:
    """How llama.cpp computes a model of this machine (`gguf/PATH`).

    `context` is what one call may read and write together, in tokens; `slots` is the number of
    calls at once; `threads` None leaves their number to llama.cpp: one for each core.
    """

    context: int = 12_288
    slots: int = 1
    threads: int | None = None


@dataclass(frozen=True, slots=True)
class CallSettings:
    """How calls are made: limits for each server, seconds for each try (None: the usual ones), tokens for each answer,
    and how the model of each role draws its words.

    `sampling` holds what the user has set: a temperature, and other parameters by the names that the server has for
    them. Without a temperature it is 0, and `retry_temperature` at a second try.
    """

    concurrency: int = 16
    max_attempts: int = 6
    timeout: float | None = None
    max_tokens: int = 4096
    batches: bool = False  # whether the calls of an index run go in batches
    gguf: GgufSettings = GgufSettings()
    sampling: "Mapping[Role, Mapping[str, object]]" = field(default_factory=dict)
    retry_temperature: float = 0.5


@dataclass(frozen=True, eq=False)
class Models:
    """The model of every role, the meter and cache that they share, and the limits of each server.

    `rate_limiter_of` gives the limiter of calls and tokens a minute for a server's address; without it there is none.
    Each try of a call to a server waits for the `gate` first, which other machines may share.
    `instructions` are a user's in place of ours, `programs` compiled steps (of several that fit the last), `authors`
    whom the work of the models counts as (see `Step.author`), each by step. `dataclasses.replace` makes the same models
    with other values; connections and limits stay shared.
    """

    choices: Mapping[Role, ModelChoice | None]
    meter: Meter = field(default_factory=Meter)
    calls: CallSettings = field(default_factory=CallSettings)
    cache: AnswerCache | None = None
    clock: Clock = field(default_factory=Clock)
    rate_limiter_of: Callable[[str], RateLimiter] | None = None
    gate: Callable[[], Awaitable[None]] | None = None
    spend_budget: SpendBudget = field(default_factory=SpendBudget)
    policy: Policy = field(default_factory=Policy)
    instructions: Mapping[str, str] = field(default_factory=dict)
    authors: Mapping[str, str] = field(default_factory=dict)
    programs: Sequence[Program] = ()
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    clients: "dict[tuple[ModelChoice | dspy.BaseLM, bool], Client]" = field(default_factory=dict, repr=False)
    limits: dict[str, Limits] = field(default_factory=dict, repr=False)
    locks: CallLocks = field(default_factory=CallLocks, repr=False)
    compared: bool = False

    def __post_init__(self) -> None:
        for role, choice in self.choices.items():
            _check_role(role)
            if choice is None:
                continue
            check(choice)
            if choice.is_encoder and role != "filter":
                raise ModelMisconfigured(
                    f"{choice.name!r} labels passages and writes nothing: it cannot do the role {role!r}.",
                    "Set it as TRELLIS_LM_FILTER alone.",
                )

    @classmethod
    def offline(cls) -> "Models":
        """No role has a model."""
        return cls({})

    def metered(self, meter: Meter) -> "Models":
        """The same models with a ledger of their own (one question, say)."""
        return replace(self, meter=meter)

    def within(self, spend_budget: SpendBudget) -> "Models":
        """The same models with this to spend."""
        return self._reconnected(spend_budget=spend_budget)

    def beside(self, others: "Models") -> "Models":
        """The same models under the limits and the budget of these others, to be compared with them: an equal call is
        made once, and counted for each as if it had been made (`prompts/engine/client.py`)."""
        return replace(
            self, clients={}, limits=others.limits, locks=others.locks, spend_budget=others.spend_budget, compared=True
        )

    def without_cache(self) -> "Models":
        """The same models with every call made anew; nothing is kept."""
        return self._reconnected(cache=None)

    def examined(self) -> "Models":
        """The same models with nothing answered from the cache and no limits shared: for an examination."""
        calls = replace(self.calls, batches=False)
        return self._reconnected(cache=None, rate_limiter_of=None, gate=None, meter=Meter(), calls=calls)

    def _reconnected(self, **changes: Any) -> "Models":
        """The same models with connections and a budget of their own."""
        return replace(self, **{"clients": {}, "limits": {}, "spend_budget": SpendBudget(), **changes})

    def __deepcopy__(self, memo: dict[int, object]) -> "Models":
        return self  # copies of a step share its models

    @property
    def chosen(self) -> dict[Role, ModelChoice]:
        """The roles that the settings give a model."""
        return {role: choice for role, choice in self.choices.items() if choice and choice.name != OFFLINE}

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
        return model.name.removeprefix(ENCODER) if isinstance(model, ModelChoice) and model.is_encoder else None

    def client(self, role: Role, lm: "dspy.BaseLM | None" = None) -> Client | None:
        """The way to a role's model, or to this one; None where it is offline; ModelMisconfigured where a key is
        missing."""
        model = lm or self._model(role)
        if model is None:
            return None
        batched = self.calls.batches and role in INDEXING and isinstance(model, ModelChoice) and not model.is_local
        with self.lock:
            if (model, batched) not in self.clients:
                plain = (client for (_, in_batches), client in self.clients.items() if not in_batches)
                ours = (client for client in plain if getattr(client.transport, "lm", None) is model)
                client = next(ours, None) or self._connect(model)
                self.clients[model, batched] = self._in_batches(client, model) if batched else client
            return self.clients[model, batched]

    def without_history(self) -> AbstractContextManager[None]:
        """DSPy keeps neither history nor trace of the calls in this block: an index run, or a process that answers for
        days, would hold thousands of prompts in memory. It is loaded only where a role has a model."""
        if "dspy" not in sys.modules and all(self.is_offline(role) for role in self.choices):
            return nullcontext()
        import dspy

        context: AbstractContextManager[None] = dspy.context(disable_history=True, trace=None)
        return context

    def _model(self, role: Role) -> "ModelChoice | dspy.BaseLM | None":
        """The role's model, or the program's own where that goes before or there is no other."""
        _check_role(role)
        in_context, configured = lms_of_program()
        choice = self.choices.get(role) or configured
        return in_context or (None if isinstance(choice, ModelChoice) and choice.name == OFFLINE else choice)

    async def aclose(self) -> None:
        """Close the connections of this event loop. They close by themselves when the loop of `asyncio.run` ends."""
        for client in list(self.clients.values()):
            close = getattr(client.transport, "aclose", None)
            if close is not None:
                await close()

    def _connect(self, model: "ModelChoice | dspy.BaseLM") -> Client:
        from prompts.engine.lm import LmTransport

        calls, at_once = self.calls, self.calls.concurrency
        if not isinstance(model, ModelChoice):
            server = LmTransport.of_program(model, calls.timeout)
            at_provider = isinstance(getattr(model, "engine", None), str)
            listed = at_provider and not {"api_base", "base_url"} & set(model.kwargs)
        elif model.is_gguf:
            server = LmTransport.of_file(model, calls.gguf, calls.timeout)
            listed, at_once = False, calls.gguf.slots
        elif model.is_local:
            server, listed, at_once = LmTransport.of_machine(model, calls.timeout), False, 1
        else:
            where = endpoint(model, os.environ)
            server = LmTransport.of(where, calls.timeout) if where else LmTransport.of_provider(model, calls.timeout)
            listed = where.listed if where is not None else model.base_url is None
        address = server.address
        if address not in self.limits:
            rate_limiter = self.rate_limiter_of(address) if self.rate_limiter_of else None
            self.limits[address] = Limits(at_once, rate_limiter, self.clock)
        return Client(
            server,
            self.limits[address],
            # DSPy keeps the answers of a program's own model, if it is to
            cache=self.cache if isinstance(model, ModelChoice) else None,
            price=price_of(server.model) if listed else None,
            max_attempts=calls.max_attempts,
            clock=self.clock,
            spend_budget=self.spend_budget,
            locks=self.locks,
            compared=self.compared,
            own_server=not listed,
            gate=None if isinstance(model, ModelChoice) and model.is_local else self.gate,
        )

    def _in_batches(self, client: Client, choice: ModelChoice) -> Client:
        """The same model through its provider's queue, whose limits are its own."""
        from prompts.engine.batched import IN_FLIGHT, PRICE, BatchTransport

        transport = BatchTransport(
            cast("LmTransport", client.transport), choice, endpoint(choice, os.environ), self.cache, self.clock,
            self.calls.timeout or USUAL,
        )  # fmt: skip
        price = client.price and Price(PRICE * client.price.input, PRICE * client.price.output)
        return replace(client, transport=transport, limits=Limits(IN_FLIGHT, None, self.clock), price=price, gate=None)


def lms_of_program() -> "tuple[dspy.BaseLM | None, dspy.BaseLM | None]":
    """What the program gave to DSPy: by `dspy.context(lm=…)` around this call, and by `dspy.configure(lm=…)`.

    One model given in both ways counts as configured: DSPy's contexts hold what was configured too.
    """
    if "dspy" not in sys.modules:  # nobody can have given it one
        return None, None
    from dspy.dsp.utils.settings import main_thread_config, thread_local_overrides

    in_context, configured = thread_local_overrides.get().get("lm"), main_thread_config.get("lm")
    return (None if in_context is configured else in_context), configured


def _check_role(role: str) -> None:
    if role not in ROLES:
        near = difflib.get_close_matches(role, ROLES, n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise ModelMisconfigured(f"There is no role {role!r}", f"{meant}The roles are: {', '.join(ROLES)}.")
