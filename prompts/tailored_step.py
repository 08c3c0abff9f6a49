"""A step that writes for somebody: the persona stands before its instruction, the language in it.

Apart from `prompts.tailoring`, which settings read without loading DSPy.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import dspy

from prompts.engine.calls import memo
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

    def __init__(
        self,
        models: Models,
        tailoring: Tailoring = UNTAILORED,
        sparing: bool = True,
        demos: Sequence[dspy.Example] = (),
    ) -> None:
        self.tailoring = tailoring
        self.sparing = sparing
        signature = instructed(self.told(models), self.own_language, tailoring.persona, tailoring.language)
        super().__init__(models, signature, demos)

    @property
    def fitting_examples(self) -> Sequence[Mapping[str, object]]:
        """None where a language is set: the examples are written in others."""
        return () if self.tailoring.language else self.examples


@memo
def instructed(signature: type[dspy.Signature], own_language: str, persona: str, language: str) -> type[dspy.Signature]:
    """The signature with a persona before its instruction and another language in it; itself where neither is set."""
    if not persona and not language:
        return signature
    instruction = unwrapped(str(signature.instructions))
    if language:
        instruction = instruction.replace(own_language, neutralise(language))
    result: type[dspy.Signature] = signature.with_instructions(
        f"{neutralise(persona)}\n\n{instruction}" if persona else instruction
    )
    return result
