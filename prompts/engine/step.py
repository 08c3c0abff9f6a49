"""Steps: what is done at one place of the pipeline, by a model or by rules, and what its prompt is made of.

A step carries its name, its role, its signature and how its answer is written. Its `run` is what tasks call: it asks
the model, or gives the same typed output by rules (`prompts/offline/`), so that callers never know which one it was.
Its signature is one of DSPy's, whose docstring is the whole instruction. Its `module` asks the model alone.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import dspy

from prompts.engine.effort import Policy
from prompts.engine.models import Models, Role
from prompts.engine.output_formats import JsonFormat
from prompts.engine.prompt_guard import neutralise
from prompts.engine.streaming import Show

if TYPE_CHECKING:
    from prompts.engine.module import StepModule

# By field: what a model gave, of the types that the signature has, and what it was given.
Outputs = Mapping[str, Any]
Inputs = Mapping[str, Any]


class Step:
    """Base of all steps. A subclass names its step, role and signature, and has a `run` with arguments of its own.

    `output_format` is how the answer is written; `on_text` gets the text field `streams` in pieces meanwhile, for the
    screen alone, and Withdrawn where those before it do not hold. `examples` are shown as turns of a user and a model,
    unless the step has demonstrations (`demos`) of its own. The answer is in the language of the input `writes_in`, or
    in `language` where that is set.
    """

    step: ClassVar[str]
    role: ClassVar[Role]
    task: ClassVar[type[dspy.Signature]]
    output_format: ClassVar[JsonFormat] = JsonFormat()
    streams: ClassVar[str] = ""
    examples: ClassVar[Sequence[Mapping[str, Any]]] = ()
    writes_in: ClassVar[str] = ""
    language: str = ""
    demos: Sequence[Mapping[str, object]] = ()

    def __init__(self, models: Models) -> None:
        self.models = models
        self.lm: Any = None  # a `dspy.BaseLM` of this step's own
        self.on_text: Show | None = None
        self.alone = False  # whether it runs as if it had no model

    @cached_property
    def module(self) -> "StepModule":
        """The step for DSPy: a `dspy.Predict` that can be called, evaluated, compiled, saved and loaded."""
        from prompts.engine.module import StepModule

        return StepModule(self)

    async def acall(self, **inputs: object) -> Any:
        """One typed answer of the role's model, a `dspy.Prediction`; EngineError where there is none."""
        return await self.module.acall(**inputs)

    @property
    def is_offline(self) -> bool:
        """Whether the step has no model, or runs as if it had none."""
        return self.alone or (self.lm is None and self.models.is_offline(self.role))

    def without_model(self) -> Self:
        """The same step as it runs where no model is set."""
        step = copy.copy(self)
        step.alone = True
        return step

    @property
    def policy(self) -> Policy:
        """The effort of the question, and how much a prompt may hold."""
        return self.models.policy

    def spares(self, reason: str) -> bool:
        """Whether the step's model need not be asked, for a reason that was shown to be harmless: never at high effort.

        The reason goes into the trace. Ask only where the step has a model.
        """
        if self.policy.effort == "high":
            return False
        self.models.meter.spare(self.step, reason)
        return True

    def check(self, outputs: Outputs, inputs: Inputs) -> None:
        """NotAsAsked where outputs in good form cannot be the answer to these inputs; Doubtful where they look like an
        oversight, which the model is told once and may then repeat. By default there is nothing to say."""

    @property
    def instruction_names(self) -> tuple[str, ...]:
        """What a user's own instruction for this step may be called, the most special name first."""
        return (self.step,)

    @property
    def instruction(self) -> str:
        """What the model is told to do: a user's own instruction, or the signature's."""
        own = (self.models.instructions.get(name, "").strip() for name in self.instruction_names)
        return neutralise(next(filter(None, own), "")) or str(self.task.instructions)

    @property
    def fitting_examples(self) -> Sequence[Mapping[str, Any]]:
        """The examples that do not contradict the settings."""
        return self.examples

    @property
    def author(self) -> str:
        """Who writes what this step makes: the model and the hash of its prompt; "offline" where no model does.

        It changes when what is made would be another text, and is part of the hash of what that was made from. Where
        what an earlier version made is to stand, the models say whom this step counts as.
        """
        return self.models.authors.get(self.step) or self.own_author

    @property
    def own_author(self) -> str:
        """The author, whomever the step counts as."""
        name = str(self.lm.model) if self.lm else self.models.name(self.role)
        return name if self.is_offline else f"{name}, prompt {self.module.prompt_hash}"


def left_out(many: int, numbers: Iterable[int]) -> str:
    """Which of so many numbered items an answer says nothing of; empty where it says something of all."""
    return ", ".join(map(str, sorted(set(range(many)) - set(numbers))))
