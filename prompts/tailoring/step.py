"""How does a tailoring reach a prompt? The persona stands before the instruction, the language in it."""

from typing import ClassVar

import dspy

from prompts.engine.guard import neutralise
from prompts.engine.memo import memo
from prompts.engine.models import Models
from prompts.engine.roles import Role
from prompts.engine.step import Step
from prompts.tailoring.values import UNTAILORED, Tailoring


class TailoredStep(Step):
    """A step that writes for somebody. `own_language` is how its instruction names the language that is the default."""

    own_language: ClassVar[str]

    def __init__(self, models: Models, tailoring: Tailoring = UNTAILORED) -> None:
        super().__init__(models)
        self.tailoring = tailoring
        self.signature = instructed(self.task, self.own_language, tailoring.persona, tailoring.language)

    def __deepcopy__(self, memo: dict[int, object]) -> "TailoredStep":
        copied = super().__deepcopy__(memo)
        assert isinstance(copied, TailoredStep)  # noqa: S101 - a copy is of the same class
        copied.tailoring = self.tailoring
        return copied

    @property
    def author(self) -> str:
        """Who writes: see `author`."""
        return author(self.models, self.role, self.tailoring)


def author(models: Models, role: Role, tailoring: Tailoring) -> str:
    """The role's model, and what it is told of its readers; changes when what is written would be another text."""
    told = "" if models.is_offline(role) else tailoring.digest("persona", "language")
    return f"{models.name(role)}, tailored {told}" if told else models.name(role)


@memo
def instructed(signature: type[dspy.Signature], own_language: str, persona: str, language: str) -> type[dspy.Signature]:
    """The signature with a persona before its instruction and another language in it; itself where neither is set."""
    if not persona and not language:
        return signature
    said = " ".join(signature.instructions.split())
    if language:
        said = said.replace(own_language, neutralise(language))
    told: type[dspy.Signature] = signature.with_instructions(f"{neutralise(persona)}\n\n{said}" if persona else said)
    return told
