"""What is one step on a language model? A typed DSPy module that can also do its work offline.

A step carries its name, its role and its offline implementation. Both ways return the same typed output, so that
callers never know which one ran. Steps
survive what DSPy does to modules (copy, save, load, compile), because nothing is looked
up by signature name.
"""

import time
from typing import ClassVar

import dspy
from dspy.utils.exceptions import AdapterParseError

from prompts.engine.errors import ModelRefused
from prompts.engine.models import Models
from prompts.engine.roles import Role


class Step(dspy.Predict):
    """Base of all steps. A subclass names its step, role and signature, and implements `offline`."""

    step: ClassVar[str]
    role: ClassVar[Role]
    task: ClassVar[type[dspy.Signature]]

    def __init__(self, models: Models) -> None:
        super().__init__(self.task)
        self.models = models

    def __deepcopy__(self, memo: dict[int, object]) -> "Step":
        copied = type(self)(self.models)
        # The model is shared, not rebuilt: DSPy refuses to load one of a class that is not its own.
        copied.load_state(self.dump_state(json_mode=False) | {"lm": None})
        copied.lm = self.lm
        return copied

    @property
    def is_offline(self) -> bool:
        return self.lm is None and self.models.lm(self.role) is None

    def offline(self, **inputs: object) -> dspy.Prediction:
        """The step without a model: deterministic, extractive, same output fields as the signature."""
        raise TypeError(f"The step {self.step!r} has no offline version; give the role {self.role!r} a model.")

    async def aforward(self, **inputs: object) -> dspy.Prediction:
        """One call on the role's model, or the offline version; ModelRefused on an answer that is not of the type."""
        lm = self.lm or self.models.lm(self.role)
        if lm is None:
            return self.offline(**inputs)
        async with self.models.slot():
            started = time.monotonic()
            with dspy.context(track_usage=True, adapter=dspy.JSONAdapter()):
                try:
                    prediction = await super().aforward(lm=lm, **inputs)
                except AdapterParseError as error:
                    model = self.models.name(self.role)
                    raise ModelRefused(
                        f"{model} gave no valid answer for the step {self.step!r}: {error}",
                        f"Give the role {self.role!r} a model that follows a JSON schema.",
                    ) from error
        usage = (prediction.get_lm_usage() or {}).get(lm.model, {})
        self.models.record(self.step, self.role, started, {k: v for k, v in usage.items() if isinstance(v, int)})
        return prediction
