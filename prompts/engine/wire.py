"""What does a model read for one step, and how is its answer read?

The system message is `Step: <name>`, the instruction, the inputs' descriptions, the form of the answer, and examples of
our own. The user message has a line `[[ ## field ## ]]` before each input: a string as it is (neutralised), anything
else as JSON on one line. The answer is one JSON object with the signature's output fields, or tab-separated records
where a step says so.

Our examples are no turns: a server that cuts a request without a word could lose the last turn and have an example's
answered in its place.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import dspy
from pydantic import BaseModel, TypeAdapter

from prompts.engine.guard import neutralise, neutralised
from prompts.engine.memo import memo
from prompts.engine.messages import Message, Schema


@dataclass(frozen=True, slots=True)
class Field:
    """An output field with its type and what validates it."""

    name: str
    kind: object
    adapter: TypeAdapter[object]


class Wire(Protocol):
    """How an answer is written. `outputs` are the signature's output fields."""

    def form(self, signature: type[dspy.Signature]) -> str:
        """What the system message says of the answer's form."""
        ...

    def schema(self, signature: type[dspy.Signature]) -> Schema | None:
        """The JSON schema of the whole answer, or None where it is not JSON."""
        ...

    def read(self, signature: type[dspy.Signature], answer: str) -> dict[str, object]:
        """The outputs; NotAsAsked with what is wrong."""
        ...

    def write(self, signature: type[dspy.Signature], outputs: Mapping[str, object]) -> str:
        """An answer with these outputs, as an example for a model; what is missing stays out."""
        ...


@memo
def output_fields(signature: type[dspy.Signature]) -> tuple[Field, ...]:
    """The output fields of a signature, in order."""
    fields = signature.output_fields.items()
    return tuple(Field(name, field.annotation, TypeAdapter(field.annotation)) for name, field in fields)


@memo
def _input_names(signature: type[dspy.Signature]) -> tuple[str, ...]:
    return tuple(signature.input_fields)


@memo
def system_message(step: str, signature: type[dspy.Signature], wire: Wire, examples: str = "") -> Message:
    """The part of a request that all calls of a step share; made once. `examples` are as `rendered` makes them."""
    given = []
    for name, field in signature.input_fields.items():
        said = (field.json_schema_extra or {}).get("desc", "")
        given.append(f"- {name}" if said in {"", f"${{{name}}}"} else f"- {name}: {said}")
    instructions = unwrapped(str(signature.instructions))
    parts = [f"Step: {step}\n{instructions}", "You are given:\n" + "\n".join(given), wire.form(signature)]
    return Message("system", "\n\n".join([*parts, examples] if examples else parts))


def rendered(signature: type[dspy.Signature], wire: Wire, examples: Sequence[Mapping[str, object]]) -> str:
    """Examples as a part of the instruction: the inputs, then the answer in its form; empty without any."""
    parts = []
    for example in examples:
        given = [f"{name}: {shown(example[name])}" for name in _input_names(signature) if name in example]
        answer = neutralise(wire.write(signature, example))
        parts.append("\n".join(["Example, not to be repeated.", *given, "→", answer]))
    return "\n\n".join(parts)


def unwrapped(text: str) -> str:
    """A text without the line breaks that say nothing: an empty line parts paragraphs, and each line that begins with
    "- " is an item of a list."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        lines: list[str] = []
        for line in map(str.strip, paragraph.splitlines()):
            if lines and line and not line.startswith("- "):
                lines[-1] += f" {line}"
            elif line:
                lines.append(line)
        paragraphs.append("\n".join(" ".join(line.split()) for line in lines))
    return "\n\n".join(filter(None, paragraphs))


def user_message(signature: type[dspy.Signature], inputs: Mapping[str, object]) -> Message:
    """The inputs, neutralised. A missing one is an error: an empty prompt would be answered with invention."""
    missing = [name for name in _input_names(signature) if name not in inputs]
    if missing:
        raise TypeError(f"The step needs the input {missing[0]!r}.")
    return _user_message(signature, inputs)


def _user_message(signature: type[dspy.Signature], inputs: Mapping[str, object]) -> Message:
    parts = [f"[[ ## {name} ## ]]\n{shown(inputs[name])}" for name in _input_names(signature) if name in inputs]
    return Message("user", "\n\n".join(parts))


def shown(value: object) -> str:
    """An input as the model reads it."""
    if isinstance(value, str):
        return neutralise(value)
    return json.dumps(neutralised(value), ensure_ascii=False)


def conversation(
    step: str,
    signature: type[dspy.Signature],
    wire: Wire,
    demos: Sequence[Mapping[str, object]],
    inputs: Mapping[str, object],
    examples: str = "",
) -> tuple[Message, ...]:
    """System message, demonstrations that have an output (as turns of their own), then the inputs.

    The system message's examples stand back where there are demonstrations.
    """
    turns: list[Message] = []
    for demo in demos:
        if any(field.name in demo for field in output_fields(signature)):
            answer = neutralise(wire.write(signature, demo))
            turns += [_user_message(signature, demo), Message("assistant", answer)]
    system = system_message(step, signature, wire, "" if turns else examples)
    return (system, *turns, user_message(signature, inputs))


def texts(value: object) -> Iterator[str]:
    """Every string in an output."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, BaseModel):
        yield from texts([part for _, part in value])
    elif isinstance(value, Mapping):
        yield from texts(list(value.values()))
    elif isinstance(value, Sequence):
        for item in value:
            yield from texts(item)
