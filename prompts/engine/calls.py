"""What is sent to a model, and what comes back?"""

import hashlib
import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from prompts.engine.memo import memo
from prompts.engine.messages import Message, Schema
from prompts.text.tokens import count_tokens

Finish = Literal["stop", "length", "withheld"]
# Signs between scripts and tokens, without a tokenizer: four letters or one ideograph a token.
_WIDE = re.compile(r"[⺀-鿿가-힯]")
# Tokenizers keep letters and what follows them apart, but for some with "don't".
_MARKED = re.compile(r"\w(?=[^\w\s'’])")

_THOUGHT = "think|thinking|thought|reasoning|reflection|seed:think"
_THINKING = re.compile(rf"\s*<({_THOUGHT})>.*?(?:</\1>|\Z)", re.S)
_THOUGHT_END = re.compile(rf"</(?:{_THOUGHT})>")
_FINAL_CHANNEL = "<|channel|>final<|message|>"


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `variant` tells apart calls that shall differ though they say the same (sampling)."""

    step: str
    messages: tuple[Message, ...]
    max_tokens: int
    schema: Schema | None = None
    temperature: float | None = 0.0
    variant: int | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    def key(self, address: str, model: str) -> str:
        """The cache key: all that the answer depends on."""
        said = [(message.role, message.content) for message in self.messages]
        parts = [address, model, said, self.schema, self.max_tokens, self.temperature, self.variant, dict(self.extra)]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=repr).encode()).hexdigest()

    def doubled(self) -> "Call":
        """The same with twice the room for the answer."""
        return replace(self, max_tokens=2 * self.max_tokens)

    def tokens(self) -> int:
        """About how many tokens go in."""
        return sum(rough_tokens(message.content) + 4 for message in self.messages)

    def most_tokens(self) -> int:
        """How many tokens go in at the most: a sixth more than one tokenizer counts, for servers have their own."""
        counted = count_tokens([message.content for message in self.messages])
        return sum(number + number // 6 + 8 for number in counted)

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
    """How calls reach one model. Both ways raise Failure (prompts.engine.faults)."""

    address: str
    model: str

    @property
    def structured(self) -> str:
        """How the server is held to a schema: "json_schema", "json_object" or "text" (only asked to)."""
        ...

    async def send(self, call: Call) -> Reply: ...

    def stream(self, call: Call) -> AsyncGenerator[str | Reply]:
        """Pieces of the answer as they come (thinking left out), then the whole reply."""
        ...


@memo
def _least_tokens(text: str) -> int:
    return len(text.split()) + len(_MARKED.findall(text)) + len(_WIDE.findall(text)) // 3


def rough_tokens(text: str) -> int:
    """About how many tokens a text has."""
    if text.isascii():
        return len(text) // 4 + 1
    wide = len(_WIDE.findall(text))
    return wide + (len(text) - wide) // 4 + 1


def fitting(lines: Sequence[str], most: int) -> list[str]:
    """The first lines that fit into so many tokens; one at least, if there is any."""
    kept: list[str] = []
    for line in lines:
        most -= rough_tokens(line)
        if kept and most < 0:
            break
        kept.append(line)
    return kept


def without_thinking(text: str) -> str:
    """The answer alone. Thinking that was never closed leaves nothing; a closing tag alone ends the thinking."""
    if _FINAL_CHANNEL in text:
        return text.rpartition(_FINAL_CHANNEL)[2].removesuffix("<|return|>").strip()
    opened = _THINKING.match(text)
    while opened:
        text = text[opened.end() :]
        opened = _THINKING.match(text)
    closed = list(_THOUGHT_END.finditer(text))
    return text[closed[-1].end() :].strip() if closed else text.strip()
