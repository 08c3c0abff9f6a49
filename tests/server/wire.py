"""How a request says what is asked, and how the answer is written.

The protocol, which rests on no wording of a prompt:

- the system message holds a line `Step: extract` (any step of `RULES`); without one, what stands
  before the fields of the first user message is it;
- the last user message with fields holds them as `[[ ## name ## ]]` blocks, what is no string as
  JSON; a last line `Write in English.`, and what a second try says of the first answer, belong to
  none of them. A line `- kind: one of a; b (what it is).` of the system message is the field
  `kinds`;
- the answer's form is
- *records* where the system message states a layout, lines such as `E<TAB>name<TAB>kind`: a line
  for each item of the answer that has these parts, several values apart by a semicolon, `END` after
  the last;
- else one *JSON object* with the keys of the schema in `response_format`, or of the object that the
  system message shows, one space deep.

This file alone knows the wire: it changes with it, the rules do not. It is as gullible as a model:
a passage with a `[[ ## field ## ]]` line of its own takes that field over.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.server.answers import Answered, Fields, NoRuleError

Json = Mapping[str, object]
Layout = Mapping[str, tuple[str, ...]]

END = "END"
# What a rule gives besides: a request that does not ask for it is answered without it.
_UNASKED = {"claims"}
_STEP = re.compile(r"^\s*Step:\s*([\w-]+)\s*$", re.M)
_FIELD = re.compile(r"^\[\[ ## (\w+) ## \]\]\n?", re.M)
_REFUSED = re.compile(r"\n\nAn earlier answer cannot be read: .*\Z", re.S)
_KINDS = re.compile(r"^- kind: one of ([^\n]+)\.$", re.M)
_LANGUAGE = re.compile(r"\n\nWrite in [^\n]+\.\s*\Z")
_SHOWN_KEY = re.compile(r'^ "(\w+)":', re.M)
_RECORD = re.compile(r"^\w+(?:<TAB>\w+)+$", re.M)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, read. `outputs` are the keys of the object, `layout` the records; a request has
    one or the other.
    """

    step: str
    fields: Fields
    outputs: tuple[str, ...]
    layout: Layout


def step_of(body: Json) -> str | None:
    """The step that the system message names."""
    named = _STEP.search(_system(body))
    return named[1] if named else None


def read(body: Json) -> Asked:
    """The step, its fields and the answer's form; NoRuleError where the request names no step or
    holds no fields.
    """
    step, system = step_of(body), _system(body)
    if step is None:
        raise NoRuleError("the system message holds no line `Step: <name>`")
    turns = [text for role, text in _messages(body) if role == "user"]
    fields = next((found for text in reversed(turns) if (found := read_fields(text))), None)
    if fields is None:
        raise NoRuleError("no user message holds fields, written as `[[ ## name ## ]]`")
    if kinds := _KINDS.search(system):
        fields = {"kinds": [kind.partition(" (")[0] for kind in kinds[1].split("; ")], **fields}
    layout = {
        kind: tuple(parts)
        for kind, *parts in (line.split("<TAB>") for line in _RECORD.findall(system))
    }
    return Asked(step, fields, () if layout else _outputs(body, system), layout)


def read_fields(text: str) -> Fields:
    """The blocks of a user message; of two with one name the last."""
    text = _LANGUAGE.sub("", _REFUSED.sub("", text))
    marks = list(_FIELD.finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    # Without a mark `ends` is the longer one.
    return {
        mark[1]: _value(text[mark.end() : end].strip())
        for mark, end in zip(marks, ends, strict=False)
    }


def write(asked: Asked, answer: Answered) -> str:
    """The message's content in the form asked for, without what the rule lacks; NoRuleError where
    it has nothing.
    """
    parts = {
        name: part
        for name, part in answer.items()
        if name not in _UNASKED or _is_asked(name, part, asked)
    }
    if asked.layout:
        return _records(parts, asked)
    named = set(asked.outputs) & set(parts) or not asked.outputs
    if not named and len(asked.outputs) == 1:
        return json.dumps({asked.outputs[0]: parts}, ensure_ascii=False)
    if not named:
        raise NoRuleError(
            f"the step {asked.step!r} is asked for {', '.join(asked.outputs)}; its rule gives "
            f"{', '.join(parts)}"
        )
    return json.dumps(
        {name: parts[name] for name in asked.outputs or parts if name in parts}, ensure_ascii=False
    )


def _is_asked(name: str, part: object, asked: Asked) -> bool:
    """Whether the object has a key for these items, or the layout a kind of record."""
    items = [set(item) for item in part if isinstance(item, dict)] if isinstance(part, list) else []
    return name in asked.outputs or any(
        set(columns) <= item for columns in asked.layout.values() for item in items[:1]
    )


def _records(parts: Json, asked: Asked) -> str:
    lists = [list(part) for part in parts.values() if isinstance(part, list) and part]
    if not any(isinstance(part, list) for part in parts.values()):
        lists = [[parts]]  # an answer without a list is the one record
    lines = []
    for kind, columns in asked.layout.items():
        fitting = next(
            (
                items
                for items in lists
                if isinstance(items[0], dict) and set(columns) <= set(items[0])
            ),
            None,
        )
        if fitting is None:
            continue
        lists.remove(fitting)
        lines += [
            "\t".join([kind, *(_cell(item[column]) for column in columns)]) for item in fitting
        ]
    if lists:
        raise NoRuleError(
            f"the records of {asked.step!r} have no kind for items such as {lists[0][0]}"
        )
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
    return [
        item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in items
    ]


def cut(body: Json, fraction: float) -> Json:
    """The request as a server reads it that has room for this part of its last message only."""
    given = body.get("messages")
    if not isinstance(given, list) or not given or not isinstance(given[-1], dict):
        return body
    text = str(given[-1].get("content"))
    return {
        **body,
        "messages": [*given[:-1], {**given[-1], "content": text[: int(len(text) * fraction)]}],
    }


def texts_of(body: Json) -> list[str]:
    """The text of every message."""
    return [text for _, text in _messages(body)]


def _messages(body: Json) -> Sequence[tuple[str, str]]:
    given = body.get("messages")
    turns = [turn for turn in given if isinstance(turn, dict)] if isinstance(given, list) else []
    return [(str(turn.get("role")), str(turn.get("content") or "")) for turn in turns]


def _system(body: Json) -> str:
    turns = _messages(body)
    system = "\n".join(text for role, text in turns if role in {"system", "developer"})
    return system or next((_FIELD.split(text)[0] for role, text in turns if role == "user"), "")
