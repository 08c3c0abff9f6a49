"""A step whose prompt is tailored: the persona precedes its instruction."""

from collections.abc import Mapping, Sequence
from typing import Any

from prompts.engine.adapter import unwrapped
from prompts.engine.models import Models
from prompts.engine.prompt_guard import neutralise
from prompts.engine.step import Step
from prompts.tailoring import UNTAILORED, Tailoring


class TailoredStep(Step):
    """A tailored step; with `sparing` no model is asked where rules give the same."""

    def __init__(
        self, models: Models | None = None, tailoring: Tailoring = UNTAILORED, sparing: bool = True
    ) -> None:
        super().__init__(models)
        self.tailoring = tailoring
        self.language = tailoring.language
        self.sparing = sparing

    @property
    def instruction(self) -> str:
        """The instruction after the persona, where one is set."""
        persona, text = self.tailoring.persona, unwrapped(super().instruction)
        return f"{neutralise(persona)}\n\n{text}" if persona else text

    @property
    def fitting_examples(self) -> Sequence[Mapping[str, Any]]:
        """None where a language is set, since the examples are in others."""
        return () if self.tailoring.language else super().fitting_examples
