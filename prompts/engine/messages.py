"""Calls to a model and its replies: messages, sizes in tokens, and answers without the thinking."""

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, ParamSpec, TypeVar, cast

from prompts.engine.prompt_guard import neutralise
from prompts.text.tokens import count_tokens

Item = TypeVar("Item")
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Schema = dict[str, object]
CUT = "…"  # the last line of an answer that was cut
PICTURE_TOKENS = 1_600  # of a picture of 1,024 pixels a side, at most, as Anthropic counts them
REPEATED = 3  # an answer goes round when it says the same thing this often
# The first bytes (UTF-16) of all characters but ideographs, kana and hangul.
_NARROW = bytes(byte for byte in range(256) if not (0x2E <= byte <= 0x9F or 0xAC <= byte <= 0xD7))
# How model families mark their thinking and the answer after it.
_THOUGHTS = [
    *((f"<{it}>", f"</{it}>") for it in "think thinking thought reasoning seed:think".split()),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
]
_ANSWERS = [
    ("<|begin_of_solution|>", "<|end_of_solution|>"),
    ("<|begin_of_box|>", "<|end_of_box|>"),
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ("<answer>", "</answer>"),
]
_THOUGHT = "|".join(rf"{re.escape(a)}.*?(?:{re.escape(b)}|\Z)" for a, b in _THOUGHTS)
_LEADING_THOUGHT = re.compile(rf"\s*(?:{_THOUGHT})", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile("|".join(re.escape(end) for _, end in _THOUGHTS), re.IGNORECASE)
_CHANNEL, _FINAL_CHANNEL = "<|channel|>", "<|channel|>final<|message|>"  # gpt-oss
_OPENINGS = (*(begin.lower() for begin, _ in (*_THOUGHTS, *_ANSWERS)), _CHANNEL)


def memo(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Cache a function of hashable arguments, and keep its type for the type checker."""
    return cast("Callable[Parameters, Result]", lru_cache(maxsize=256)(function))


class NotAsAsked(ValueError):
    """Raised for an answer in the wrong form; the text tells the model what is wrong."""


class Doubtful(NotAsAsked):
    """Raised for an answer in form that looks like an oversight; the model is asked once more.

    `outputs` is the answer as it was read, which counts if the second one is no better.
    """

    def __init__(self, problem: str, outputs: dict[str, object]) -> None:
        super().__init__(problem)
        self.outputs = outputs


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation with a model, and the pictures in it as `data:` addresses."""

    role: Literal["system", "user", "assistant"]
    content: str
    pictures: tuple[str, ...] = ()

    @property
    def picture_tokens(self) -> int:
        return PICTURE_TOKENS * len(self.pictures)


def content_of(text: str, pictures: Sequence[str]) -> str | list[dict[str, object]]:
    """The content of a message in OpenAI's form: its text, or parts where it has pictures."""
    if not pictures:
        return text
    parts: list[dict[str, object]] = [{"type": "text", "text": text}]
    parts += [{"type": "image_url", "image_url": {"url": url}} for url in pictures]
    return parts


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a model.

    `variant` distinguishes calls that say the same but shall get different answers. After a cut,
    complete lines of the answer are kept with `by_line`, complete items of its lists with
    `by_item`. `second_temperature` is that of a second try (None: unchanged). A `whole` answer is
    not streamed, because an earlier stream of it broke off.
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
        """The cache key: a hash of everything that the answer depends on."""
        messages = [(it.role, it.content, *it.pictures) for it in self.messages]
        sampling = [self.max_tokens, self.temperature, self.variant, dict(self.extra)]
        parts = [address, model, messages, self.schema, *sampling]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=repr).encode()).hexdigest()

    def again(self) -> "Call":
        """The same conversation at the temperature of a second try."""
        if self.second_temperature is None:
            return self
        return replace(self, temperature=max(self.temperature or 0.0, self.second_temperature))

    def repaired(self, problem: str) -> "Call":
        """A second try that tells the model what was wrong with its first answer.

        The answer is not shown, because a model that reads it tends to write it again. The
        sentence ends the last turn, because some servers refuse two turns of one role.
        """
        *before, last = self.messages
        ask = (
            f"An earlier answer cannot be read: {neutralise(problem)} "
            "Answer complete, in the form asked for, nothing else."
        )
        last = replace(last, content=f"{last.content}\n\n{ask}")
        return replace(self.again(), messages=(*before, last))

    def tokens(self) -> int:
        """The input tokens, estimated."""
        return sum(rough_tokens(it.content) + 4 + it.picture_tokens for it in self.messages)

    def most_tokens(self) -> int:
        """An upper bound of the input tokens."""
        texts = most_tokens([message.content for message in self.messages])
        return texts + sum(message.picture_tokens for message in self.messages)

    def least_tokens(self) -> int:
        """A lower bound of the input tokens: one a word, one for three ideographs."""
        return sum(len(it.content.split()) + _wide(it.content) // 3 for it in self.messages)


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer without its thinking, whose tokens are among the output tokens."""

    text: str
    finish: Literal["stop", "length", "withheld"]
    input_tokens: int
    output_tokens: int


def _wide(text: str) -> int:
    """The number of ideographs, kana and hangul in a text."""
    if text.isascii():
        return 0
    return len(text.encode("utf-16-be", "surrogatepass")[::2].translate(None, _NARROW))


def rough_tokens(text: str) -> int:
    """The tokens of a text, estimated: four letters, or one ideograph, a token."""
    wide = _wide(text)
    return wide + (len(text) - wide) // 4 + 1


def most_tokens(texts: Sequence[str]) -> int:
    """An upper bound of the tokens of texts: a sixth more than our tokenizer counts."""
    return sum(number + number // 6 + 8 for number in count_tokens(texts))


def first_fitting(items: Iterable[Item], size: Callable[[Item], int], most: int) -> list[Item]:
    """The first items whose sizes add up to at most `most`; at least one, if there is any."""
    chosen: list[Item] = []
    for item in items:
        most -= size(item)
        if chosen and most < 0:
            break
        chosen.append(item)
    return chosen


def portions(
    items: Iterable[Item], sizes: Iterable[int], most: int, number: int = sys.maxsize
) -> list[list[Item]]:
    """All items, in order, in portions of at most this number whose sizes add up to at most `most`.

    A larger item is a portion of its own.
    """
    divided: list[list[Item]] = []
    room = 0
    for item, size in zip(items, sizes, strict=True):
        if not divided or size > room or len(divided[-1]) == number:
            divided.append([])
            room = most
        divided[-1].append(item)
        room -= size
    return divided


def first_tokens(text: str, most: int) -> str:
    """The beginning of a text in about `most` tokens, ending in "…" where it was cut."""
    words = text
    while rough_tokens(words) > max(most, 1):
        words = words[: int(len(words) * most / rough_tokens(words))].rstrip()
    return words if len(words) == len(text) else f"{words}…"


def without_thinking(text: str) -> str:
    """The answer alone; thinking that is never closed leaves nothing."""
    if _FINAL_CHANNEL in text:
        return text.rpartition(_FINAL_CHANNEL)[2].removesuffix("<|return|>").strip()
    text = _after_thought(text)
    closed = list(_THOUGHT_END.finditer(text))
    return _inside(text[closed[-1].end() :] if closed else text).strip()


def visible_so_far(text: str) -> str:
    """The part of an unfinished answer that may be shown: nothing while the model thinks."""
    begun = _after_thought(text).lstrip()
    if begun.startswith(_CHANNEL):
        return begun.partition(_FINAL_CHANNEL)[2]
    if any(len(begun) < len(mark) and mark.startswith(begun.lower()) for mark in _OPENINGS):
        return ""
    return _inside(begun).lstrip()


def _after_thought(text: str) -> str:
    while opened := _LEADING_THOUGHT.match(text):
        text = text[opened.end() :]
    return text


def _inside(text: str) -> str:
    """The text between the marks of an answer, up to where the closing mark may begin."""
    answer = text.lstrip()
    for begin, end in _ANSWERS:
        if answer.startswith(begin):
            inside = answer[len(begin) :].partition(end)[0]
            cut = (size for size in range(len(end) - 1, 0, -1) if inside.endswith(end[:size]))
            return inside[: len(inside) - next(cut, 0)]
    return text
