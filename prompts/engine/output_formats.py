"""Output formats: what a model reads for one step, and how its answer is written and read (JSON or records).

The system message is `Step: <name>`, the instruction and the form of the answer. Examples are turns of a user and a
model. The last user message has a line `[[ ## field ## ]]` before each input that is not empty: a string as it is
(neutralised), anything else as JSON on one line; after the inputs it says which language to write in. The answer is one
JSON object with the signature's output fields, or tab-separated records where a step says so.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from prompts.engine.calls import REPEATED, Doubtful, Message, NotAsAsked, Schema, memo
from prompts.engine.json_reading import number_of, read_object
from prompts.engine.prompt_guard import neutralise, neutralised
from prompts.text.regex import regex

if TYPE_CHECKING:
    import dspy

# What a schema for constrained decoding may hold everywhere; the bounds are checked after reading.
_KEYWORDS = frozenset({"type", "properties", "required", "items", "anyOf", "enum", "const", "$ref", "$defs"})
_BOUNDS = frozenset({"maxItems", "maxLength"})
END = "END"
# What models put between the fields of a record in place of a tab, the likeliest first.
_PIPE = regex(r"\|")
_NAMED_TAB = regex(r"\\t|<TAB>|\[TAB\]|<\|>|␉", re.I)
_BETWEEN = (regex(r"\t"), _PIPE, regex(r" {2,}"))
_BEFORE_LETTER = regex(r"^(?:[-*•–>`|(\s]|\d+[.)]\s)+")
_LETTERS_ONLY = regex(r"[^A-Za-z]")
_RULE = regex(r"[\s|:=_*\-–—]+|```\w*")  # a line across, or of a fence


# --- requests --------------------------------------------------------------------------------------------------------


@memo
def system_message(step: str, signature: "type[dspy.Signature]", output: "JsonFormat") -> Message:
    """The part of a request that all calls of a step share; made once."""
    instructions = unwrapped(str(signature.instructions))
    return Message("system", f"Step: {step}\n{instructions}\n\n{output.form(signature)}")


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


def user_message(
    signature: "type[dspy.Signature]", inputs: Mapping[str, object], whole: bool = True, language: str = ""
) -> Message:
    """The inputs that are not empty, neutralised, and the language to write in.

    A missing one is an error: an empty prompt would be answered with invention.
    """
    missing = [name for name in signature.input_fields if name not in inputs]
    if missing and whole:
        raise TypeError(f"The step needs the input {missing[0]!r}.")
    given = {name: inputs[name] for name in signature.input_fields if name in inputs}
    parts = [f"[[ ## {name} ## ]]\n{_shown(value)}" for name, value in given.items() if value not in ("", [])]
    if language:
        parts.append(f"Write in {neutralise(language)}.")
    return Message("user", "\n\n".join(parts))


def _shown(value: object) -> str:
    """An input as the model reads it."""
    return neutralise(value) if isinstance(value, str) else json.dumps(neutralised(value), ensure_ascii=False)


def _description(name: str, field: Any) -> str:
    description = str((field.json_schema_extra or {}).get("desc", ""))
    return "" if description == f"${{{name}}}" else description


def conversation(
    step: str,
    signature: "type[dspy.Signature]",
    output: "JsonFormat",
    demos: Sequence[Mapping[str, object]],
    inputs: Mapping[str, object],
    language: str = "",
) -> tuple[Message, ...]:
    """System message, demonstrations that have an output (as turns of their own), then the inputs."""
    turns: list[Message] = []
    for demo in demos:
        if any(name in demo for name in signature.output_fields):
            turns += [
                user_message(signature, demo, whole=False),
                Message("assistant", neutralise(output.write(signature, demo))),
            ]
    return (
        system_message(step, signature, output),
        *turns,
        user_message(signature, inputs, language=language),
    )


def texts(value: object) -> Iterator[str]:
    """Every string in an output, in no order."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, BaseModel):
            waiting.extend(vars(value).values())
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)


@memo
def shape_of(signature: "type[dspy.Signature]", output: "JsonFormat") -> str:
    """The fields by name, and a hash of their types and of the form of the answer; the words of a prompt are no part of
    it."""
    inputs = {name: str(field.annotation) for name, field in signature.input_fields.items()}
    form = [inputs, _strict_schema(signature), repr(vars(output))]
    digest = hashlib.sha256(json.dumps(form, sort_keys=True).encode()).hexdigest()[:12]
    return f"{', '.join(inputs)} -> {', '.join(signature.output_fields)}, {digest}"


def _ignored(_: str) -> None:
    """What nobody asks for."""


# --- JSON ------------------------------------------------------------------------------------------------------------


