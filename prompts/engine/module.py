"""A step as a module of DSPy's, which asks the step's model.

It survives what DSPy does to modules (copy, save, load, compile), because nothing is looked up by signature name.
"""

import copy
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial

import dspy
from pydantic import BaseModel, TypeAdapter, ValidationError

from prompts.engine.bridge import run_sync
from prompts.engine.calls import Call, Doubtful, Message, NotAsAsked, rough_tokens
from prompts.engine.errors import ModelMisconfigured
from prompts.engine.models import priority
from prompts.engine.output_formats import conversation, shape_of, texts
from prompts.engine.prompt_guard import restore
from prompts.engine.spending import Spent
from prompts.engine.step import Step
from prompts.engine.streaming import Show, TextField, Withdrawn
from prompts.text.languages import language_name, names_of
from prompts.text.words import is_han

# Settings of a call that travel under our own names; everything else in a config goes to the server as it is.
_OURS = {"temperature", "max_tokens", "rollout_id"}
# A shorter text of an example (a name, a theme) may be said of other things too.
_SENTENCE_TOKENS = 10


class StepModule(dspy.Predict):
    """A step with its signature, demonstrations and model, as DSPy's optimisers change them."""

    def __init__(self, of: Step) -> None:
        super().__init__(of.task.with_instructions(of.instruction))
        self.of, self.step = of, of.step
        self.demos = [dspy.Example(**demo) for demo in of.demos]
        for program in of.models.programs:
            if program.get("step") == self.step and program.get("shape") == self.shape:
                self.load_state(dict(program))

    def __deepcopy__(self, memo: dict[int, object]) -> "StepModule":
        copied = copy.copy(self)
        copied.__dict__.pop("forward", None)  # an optimiser may have put one there that is bound to this step
        for name in ("demos", "traces", "train", "config", "fields"):
            setattr(copied, name, copy.deepcopy(getattr(self, name), memo))
        return copied

    # --- DSPy's interface --------------------------------------------------------------------------------------------

    def forward(self, **inputs: object) -> dspy.Prediction:
        """`aforward` for callers without an event loop, such as DSPy's optimisers."""
        return run_sync(self.aforward(**inputs))

    async def aforward(self, **inputs: object) -> dspy.Prediction:
        """One typed answer of the role's model; EngineError where it fails.

        TypeError where the role has no model: what a step does without one is in its `run`.
        """
        client = self.of.models.client(self.of.role, inputs.pop("lm", None) or self.lm or self.of.lm)
        if client is None:
            raise TypeError(f"The step {self.step!r} has no offline version; give the role {self.of.role!r} a model.")
        record = partial(self.of.models.meter.record, self.step, client.transport.model)
        unread: list[str] = []
        call, reader = self._call(inputs, client.transport.defaults), self._reader(inputs, unread)
        outputs = await client.ask(call, reader, priority(self.of.role), record, self._shown())
        if unread:
            record(Spent(unread_lines=len(unread)))
        return self._forward_postprocess([outputs], self.signature, **self._given(inputs))

    def _shown(self) -> Show | None:
        """Takes the JSON of an answer as it is written, and hands on what it adds to the field `streams`."""
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

    def dump_state(self, json_mode: bool = True) -> dict[str, object]:
        """DSPy's state with the step and its shape, without a model: who loads it has one, and a key is no part of it.

        Demonstrations of another shape would mislead.
        """
        plain = copy.copy(self)
        plain.lm = None
        state: dict[str, object] = super(StepModule, plain).dump_state(json_mode)
        return {**state, "step": self.step, "shape": self.shape}

    def load_state(self, state: dict[str, object], *, allow_unsafe_lm_state: bool = False) -> "StepModule":
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
        return shape_of(self.signature, self.of.output_format)

    # --- the prompt --------------------------------------------------------------------------------------------------

    def messages(
        self, inputs: Mapping[str, object], demos: Sequence[Mapping[str, object]] | None = None
    ) -> tuple[Message, ...]:
        """What the model reads for these inputs; `demos` take the place of the step's own."""
        return conversation(
            self.step, self.signature, self.of.output_format, demos or self.demos or self._examples(inputs), inputs,
            self._language(inputs)
        )  # fmt: skip

    def _examples(self, inputs: Mapping[str, object]) -> Sequence[Mapping[str, object]]:
        """The examples in the script of the inputs, or else all."""
        examples = self.of.fitting_examples
        own = [example for example in examples if self._is_chinese(example) == self._is_chinese(inputs)]
        return own or examples

    def _is_chinese(self, inputs: Mapping[str, object]) -> bool:
        return is_han("\n".join(texts([inputs.get(name) for name in self.signature.input_fields])))

    def _language(self, inputs: Mapping[str, object]) -> str:
        """The language that the answer is written in; empty where the step does not say."""
        field = self.of.writes_in
        if self.of.language or not field:
            return self.of.language
        return language_name("\n".join(texts([inputs.get(field)]))) or f"the language of the {field}"

    @cached_property
    def _example_texts(self) -> frozenset[str]:
        """What the answers of the examples say."""
        outputs = ([example[name] for name in self.signature.output_fields] for example in self.of.fitting_examples)
        return frozenset(texts(list(outputs)))

    @cached_property
    def _example_sentences(self) -> frozenset[str]:
        return frozenset(text for text in self._example_texts if rough_tokens(text) >= _SENTENCE_TOKENS)

    @cached_property
    def _example_names(self) -> frozenset[str]:
        return frozenset(span.text for text in self._example_texts for span in names_of(text))

    @property
    def prompt(self) -> tuple[Message, ...]:
        """All that the model reads, with the examples of every script; inputs that differ from call to call stand as
        their names in angle brackets."""
        inputs = {name: f"<{name}>" for name in self.signature.input_fields}
        return self.messages(inputs, self.demos or self.of.fitting_examples)

    @property
    def prompt_hash(self) -> str:
        """Changes with any word of the prompt."""
        text = "\x1f".join(f"{message.role}\x1f{message.content}" for message in self.prompt)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    # --- one call ----------------------------------------------------------------------------------------------------

    def _call(self, inputs: Mapping[str, object], defaults: Mapping[str, object]) -> Call:
        overrides = inputs.get("config")
        calls = self.of.models.calls
        sampling = calls.sampling.get(self.of.role, {})
        config = {**sampling, **defaults, **self.config, **(overrides if isinstance(overrides, Mapping) else {})}
        if "demos" in inputs:
            config["demos"] = inputs["demos"]
        messages = self.messages(inputs, config.pop("demos", None))
        return Call(
            step=self.step,
            messages=messages,
            max_tokens=config.get("max_tokens") or calls.max_tokens,
            schema=self.of.output_format.schema(self.signature),
            temperature=config.get("temperature", 0.0),
            variant=config.get("rollout_id"),
            extra={name: value for name, value in config.items() if name not in _OURS},
            by_line=self.of.output_format.by_line,
            by_item=self.of.output_format.by_item,
            second_temperature=None if "temperature" in config else calls.retry_temperature,
        )

    def _reader(self, inputs: Mapping[str, object], unread: list[str]) -> Callable[[str], dict[str, object]]:
        """Reads an answer; what of it was left out is then in `unread`."""

        def read(answer: str) -> dict[str, object]:
            unread.clear()
            try:
                outputs = self.of.output_format.read(self.signature, restore(answer), unread.append)
            except Doubtful as doubt:
                self._check_own(doubt.outputs, inputs)
                raise Doubtful(str(doubt), self._without_strays(doubt.outputs, inputs)) from doubt
            self._check_own(outputs, inputs)
            outputs = self._without_strays(outputs, inputs)
            self.of.check(outputs, inputs)
            return outputs

        return read

    def _check_own(self, outputs: Mapping[str, object], inputs: Mapping[str, object]) -> None:
        """NotAsAsked where the answer is that of an example: a model that never got the inputs may repeat it."""
        for text in texts(outputs):
            if text in self._example_sentences and text not in str(inputs):
                raise NotAsAsked(f"it repeats the example of the prompt ({text[:60]!r}) instead of what was given.")

    def _without_strays(self, outputs: Mapping[str, object], inputs: Mapping[str, object]) -> dict[str, object]:
        """The outputs without the items of lists that name what an example names and the inputs do not."""
        given = "\n".join(texts(dict(inputs)))
        strays = [name for name in self._example_names if name not in given]
        return {name: _without(value, strays) for name, value in outputs.items()} if strays else dict(outputs)

    def _given(self, inputs: Mapping[str, object]) -> dict[str, object]:
        return {name: inputs[name] for name in self.signature.input_fields if name in inputs}


def _without(value: object, strays: Sequence[str]) -> object:
    """An output without the items of its lists that hold one of these names."""
    if isinstance(value, BaseModel):
        return value.model_copy(update={name: _without(inner, strays) for name, inner in value})
    if isinstance(value, list):
        return [item for item in value if not any(stray in text for stray in strays for text in texts([item]))]
    return value
