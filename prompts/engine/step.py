"""Steps of the pipeline that ask a model, or do without one.

A step is a `dspy.Module`: any user of DSPy can import one, call it, compile it, save and load it.
Tasks call its `run`, which asks the model or gives the same typed output by rules
(`prompts/offline/`), so that callers need not know which.
"""

import copy
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import dspy
from pydantic import BaseModel, TypeAdapter, ValidationError

from prompts.engine.adapter import StepAdapter, texts
from prompts.engine.bridge import run_sync
from prompts.engine.effort import Policy
from prompts.engine.errors import ModelMisconfigured
from prompts.engine.lm import Asker
from prompts.engine.messages import Call, Doubtful, Message, NotAsAsked, rough_tokens
from prompts.engine.models import Models, Role, priority
from prompts.engine.prompt_guard import neutralise, restore
from prompts.engine.spending import Spent
from prompts.engine.streaming import Show, TextField, Withdrawn
from prompts.text.languages import language_name, names_of
from prompts.text.words import is_han

# By field: a model's outputs, of the signature's types, and its inputs.
Outputs = Mapping[str, Any]
Inputs = Mapping[str, Any]

# Settings with fields of their own in a `Call`; others in a config go to the server unchanged.
_OURS = {"temperature", "max_tokens", "rollout_id"}
_SENTENCE_TOKENS = 10  # a shorter text of an example may be true of other things too


class Step(dspy.Module):
    """Base of all steps. A subclass names its step, role and signature, and has a `run`.

    `output_format` is the form of the answer. `on_text` gets the text field `streams` in pieces
    while it is written, and Withdrawn where another answer replaces it. `examples` are shown as
    turns of a user and a model, unless there are demonstrations (`demos`). The answer is in the
    language of the input `writes_in`, or in `language` where that is set.
    """

    step: ClassVar[str]
    role: ClassVar[Role]
    task: ClassVar[type[dspy.Signature]]
    output_format: ClassVar[StepAdapter] = StepAdapter()
    streams: ClassVar[str] = ""
    examples: ClassVar[Sequence[Mapping[str, Any]]] = ()
    writes_in: ClassVar[str] = ""
    language: str = ""
    demos: Sequence[Mapping[str, Any]] = ()

    def __init__(self, models: Models | None = None) -> None:
        super().__init__()
        self.models = models or Models.offline()
        self.lm: Any = None  # a `dspy.BaseLM` of this step's own
        self.on_text: Show | None = None
        self.alone = False  # whether it runs as if there were no model

    @cached_property
    def module(self) -> "StepModule":
        return StepModule(self)

    def named_parameters(self) -> list[tuple[str, Any]]:
        """The predictor, which is made when it is first needed."""
        return [("module", self.module)]

    def forward(self, **inputs: object) -> dspy.Prediction:
        """One typed answer of the role's model, for callers without an event loop."""
        return self.module(**inputs)

    async def aforward(self, **inputs: object) -> dspy.Prediction:
        """One typed answer of the role's model; EngineError where there is none."""
        return await self.module.acall(**inputs)

    @property
    def is_offline(self) -> bool:
        return self.alone or (self.lm is None and self.models.is_offline(self.role))

    def without_model(self) -> Self:
        """The same step as it runs where no model is set."""
        step = copy.copy(self)
        step.alone = True
        return step

    @property
    def policy(self) -> Policy:
        return self.models.policy

    def spares(self, reason: str) -> bool:
        """Whether the model is not asked, for a harmless reason that goes into the trace.

        At high effort it is always asked.
        """
        if self.policy.effort == "high":
            return False
        self.models.meter.spare(self.step, reason)
        return True

    def check(self, outputs: Outputs, inputs: Inputs) -> None:
        """Check whether outputs in form can be the answer to these inputs.

        Raises NotAsAsked where they cannot be, and Doubtful where they look like an oversight: the
        model is told once, and may repeat its answer.
        """

    @property
    def instruction_names(self) -> tuple[str, ...]:
        """The names under which a user's own instruction is looked up, in this order."""
        return (self.step,)

    @property
    def instruction(self) -> str:
        """The user's own instruction, or the signature's."""
        own = (self.models.instructions.get(name, "").strip() for name in self.instruction_names)
        return neutralise(next(filter(None, own), "")) or str(self.task.instructions)

    @property
    def fitting_examples(self) -> Sequence[Mapping[str, Any]]:
        """The examples that do not contradict the settings."""
        return self.examples

    @property
    def author(self) -> str:
        """Who writes the step's results: the model and the hash of its prompt, or "offline".

        It is part of the results' hash. `Models.authors` may name another author, so that results
        of an earlier version stay valid.
        """
        return self.models.authors.get(self.step) or self.own_author

    @property
    def own_author(self) -> str:
        """The author, whatever `Models.authors` says."""
        name = str(self.lm.model) if self.lm else self.models.name(self.role)
        return name if self.is_offline else f"{name}, prompt {self.module.prompt_hash}"


