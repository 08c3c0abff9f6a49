"""How does a model answer as one JSON object, and what is refused?

Refused: a key given twice, the signature's fields out of order or missing, a second object, a value of another type.
Accepted: prose around the object, a code fence, a choice in another case.
"""

import json
from collections.abc import Mapping
from typing import Any, get_args

import dspy
from pydantic import BaseModel, TypeAdapter, ValidationError

from prompts.engine.memo import memo
from prompts.engine.messages import NotAsAsked, Schema
from prompts.engine.wire import Field, output_fields

# What a schema for constrained decoding may hold everywhere; the bounds are checked after reading.
_KEPT = {"type", "properties", "required", "items", "anyOf", "enum", "const", "$ref", "$defs"}


class JsonWire:
    """One object whose keys are the output fields."""

    def form(self, signature: type[dspy.Signature]) -> str:
        schema = _full_schema(signature)
        return f"Answer with one JSON object of this form and nothing else:\n{_sketch(schema, schema, 0)}"

    def schema(self, signature: type[dspy.Signature]) -> Schema | None:
        return _strict_schema(signature)

    def read(self, signature: type[dspy.Signature], answer: str) -> dict[str, object]:
        fields = output_fields(signature)
        found = _object(answer)
        names = [field.name for field in fields]
        if list(found) != names:
            raise NotAsAsked(f"the object has the keys {list(found)}, not {names} in this order.")
        for field in fields:
            _check_order(field.name, field.kind, found[field.name])
        return {field.name: _validated(field, found[field.name]) for field in fields}

    def write(self, signature: type[dspy.Signature], outputs: Mapping[str, object]) -> str:
        given = [field for field in output_fields(signature) if field.name in outputs]
        plain = {field.name: field.adapter.dump_python(outputs[field.name], mode="json") for field in given}
        return json.dumps(plain, ensure_ascii=False)


def _object(answer: str) -> dict[str, object]:
    begin = answer.find("{")
    if begin < 0:
        raise NotAsAsked("it holds no JSON object.")
    # Control characters inside a string are a model quoting its source as it stands.
    decoder = json.JSONDecoder(object_pairs_hook=_unique, strict=False)
    try:
        found, end = decoder.raw_decode(answer, begin)
    except json.JSONDecodeError as error:
        raise NotAsAsked(f"the JSON is broken at character {error.pos}: {error.msg}.") from error
    except RecursionError as error:
        raise NotAsAsked("the JSON is nested too deeply.") from error
    if "{" in answer[end:]:
        raise NotAsAsked("more than one JSON object was given.")
    return dict(found)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        raise NotAsAsked(f"the key {next(n for n in names if names.count(n) > 1)!r} is given twice.")
    return made


def _check_order(place: str, kind: object, value: object) -> None:
    """What is to be thought of first must not be written last, in no object of the answer."""
    if isinstance(value, list):
        for item in value:
            _check_order(place, next(iter(get_args(kind)), None), item)
    elif isinstance(value, dict) and isinstance(kind, type) and issubclass(kind, BaseModel):
        given = [name for name in value if name in kind.model_fields]
        asked = [name for name in kind.model_fields if name in value]
        if given != asked:
            raise NotAsAsked(f"{place} has its keys in the order {given}, not {asked}.")
        for name in asked:
            _check_order(f"{place}.{name}", kind.model_fields[name].annotation, value[name])


def _validated(field: Field, value: object) -> object:
    try:
        return field.adapter.validate_python(value)
    except ValidationError as error:
        errors = error.errors(include_url=False)
    # Small models write "Table" for "table": the case of a choice carries nothing.
    if all(_fold_choice(value, problem) for problem in errors):
        try:
            return field.adapter.validate_python(value)
        except ValidationError as error:
            errors = error.errors(include_url=False)
    first = errors[0]
    place = ".".join(str(part) for part in (field.name, *first["loc"]))
    raise NotAsAsked(f"{place} is {str(first['input'])[:80]!r}: {first['msg']}.")


def _fold_choice(value: object, problem: Mapping[str, Any]) -> bool:
    """Sets a choice written in another case, in place; False where that is not the problem."""
    given, loc = problem["input"], problem["loc"]
    if problem["type"] != "literal_error" or not isinstance(given, str) or not loc:
        return False
    choices = [choice.strip().strip("'") for choice in problem["ctx"]["expected"].replace(" or ", ", ").split(", ")]
    fitting = [choice for choice in choices if choice.casefold() == given.strip().casefold()]
    holder: object = value
    for part in loc[:-1]:
        holder = holder[part] if isinstance(holder, dict | list) else None
    if len(fitting) != 1 or not isinstance(holder, dict | list):
        return False
    holder[loc[-1]] = fitting[0]
    return True


# --- schemas ---------------------------------------------------------------------------------------------------------


@memo
def _full_schema(signature: type[dspy.Signature]) -> Schema:
    definitions: Schema = {}
    properties: Schema = {}
    for name, field in signature.output_fields.items():
        made = TypeAdapter(field.annotation).json_schema()
        definitions |= made.pop("$defs", {})
        made.pop("description", None)  # a model's docstring is for us
        said = (field.json_schema_extra or {}).get("desc", "")
        properties[name] = made if said in {"", f"${{{name}}}"} else {**made, "description": said}
    return {"type": "object", "properties": properties, "$defs": definitions}


@memo
def _strict_schema(signature: type[dspy.Signature]) -> Schema:
    made = _strict(_full_schema(signature))
    assert isinstance(made, dict)  # noqa: S101 - an object goes in
    return made if made.get("$defs") else {key: value for key, value in made.items() if key != "$defs"}


def _strict(schema: object) -> object:
    """With all properties required and no others allowed, which is what servers that constrain decoding ask for."""
    if not isinstance(schema, dict):
        return schema
    made = {key: value for key, value in schema.items() if key in _KEPT}
    for group in ("properties", "$defs"):
        if group in made:
            made[group] = {name: _strict(part) for name, part in made[group].items()}
    if "items" in made:
        made["items"] = _strict(made["items"])
    if "anyOf" in made:
        made["anyOf"] = [_strict(part) for part in made["anyOf"]]
    if "properties" in made:
        made |= {"required": list(made["properties"]), "additionalProperties": False}
    return made


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
    lines, inner = [], " " * (depth + 1)
    properties: dict[str, Schema] = part["properties"]  # type: ignore[assignment]
    for place, (name, value) in enumerate(properties.items(), 1):
        comma = "," if place < len(properties) else ""
        remark = f"  // {value['description']}" if "description" in value else ""
        lines.append(f'{inner}"{name}": {_sketch(value, root, depth + 1)}{comma}{remark}')
    return "{\n" + "\n".join(lines) + f"\n{' ' * depth}}}"
