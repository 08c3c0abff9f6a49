"""How does a model answer as tab-separated records, in little more than half the tokens of JSON, and what is refused?

One record a line: its letter, then its fields; `END` closes the answer. Refused: a line without a known letter, a field
of another type, too many or too few fields, text after `END`, and an answer with neither a record nor `END`: an answer
that slipped out of form must never count as a passage that names nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args, get_origin

import dspy
from pydantic import BaseModel, ValidationError

from prompts.engine.memo import memo
from prompts.engine.messages import NotAsAsked, Schema
from prompts.engine.wire import output_fields

END = "END"


@dataclass(frozen=True, slots=True)
class _Kind:
    """A record's model with its columns: name, whether it holds several values, whether it must be there."""

    model: type[BaseModel]
    columns: tuple[tuple[str, bool, bool], ...]


class RecordsWire:
    """The lists of the one output model, each under a letter: `RecordsWire(E="entities", R="relations")`."""

    def __init__(self, **lists: str) -> None:
        self.lists = lists

    def __hash__(self) -> int:
        return hash(tuple(self.lists.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordsWire) and list(other.lists.items()) == list(self.lists.items())

    def form(self, signature: type[dspy.Signature]) -> str:
        lines, remarks = [], []
        several = False
        for letter, kind in _kinds(signature, self).items():
            lines.append("<TAB>".join([letter, *kind.model.model_fields]))
            several = several or any(many for _, many, _ in kind.columns)
            for name, field in kind.model.model_fields.items():
                if field.description:
                    remarks.append(f"- {letter} {name}: {field.description}")
        rule = " Within a field, several values stand apart by a semicolon." if several else ""
        return (
            "Answer with one record a line, fields apart by one tab, no tab or line break inside a field, nothing else."
            f"{rule} After the last record write a line {END}. The records:\n" + "\n".join([*lines, END, *remarks])
        )

    def schema(self, signature: type[dspy.Signature]) -> Schema | None:
        return None

    def read(self, signature: type[dspy.Signature], answer: str) -> dict[str, object]:
        kinds = _kinds(signature, self)
        found: dict[str, list[BaseModel]] = {name: [] for name in self.lists.values()}
        ended = False
        for number, line in enumerate(_lines(answer), 1):
            text = line.strip(" \r")
            if not text.strip():
                continue
            if ended:
                raise NotAsAsked(f"line {number} comes after {END}.")
            if text.strip() == END:
                ended = True
                continue
            letter, *values = (text if "\t" in text else text.replace("\\t", "\t")).split("\t")
            if letter.strip() not in kinds:
                raise NotAsAsked(f"line {number} ({text[:60]!r}) begins with none of {', '.join(kinds)} and a tab.")
            found[self.lists[letter.strip()]].append(_record(kinds[letter.strip()], values, number))
        if not ended and not any(found.values()):
            raise NotAsAsked(f"it holds no record and no line {END}.")
        field, model = _target(signature)
        return {field: model(**found)}

    def write(self, signature: type[dspy.Signature], outputs: Mapping[str, object]) -> str:
        field, model = _target(signature)
        whole = model.model_validate(outputs[field])
        lines = [
            "\t".join([letter, *(_written(value) for _, value in record)])
            for letter, name in self.lists.items()
            for record in getattr(whole, name)
        ]
        return "\n".join([*lines, END])


def _lines(answer: str) -> list[str]:
    """The lines of the answer; of those inside a code fence only, where there is one fence."""
    lines = answer.split("\n")
    fences = [place for place, line in enumerate(lines) if line.lstrip().startswith("```")]
    return lines[fences[0] + 1 : fences[1]] if len(fences) == 2 else lines


def _record(kind: _Kind, values: list[str], number: int) -> BaseModel:
    columns = kind.columns
    while len(values) > len(columns) and not values[-1].strip():
        values.pop()
    if len(values) > len(columns):
        names = ", ".join(name for name, _, _ in columns)
        raise NotAsAsked(f"line {number} has {len(values)} fields; the record has {len(columns)}: {names}.")
    given: dict[str, object] = {}
    for (name, several, required), value in zip(columns, map(str.strip, values), strict=False):
        if several:
            given[name] = tuple(part.strip() for part in value.split(";") if part.strip())
        elif value or required:
            given[name] = value
    try:
        return kind.model(**given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise NotAsAsked(f"line {number}, {'.'.join(map(str, first['loc']))}: {first['msg']}.") from error


def _written(value: object) -> str:
    if isinstance(value, tuple | list):
        return "; ".join(map(_written, value))
    return f"{value:g}" if isinstance(value, float) else " ".join(str(value).split())


def _target(signature: type[dspy.Signature]) -> tuple[str, type[BaseModel]]:
    """The one output field and its model."""
    (field,) = output_fields(signature)
    model = signature.output_fields[field.name].annotation
    assert issubclass(model, BaseModel)  # noqa: S101 - a step with this wire has one model as its output
    return field.name, model


@memo
def _kinds(signature: type[dspy.Signature], wire: RecordsWire) -> dict[str, _Kind]:
    _, whole = _target(signature)
    kinds = {}
    for letter, name in wire.lists.items():
        model = get_args(whole.model_fields[name].annotation)[0]
        columns = tuple(
            (column, get_origin(field.annotation) in {tuple, list}, field.is_required())
            for column, field in model.model_fields.items()
        )
        kinds[letter] = _Kind(model, columns)
    return kinds
