"""Answers that go round, as small models write them until they are cut, and what of a cut answer
still stands.

A line of records, an item of a list in JSON, or a sentence of a text that is said three times ends
the answer: what came before stays. A shorter piece counts from a thousand characters on, for a list
may well say "yes" ten times.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic_core import from_json

from prompts.engine.calls import REPEATED, Call, rough_tokens, whole_lines
from prompts.text.regex import regex

# What is shorter than a sentence of a few words may be said of many things.
_TELLING = 6  # tokens
_TAIL = 1000  # characters that are one piece, said again and again
_LONGEST_PIECE = 200  # characters of that piece
_SENTENCE = regex(r"[^.!?。！？\n]*(?:[.!?。！？]+[\"'”’»)\]]*|\n|\Z)")


def goes_round(text: str, call: Call) -> bool:
    """Whether an answer says the same again and again."""
    if call.by_line:
        lines = (line for line in map(str.strip, text.split("\n")) if any(map(str.isalnum, line)))
        return _third(lines) is not None or _period(text) > 0
    if _period(text):
        return True
    value = text if call.schema is None else _begun(text)  # None where it cannot be read: lines of JSON are alike
    return any(_loop_of(part) is not None for part in _parts(value))


def standing(text: str, call: Call) -> str | None:
    """What stands of an answer that was cut or goes round; None where nothing does.

    Whole lines of records; whole items, where a list's items stand for themselves (`by_item`); of a
    text that goes round, what came before it did.
    """
    if call.by_line:
        return whole_lines(text) if "\n" in text else None
    round_and_round = goes_round(text, call)
    if call.schema is None:
        return _before_loops(text) or None if round_and_round else None
    value = _begun(text)
    if value is None:
        return None
    in_list = any(isinstance(part, list) and _loop_of(part) is not None for part in _parts(value))
    if round_and_round and (call.by_item or not in_list):
        return json.dumps(_before_loops(value), ensure_ascii=False)
    kept = _without_last_item(value) if call.by_item else None
    return None if kept is None else json.dumps(kept, ensure_ascii=False)


def _begun(text: str) -> dict[str, Any] | None:
    """The object that an answer of JSON holds as far as it came; None where it cannot be read."""
    begin = text.find("{")
    try:
        value = from_json(text[begin:], allow_partial="trailing-strings") if begin >= 0 else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _parts(value: object) -> Iterator[list[Any] | str]:
    """The lists and the texts in a value, from the outside in."""
    if isinstance(value, list | str):
        yield value
    if isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _parts(part)


def _loop_of(part: list[Any] | str) -> int | None:
    """Where a list or a text begins to go round: the place of an item, or of a character; None
    where it does not."""
    if isinstance(part, list):
        return _third(_said(item) for item in part)
    sentences = [found for found in _SENTENCE.finditer(part) if found[0].strip()]
    told = (found[0].strip() if rough_tokens(found[0].strip()) >= _TELLING else None for found in sentences)
    at = _third(told)
    if at is not None:
        return sentences[at].start()
    period = _period(part)
    return _beginning(part, period) if period else None


def _said(item: object) -> str | None:
    """An item of a list in words; None where it says too little to count as said again."""
    texts = [part for part in _parts(item) if isinstance(part, str)]
    return json.dumps(item, sort_keys=True) if rough_tokens(" ".join(texts)) >= _TELLING else None


def _third(said: Iterable[str | None]) -> int | None:
    """The place at which what is said three times is said for the second time."""
    times, second = Counter[str](), dict[str, int]()
    for place, words in enumerate(said):
        if words is None:
            continue
        times[words] += 1
        if times[words] == REPEATED - 1:
            second[words] = place
        if times[words] == REPEATED:
            return second[words]
    return None


def _period(text: str) -> int:
    """The length of the piece that the text's end repeats; 0 where it repeats none."""
    tail = text[-_TAIL:]
    if len(tail) < _TAIL:
        return 0
    return next((size for size in range(1, _LONGEST_PIECE + 1) if tail[size:] == tail[:-size]), 0)


def _beginning(text: str, period: int) -> int:
    """Where the piece stands for the second time that the text's end repeats."""
    at = len(text) - _TAIL
    while at > 0 and text[at - 1] == text[at - 1 + period]:
        at -= 1
    return at + period


def _before_loops(value: Any) -> Any:
    """The value with each list and text ended before it goes round."""
    if isinstance(value, dict):
        return {name: _before_loops(part) for name, part in value.items()}
    if isinstance(value, str):
        return value[: _loop_of(value)].rstrip()
    if isinstance(value, list):
        return [_before_loops(item) for item in value[: _loop_of(value)]]
    return value


def _without_last_item(value: dict[str, Any]) -> dict[str, Any] | None:
    """The object without the item within which it was cut: the last one of the list that stands
    last."""
    if not value:
        return None
    name, last = list(value.items())[-1]
    if isinstance(last, list):
        return {**value, name: last[:-1]} if len(last) > 1 else None
    inner = _without_last_item(last) if isinstance(last, dict) else None
    return None if inner is None else {**value, name: inner}
