"""Steps: what is done at one place of the pipeline, by a model or by rules, and what its prompt is made of.

A step carries its name, its role, its signature and how its answer is written. Its `run` is what tasks call: it asks
the model, or gives the same typed output by rules (`prompts/offline/`), so that callers never know which one it was.
DSPy is slow to load: a step's `module`, which asks the model alone, is made at its first use.
"""

import copy
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_type_hints

from pydantic import TypeAdapter

from prompts.engine.calls import memo
from prompts.engine.effort import Policy
from prompts.engine.models import Models, Role
from prompts.engine.output_formats import JsonFormat
from prompts.engine.prompt_guard import neutralise
from prompts.engine.streaming import Show

if TYPE_CHECKING:
    import dspy

    from prompts.engine.module import StepModule

# By field: what a model gave, of the types that the signature has, and what it was given.
Outputs = Mapping[str, Any]
Inputs = Mapping[str, Any]


def InputField(desc: str = "") -> Any:  # noqa: N802 -- as DSPy calls it
    """A field that is given, and what a model is told of it."""
    return "InputField", desc


def OutputField(desc: str = "") -> Any:  # noqa: N802 -- as DSPy calls it
    """A field that is asked for."""
    return "OutputField", desc


class Signature:
    """What goes into a step and comes out of it, written like a signature of DSPy's.

    Its docstring is what the model is told to do: the files of `prompts/instructions/` that `prompt` names.
    """

    def __init_subclass__(cls, prompt: str = "") -> None:
        cls.__doc__ = instruction(*prompt.split())

    @classmethod
    @memo
    def in_dspy(cls, instruction: str = "") -> "type[dspy.Signature]":
        """DSPy's own, with another instruction where one is given."""
        import dspy

        fields = {}
        for name, kind in get_type_hints(cls).items():
            field, desc = getattr(cls, name)
            fields[name] = kind, getattr(dspy, field)(**({"desc": desc} if desc else {}))
        signature: type[dspy.Signature] = dspy.make_signature(fields, instruction or cls.__doc__, cls.__name__)
        return signature


class Step:
    """Base of all steps. A subclass names its step, role and signature, and has a `run` with arguments of its own.

    `output_format` is how the answer is written; `on_text` gets the text field `streams` in pieces meanwhile, for the
    screen alone, and Withdrawn where those before it do not hold; `examples` names those of `prompts/examples.toml`
    that stand in the system message, unless the step has demonstrations (`demos`), which are turns of their own.
    """

    step: ClassVar[str]
    role: ClassVar[Role]
    task: ClassVar[type[Signature]]
    output_format: ClassVar[JsonFormat] = JsonFormat()
    streams: ClassVar[str] = ""
    examples: ClassVar[str] = ""
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
        return neutralise(next(filter(None, own), "")) or str(self.task.__doc__)

    @property
    def fitting_examples(self) -> Sequence[Mapping[str, object]]:
        """The examples that do not contradict the settings."""
        return examples_of(self.examples, self.task) if self.examples else ()

    @property
    def fixed(self) -> dict[str, object]:
        """The inputs that are the same in all calls, as the settings have them."""
        return {}

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


def instruction(*names: str) -> str:
    """What a step's model is told to do: these files of `prompts/instructions/`, in the form that a user's own has."""
    folder = files("prompts").joinpath("instructions")
    return "\n\n".join(folder.joinpath(f"{name}.md").read_text(encoding="utf-8").strip() for name in names)


@cache
def _tables(name: str) -> dict[str, Any]:
    return tomllib.loads(files("prompts").joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def definitions(name: str) -> Mapping[str, str]:
    """What prompts say of each of these choices: a table of `prompts/definitions.toml`."""
    table: Mapping[str, str] = _tables("definitions")[name]
    return table


@memo
def examples_of(step: str, task: type[Signature]) -> tuple[dict[str, object], ...]:
    """A step's examples in `prompts/examples.toml`, their answers of the types that the signature gives them."""
    types = {name: TypeAdapter(kind) for name, kind in get_type_hints(task).items()}
    return tuple(
        {name: types[name].validate_python(value) for name, value in example.items()}
        for example in _tables("examples")[step]
    )
