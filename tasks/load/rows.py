"""Rows of a file: documents, triples, or something to put aside.

A row with `text` is a document; a row with `s`, `p`, `o` and no `text` is a triple (optional `weight`, `document`);
anything else is a dead letter, and the rest goes on. Names are kept as written, but for line breaks and outer space.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping

from prompts.text.defined import opening_subject
from storage.records import DeadLetter, Part, Record, Scalar, Triple
from tasks.load.discover import Found
from tasks.load.plain import clean, one_line, pretty_stem, scalars, stem, title_of

_REMEDY = "Give the row a `text` (a document) or `s`, `p` and `o` (a triple), then index again."
# A longer one is cut by passages, and then none of them holds it.
_LONGEST_TRIPLE = 1000
_RESERVED = frozenset({"id", "title", "text"})


class Rows(Record):
    """What the rows of one file became."""

    parts: tuple[Part, ...]
    dead_letters: tuple[DeadLetter, ...]


class BadRow(Exception):
    """A row is neither a document nor a triple; the text says why."""


def read_jsonl(text: str, file: Found) -> Rows:
    """The rows of a JSON Lines text; blank lines are no rows."""
    lines = ((number, line) for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1) if line.strip())
    return collect(((number, _parsed(line)) for number, line in lines), file)


def collect(rows: Iterable[tuple[int, object]], file: Found) -> Rows:
    """Documents in row order, then one triples part per document named; `rows` are (line, parsed row or `BadRow`)."""
    parts: list[Part] = []
    dead: list[DeadLetter] = []
    triples: dict[str, dict[tuple[str, str, str], float]] = {}
    for line, row in rows:
        try:
            part, triple, document = _read(row, line, file)
        except BadRow as bad:
            dead.append(DeadLetter(item=f"{file.path}:{line}", step="load", error=str(bad), remedy=_REMEDY))
            continue
        if part:
            parts.append(part)
        if triple:
            weights = triples.setdefault(document, {})
            key = (triple.s, triple.p, triple.o)
            weights[key] = weights.get(key, 0.0) + triple.weight
    for document, weights in triples.items():
        parts.append(_triples_part(document, weights, file))
    return Rows(parts=tuple(parts), dead_letters=tuple(dead))


def is_row(value: object) -> bool:
    """Whether a parsed value is a document or a triple."""
    if not isinstance(value, dict):
        return False
    try:
        return bool(_text(value)) or bool(_triple(value))
    except BadRow:
        return False


def _parsed(line: str) -> object:
    try:
        # Control characters inside strings are no reason to lose a row: they are cleaned away below.
        return json.loads(line, strict=False)
    except (ValueError, RecursionError) as error:
        return BadRow(f"not valid JSON: {error}")


def _read(row: object, line: int, file: Found) -> tuple[Part | None, Triple | None, str]:
    if isinstance(row, BadRow):
        raise row
    if not isinstance(row, dict):
        raise BadRow(f"not an object but a {type(row).__name__}")
    text = _text(row)
    if text is not None:
        return _text_part(row, text, line, file), None, ""
    return None, _triple(row), _identifier(row.get("document")) or file.id


def _text(row: Mapping[str, object]) -> str | None:
    text = row.get("text")
    if text is None:
        return None
    if not isinstance(text, str):
        raise BadRow(f"`text` is not a string but a {type(text).__name__}")
    cleaned = clean(text)
    if cleaned.strip():
        return cleaned
    if "s" in row:
        return None
    raise BadRow("`text` is empty")


def _text_part(row: Mapping[str, object], text: str, line: int, file: Found) -> Part:
    own = _identifier(row.get("id"))
    given = row.get("title")
    title = one_line(clean(given)) if isinstance(given, str) else ""
    return Part(
        document=own or f"{file.id}#{line}",
        source=file.source,
        path=f"{file.path}:{line}",
        kind="text",
        title=title or opening_subject(text) or title_of(text, own or f"{pretty_stem(file.id)} {line}", {}),
        text=text,
        metadata=scalars({key: value for key, value in row.items() if key not in _RESERVED}),
    )


def _identifier(value: object) -> str:
    """An id as text; empty where there is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return one_line(clean(str(value)))


def _triple(row: Mapping[str, object]) -> Triple:
    missing = [name for name in ("s", "p", "o") if name not in row]
    if missing:
        raise BadRow("the row has neither `text` nor all of `s`, `p`, `o`")
    s, p, o = (_identifier(row[name]) for name in ("s", "p", "o"))
    for name, value in (("s", s), ("p", p), ("o", o)):
        if not value:
            raise BadRow(f"`{name}` is empty or not a string")
    triple = Triple(s=s, p=p, o=o, weight=_weight(row.get("weight")))
    length = len(triple.rendered())
    if length > _LONGEST_TRIPLE:
        raise BadRow(f"the triple has {length} characters, more than {_LONGEST_TRIPLE}: what is so long is a `text`")
    return triple


def _weight(value: object) -> float:
    if value is None or value == "":
        return 1.0
    try:
        weight = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        weight = math.nan
    if not (math.isfinite(weight) and weight > 0):
        raise BadRow(f"`weight` is not a number above zero: {value!r}")
    return weight


def _triples_part(document: str, weights: Mapping[tuple[str, str, str], float], file: Found) -> Part:
    triples = tuple(Triple(s=s, p=p, o=o, weight=weight) for (s, p, o), weight in weights.items())
    return Part(
        document=document,
        source=file.source,
        path=file.path,
        kind="triples",
        title=stem(file.id) if document == file.id else document,
        text="\n".join(triple.rendered() for triple in triples),
        triples=triples,
    )


# --- JSON that is no rows --------------------------------------------------------------------------------------


def readable_json(value: object) -> str:
    """Any JSON as lines of `key: value`, keys joined by dots; a list of flat objects gives one line per object."""
    return "\n".join(_lines(value, ""))


def _lines(value: object, name: str) -> Iterator[str]:
    label = f"{name}: " if name else ""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _lines(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and value and all(isinstance(item, dict) and _flat(item) for item in value):
        yield from (label + " | ".join(f"{key}: {_shown(inner)}" for key, inner in item.items()) for item in value)
    elif isinstance(value, list) and _flat({"": value}) and value:
        yield label + ", ".join(_shown(item) for item in value)
    elif isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield from _lines(item, f"{name}[{number}]")
    else:
        yield label + _shown(value)


def _flat(row: Mapping[str, object]) -> bool:
    """Whether no value holds more than a list of plain values."""
    return not any(
        isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict | list) for item in value))
        for value in row.values()
    )


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return clean(str(value))


def metadata_of(values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Metadata without the title, which a document has a place of its own for."""
    return {key: value for key, value in values.items() if key != "title"}
