"""The adapter of all steps writes what a model reads, and reads what it answers.

The system message is `Step: <name>`, the instruction and the form of the answer. Examples are
turns of a user and a model. The last user message has a line `[[ ## field ## ]]` before each input
that is not empty; the input is a neutralised string, or JSON on one line. Pictures come after it.
The answer is one JSON object with the signature's output fields, or tab-separated records.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args, get_origin

import dspy
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from prompts.engine.json_reading import number_of, read_object
from prompts.engine.messages import (
    REPEATED,
    Doubtful,
    Message,
    NotAsAsked,
    Schema,
    content_of,
    memo,
)
from prompts.engine.prompt_guard import neutralise, neutralised, restore

Signature = type[dspy.Signature]
END = "END"
# What every server takes in a schema for constrained decoding; reading checks other bounds.
_KEYWORDS = frozenset(
    {"type", "properties", "required", "items", "anyOf", "enum", "const", "$ref", "$defs"}
)
_BOUNDS = frozenset({"maxItems", "maxLength"})
_NAMED_TAB = re.compile(r"\\t|<TAB>|\[TAB\]|<\|>|␉", re.IGNORECASE)
# What models write between the fields of a record, the likeliest first.
_BETWEEN = (re.compile(r"\t"), re.compile(r"\|"), re.compile(r" {2,}"))
_BEFORE_LETTER = re.compile(r"^(?:[-*•–>`|(\s]|\d+[.)]\s)+")
_NO_LETTERS = re.compile(r"[^A-Za-z]")
_RULE = re.compile(r"[\s|:=_*\-–—]+|```\w*")  # a horizontal rule, or a line of a fence


class StepAdapter(dspy.Adapter):
    """Writes prompts and reads answers.

    With `StepAdapter(E="entities", R="relations")` the answer is lines of records for these lists
    of the one output model: each a letter and the fields. Without lists it is JSON. With `items`,
    complete items of its lists are kept of JSON that was cut. With `bounded`, the JSON schema also
    limits the length of lists and texts, which hosted servers may refuse.
    """

    def __init__(self, *, items: bool = False, bounded: bool = False, **lists: str) -> None:
        super().__init__()
        self.lists = lists
        self.by_line = bool(lists)
        self.by_item = items
        self.bounded = bounded

    # --- DSPy's interface ------------------------------------------------------------------------

    def format(
        self,
        signature: Signature,
        demos: Sequence[Mapping[str, Any]],
        inputs: Mapping[str, Any],
    ) -> list[dict[str, Any]]:
        """The messages of a call, as DSPy's LMs take them."""
        messages = self.messages(signature.__name__, signature, demos, inputs)
        return [
            {"role": message.role, "content": content_of(message.content, message.pictures)}
            for message in messages
        ]

    def parse(self, signature: Signature, completion: str) -> dict[str, object]:
        """The outputs of an answer. Raises NotAsAsked."""
        return self.read(signature, restore(completion))

    # --- what a model reads ----------------------------------------------------------------------

    def messages(
        self,
        step: str,
        signature: Signature,
        demos: Sequence[Mapping[str, Any]],
        inputs: Mapping[str, Any],
        language: str = "",
    ) -> tuple[Message, ...]:
        """The system message, the demonstrations that have an output, then the inputs."""
        turns: list[Message] = []
        for demo in demos:
            if any(name in demo for name in signature.output_fields):
                answer = neutralise(self.write(signature, demo))
                turns += [user_message(signature, demo, whole=False), Message("assistant", answer)]
        asked = user_message(signature, inputs, language=language)
        return system_message(step, signature, self), *turns, asked

    def form(self, signature: Signature) -> str:
        """The part of the system message on the answer's form."""
        if not self.lists:
            schema = _full_schema(signature)
            sketch = _sketch(schema, schema, 0)
            return f"Answer with one JSON object of this form and nothing else:\n{sketch}"
        models = self._models(signature)
        lines = ["<TAB>".join([letter, *model.model_fields]) for letter, model in models.items()]
        columns = [
            (letter, name, field)
            for letter, model in models.items()
            for name, field in model.model_fields.items()
        ]
        remarks = [f"- {a} {name}: {it.description}" for a, name, it in columns if it.description]
        several = any(_is_several(field) for _, _, field in columns)
        rule = ", several values in a field by a semicolon" if several else ""
        return (
            f"Answer with one record a line and nothing else, its fields apart by one tab{rule}; "
            f"after the last record a line {END}:\n" + "\n".join([*lines, END, *remarks])
        )

    def schema(self, signature: Signature) -> Schema | None:
        """The JSON schema of the answer; None where it is lines."""
        return None if self.lists else _strict_schema(signature, self.bounded)

    def shape(self, signature: Signature) -> str:
        """The names of the fields, and a hash of their types and of the answer's form.

        The wording of the prompt does not change it.
        """
        own: dict[str, object] = {"lists": self.lists} if self.lists else {}
        if self.by_item:
            own = {"bounded": self.bounded}
        inputs = {name: str(field.annotation) for name, field in signature.input_fields.items()}
        form = json.dumps([inputs, _strict_schema(signature, False), repr(own)], sort_keys=True)
        digest = hashlib.sha256(form.encode()).hexdigest()[:12]
        return f"{', '.join(inputs)} -> {', '.join(signature.output_fields)}, {digest}"

    def write(self, signature: Signature, outputs: Mapping[str, Any]) -> str:
        """An answer with these outputs, as an example for a model."""
        if self.lists:
            field, model = _target(signature)
            whole = model.model_validate(outputs[field])
            lines = [
                "\t".join([letter, *(_written(value) for _, value in record)])
                for letter, name in self.lists.items()
                for record in getattr(whole, name)
            ]
            return "\n".join([*lines, END])
        values = {name: outputs[name] for name in signature.output_fields if name in outputs}
        (first, *more) = values.values()
        only = not more and isinstance(first, BaseModel)
        return json.dumps(to_jsonable_python(first if only else values), ensure_ascii=False)

    # --- what a model writes ---------------------------------------------------------------------

    def read(
        self,
        signature: Signature,
        answer: str,
        unread: Callable[[str], None] = lambda _: None,
    ) -> dict[str, object]:
        """The outputs; NotAsAsked tells what is wrong. `unread` gets what is wrong with each line.

        A line that is no record is left out, and one that comes a third time ends the reading. An
        answer without a record is refused unless it is `END`: an answer out of form must not count
        as a passage that names nothing. More broken lines than records raise Doubtful.
        """
        if not self.lists:
            return dict(read_object(answer, _answer_model(signature)))
        field, model = _target(signature)
        records, problems, broken, ended = self._lines_of(answer, self._models(signature))
        whole = sum(map(len, records.values()))
        if not whole and (outputs_in_json := self._from_json(signature, answer)):
            return outputs_in_json
        if not whole and (broken or not ended):
            raise NotAsAsked(next(iter(problems), f"it holds no record and no line {END}."))
        for left_out in problems:
            unread(left_out)
        outputs: dict[str, object] = {field: model(**records)}
        if broken > whole:
            raise Doubtful(f"{broken} of its lines are no records; {problems[0]}", outputs)
        return outputs

    def _lines_of(
        self, answer: str, models: Mapping[str, type[BaseModel]]
    ) -> tuple[dict[str, list[BaseModel]], list[str], int, bool]:
        """(records by list, problems of other lines, how many are broken, whether END came)."""
        records: dict[str, list[BaseModel]] = {name: [] for name in self.lists.values()}
        problems: list[str] = []
        seen: Counter[str] = Counter()
        ended, broken = False, 0
        for number, line in enumerate(_within_fence(answer), 1):
            text = line.strip()
            seen[text] += 1
            if not text or _RULE.fullmatch(text) or seen[text] == REPEATED - 1:
                continue
            if seen[text] == REPEATED:
                problems.append(f"line {number} is said a third time: what follows is not read.")
                break
            if _NO_LETTERS.sub("", text).upper() == END:
                ended = True
                continue
            letter, values = self._fields(text)
            try:
                if ended:
                    raise NotAsAsked(f" comes after {END}.")
                if not letter:
                    choices = ", ".join(models)
                    raise NotAsAsked(f" ({text[:60]!r}) begins with none of {choices} and a tab.")
                records[self.lists[letter]].append(_record(models[letter], values))
            except NotAsAsked as problem:
                problems.append(f"line {number}{problem}")
                broken += bool(letter) or "\t" in text or "|" in text or bool(self._letter(text))
        return records, problems, broken, ended

    def _from_json(self, signature: Signature, answer: str) -> dict[str, object] | None:
        """The outputs of an answer with the records in JSON; None where it has none."""
        try:
            outputs = dict(read_object(answer, _answer_model(signature)))
        except NotAsAsked:
            return None
        (whole,) = outputs.values()
        return outputs if any(getattr(whole, name) for name in self.lists.values()) else None

    def _fields(self, text: str) -> tuple[str, list[str]]:
        """The letter and the fields of a line, whatever stands before and between them."""
        # Tabs may be spelt out in one place and real in another.
        text = _BEFORE_LETTER.sub("", _NAMED_TAB.sub("\t", text)).rstrip("`*|")
        for between in _BETWEEN:
            first, *rest = between.split(text)
            word, _, value = first.strip().partition(" ")
            if rest and (letter := self._letter(word)):
                return letter, [value, *rest] if value.strip("*: ") else rest
        return "", []

    def _letter(self, text: str) -> str:
        """The letter that a word is, or of the list whose name it begins; empty for any other."""
        word = _NO_LETTERS.sub("", next(iter(text.split()), "")).upper()
        if word in self.lists:
            return word
        long = self.lists.items() if len(word) > 4 else ()
        return next((letter for letter, name in long if name.upper()[:5] == word[:5]), "")

    def _models(self, signature: Signature) -> dict[str, type[BaseModel]]:
        fields = _target(signature)[1].model_fields
        return {letter: get_args(fields[name].annotation)[0] for letter, name in self.lists.items()}


