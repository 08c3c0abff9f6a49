"""Answers while they are written: what is shown of them, and whether they repeat themselves.

Small models sometimes say the same thing until they are cut. A line of records that comes three
times, or a tail that repeats one piece, ends the answer; what came before is kept.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from pydantic_core import from_json

from prompts.engine.key_masking import held_back, mask_keys
from prompts.engine.messages import CUT, REPEATED, Call, visible_so_far

_SENTENCE_END = re.compile(r"[.!?。！？\n]")
_TAIL = 1000  # characters at the end that repeat one piece
_LONGEST_PIECE = 333  # characters of that piece: it comes three times in the tail


class Withdrawn:
    """Tells a watcher to forget what was shown: another answer follows, or an error."""


Show = Callable[[str | Withdrawn], None]


class Draft:
    """What one watcher sees of an answer; without `show` nobody watches."""

    def __init__(self, show: Show | None = None) -> None:
        self._show = show
        self._shown = False

    @property
    def watched(self) -> bool:
        return self._show is not None

    def add(self, piece: str) -> None:
        if self._show is not None:
            self._shown = True
            self._show(piece)

    def withdraw(self) -> bool:
        """Take back what was shown; False where nothing was."""
        if not self._shown or self._show is None:
            return False
        self._shown = False
        self._show(Withdrawn())
        return True


class ShownText:
    """Takes pieces of a reply and shows them without thinking and keys."""

    def __init__(self, show: Callable[[str], None] | None) -> None:
        self.text = ""
        self._show = show
        self._shown = 0

    def add(self, piece: str) -> None:
        self.text += piece
        if self._show is not None:
            text = mask_keys(visible_so_far(self.text))
            self._extend(text[: len(text) - held_back(text)])

    def end(self) -> None:
        """Show the rest: no piece follows."""
        if self._show is not None:
            self._extend(mask_keys(visible_so_far(self.text)))

    def _extend(self, text: str) -> None:
        if self._show is not None and len(text) > self._shown:
            self._show(text[self._shown :])
            self._shown = len(text)


class TextField:
    """Takes pieces of JSON and gives pieces of the first string under the key `name`.

    Without a name it gives back every piece.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._json = ""
        self._shown = 0

    def add(self, piece: str) -> str:
        """What this piece adds to the text."""
        if not self._name:
            return piece
        self._json += piece
        value = _begun(self._json)
        text = _first_text(value, self._name) if value else ""
        added = text[self._shown :]
        self._shown += len(added)
        return added


def _first_text(value: object, name: str) -> str:
    if isinstance(value, dict):
        if isinstance(text := value.get(name), str):
            return text
        value = list(value.values())
    found = (_first_text(item, name) for item in value) if isinstance(value, list) else ()
    return next(filter(None, found), "")


# --- answers that repeat themselves --------------------------------------------------------------


def repeats_itself(text: str, call: Call) -> bool:
    """Whether an answer says the same thing again and again."""
    if not call.by_line:
        return _period(text) > 0
    lines = (line for line in map(str.strip, text.split("\n")) if any(map(str.isalnum, line)))
    return _period(text) > 0 or max(Counter(lines).values(), default=0) >= REPEATED


def salvaged(text: str, call: Call) -> str | None:
    """What can be kept of an answer that was cut or repeats itself; None where nothing can.

    Complete lines are kept where the call is `by_line`, complete items of a list where it is
    `by_item`, and of a text that repeats itself what came before.
    """
    if call.by_line:
        whole, newline, _ = text.rpartition("\n")
        return f"{whole}\n{CUT}" if newline else None
    ends = _end_of_repetition(text, times=2 if call.by_item else 1)
    if call.schema is None:
        return text[:ends].rstrip() or None if ends is not None else None
    value = _begun(text[:ends])
    if value is None or not (call.by_item or ends is not None):
        return None
    kept = _without_last_item(value) if call.by_item else value
    return None if kept is None else json.dumps(kept, ensure_ascii=False)


def _begun(text: str) -> dict[str, Any] | None:
    """The JSON object of an unfinished answer; None where it cannot be read."""
    begin = text.find("{")
    try:
        value = from_json(text[begin:], allow_partial="trailing-strings") if begin >= 0 else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _period(text: str) -> int:
    """The length of the piece that the tail of a text repeats; 0 where it repeats none."""
    tail = text[-_TAIL:]
    if len(tail) < _TAIL:
        return 0
    return next((it for it in range(1, _LONGEST_PIECE + 1) if tail[it:] == tail[:-it]), 0)


def _end_of_repetition(text: str, times: int) -> int | None:
    """Where a text has said `times` times what its tail repeats; None where it repeats none."""
    period = _period(text)
    if not period:
        return None
    at = len(text) - _TAIL
    while at > 0 and text[at - 1] == text[at - 1 + period]:
        at -= 1
    ends = _SENTENCE_END.search(text, at + times * period, at + (times + 1) * period)
    return ends.end() if ends and times == 1 else at + times * period


def _without_last_item(value: dict[str, Any]) -> dict[str, Any] | None:
    """The object without the list item within which it was cut."""
    if not value:
        return None
    name, last = list(value.items())[-1]
    if isinstance(last, list):
        return {**value, name: last[:-1]} if len(last) > 1 else None
    inner = _without_last_item(last) if isinstance(last, dict) else None
    return None if inner is None else {**value, name: inner}
