"""The base of all steps on a language model: a typed DSPy module.

A step carries its name, its role and how its answer is written. Its `run` is what tasks call: it asks the model, or
gives the same typed output by rules (`prompts/offline/`), so that callers never know which one it was. Called as a DSPy
module it asks the model alone. Steps survive what DSPy does to modules (copy, save, load, compile), because nothing is
looked up by signature name.
"""

import copy
import hashlib
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property, partial
from importlib.resources import files
from typing import Any, ClassVar

import dspy
from pydantic import TypeAdapter, ValidationError

from prompts.engine.bridge import run_sync
from prompts.engine.calls import Call, Message, NotAsAsked, memo, rough_tokens
from prompts.engine.effort import Policy
from prompts.engine.errors import ModelMisconfigured
from prompts.engine.models import Models, Role, priority
from prompts.engine.output_formats import JsonFormat, conversation, rendered, shape_of, texts
from prompts.engine.prompt_guard import neutralise, restore
from prompts.engine.streaming import Show, TextField, Withdrawn

# By field: what a model gave, of the types that the signature has, and what it was given.
Outputs = Mapping[str, Any]
Inputs = Mapping[str, Any]
# Settings of a call that travel under our own names; everything else in a config goes to the server as it is.
_OURS = {"temperature", "max_tokens", "rollout_id"}
# A shorter text of an example (a name, a theme) may be said of other things too.
_SENTENCE_TOKENS = 10


