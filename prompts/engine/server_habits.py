"""What a server of language models does not take, learnt from its refusals.

It is learnt once for each server and model, and known as long as the process lives: the next
request is sent otherwise, and so are all that follow.
"""

import re
from dataclasses import dataclass, field

from prompts.engine.calls import Call
from prompts.text.regex import regex

_WEAKER = {"json_schema": "json_object", "json_object": "text"}
# The least tokens for an answer that a request is worth.
_LEAST_ANSWER = 256
_FORM = regex(
    r"response_format|response_schema|additionalProperties|json_schema|json_object"
    r"|structured output|guided|grammar|\$defs",
    re.I,
)
_TEMPERATURE = regex(r"temperature", re.I)
_TOKENS = regex(
    r"max[_ ](?:completion_|output_|new_|generated_)?tokens|max(?:imum)? (?:number of )?"
    r"(?:completion|output|new|generated) tokens|maxOutputTokens|completion tokens",
    re.I,
)
_OTHER_NAME = regex(
    r"max_completion_tokens|max_tokens.{0,60}(?:not (?:supported|permitted|allowed|recogni[sz]ed)"
    r"|unsupported|unrecogni[sz]ed|unknown|unexpected|extra)|(?:unsupported|unrecogni[sz]ed|unknown"
    r"|unexpected|extra) .{0,60}max_tokens",
    re.I,
)
_CONTEXT = regex(r"(?:context|max_model_len|model length|inputs` tokens \+)\D{0,40}?(\d[\d,]*)", re.I)
_NUMBER = regex(r"(?<![\w.,-])\d{1,3}(?:,\d{3})+(?![\w-])|(?<![\w.-])\d+(?![\w-])")
_USAGE = regex(r"stream_options|include_usage", re.I)
_ROLES = regex(r"\broles?\b|system (?:message|prompt|instruction)|developer instruction", re.I)
_STREAM = regex(r"\bstream|non-stream", re.I)


@dataclass
class Habits:
    """How a server wants its requests. `structured` is what holds it to a schema; empty: unknown.

    `left_out` holds "temperature", "max_tokens" (it is called max_completion_tokens there) and
    "stream_options". `streams`: True where it answers only so, False where it never does.
    `user_only`: instructions are a part of the user's turn. `most_tokens` is the longest answer
    that it allows, `context` what it reads and writes together, `most_texts` what it embeds at
    once.
    """

    structured: str = ""
    left_out: set[str] = field(default_factory=set)
    streams: bool | None = None
    user_only: bool = False
    most_tokens: int | None = None
    context: int | None = None
    most_texts: int | None = None

    def room(self, call: Call) -> int:
        """The tokens that the answer to a call may have: as many as it asks for, or fewer."""
        room = min(call.max_tokens, self.most_tokens or call.max_tokens)
        if self.context is not None:
            left = self.context - call.most_tokens()
            room = min(room, left) if left >= _LEAST_ANSWER else room
        return room

    def take_fewer_texts(self, words: str, sent: int) -> None:
        """So many texts were too many: as many as the words say, or half of them."""
        self.most_texts = min(largest_below(sent, words) or sent // 2, self.most_texts or sent)

    def learn(self, words: str, sent: "Sent") -> bool:
        """Whether the words refuse what can be sent otherwise; from now on it is."""
        return (
            self._context(words, sent)
            or (bool(_FORM.search(words)) and self._weaker_form(sent))
            or (bool(_TOKENS.search(words)) and self._fewer_tokens(words, sent))
            or (bool(_TEMPERATURE.search(words)) and self._without("temperature", sent))
            or (bool(_USAGE.search(words)) and self._without("stream_options", sent))
            or (bool(_ROLES.search(words)) and self._user_only(sent))
            or (bool(_STREAM.search(words)) and self._other_way(sent))
        )

    def _without(self, name: str, sent: "Sent") -> bool:
        if name in sent.has:
            self.left_out.add(name)
        return name in sent.has

    def _weaker_form(self, sent: "Sent") -> bool:
        form = sent.form
        if form == self.structured and form in _WEAKER:  # else another call has learnt it already
            self.structured = _WEAKER[form]
        return form in _WEAKER

    def _fewer_tokens(self, words: str, sent: "Sent") -> bool:
        """The largest number in the words that is less than what was asked for is the limit."""
        if _OTHER_NAME.search(words) and self._without("max_tokens", sent):
            return True
        fewer = largest_below(sent.max_tokens, words)
        if fewer is None:
            return False
        self.most_tokens = min(fewer, self.most_tokens or fewer)
        return True

    def _context(self, words: str, sent: "Sent") -> bool:
        """Whether the question fits into what the server reads, but not with so long an answer."""
        told = _CONTEXT.search(words)
        if told is None:
            return False
        context = int(told[1].replace(",", ""))
        left = context - sent.call.most_tokens()
        if not _LEAST_ANSWER <= left < sent.max_tokens:
            return False
        self.context = min(context, self.context or context)
        return True

    def _user_only(self, sent: "Sent") -> bool:
        self.user_only = self.user_only or "system" in sent.has
        return "system" in sent.has

    def _other_way(self, sent: "Sent") -> bool:
        """As a stream what came whole, and whole what came as a stream."""
        if not sent.may_stream or self.streams is ("stream" in sent.has):
            return False
        self.streams = "stream" not in sent.has
        return True


def largest_below(number: int, words: str) -> int | None:
    """The largest number in the words below this one: of what was too much, what is allowed."""
    told = [int(figure.replace(",", "")) for figure in _NUMBER.findall(words)]
    return max((figure for figure in told if 1 < figure < number), default=None)


@dataclass(frozen=True)
class Sent:
    """What a refused request had: its form, its limit, and which of the fields that a server may
    refuse ("temperature", "max_tokens", "stream_options", "system", "stream")."""

    call: Call
    form: str | None
    max_tokens: int
    has: frozenset[str]
    may_stream: bool


# By the server's address and the model's name.
HABITS: dict[tuple[str, str], Habits] = {}