class JsonFormat:
    """How an answer with the signature's output fields is written and read: one JSON object whose keys they are.

    Refused: other keys, another object, a value of another type. What has one reading is read
    (`json_reading.py`).
    """

    by_line = False  # whether what comes before a cut is kept
    by_item = False  # whether the whole items of a list are kept

    def form(self, signature: "type[dspy.Signature]") -> str:
        """What the system message says of the answer's form."""
        schema = _full_schema(signature)
        return f"Answer with one JSON object of this form and nothing else:\n{_sketch(schema, schema, 0)}"

    def schema(self, signature: "type[dspy.Signature]") -> Schema | None:
        """The JSON schema of the whole answer, or None where it is not JSON."""
        return _strict_schema(signature)

    def read(
        self, signature: "type[dspy.Signature]", answer: str, unread: Callable[[str], None] = _ignored
    ) -> dict[str, object]:
        """The outputs; NotAsAsked with what is wrong. `unread` gets what was left out."""
        return dict(read_object(answer, _answer_model(signature)))

    def write(self, signature: "type[dspy.Signature]", outputs: Mapping[str, object]) -> str:
        """An answer with these outputs, as an example for a model; what is missing stays out."""
        values = {name: outputs[name] for name in signature.output_fields if name in outputs}
        (first, *more) = values.values()
        only = not more and isinstance(first, BaseModel)
        return json.dumps(to_jsonable_python(first if only else values), ensure_ascii=False)


class ItemsFormat(JsonFormat):
    """JSON whose lists hold items that stand for themselves: of an answer that is cut the whole ones are kept.

    With `bounded` the schema says how many items and letters there may be at the most, which servers of one's own
    keep to and hosted ones may refuse.
    """

    by_item = True

    def __init__(self, bounded: bool = False) -> None:
        self.bounded = bounded

    def schema(self, signature: "type[dspy.Signature]") -> Schema | None:
        return _bounded_schema(signature) if self.bounded else super().schema(signature)


@memo
def _answer_model(signature: "type[dspy.Signature]") -> type[BaseModel]:
    """The output fields as one model."""
    fields: dict[str, Any] = {name: (field.annotation, ...) for name, field in signature.output_fields.items()}
    return create_model("Outputs", __config__=ConfigDict(extra="forbid"), **fields)


@memo
def _full_schema(signature: "type[dspy.Signature]") -> Schema:
    """The schema of the answer: of the one output model itself, or of an object with a key for each output."""
    kinds = [field.annotation for field in signature.output_fields.values()]
    if len(kinds) == 1 and isinstance(kinds[0], type) and issubclass(kinds[0], BaseModel):
        schema = kinds[0].model_json_schema()
        schema.pop("description", None)  # a model's docstring is for us
        return schema
    definitions: Schema = {}
    properties: Schema = {}
    for name, field in signature.output_fields.items():
        schema = TypeAdapter(field.annotation).json_schema()
        definitions |= schema.pop("$defs", {})
        schema.pop("description", None)  # a model's docstring is for us
        description = _description(name, field)
        properties[name] = {**schema, "description": description} if description else schema
    return {"type": "object", "properties": properties, "$defs": definitions}


@memo
def _strict_schema(signature: "type[dspy.Signature]") -> Schema:
    schema = _strict(_full_schema(signature))
    assert isinstance(schema, dict)  # noqa: S101 - an object goes in
    return schema if schema.get("$defs") else {key: value for key, value in schema.items() if key != "$defs"}


@memo
def _bounded_schema(signature: "type[dspy.Signature]") -> Schema:
    schema = _strict(_full_schema(signature), _KEYWORDS | _BOUNDS)
    assert isinstance(schema, dict)  # noqa: S101 - an object goes in
    return schema


def _strict(schema: object, keywords: frozenset[str] = _KEYWORDS) -> object:
    """With all properties required and no others allowed, which is what servers that constrain decoding ask for."""
    if not isinstance(schema, dict):
        return schema
    result = {key: value for key, value in schema.items() if key in keywords}
    for group in ("properties", "$defs"):
        if group in result:
            result[group] = {name: _strict(part, keywords) for name, part in result[group].items()}
    if "items" in result:
        result["items"] = _strict(result["items"], keywords)
    if "anyOf" in result:
        result["anyOf"] = [_strict(part, keywords) for part in result["anyOf"]]
    if "properties" in result:
        result |= {"required": list(result["properties"]), "additionalProperties": False}
    return result


