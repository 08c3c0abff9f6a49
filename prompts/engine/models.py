"""The model of every role, and the terms on which it is called.

A role without a model is *offline*: its steps run without one. Each step gets the registry as an
argument, so that threads and tasks cannot lose it with a context variable. A program's own model
counts too: that of `dspy.context(lm=…)` replaces the roles' models, that of
`dspy.configure(lm=…)` serves the roles that have none.
"""

import difflib
import os
import re
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import dspy
from dspy.dsp.utils.settings import main_thread_config, thread_local_overrides

from prompts.engine.chat_server import ChatServer
from prompts.engine.effort import Policy
from prompts.engine.errors import ModelMisconfigured
from prompts.engine.gguf import FileServer
from prompts.engine.key_masking import keep_secret, secrets_of_address, secrets_of_environment
from prompts.engine.limits import Clock, Limits, RateLimiter
from prompts.engine.lm import AnswerCache, CallLocks, ServedLM, Terms
from prompts.engine.patience import USUAL
from prompts.engine.providers import (
    ENCODER,
    LOCAL,
    OFFLINE,
    Endpoint,
    GgufSettings,
    ModelChoice,
    check,
    endpoint,
    without_user,
)
from prompts.engine.refusals import HABITS, Habits
from prompts.engine.roles import ROLES, SEES, CallSettings, Role, priority
from prompts.engine.spending import Meter, SpendBudget, price_of
from prompts.engine.transformers_lm import TransformersEngine

__all__ = [
    "OFFLINE",
    "ROLES",
    "CallSettings",
    "GgufSettings",
    "ModelChoice",
    "Models",
    "Role",
    "priority",
]

# OpenAI's models that take no temperature and call max_tokens max_completion_tokens.
_REASONING_MODEL = re.compile(r"(?:^|/)(?:o[1345](?:-|$)|gpt-[5-9](?![\w.]*-chat))")
_LOADING = 600.0  # seconds in which a model of this machine is loaded

# The saved state of a compiled step.
Program = Mapping[str, object]