def doubt_missing(many: int, numbers: Iterable[int], outputs: Outputs, problem: str) -> None:
    """Raise Doubtful where numbers from 0 to `many` - 1 are missing; they fill in the problem."""
    if missing := sorted(set(range(many)) - set(numbers)):
        raise Doubtful(problem.format(", ".join(map(str, missing))), dict(outputs))


class StepModule(dspy.Predict):
    """A step's predictor, whose signature, demonstrations and model optimisers change."""

    def __init__(self, of: Step) -> None:
        super().__init__(of.task.with_instructions(of.instruction))
        self.of, self.step = of, of.step
        self.demos = [dspy.Example(**demo) for demo in of.demos]
        for program in of.models.programs:
            if program.get("step") == self.step and program.get("shape") == self.shape:
                self.load_state(dict(program))

    def named_parameters(self) -> list[tuple[str, Any]]:
        """This predictor alone, without its step."""
        return [("self", self)]

    def __deepcopy__(self, memo: dict[int, object]) -> "StepModule":
        copied = copy.copy(self)
        copied.__dict__.pop("forward", None)  # an optimiser may have bound one
        for name in ("demos", "traces", "train", "config", "fields"):
            setattr(copied, name, copy.deepcopy(getattr(self, name), memo))
        return copied

    # --- DSPy's interface ------------------------------------------------------------------------

    def forward(self, **inputs: object) -> dspy.Prediction:
        """`aforward` for callers without an event loop, such as optimisers."""
        return run_sync(self.aforward(**inputs))

    async def aforward(self, **inputs: object) -> dspy.Prediction:
        """One typed answer; EngineError where it fails, TypeError where the role has no model."""
        of, role = self.of, self.of.role
        lm = of.models.lm_or_none(role, inputs.pop("lm", None) or self.lm or of.lm)
        if lm is None:
            raise TypeError(
                f"The step {self.step!r} has no offline version; give the role {role!r} a model."
            )
        record = partial(of.models.meter.record, self.step, lm.model)
        unread: list[str] = []
        reader = partial(self._read, inputs, unread)
        asker = Asker(priority(role), record, self._shown())
        outputs = await lm.ask(self._call(inputs, lm.defaults), reader, asker)
        if unread:
            record(Spent(unread_lines=len(unread)))
        given = {name: inputs[name] for name in self.signature.input_fields if name in inputs}
        return self._forward_postprocess([outputs], self.signature, **given)

    def dump_state(self, json_mode: bool = True) -> dict[str, object]:
        """DSPy's state with the step and its shape, without a model and its key."""
        plain = copy.copy(self)
        plain.lm = None
        state: dict[str, object] = super(StepModule, plain).dump_state(json_mode)
        return {**state, "step": self.step, "shape": self.shape}

    def load_state(
        self, state: dict[str, object], *, allow_unsafe_lm_state: bool = False
    ) -> "StepModule":
        """Load a saved state; ModelMisconfigured where it is another step's or version's."""
        rest = {**state, "lm": None}
        step, shape = rest.pop("step", None), rest.pop("shape", None)
        if step != self.step or shape != self.shape:
            raise ModelMisconfigured(
                f"This program was saved for the step {step!r} ({shape}), not for {self.step!r} "
                f"({self.shape}).",
                "Compile it again with this version.",
            )
        super().load_state(rest, allow_unsafe_lm_state=allow_unsafe_lm_state)
        self.demos = [self._typed(demo) for demo in self.demos]
        return self

    def _typed(self, demo: Mapping[str, object]) -> dspy.Example:
        """A loaded demonstration with outputs of the signature's types."""
        values, fields = dict(demo), self.signature.output_fields
        try:
            for name in values.keys() & fields.keys():
                values[name] = TypeAdapter(fields[name].annotation).validate_python(values[name])
        except ValidationError as error:
            raise ModelMisconfigured(
                f"A demonstration of the program for the step {self.step!r} has an answer of "
                f"another form: {error.errors(include_url=False)[0]['msg']}.",
                "Compile it again with this version.",
            ) from error
        return dspy.Example(**values)

    @property
    def shape(self) -> str:
        """The names and types of inputs and outputs: see `StepAdapter.shape`."""
        return self.of.output_format.shape(self.signature)

    # --- the prompt ------------------------------------------------------------------------------

    def messages(
        self, inputs: Inputs, demos: Sequence[Mapping[str, Any]] | None = None
    ) -> tuple[Message, ...]:
        """What the model reads for these inputs; `demos` replace the step's own."""
        shown = demos or self.demos or self._examples(inputs)
        form, language = self.of.output_format, self._language(inputs)
        return form.messages(self.step, self.signature, shown, inputs, language)

    def _examples(self, inputs: Inputs) -> Sequence[Mapping[str, Any]]:
        """The examples in the script of the inputs, or all where there are none."""
        examples = self.of.fitting_examples
        han = self._is_chinese(inputs)
        return [it for it in examples if self._is_chinese(it) == han] or examples

    def _is_chinese(self, inputs: Inputs) -> bool:
        return is_han("\n".join(texts([inputs.get(name) for name in self.signature.input_fields])))

    def _language(self, inputs: Inputs) -> str:
        """The language to answer in; empty where the step does not say."""
        field = self.of.writes_in
        if self.of.language or not field:
            return self.of.language
        written = "\n".join(texts([inputs.get(field)]))
        return language_name(written) or f"the language of the {field}"

    @property
    def prompt(self) -> tuple[Message, ...]:
        """All that the model reads, with each input as its name in angle brackets."""
        inputs = {name: f"<{name}>" for name in self.signature.input_fields}
        return self.messages(inputs, self.demos or self.of.fitting_examples)

    @property
    def prompt_hash(self) -> str:
        """Changes with any word of the prompt."""
        text = "\x1f".join(f"{message.role}\x1f{message.content}" for message in self.prompt)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    # --- one call --------------------------------------------------------------------------------

    def _call(self, inputs: Inputs, defaults: Mapping[str, Any]) -> Call:
        calls, form = self.of.models.calls, self.of.output_format
        sampling = calls.sampling.get(self.of.role, {})
        config: dict[str, Any] = {**sampling, **defaults, **self.config}
        config |= inputs.get("config") or {}
        demos = inputs.get("demos") or config.pop("demos", None)
        return Call(
            step=self.step,
            messages=self.messages(inputs, demos),
            max_tokens=config.get("max_tokens") or calls.max_tokens,
            schema=form.schema(self.signature),
            temperature=config.get("temperature", 0.0),
            variant=config.get("rollout_id"),
            extra={name: value for name, value in config.items() if name not in _OURS},
            by_line=form.by_line,
            by_item=form.by_item,
            second_temperature=None if "temperature" in config else calls.retry_temperature,
        )

    def _shown(self) -> Show | None:
        """A watcher of the answer's JSON that shows the field `streams`."""
        on_text, field = self.of.on_text, TextField(self.of.streams)
        if on_text is None:
            return None

        def show(piece: str | Withdrawn) -> None:
            nonlocal field
            if isinstance(piece, Withdrawn):
                field = TextField(self.of.streams)
                on_text(piece)
            elif text := restore(field.add(piece)):
                on_text(text)

        return show

    def _read(self, inputs: Inputs, unread: list[str], answer: str) -> dict[str, object]:
        """The outputs of an answer; `unread` gets the problems of lines that are left out."""
        unread.clear()
        try:
            outputs = self.of.output_format.read(self.signature, restore(answer), unread.append)
        except Doubtful as doubt:
            raise Doubtful(str(doubt), self._without_examples(doubt.outputs, inputs)) from doubt
        outputs = self._without_examples(outputs, inputs)
        self.of.check(outputs, inputs)
        return outputs

    def _without_examples(self, outputs: Outputs, inputs: Inputs) -> dict[str, object]:
        """The outputs without items that name what only an example of the prompt names.

        Raises NotAsAsked where the answer repeats a sentence of an example, as a model does that
        never got the inputs.
        """
        for text in texts(dict(outputs)):
            if text in self._example_sentences and text not in str(inputs):
                raise NotAsAsked(
                    f"it repeats the example of the prompt ({text[:60]!r}) instead of what was "
                    "given."
                )
        given = "\n".join(texts(dict(inputs)))
        strays = [name for name in self._example_names if name not in given]
        if not strays:
            return dict(outputs)
        return {name: _without(value, strays) for name, value in outputs.items()}

    @cached_property
    def _example_texts(self) -> frozenset[str]:
        """The texts in the answers of the examples."""
        fields = self.signature.output_fields
        examples = self.of.fitting_examples
        return frozenset(texts([[example[name] for name in fields] for example in examples]))

    @cached_property
    def _example_sentences(self) -> frozenset[str]:
        return frozenset(it for it in self._example_texts if rough_tokens(it) >= _SENTENCE_TOKENS)

    @cached_property
    def _example_names(self) -> frozenset[str]:
        return frozenset(span.text for text in self._example_texts for span in names_of(text))


def _without(value: object, strays: Sequence[str]) -> object:
    """An output without the list items that contain one of these names."""
    if isinstance(value, BaseModel):
        return value.model_copy(update={name: _without(it, strays) for name, it in value})
    if isinstance(value, list):
        return [it for it in value if not any(s in text for s in strays for text in texts([it]))]
    return value