def _sketch(part: Schema, root: Schema, depth: int) -> str:
    """A schema in the fewest tokens that a model understands: JSON with types for values and remarks behind them."""
    if "$ref" in part:
        name = str(part["$ref"]).rpartition("/")[2]
        return _sketch(root["$defs"][name], root, depth)  # type: ignore[index]
    if "anyOf" in part:
        return " | ".join(_sketch(option, root, depth) for option in part["anyOf"])  # type: ignore[attr-defined]
    if "enum" in part or "const" in part:
        choices = part.get("enum", [part.get("const")])
        return " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)  # type: ignore[attr-defined]
    if part.get("type") == "array":
        return f"[{_sketch(part['items'], root, depth)}, …]" if "items" in part else "[…]"  # type: ignore[arg-type]
    if "properties" in part:
        return _sketch_object(part, root, depth)
    bounds = [f"{word} {part[key]:g}" for word, key in (("from", "minimum"), ("to", "maximum")) if key in part]
    return " ".join([str(part.get("type", "any")), *bounds])


def _sketch_object(part: Schema, root: Schema, depth: int) -> str:
    """On one line within another object where nothing is remarked on: models then write it so, in fewer tokens."""
    lines, inner = [], " " * (depth + 1)
    properties: dict[str, Schema] = part["properties"]  # type: ignore[assignment]
    if depth and not any("description" in value for value in properties.values()):
        shown = (f'"{name}": {_sketch(value, root, depth + 1)}' for name, value in properties.items())
        return "{" + ", ".join(shown) + "}"
    for place, (name, value) in enumerate(properties.items(), 1):
        comma = "," if place < len(properties) else ""
        remark = f"  // {value['description']}" if "description" in value else ""
        lines.append(f'{inner}"{name}": {_sketch(value, root, depth + 1)}{comma}{remark}')
    return "{\n" + "\n".join(lines) + f"\n{' ' * depth}}}"


# --- records ---------------------------------------------------------------------------------------------------------