@dataclass(frozen=True, eq=False)
class Models:
    """The model of every role, the ledger and cache that they share, and each server's limits.

    `rate_limiter_of` gives the limiter of calls and tokens a minute for a server's address. Each
    try first awaits the `gate`, which other machines may share. `instructions` are the user's own,
    `programs` compiled steps (the last one that fits is used), `authors` see `Step.author`.
    Copies by `dataclasses.replace` share connections and limits.
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
    served: dict[ModelChoice | dspy.BaseLM, ServedLM] = field(default_factory=dict, repr=False)
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
                    f"{choice.name!r} labels passages and writes nothing: it cannot do the role "
                    f"{role!r}.",
                    "Set it as TRELLIS_LM_FILTER alone.",
                )
            if choice.is_local and role == SEES:
                raise ModelMisconfigured(
                    f"{choice.name!r} is called with text alone: it cannot do the role {role!r}.",
                    "Serve a vision model with OpenAI's interface (vLLM, Ollama, llama.cpp).",
                )

    @classmethod
    def offline(cls) -> "Models":
        return cls({})

    def metered(self, meter: Meter) -> "Models":
        """The same models with a ledger of their own (one question, say)."""
        return replace(self, meter=meter)

    def within(self, spend_budget: SpendBudget) -> "Models":
        return replace(self._reconnected(), spend_budget=spend_budget)

    def without_cache(self) -> "Models":
        return replace(self._reconnected(), cache=None)

    def examined(self) -> "Models":
        """The same models without a cache and shared limits, for an examination."""
        return replace(self.without_cache(), rate_limiter_of=None, gate=None, meter=Meter())

    def beside(self, others: "Models") -> "Models":
        """The same models under the limits and budget of others that they are compared with.

        Of equal calls only one is made, and entered for each.
        """
        alone = replace(self._reconnected(), compared=True, spend_budget=others.spend_budget)
        return replace(alone, limits=others.limits, locks=others.locks)

    def _reconnected(self) -> "Models":
        """The same models with connections and a budget of their own."""
        return replace(self, served={}, limits={}, spend_budget=SpendBudget())

    def __deepcopy__(self, memo: dict[int, object]) -> "Models":
        return self  # copies of a step share its models

    @property
    def chosen(self) -> dict[Role, ModelChoice]:
        """The roles that the settings give a model."""
        return {role: it for role, it in self.choices.items() if it and it.name != OFFLINE}

    def unpriced(self, roles: Iterable[Role]) -> list[str]:
        """The models of these roles whose price is unknown."""
        lms = [self.lm_or_none(role) for role in roles if self.encoder(role) is None]
        return sorted({lm.model for lm in lms if lm is not None and lm.terms.price is None})

    def name(self, role: Role) -> str:
        """The model's name, or "offline"."""
        model = self._model(role)
        if model is None:
            return OFFLINE
        return model.name if isinstance(model, ModelChoice) else str(model.model)

    def is_offline(self, role: Role) -> bool:
        return self._model(role) is None

    def is_given(self, role: Role) -> bool:
        """Whether the role's model is one that the program gave to DSPy."""
        return not isinstance(self._model(role), ModelChoice | None)

    def encoder(self, role: Role) -> str | None:
        """The cross-encoder that a role has in place of a language model."""
        model = self._model(role)
        if isinstance(model, ModelChoice) and model.is_encoder:
            return model.name.removeprefix(ENCODER)
        return None

    def lm(self, role: Role) -> ServedLM:
        """The role's model; ModelMisconfigured where it has none."""
        lm = self.lm_or_none(role)
        if lm is None:
            raise ModelMisconfigured(f"The role {role!r} has no model.", "Set TRELLIS_LM.")
        return lm

    def lm_or_none(self, role: Role, lm: dspy.BaseLM | None = None) -> ServedLM | None:
        """The role's model, or `lm` on our terms; None where the role is offline."""
        model = lm or self._model(role)
        if model is None or isinstance(model, ServedLM):
            return model
        with self.lock:
            if model not in self.served:
                self.served[model] = self._connect(model)
            return self.served[model]

    def without_history(self) -> AbstractContextManager[None]:
        """Keep DSPy from recording the calls of this block, which may be thousands."""
        context: AbstractContextManager[None] = dspy.context(disable_history=True, trace=None)
        return context

    def _model(self, role: Role) -> "ModelChoice | dspy.BaseLM | None":
        """The role's model, or the program's own where that takes precedence."""
        _check_role(role)
        in_context, configured = (None, None) if role == SEES else lms_of_program()
        choice = self.choices.get(role) or configured
        offline = isinstance(choice, ModelChoice) and choice.name == OFFLINE
        return in_context or (None if offline else choice)

    async def aclose(self) -> None:
        """Close this event loop's connections. `asyncio.run` closes them too when it ends."""
        for lm in list(self.served.values()):
            await lm.aclose()

    # --- connecting ------------------------------------------------------------------------------

    def _connect(self, model: ModelChoice | dspy.BaseLM) -> ServedLM:
        if not isinstance(model, ModelChoice):
            return self._given(model)
        name, usual = model.name, self.calls.timeout or USUAL
        if model.is_gguf:
            habits, slots = Habits(), self.calls.gguf.slots
            server = FileServer(name, self.calls.gguf, habits)
            terms = self._terms(server.address, slots, own_server=True, gate=None)
            return ServedLM(name, server.address, terms, engine=server, habits=habits)
        if model.is_local:
            engine = TransformersEngine(name.removeprefix(LOCAL), usual)
            terms = self._terms(engine.address, 1, gate=None, timeout=_LOADING + 2 * usual)
            return ServedLM(name, engine.address, terms, engine=engine)
        where = endpoint(model, os.environ)
        return self._of_provider(model) if where is None else self._of_server(where)

    def _of_server(self, where: Endpoint) -> ServedLM:
        """A server with OpenAI's interface."""
        address = without_user(where.url)
        habits = HABITS[address, where.name]
        if where.listed and _REASONING_MODEL.search(where.model):
            habits.left_out |= {"max_tokens", "temperature"}
        price = price_of(where.name) if where.listed else None
        terms = self._terms(address, own_server=not where.listed, price=price)
        engine = ChatServer(where, habits)
        return ServedLM(where.name, address, terms, engine=engine, habits=habits)

    def _of_provider(self, choice: ModelChoice) -> ServedLM:
        """A provider that DSPy or LiteLLM knows."""
        url, key, timeout = choice.base_url, choice.api_key, self.calls.timeout or USUAL
        keep_secret((key, *secrets_of_address(url), *secrets_of_environment(os.environ)))
        address = without_user(url) if url else choice.name.partition("/")[0]
        habits = HABITS[address, choice.name]
        price = None if url else price_of(choice.name)
        terms = self._terms(address, timeout=timeout, own_server=url is not None, price=price)
        options = {"api_base": url, "api_key": key, "timeout": timeout}
        given = {name: value for name, value in options.items() if value}
        return ServedLM(choice.name, address, terms, habits=habits, options=given)

    def _given(self, lm: dspy.BaseLM) -> ServedLM:
        """A model that the program has given to DSPy, which has a cache of its own."""
        options: dict[str, Any] = dict(lm.kwargs)
        keep_secret((options.get("api_key"), *secrets_of_environment(os.environ)))
        url = str(options.get("api_base") or options.get("base_url") or "")
        address = without_user(url) or f"dspy:{lm.model}"
        listed = isinstance(getattr(lm, "engine", None), str) and not url
        price = price_of(str(lm.model)) if listed else None
        terms = self._terms(address, own_server=bool(url), cache=None, price=price)
        return ServedLM(str(lm.model), address, terms, given=lm)

    def _terms(self, address: str, at_once: int | None = None, **how: Any) -> Terms:
        if address not in self.limits:
            rate_limiter = self.rate_limiter_of(address) if self.rate_limiter_of else None
            many = at_once or self.calls.concurrency
            self.limits[address] = Limits(many, rate_limiter, self.clock)
        usual = Terms(
            limits=self.limits[address],
            cache=self.cache,
            max_attempts=self.calls.max_attempts,
            clock=self.clock,
            budget=self.spend_budget,
            locks=self.locks,
            compared=self.compared,
            gate=self.gate,
            timeout=self.calls.timeout,
        )
        return replace(usual, **how)


def lms_of_program() -> tuple[dspy.BaseLM | None, dspy.BaseLM | None]:
    """The program's models: of `dspy.context` around this call, and of `dspy.configure`.

    The same model in both counts as configured, since contexts inherit what was configured.
    """
    in_context, configured = thread_local_overrides.get().get("lm"), main_thread_config.get("lm")
    return (None if in_context is configured else in_context), configured


def _check_role(role: str) -> None:
    if role not in ROLES:
        near = difflib.get_close_matches(role, ROLES, n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise ModelMisconfigured(
            f"There is no role {role!r}", f"{meant}The roles are: {', '.join(ROLES)}."
        )
