"""Calls to a model and their replies: messages, cache keys, token estimates, the text without its thinking."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, ParamSpec, Protocol, TypeVar, cast

from prompts.engine.prompt_guard import neutralise
from prompts.text.regex import regex
from prompts.text.tokens import count_tokens

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")
Schema = dict[str, object]
Finish = Literal["stop", "length", "withheld"]
CUT = "…"  # the last line of an answer that was cut
REPEATED = 3  # times that a line is said before the answer counts as going round
# Signs between scripts and tokens, without a tokenizer: four letters or one ideograph a token. The first bytes (UTF-16)
# of all characters but ideographs, kana and hangul: to count those is to leave out these, at a fiftieth of a regular
# expression's time.
_NARROW = bytes(byte for byte in range(256) if not (0x2E <= byte <= 0x9F or 0xAC <= byte <= 0xD7))
# Bytes (UTF-8) as words, marks and blanks: tokenizers keep letters and a mark after them apart, but in "don't".
_KINDS = bytes(
    ord("w" if byte > 127 or chr(byte).isalnum() or byte == 95 else " " if byte < 33 or byte == 39 else "m")
    for byte in range(256)
)

_THOUGHT_TAGS = "think thinking thought reasoning reflection seed:think"
# How model families mark what they think, and the answer after it: where it begins and ends.
_THOUGHTS = (
    *((f"<{tag}>", f"</{tag}>") for tag in _THOUGHT_TAGS.split()),
    ("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"), ("<|thought_start|>", "<|thought_end|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
)  # fmt: skip
_ANSWERS = (
    ("<|begin_of_solution|>", "<|end_of_solution|>"), ("<|begin_of_box|>", "<|end_of_box|>"),
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ("<answer>", "</answer>"), ("<response>", "</response>"),
)  # fmt: skip
_THINKING = "|".join(rf"{re.escape(begin)}.*?(?:{re.escape(end)}|\Z)" for begin, end in _THOUGHTS)
_LEADING_THINKING = regex(rf"\s*(?:{_THINKING})", re.S | re.I)
_THOUGHT_END = regex("|".join(re.escape(end) for _, end in _THOUGHTS), re.I)
_CHANNEL, _FINAL_CHANNEL = "<|channel|>", "<|channel|>final<|message|>"
_OPENINGS = (*(begin.lower() for begin, _ in (*_THOUGHTS, *_ANSWERS)), _CHANNEL)


def memo(function: Callable[P, T]) -> Callable[P, T]:
    """The function with its last results kept; its arguments are hashable, its results are never changed."""
    return cast("Callable[P, T]", lru_cache(maxsize=256)(function))


class NotAsAsked(ValueError):
    """An answer is not of the asked form; the text says what is wrong, in words that the model can act on."""


class Doubtful(NotAsAsked):
    """An answer is in form, but looks like an oversight: the model is asked once more, and what it says then stands.

    `outputs` are the answer as it was read.
    """

    def __init__(self, problem: str, outputs: dict[str, object]) -> None:
        super().__init__(problem)
        self.outputs = outputs


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation with a model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `variant` tells apart calls that shall differ though they say the same.

    `by_line`: each line of the answer stands for itself, so that what comes before a cut is kept; `by_item`: so does
    each item of the answer's lists. `second_temperature` is that of a second try; None: that of the first, as the user
    has set it. `whole`: in one piece, since a stream of the answer has broken off.
    """

    step: str
    messages: tuple[Message, ...]
    max_tokens: int
    schema: Schema | None = None
    temperature: float | None = 0.0
    variant: int | None = None
    extra: Mapping[str, object] = field(default_factory=dict)
    by_line: bool = False
    by_item: bool = False
    second_temperature: float | None = None
    whole: bool = False

    def key(self, address: str, model: str) -> str:
        """The cache key: all that the answer depends on."""
        messages = [(message.role, message.content) for message in self.messages]
        parts = [
            address, model, messages, self.schema, self.max_tokens, self.temperature, self.variant, dict(self.extra)
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=repr).encode()).hexdigest()

    @property
    def differs_again(self) -> bool:
        """Whether the same conversation can get another answer at a second try."""
        drawn = self.temperature is None or self.temperature > 0
        return self.second_temperature is not None or (drawn and "seed" not in self.extra)

    def again(self) -> "Call":
        """The same conversation, at the temperature of a second try."""
        if self.second_temperature is None:
            return self
        return replace(self, temperature=max(self.temperature or 0.0, self.second_temperature))

    def repaired(self, problem: str) -> "Call":
        """A second try that says what was wrong with the first answer. It does not show that answer: a model that
        reads it writes it again.

        The sentence ends the last turn, for some servers take no two turns of one role.
        """
        *before, last = self.messages
        wrong = neutralise(problem)  # which may quote the answer
        ask = f"An earlier answer cannot be read: {wrong} Answer complete, in the form asked for, nothing else."
        return replace(self.again(), messages=(*before, replace(last, content=f"{last.content}\n\n{ask}")))

    def tokens(self) -> int:
        """About how many tokens go in."""
        return sum(rough_tokens(message.content) + 4 for message in self.messages)

    def most_tokens(self) -> int:
        """How many tokens go in at the most."""
        return most_tokens([message.content for message in self.messages])

    def least_tokens(self) -> int:
        """How many tokens go in at the least: one a word, one a mark that ends it, and one for three ideographs."""
        return sum(_least_tokens(message.content) for message in self.messages)


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer; `text` holds no thinking. Output tokens include those of the thinking."""

    text: str
    finish: Finish
    input_tokens: int
    output_tokens: int


class Transport(Protocol):
    """How calls reach one model."""

    address: str
    model: str

    @property
    def defaults(self) -> Mapping[str, object]:
        """What calls to this model have where they say nothing else."""
        ...

    @property
    def structured(self) -> str:
        """How the server is held to a schema: "json_schema", "json_object" or "text" (only asked to)."""
        ...

    def room(self, call: Call) -> int:
        """The tokens that the answer to a call may have: fewer than asked for where the server
        allows no more."""
        ...

    async def send(self, call: Call, show: Callable[[str], None] | None = None) -> Reply:
        """The reply; raises Failure (prompts.engine.failures). `show` gets pieces of the answer as they come."""
        ...


@memo
def _least_tokens(text: str) -> int:
    marks = text.encode("utf-8", "surrogatepass").translate(_KINDS).count(b"wm")
    return len(text.split()) + marks + _wide(text) // 3


def _wide(text: str) -> int:
    """How many ideographs and signs of that width a text has."""
    return 0 if text.isascii() else len(text.encode("utf-16-be", "surrogatepass")[::2].translate(None, _NARROW))


def most_tokens(texts: Sequence[str]) -> int:
    """Tokens of the texts at the most: a sixth more than one tokenizer counts, for servers have their own."""
    return sum(number + number // 6 + 8 for number in count_tokens(texts))


def rough_tokens(text: str) -> int:
    """About how many tokens a text has."""
    wide = _wide(text)
    return wide + (len(text) - wide) // 4 + 1


def first_fitting(items: Iterable[Item], size: Callable[[Item], int], most: int) -> list[Item]:
    """The first of the items that fit into `most` together; at least one, if there is any."""
    chosen: list[Item] = []
    for item in items:
        most -= size(item)
        if chosen and most < 0:
            break
        chosen.append(item)
    return chosen


def first_tokens(text: str, most: int) -> str:
    """The beginning of a text that fits into about so many tokens, marked with "…" where it goes on."""
    words = text
    while rough_tokens(words) > max(most, 1):
        words = words[: int(len(words) * most / rough_tokens(words))].rstrip()
    return words if len(words) == len(text) else f"{words}…"


def whole_lines(text: str) -> str:
    """A cut answer without the line within which it was cut; CUT stands for that one."""
    whole, _, _ = text.rpartition("\n")
    return f"{whole}\n{CUT}"


def without_thinking(text: str) -> str:
    """The answer alone. Thinking that is never closed leaves nothing; a closing mark alone ends it."""
    if _FINAL_CHANNEL in text:
        return text.rpartition(_FINAL_CHANNEL)[2].removesuffix("<|return|>").strip()
    text = _after_leading_thinking(text)
    closed = list(_THOUGHT_END.finditer(text))
    return _inside(text[closed[-1].end() :] if closed else text).strip()


def visible_so_far(text: str) -> str:
    """What of an unfinished answer may be shown: nothing while it thinks or a mark may be beginning.

    Thinking that has only a closing mark cannot be known before it ends; the whole reply, which is
    read, is free of it.
    """
    begun = _after_leading_thinking(text).lstrip()
    if begun.startswith(_CHANNEL):
        return begun.partition(_FINAL_CHANNEL)[2]
    if any(len(begun) < len(mark) and mark.startswith(begun.lower()) for mark in _OPENINGS):
        return ""
    return _inside(begun).lstrip()


def _after_leading_thinking(text: str) -> str:
    while opened := _LEADING_THINKING.match(text):
        text = text[opened.end() :]
    return text


def _inside(text: str) -> str:
    """What stands between the marks of the answer, up to where the closing one may begin."""
    answer = text.lstrip()
    for begin, end in _ANSWERS:
        if answer[: len(begin)].lower() == begin.lower():
            inside = answer[len(begin) :]
            places = (inside.lower().find(end.lower()), *_begun(inside, end))
            return inside[: min((place for place in places if place >= 0), default=len(inside))]
    return text


def _begun(text: str, mark: str) -> list[int]:
    """Where the mark begins that the text breaks off in, if it does."""
    return [len(text) - size for size in range(1, len(mark)) if text.endswith(mark[:size])]