class RecordsFormat(JsonFormat):
    """The lists of the one output model as tab-separated records, in little more than half the tokens of JSON.

    Each list has a letter: `RecordsFormat(E="entities", R="relations")`. One record a line: its letter, then its
    fields; `END` closes the answer. A line that is no record costs itself alone, and a line that is
    said again and again ends the reading. An answer without a record is refused, unless it is
    `END`: one that slipped out of form must never count as a passage that names nothing. One with
    more broken records than whole ones is doubted.
    """

    by_line = True

    def __init__(self, **lists: str) -> None:
        self.lists = lists

    def __hash__(self) -> int:
        return hash(tuple(self.lists.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordsFormat) and list(other.lists.items()) == list(self.lists.items())

    def form(self, signature: "type[dspy.Signature]") -> str:
        models = _models(signature, self)
        lines = ["<TAB>".join([letter, *model.model_fields]) for letter, model in models.items()]
        columns = [
            (letter, name, field) for letter, model in models.items() for name, field in model.model_fields.items()
        ]
        remarks = [f"- {letter} {name}: {field.description}" for letter, name, field in columns if field.description]
        several = any(_is_several(field) for _, _, field in columns)
        rule = ", several values in a field by a semicolon" if several else ""
        return (
            f"Answer with one record a line and nothing else, its fields apart by one tab{rule}; after the last record "
            f"a line {END}:\n" + "\n".join([*lines, END, *remarks])
        )

    def schema(self, signature: "type[dspy.Signature]") -> Schema | None:
        return None

    def read(
        self, signature: "type[dspy.Signature]", answer: str, unread: Callable[[str], None] = _ignored
    ) -> dict[str, object]:
        models, (field, model) = _models(signature, self), _target(signature)
        records: dict[str, list[BaseModel]] = {name: [] for name in self.lists.values()}
        problems: list[str] = []
        said: Counter[str] = Counter()
        ended, broken = False, 0
        for number, line in enumerate(_lines(answer), 1):
            text = line.strip()
            said[text] += 1
            if not text or _RULE.fullmatch(text) or said[text] == 2:
                continue
            if said[text] == REPEATED:
                problems.append(f"line {number} is said a third time: what follows is not read.")
                break
            if _LETTERS_ONLY.sub("", text).upper() == END:
                ended = True
                continue
            try:
                name, record = self._record(text, models, ended)
                records[name].append(record)
            except NotAsAsked as problem:
                problems.append(f"line {number}{problem}")
                broken += self._is_meant(text)
        whole = sum(map(len, records.values()))
        if not whole and (said_otherwise := self._from_json(signature, answer)):
            return said_otherwise
        if not whole and (broken or not ended):
            raise NotAsAsked(next(iter(problems), f"it holds no record and no line {END}."))
        for left_out in problems:
            unread(left_out)
        outputs: dict[str, object] = {field: model(**records)}
        if broken > whole:
            raise Doubtful(f"{broken} of its lines are no records; {problems[0]}", outputs)
        return outputs

    def _from_json(self, signature: "type[dspy.Signature]", answer: str) -> dict[str, object] | None:
        """The outputs of an answer that gives the records as JSON; None where it gives none."""
        try:
            outputs = dict(read_object(answer, _answer_model(signature)))
        except NotAsAsked:
            return None
        (whole,) = outputs.values()
        return outputs if any(getattr(whole, name) for name in self.lists.values()) else None

    def _record(self, text: str, models: Mapping[str, type[BaseModel]], ended: bool) -> tuple[str, BaseModel]:
        """The record in a line, and its list; NotAsAsked with what is wrong."""
        if ended:
            raise NotAsAsked(f" comes after {END}.")
        letter, *values = self._fields(text)
        if letter not in models:
            raise NotAsAsked(f" ({text[:60]!r}) begins with none of {', '.join(models)} and a tab.")
        return self.lists[letter], _record(models[letter], values)

    def _fields(self, text: str) -> list[str]:
        """The letter and the fields of a line, whatever stands before them and between them."""
        # A tab that is written out stands beside real ones, too: "E<TAB>Orla Bridge", then a tab.
        text = _BEFORE_LETTER.sub("", _NAMED_TAB.sub("\t", text)).rstrip("`*")
        for between in _BETWEEN:
            first, *rest = between.split(text.strip("|") if between is _PIPE else text)
            if rest and (letter := self._letter(first)):
                return [letter, *rest]
            word, _, value = first.strip().partition(" ")
            if rest and (letter := self._letter(word)):
                return [letter, value, *rest]
        return [""]

    def _letter(self, word: str) -> str:
        """The letter of a list that a word is, or whose name it begins; empty for any other."""
        word = _LETTERS_ONLY.sub("", word).upper()
        lists = self.lists.items() if len(word) > 4 else ()
        named = (letter for letter, name in lists if name.upper()[:5] == word[:5])
        return word if word in self.lists else next(named, "")

    def _is_meant(self, text: str) -> bool:
        """Whether a line that is no record was to be one."""
        text = _NAMED_TAB.sub("\t", text)
        first = next(iter(_BEFORE_LETTER.sub("", text).split()), "")
        return bool(self._letter(first)) or "\t" in text or "|" in text

    def write(self, signature: "type[dspy.Signature]", outputs: Mapping[str, object]) -> str:
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


def _record(model: type[BaseModel], values: list[str]) -> BaseModel:
    columns = model.model_fields
    while len(values) > len(columns) and not values[-1].strip():
        values.pop()
    names = ", ".join(columns)
    if len(values) > len(columns):
        raise NotAsAsked(f" has {len(values)} fields; the record has {len(columns)}: {names}.")
    if [value.strip().lower() for value in values] == [*columns][: len(values)]:
        raise NotAsAsked(f" repeats the names of the fields: {names}.")
    record: dict[str, object] = {}
    for (name, field), value in zip(columns.items(), map(str.strip, values), strict=False):
        if _is_several(field):
            record[name] = tuple(part.strip() for part in value.split(";") if part.strip())
        elif value or field.is_required():
            record[name] = value
    try:
        return model(**record)
    except ValidationError as error:
        return _without_unread(model, record, error)


def _without_unread(model: type[BaseModel], record: Mapping[str, object], problem: ValidationError) -> BaseModel:
    """The record with the 7 of "7/10", and without what a field that may be missing holds else."""
    wrong = {str(error["loc"][0]) for error in problem.errors(include_url=False)}
    scored = {name: number_of(str(record[name])) for name in wrong & record.keys()}
    without = {name: record[name] for name in record if name not in wrong}
    for values in ({**record, **scored}, without):
        try:
            return model(**values)
        except ValidationError:
            continue
    first = problem.errors(include_url=False)[0]
    raise NotAsAsked(f", {'.'.join(map(str, first['loc']))}: {first['msg']}.") from problem


def _written(value: object) -> str:
    if isinstance(value, tuple | list):
        return "; ".join(map(_written, value))
    return f"{value:g}" if isinstance(value, float) else " ".join(str(value).split())


def _target(signature: "type[dspy.Signature]") -> tuple[str, type[BaseModel]]:
    """The one output field and its model."""
    ((name, field),) = signature.output_fields.items()
    model = field.annotation
    assert issubclass(model, BaseModel)  # noqa: S101 - a step with this format has one model as its output
    return name, model


@memo
def _models(signature: "type[dspy.Signature]", output: RecordsFormat) -> dict[str, type[BaseModel]]:
    """The record of each letter."""
    _, whole = _target(signature)
    return {letter: get_args(whole.model_fields[name].annotation)[0] for letter, name in output.lists.items()}


def _is_several(column: FieldInfo) -> bool:
    return get_origin(column.annotation) in {tuple, list}
