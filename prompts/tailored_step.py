"""A step that writes for somebody: the persona stands before its instruction, the language in it."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from prompts.engine.models import Models
from prompts.engine.output_formats import unwrapped
from prompts.engine.prompt_guard import neutralise
from prompts.engine.step import Step
from prompts.tailoring import UNTAILORED, Tailoring


class TailoredStep(Step):
    """A step that writes for somebody. `own_language` is how its instruction names the language that is the default.

    With `sparing` no model is asked where rules give what it would.
    """

    own_language: ClassVar[str]

    def __init__(self, models: Models, tailoring: Tailoring = UNTAILORED, sparing: bool = True) -> None:
        super().__init__(models)
        self.tailoring = tailoring
        self.sparing = sparing

    @property
    def instruction(self) -> str:
        """With the persona before it and the language in it, where they are set."""
        persona, language = self.tailoring.persona, self.tailoring.language
        text = unwrapped(super().instruction)
        if language:
            text = text.replace(self.own_language, neutralise(language))
        return f"{neutralise(persona)}\n\n{text}" if persona else text

    @property
    def fitting_examples(self) -> Sequence[Mapping[str, object]]:
        """None where a language is set: the examples are written in others."""
        return () if self.tailoring.language else super().fitting_examples