# --- requests ------------------------------------------------------------------------------------


@memo
def system_message(step: str, signature: Signature, adapter: StepAdapter) -> Message:
    """The message that all calls of a step share."""
    instructions = unwrapped(str(signature.instructions))
    return Message("system", f"Step: {step}\n{instructions}\n\n{adapter.form(signature)}")


@memo
def unwrapped(text: str) -> str:
    """A text without the line breaks inside paragraphs and items of lists.

    An empty line separates paragraphs, and an item begins with "- ".
    """
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
    signature: Signature, inputs: Mapping[str, Any], whole: bool = True, language: str = ""
) -> Message:
    """The inputs that are not empty, neutralised, and the language to write in.

    With `whole`, a missing input is a TypeError, because a model would invent it.
    """
    missing = [name for name in signature.input_fields if name not in inputs]
    if missing and whole:
        raise TypeError(f"The step needs the input {missing[0]!r}.")
    given = [(name, inputs[name]) for name in signature.input_fields if name in inputs]
    pictures = tuple(value.url for _, value in given if isinstance(value, dspy.Image))
    written = [(name, value) for name, value in given if not isinstance(value, dspy.Image)]
    shown = [(name, value) for name, value in written if value not in ("", [])]
    parts = [f"[[ ## {name} ## ]]\n{_shown(value)}" for name, value in shown]
    if language:
        parts.append(f"Write in {neutralise(language)}.")
    return Message("user", "\n\n".join(parts), pictures)