class Step(dspy.Predict):
    """Base of all steps. A subclass names its step, role and signature, and has a `run` with arguments of its own.

    `output_format` is how the answer is written; `on_text` gets the text field `streams` in pieces meanwhile, for the
    screen alone, and Withdrawn where those before it do not hold; `examples` are made up and stand in the system
    message, unless the step is given demonstrations (`demos`), which are turns of their own.
    """

    step: ClassVar[str]
    role: ClassVar[Role]
    task: ClassVar[type[dspy.Signature]]
    output_format: ClassVar[JsonFormat] = JsonFormat()
    streams: ClassVar[str] = ""
    examples: ClassVar[Sequence[Mapping[str, object]]] = ()

    def __init__(
        self,
        models: Models,
        signature: type[dspy.Signature] | None = None,
        demos: Sequence[dspy.Example] = (),
    ) -> None:
        super().__init__(signature or self.told(models))
        self.demos = list(demos)
        self.models = models
        self.on_text: Show | None = None
        for program in models.programs:
            if program.get("step") == self.step and program.get("shape") == self.shape:
                self.load_state(dict(program))

    @classmethod
    def told(cls, models: Models) -> type[dspy.Signature]:
        """The step's signature, with a user's instruction in place of ours where there is one."""
        return with_instruction(cls.task, models.instructions.get(cls.step, ""))

    def __deepcopy__(self, memo: dict[int, object]) -> "Step":
        copied = copy.copy(self)
        copied.__dict__.pop("forward", None)  # an optimiser may have put one there that is bound to this step
        for name in ("demos", "traces", "train", "config", "fields"):
            setattr(copied, name, copy.deepcopy(getattr(self, name), memo))
        return copied

    @property
    def is_offline(self) -> bool:
        """Whether the step has no model."""
        return self.lm is None and self.models.is_offline(self.role)

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

    def read(self, answer: str) -> dict[str, object]:
        """The output fields from a model's answer; NotAsAsked, with what is wrong, makes the model answer once more."""
        return self.output_format.read(self.signature, restore(answer))

    def check(self, outputs: Outputs, inputs: Inputs) -> None:
        """NotAsAsked where outputs in good form cannot be the answer to these inputs; Doubtful where they look like an
        oversight, which the model is told once and may then repeat. By default there is nothing to say."""

    # --- DSPy's interface --------------------------------------------------------------------------------------------

    def forward(self, **inputs: object) -> dspy.Prediction:
        """`aforward` for callers without an event loop, such as DSPy's optimisers."""
        return run_sync(self.aforward(**inputs))

    async def aforward(self, **inputs: object) -> dspy.Prediction:
        """One typed answer of the role's model; EngineError where it fails.

        TypeError where the role has no model: what a step does without one is in its `run`.
        """
        client = self.models.client(self.role, inputs.pop("lm", None) or self.lm)
        if client is None:
            raise TypeError(f"The step {self.step!r} has no offline version; give the role {self.role!r} a model.")
        record = partial(self.models.meter.record, self.step, client.transport.model)
        call, reader = self._call(inputs, client.transport.defaults), self._reader(inputs)
        outputs = await client.ask(call, reader, priority(self.role), record, self._shown())
        return self._forward_postprocess([outputs], self.signature, **self._given(inputs))

    def _shown(self) -> Show | None:
        """Takes the JSON of an answer as it is written, and hands on what it adds to the field `streams`."""
        on_text, field = self.on_text, TextField(self.streams)
        if on_text is None:
            return None

        def show(piece: str | Withdrawn) -> None:
            nonlocal field
            if isinstance(piece, Withdrawn):
                field = TextField(self.streams)
                on_text(piece)
            elif text := restore(field.add(piece)):
                on_text(text)

        return show

    def dump_state(self, json_mode: bool = True) -> dict[str, object]:
        """DSPy's state with the step and its shape, without a model: who loads it has one, and a key is no part of it.

        Demonstrations of another shape would mislead.
        """
        plain = copy.copy(self)
        plain.lm = None
        state: dict[str, object] = super(Step, plain).dump_state(json_mode)
        return {**state, "step": self.step, "shape": self.shape}

    def load_state(self, state: dict[str, object], *, allow_unsafe_lm_state: bool = False) -> "Step":
        """ModelMisconfigured where the state is another step's, or of a version with other fields."""
        rest = {**state, "lm": None}
        step, shape = rest.pop("step", None), rest.pop("shape", None)
        if step != self.step or shape != self.shape:
            raise ModelMisconfigured(
                f"This program was saved for the step {step!r} ({shape}), not for {self.step!r} ({self.shape}).",
                "Compile it again with this version.",
            )
        super().load_state(rest, allow_unsafe_lm_state=allow_unsafe_lm_state)
        self.demos = [self._typed(demo) for demo in self.demos]
        return self

    def _typed(self, demo: Mapping[str, object]) -> dspy.Example:
        """A demonstration as it was before it was saved."""
        values = dict(demo)
        try:
            for name in values.keys() & self.signature.output_fields.keys():
                values[name] = TypeAdapter(self.signature.output_fields[name].annotation).validate_python(values[name])
        except ValidationError as error:
            raise ModelMisconfigured(
                f"A demonstration of the program for the step {self.step!r} has an answer of another form: "
                f"{error.errors(include_url=False)[0]['msg']}.",
                "Compile it again with this version.",
            ) from error
        return dspy.Example(**values)

    @property
    def shape(self) -> str:
        """What goes in and comes out: the fields, and a hash of their types and of the form of the answer."""
        return shape_of(self.signature, self.output_format)

    # --- the prompt --------------------------------------------------------------------------------------------------

    def messages(
        self, inputs: Mapping[str, object], demos: Sequence[Mapping[str, object]] | None = None
    ) -> tuple[Message, ...]:
        """What the model reads for these inputs; `demos` take the place of the step's own."""
        return conversation(self.step, self.signature, self.output_format, demos or self.demos, inputs, self._examples)

    @property
    def fitting_examples(self) -> Sequence[Mapping[str, object]]:
        """The examples that do not contradict the settings."""
        return self.examples

    @cached_property
    def _examples(self) -> str:
        return rendered(self.signature, self.output_format, self.fitting_examples)

    @cached_property
    def _example_sentences(self) -> frozenset[str]:
        outputs = ([example[name] for name in self.signature.output_fields] for example in self.fitting_examples)
        return frozenset(text for text in texts(list(outputs)) if rough_tokens(text) >= _SENTENCE_TOKENS)

    @property
    def prompt(self) -> tuple[Message, ...]:
        """All that the model reads; inputs that differ from call to call stand as their names in angle brackets."""
        inputs = {name: f"<{name}>" for name in self.signature.input_fields} | self.fixed
        return self.messages(inputs)

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
        return name if self.is_offline else f"{name}, prompt {self.prompt_hash}"

    @property
    def prompt_hash(self) -> str:
        """Changes with any word of the prompt."""
        text = "\x1f".join(f"{message.role}\x1f{message.content}" for message in self.prompt)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    # --- one call ----------------------------------------------------------------------------------------------------

    def _call(self, inputs: Mapping[str, object], defaults: Mapping[str, object]) -> Call:
        overrides = inputs.get("config")
        config = {**defaults, **self.config, **(overrides if isinstance(overrides, Mapping) else {})}
        if "demos" in inputs:
            config["demos"] = inputs["demos"]
        messages = self.messages(inputs, config.pop("demos", None))
        return Call(
            step=self.step,
            messages=messages,
            max_tokens=config.get("max_tokens") or self.models.calls.max_tokens,
            schema=self.output_format.schema(self.signature),
            temperature=config.get("temperature", 0.0),
            variant=config.get("rollout_id"),
            extra={name: value for name, value in config.items() if name not in _OURS},
        )

    def _reader(self, inputs: Mapping[str, object]) -> Callable[[str], dict[str, object]]:
        def read(answer: str) -> dict[str, object]:
            outputs = self.read(answer)
            self._check_own(outputs, inputs)
            self.check(outputs, inputs)
            return outputs

        return read

    def _check_own(self, outputs: Mapping[str, object], inputs: Mapping[str, object]) -> None:
        """NotAsAsked where the answer is that of an example: a model that never got the inputs may repeat it."""
        for text in texts(outputs):
            if text in self._example_sentences and text not in str(inputs):
                raise NotAsAsked(f"it repeats the example of the prompt ({text[:60]!r}) instead of what was given.")

    def _given(self, inputs: Mapping[str, object]) -> dict[str, object]:
        return {name: inputs[name] for name in self.signature.input_fields if name in inputs}


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


def examples_of(step: str, task: type[dspy.Signature]) -> tuple[dict[str, object], ...]:
    """A step's examples in `prompts/examples.toml`, their answers of the types that the signature gives them."""
    types = {name: TypeAdapter(field.annotation) for name, field in task.output_fields.items()}
    return tuple(
        {name: types[name].validate_python(value) if name in types else value for name, value in example.items()}
        for example in _tables("examples")[step]
    )


@memo
def with_instruction(task: type[dspy.Signature], instruction: str) -> type[dspy.Signature]:
    """The signature with a user's instruction in place of its own; itself where there is none."""
    if not instruction.strip():
        return task
    result: type[dspy.Signature] = task.with_instructions(neutralise(instruction.strip()))
    return result
