"""Which model does each role use, and how is it called?

A role without a model is *offline*: its steps run their own deterministic, extractive implementation. The registry is
handed to each step explicitly, so that threads and tasks cannot fall back to offline by losing a context variable.
"""

import asyncio
import copy
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prompts.engine.errors import ModelMisconfigured
from prompts.engine.meter import Meter, Spent
from prompts.engine.roles import ROLES, Role

if TYPE_CHECKING:
    import dspy

OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model as DSPy names it (`provider/model`), with an own endpoint and key where it needs them."""

    name: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)


class Models:
    """The model of every role, the meter they share, and the limit of calls in flight."""

    def __init__(
        self, choices: Mapping[Role, ModelChoice | None], meter: Meter | None = None, concurrency: int = 16
    ) -> None:
        unknown = sorted(set(choices) - set(ROLES))
        if unknown:
            raise ModelMisconfigured(f"There is no role {unknown[0]!r}", f"The roles are: {', '.join(ROLES)}.")
        self.choices = {role: choice for role, choice in choices.items() if choice is not None}
        self.meter = meter or Meter()
        self._lms: dict[ModelChoice, dspy.LM] = {}
        self._concurrency = concurrency
        self._slots: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}

    @classmethod
    def offline(cls) -> "Models":
        """No role has a model."""
        return cls({})

    def metered(self, meter: Meter) -> "Models":
        """The same models with a ledger of their own (one question, say); connections and limits stay shared."""
        view = copy.copy(self)
        view.meter = meter
        return view

    def name(self, role: Role) -> str:
        """The model's name, or "offline"."""
        choice = self.choices.get(role)
        return choice.name if choice else OFFLINE

    def lm(self, role: Role) -> "dspy.LM | None":
        """The language model of a role, or None where it is offline. A role that does not exist is an error."""
        if role not in ROLES:
            raise ModelMisconfigured(f"There is no role {role!r}", f"The roles are: {', '.join(ROLES)}.")
        choice = self.choices.get(role)
        if choice is None:
            return None
        if choice not in self._lms:
            self._lms[choice] = _connect(choice)
        return self._lms[choice]

    def slot(self) -> asyncio.Semaphore:
        """Admission for one call; one semaphore for each event loop."""
        return self._slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._concurrency))

    def record(self, step: str, role: Role, started: float, usage: Mapping[str, int]) -> None:
        """Enter one call into the ledger; `usage` holds prompt_tokens and completion_tokens, `started` is monotonic."""
        spent = Spent(
            calls=1,
            input_tokens=usage.get("prompt_tokens", 0),
            output_tokens=usage.get("completion_tokens", 0),
            cost_usd=None,
            seconds=time.monotonic() - started,
        )
        self.meter.record(step, self.name(role), spent)


def _connect(choice: ModelChoice) -> "dspy.LM":
    # Without this LiteLLM tries to download a price list on its first call.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import dspy

    extra = {"api_base": choice.base_url} if choice.base_url else {}
    return dspy.LM(
        choice.name, api_key=choice.api_key, cache=False, num_retries=0, temperature=0.0, max_tokens=4096, **extra
    )