def _shown(value: object) -> str:
    if isinstance(value, str):
        return neutralise(value)
    return json.dumps(neutralised(value), ensure_ascii=False)


def texts(value: object) -> Iterator[str]:
    """Every string in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, BaseModel):
        yield from texts(list(vars(value).values()))
    elif isinstance(value, dict):
        yield from texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts(inner)


# --- JSON ----------------------------------------------------------------------------------------


@memo
def _answer_model(signature: Signature) -> type[BaseModel]:
    outputs = signature.output_fields.items()
    fields: dict[str, Any] = {name: (field.annotation, ...) for name, field in outputs}
    return create_model("Outputs", __config__=ConfigDict(extra="forbid"), **fields)


@memo
def _full_schema(signature: Signature) -> Schema:
    """The schema of the one output model, or of an object with a key for each output."""
    kinds = [field.annotation for field in signature.output_fields.values()]
    if len(kinds) == 1 and isinstance(kinds[0], type) and issubclass(kinds[0], BaseModel):
        schema = kinds[0].model_json_schema()
        schema.pop("description", None)  # a model's docstring is for programmers
        return schema
    definitions: Schema = {}
    properties: Schema = {}
    for name, field in signature.output_fields.items():
        schema = TypeAdapter(field.annotation).json_schema()
        definitions |= schema.pop("$defs", {})
        schema.pop("description", None)
        description = str((field.json_schema_extra or {}).get("desc", ""))
        if description and description != f"${{{name}}}":
            schema["description"] = description
        properties[name] = schema
    return {"type": "object", "properties": properties, "$defs": definitions}


@memo
def _strict_schema(signature: Signature, bounded: bool) -> Schema:
    keywords = _KEYWORDS | _BOUNDS if bounded else _KEYWORDS
    schema: Schema = _strict(_full_schema(signature), keywords)
    if not bounded and not schema.get("$defs"):
        schema.pop("$defs", None)
    return schema


def _strict(schema: Any, keywords: frozenset[str]) -> Any:
    """The schema with all properties required and no others allowed, for constrained decoding."""
    if not isinstance(schema, dict):
        return schema
    result = {key: value for key, value in schema.items() if key in keywords}
    for group in ("properties", "$defs"):
        if group in result:
            parts = result[group].items()
            result[group] = {name: _strict(part, keywords) for name, part in parts}
    if "items" in result:
        result["items"] = _strict(result["items"], keywords)
    if "anyOf" in result:
        result["anyOf"] = [_strict(part, keywords) for part in result["anyOf"]]
    if "properties" in result:
        result |= {"required": list(result["properties"]), "additionalProperties": False}
    return result


def _sketch(part: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    """A schema in few tokens: JSON with types as values, and descriptions as comments."""
    if "$ref" in part:
        return _sketch(root["$defs"][str(part["$ref"]).rpartition("/")[2]], root, depth)
    if "anyOf" in part:
        return " | ".join(_sketch(option, root, depth) for option in part["anyOf"])
    if "enum" in part or "const" in part:
        choices = part.get("enum", [part.get("const")])
        return " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
    if part.get("type") == "array":
        return f"[{_sketch(part['items'], root, depth)}, …]" if "items" in part else "[…]"
    if "properties" in part:
        return _sketch_object(part, root, depth)
    words = (("from", "minimum"), ("to", "maximum"))
    bounds = [f"{word} {part[key]:g}" for word, key in words if key in part]
    return " ".join([str(part.get("type", "any")), *bounds])


def _sketch_object(part: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    """An object; an inner one without descriptions on one line, since models then write it so."""
    lines, inner, properties = [], " " * (depth + 1), part["properties"]
    if depth and not any("description" in value for value in properties.values()):
        shown = (f'"{key}": {_sketch(it, root, depth + 1)}' for key, it in properties.items())
        return "{" + ", ".join(shown) + "}"
    for place, (name, value) in enumerate(properties.items(), 1):
        comma = "," if place < len(properties) else ""
        remark = f"  // {value['description']}" if "description" in value else ""
        lines.append(f'{inner}"{name}": {_sketch(value, root, depth + 1)}{comma}{remark}')
    return "{\n" + "\n".join(lines) + f"\n{' ' * depth}}}"


# --- records -------------------------------------------------------------------------------------


def _within_fence(answer: str) -> list[str]:
    """The lines of the answer; only those inside the code fence, where there is one."""
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
    record: dict[str, Any] = {}
    for (name, field), value in zip(columns.items(), map(str.strip, values), strict=False):
        if _is_several(field):
            record[name] = tuple(part.strip() for part in value.split(";") if part.strip())
        elif value or field.is_required():
            record[name] = value
    try:
        return model(**record)
    except ValidationError as error:
        return _without_unread(model, record, error)


def _without_unread(
    model: type[BaseModel], record: Mapping[str, Any], problem: ValidationError
) -> BaseModel:
    """The record with 7 for "7/10", or without the optional fields that cannot be read."""
    wrong = {str(error["loc"][0]) for error in problem.errors(include_url=False)}
    scored = {name: number_of(str(record[name])) for name in wrong & record.keys()}
    without = {name: record[name] for name in record if name not in wrong}
    for values in ({**record, **scored}, without):
        try:
            return model(**values)
        except ValidationError:
            continue
    first = problem.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    raise NotAsAsked(f", {place}: {first['msg']}.") from problem


def _written(value: object) -> str:
    if isinstance(value, tuple | list):
        return "; ".join(map(_written, value))
    return f"{value:g}" if isinstance(value, float) else " ".join(str(value).split())


def _target(signature: Signature) -> tuple[str, type[BaseModel]]:
    """The one output field and its model."""
    ((name, field),) = signature.output_fields.items()
    model: type[BaseModel] = field.annotation
    return name, model


def _is_several(column: FieldInfo) -> bool:
    return get_origin(column.annotation) in {tuple, list}
