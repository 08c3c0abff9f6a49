"""Reads requests and writes answers in their form.

The protocol rests on no wording of a prompt:

- The system message, or else what precedes the fields of the first user message, holds a line
  `Step: extract` (any step of `RULES`).
- The last user message with fields holds them as `[[ ## name ## ]]` blocks, in JSON if they are no
  strings. A last line `Write in English.` and a repair belong to no field. A line `- kind: one of
  a; b (what it is).` of the system message is the field `kinds`.
- The answer is *records* where the system message has lines such as `E<TAB>name<TAB>kind`: a line
  for each item with these parts, several values separated by semicolons, then `END`. Otherwise it
  is one *JSON object* with the keys of the schema in `response_format`, or of the object that the
  system message shows, one space deep.

It is as gullible as a model: a `[[ ## field ## ]]` line in a passage replaces that field.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.server.answers import Answered, Fields, NoRuleError

Json = Mapping[str, object]
Layout = Mapping[str, tuple[str, ...]]

END = "END"
_UNASKED = {"claims"}  # parts that only some requests ask for
_STEP = re.compile(r"^\s*Step:\s*([\w-]+)\s*$", re.M)
_FIELD = re.compile(r"^\[\[ ## (\w+) ## \]\]\n?", re.M)
_REFUSED = re.compile(r"\n\nAn earlier answer cannot be read: .*\Z", re.S)
_KINDS = re.compile(r"^- kind: one of ([^\n]+)\.$", re.M)
_LANGUAGE = re.compile(r"\n\nWrite in [^\n]+\.\s*\Z")
_SHOWN_KEY = re.compile(r'^ "(\w+)":', re.M)
_RECORD = re.compile(r"^\w+(?:<TAB>\w+)+$", re.M)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: it asks for an object with the keys `outputs` or for records in a `layout`."""

    step: str
    fields: Fields
    outputs: tuple[str, ...]
    layout: Layout


def step_of(body: Json) -> str | None:
    """The step that the system message names."""
    named = _STEP.search(_system(body))
    return named[1] if named else None


def read(body: Json) -> Asked:
    """The step, its fields and the answer's form; NoRuleError without a step or fields."""
    step, system = step_of(body), _system(body)
    if step is None:
        raise NoRuleError("the system message holds no line `Step: <name>`")
    turns = [text for role, text in _messages(body) if role == "user"]
    fields = next((found for text in reversed(turns) if (found := read_fields(text))), None)
    if fields is None:
        raise NoRuleError("no user message holds fields, written as `[[ ## name ## ]]`")
    if kinds := _KINDS.search(system):
        fields = {"kinds": [kind.partition(" (")[0] for kind in kinds[1].split("; ")], **fields}
    lines = (line.split("<TAB>") for line in _RECORD.findall(system))
    layout = {kind: tuple(parts) for kind, *parts in lines}
    return Asked(step, fields, () if layout else _outputs(body, system), layout)


def read_fields(text: str) -> Fields:
    """The blocks of a user message; of two with one name the last."""
    text = _LANGUAGE.sub("", _REFUSED.sub("", text))
    _, *parts = _FIELD.split(text)
    return {
        name: _value(block.strip()) for name, block in zip(parts[::2], parts[1::2], strict=True)
    }


def write(asked: Asked, answer: Answered) -> str:
    """The content in the form asked for; NoRuleError where the rule gives nothing of it."""
    given = answer.items()
    parts = {k: it for k, it in given if k not in _UNASKED or _is_asked(k, it, asked)}
    if asked.layout:
        return _records(parts, asked)
    named = set(asked.outputs) & set(parts) or not asked.outputs
    if not named and len(asked.outputs) == 1:
        return json.dumps({asked.outputs[0]: parts}, ensure_ascii=False)
    if not named:
        wanted, had = ", ".join(asked.outputs), ", ".join(parts)
        raise NoRuleError(f"the step {asked.step!r} is asked for {wanted}; its rule gives {had}")
    made = {name: parts[name] for name in asked.outputs or parts if name in parts}
    return json.dumps(made, ensure_ascii=False)


def _is_asked(name: str, part: object, asked: Asked) -> bool:
    """Whether the object has a key for these items, or the layout a kind of record."""
    first = set(part[0]) if isinstance(part, list) and part else set()
    return name in asked.outputs or any(first >= set(it) for it in asked.layout.values())


def _records(parts: Json, asked: Asked) -> str:
    lists = [list(part) for part in parts.values() if isinstance(part, list) and part]
    if not any(isinstance(part, list) for part in parts.values()):
        lists = [[parts]]  # an answer without a list is the one record
    lines = []
    for kind, columns in asked.layout.items():
        for items in [it for it in lists if set(columns) <= set(it[0])][:1]:
            lists.remove(items)
            lines += ["\t".join([kind, *(_cell(item[it]) for it in columns)]) for item in items]
    if lists:
        raise NoRuleError(f"{asked.step!r} has no kind of record for items such as {lists[0][0]}")
    return "\n".join([*lines, END])


def _cell(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(map(_cell, value))
    return f"{value:g}" if isinstance(value, float) else " ".join(str(value).split())


def _outputs(body: Json, system: str) -> tuple[str, ...]:
    asked = body.get("response_format")
    inner = asked.get("json_schema") if isinstance(asked, dict) else None
    schema = inner.get("schema") if isinstance(inner, dict) else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return tuple(properties) if isinstance(properties, dict) else tuple(_SHOWN_KEY.findall(system))


def _value(block: str) -> str | list[str]:
    if not block.startswith("["):
        return block
    try:
        items = json.loads(block)
    except json.JSONDecodeError:
        return block
    return [it if isinstance(it, str) else json.dumps(it, ensure_ascii=False) for it in items]


def cut(body: Json, fraction: float) -> Json:
    """The request with only this part of its last message."""
    given: Any = body["messages"]
    text = str(given[-1]["content"])
    last = {**given[-1], "content": text[: int(len(text) * fraction)]}
    return {**body, "messages": [*given[:-1], last]}


def texts_of(body: Json) -> list[str]:
    """The text of every message."""
    return [text for _, text in _messages(body)]


def _messages(body: Json) -> Sequence[tuple[str, str]]:
    given = body.get("messages")
    turns = [turn for turn in given if isinstance(turn, dict)] if isinstance(given, list) else []
    return [(str(turn.get("role")), _written(turn.get("content"))) for turn in turns]


def _written(content: object) -> str:
    """The text of a turn, whose content is a text or, with pictures, a list of parts."""
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if part["type"] == "text")
    return str(content or "")


def _system(body: Json) -> str:
    turns = _messages(body)
    system = "\n".join(text for role, text in turns if role in {"system", "developer"})
    return system or next((_FIELD.split(text)[0] for role, text in turns if role == "user"), "")
