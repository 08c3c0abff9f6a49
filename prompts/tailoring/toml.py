"""How is a tailoring kept in a file? As a table `[tailoring]`, the same in `trellis.toml` and in its own file."""

import json
import tomllib
from collections.abc import Iterable

from prompts.tailoring.values import Example, Tailoring

TABLE = "tailoring"


def from_toml(text: str) -> Tailoring:
    """The tailoring that a file's text holds; only what it names counts as set.

    Raises ValueError: TOMLDecodeError, pydantic's ValidationError, or one that names a table that does not belong here.
    """
    tables = tomllib.loads(text)
    others = [name for name in tables if name != TABLE]
    if others:
        raise ValueError(f"It holds {others[0]!r}; only [{TABLE}] belongs here.")
    return Tailoring.model_validate(tables.get(TABLE, {}))


def to_toml(tailoring: Tailoring) -> str:
    """What `from_toml` reads back; values that are not set are left out."""
    lines = [f"[{TABLE}]"]
    if tailoring.persona:
        lines.append(f"persona = {_quoted(tailoring.persona)}")
    if tailoring.language:
        lines.append(f"language = {_quoted(tailoring.language)}")
    if tailoring.entity_types:
        lines += ["entity_types = [", *(f"  {_quoted(str(one))}," for one in tailoring.entity_types), "]"]
    for example in tailoring.examples:
        lines += ["", *_example(example)]
    return "\n".join(lines) + "\n"


def _example(example: Example) -> list[str]:
    lines = [f"[[{TABLE}.examples]]"]
    if example.title:
        lines.append(f"title = {_quoted(example.title)}")
    lines.append(f"passage = {_quoted(example.passage)}")
    for name, records in (("entities", example.entities), ("relations", example.relations)):
        tables = (
            ", ".join(f"{key} = {_value(value)}" for key, value in record.model_dump().items() if value != ())
            for record in records
        )
        lines += [f"{name} = [", *(f"  {{ {table} }}," for table in tables), "]"]
    return lines


def _value(value: object) -> str:
    if isinstance(value, str):
        return _quoted(value)
    return f"[{', '.join(map(_value, value))}]" if isinstance(value, Iterable) else repr(value)


def _quoted(text: str) -> str:
    """A basic string: JSON's, but for DELETE, which TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
