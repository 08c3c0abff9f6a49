"""The misbehaviour of the scripted server: on which request, and in whose words.

A script is a list of rules. Each rule counts the requests that it is about: all, or those of a
`step` (`embeddings` is one), those that hold `text`, whose body has `key`, or of more than `over`
tokens. It fires on the `nth` of them and the `times - 1` that follow, or, without it, on all; never
more than `times` times. The first rule that fires decides; every rule counts.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tests.server.ledger import tokens_of
from tests.server.wire import texts_of

# Answered instead of the model, with the status and body that the named server gives.
Refused = Literal[
    "rate_limit",
    "quota",
    "server_error",
    "unauthorized",
    "no_model",
    "overflow_openai",
    "unsupported",
    "error_in_success",
    "no_system",
    "stream_alone",
    "short_answers",
]
# The connection itself: closed at once, closed within the body, no answer for `seconds`, the body
# in small pieces.
Broken = Literal["reset", "cut", "hang", "drip"]
# A success whose message is not what was asked for.
Spoiled = Literal[
    "empty",
    "refusal",
    "refusal_field",
    "malformed",
    "truncated",
    "fenced",
    "html",
    "thinking",
    "content_filter",
    "overflow_silent",
    "nothing",
    "twice",
    "says_only",
    "says_too",
    "writes",
    "loose",
    "round",
]
Kind = Refused | Broken | Spoiled
REFUSAL = "I'm sorry, but I can't help with that request."
SHORT_ANSWER = 1500  # tokens that `short_answers` allows
THOUGHT = 'The text names things. Perhaps {"entities": []}? No: I look again, then answer.'


class Rule(BaseModel):
    """When to misbehave and how. `retry_after` is the header's text: seconds or a date; none, no
    header.

    `says` stands in the message of every refusal, in place of what was asked for (`says_only`),
    behind each text in it (`says_too`), or is the whole answer (`writes`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    step: str | None = None
    text: str | None = None
    key: str | None = None
    over: int | None = Field(default=None, ge=1)
    nth: int | None = Field(default=None, ge=1)
    times: int | None = Field(default=None, ge=1)
    status: int = Field(default=500, ge=400, le=599)
    retry_after: str | None = None
    says: str = ""
    seconds: float = Field(default=1.0, ge=0, le=600)

    @property
    def read_at_most(self) -> int | None:
        """How many tokens of a request are read where the server cuts it without a word, as Ollama
        does.
        """
        return self.over if self.kind == "overflow_silent" else None


@dataclass(slots=True)
class _Counted:
    rule: Rule
    seen: int = 0
    fired: int = 0

    def fires(self, step: str, text: str, body: Mapping[str, object]) -> bool:
        rule = self.rule
        if (
            rule.step not in {None, step}
            or (rule.text or "") not in text
            or (rule.key and rule.key not in body)
        ):
            return False
        if rule.over is not None and tokens_of(texts_of(body)) <= rule.over:
            return False
        self.seen += 1
        times = rule.times or (1 if rule.nth else None)
        if times is not None and self.fired >= times:
            return False
        return rule.nth is None or self.seen >= rule.nth


@dataclass(slots=True)
class Script:
    """The rules in force, with what each has counted."""

    rules: list[_Counted] = field(default_factory=list)

    @classmethod
    def of(cls, rules: list[Rule]) -> "Script":
        return cls([_Counted(rule) for rule in rules])

    def next(self, step: str, text: str, body: Mapping[str, object]) -> Rule | None:
        """The rule that decides this request, if any, by its body as sent and as read; call once
        for each request.
        """
        firing = [counted for counted in self.rules if counted.fires(step, text, body)]
        if not firing:
            return None
        firing[0].fired += 1
        return firing[0].rule


def particular(rule: Rule, body: Mapping[str, object]) -> Mapping[str, object] | None:
    """What a server says that takes requests only as it wants them, in other bodies than OpenAI's;
    None for a request that it takes, and for other kinds."""
    turns, most = body.get("messages"), body.get("max_tokens")
    roles = (
        [turn.get("role") for turn in turns if isinstance(turn, dict)]
        if isinstance(turns, list)
        else []
    )
    if rule.kind == "no_system" and "system" in roles:
        return {
            "object": "error",
            "message": "System role not supported",
            "type": "BadRequestError",
            "code": 400,
        }
    if rule.kind == "stream_alone" and not body.get("stream"):
        return {"detail": "This model only supports stream mode."}
    if rule.kind == "short_answers" and isinstance(most, int) and most > SHORT_ANSWER:
        places = ["body", "max_tokens"]
        return {
            "detail": [
                {"loc": places, "msg": f"Input should be at most {SHORT_ANSWER}", "input": most}
            ]
        }
    return None


def refused(
    rule: Rule, model: str, tokens: int
) -> tuple[int, Mapping[str, str], Mapping[str, object]] | None:
    """Status, headers and body of a request that the server turns down; None for a kind that
    answers.
    """
    after = {"Retry-After": rule.retry_after} if rule.retry_after else {}
    shown = f"maximum context length is {rule.over or tokens // 2} tokens"
    known: dict[str, tuple[int, str, str, str | int | None]] = {
        "rate_limit": (
            429,
            "Rate limit reached: too many requests per minute.",
            "requests",
            "rate_limit_exceeded",
        ),
        "quota": (
            429,
            "You exceeded your current quota; check your plan.",
            "insufficient_quota",
            "insufficient_quota",
        ),
        "server_error": (rule.status, "The server had an error.", "server_error", None),
        "unauthorized": (
            401,
            "Incorrect API key provided: sk-…",
            "invalid_request_error",
            "invalid_api_key",
        ),
        "no_model": (
            404,
            f"The model `{model}` does not exist.",
            "invalid_request_error",
            "model_not_found",
        ),
        "overflow_openai": (
            400,
            f"This model's {shown}. However, your messages resulted in {tokens} tokens.",
            "invalid_request_error",
            "context_length_exceeded",
        ),
        "unsupported": (
            400,
            f"Unsupported parameter: '{rule.key}' is not supported with this model.",
            "invalid_request_error",
            "unsupported_parameter",
        ),
        "error_in_success": (200, "The model crashed while it answered.", "server_error", 500),
    }
    if rule.kind not in known:
        return None
    status, message, kind, code = known[rule.kind]
    said = f"{message} {rule.says}".strip()
    return status, after, {"error": {"message": said, "type": kind, "param": None, "code": code}}


@dataclass(frozen=True, slots=True)
class Reply:
    """A message as the server sends it."""

    content: str | None
    finish: str = "stop"
    refusal: str | None = None


def spoiled(rule: Rule, content: str) -> Reply:
    """The reply with what the rule's kind does to its content; other kinds leave it as it is."""
    half = content[: len(content) // 2]
    replies = {
        "empty": Reply(""),
        "refusal": Reply(REFUSAL),
        "refusal_field": Reply(None, refusal=REFUSAL),
        "malformed": Reply(_malformed(content)),
        "truncated": Reply(half, finish="length"),
        "fenced": Reply(
            f"Here is the result:\n```json\n{content}\n```\nLet me know if you need more."
        ),
        "thinking": Reply(f"<think>\n{THOUGHT}\n</think>\n\n{content}"),
        "nothing": Reply(_emptied(content)),
        "loose": Reply(_loose(content)),
        "round": Reply(_round(content), finish="length"),
        "twice": Reply(f"{content}\n{content}"),
        "content_filter": Reply("", finish="content_filter"),
        "says_only": Reply(_instead(content, rule.says)),
        "says_too": Reply(_with(content, rule.says)),
        "writes": Reply(rule.says),
    }
    return replies.get(rule.kind, Reply(content))


def _loose(content: str) -> str:
    """What has one reading: JSON as Python writes it, with prose in braces before; records as a
    list with a line too many."""
    if content.startswith("{"):
        return f"The set {{Ada}} says so.\n{json.loads(content)!r}"
    lines = content.replace("\t", " | ").split("\n")
    return "\n".join(["Here are the records:", *(f"- {line}" for line in lines)])


def _round(content: str) -> str:
    """Records whose last one is said again and again, until the answer is cut."""
    *records, end = content.split("\n")
    return (
        content if content.startswith("{") else "\n".join([*records, *records[-1:] * 50, end[:1]])
    )


def _malformed(content: str) -> str:
    """JSON with bare keys and without its last bracket; records with the first tab gone."""
    if content.startswith("{"):
        return re.sub(r'"(\w+)":', r"\1:", content)[:-1]
    return content.replace("\t", " ", 1)


def _instead(content: str, said: str) -> str:
    """This alone: as the value of each key of JSON, as the whole of records."""
    return json.dumps(dict.fromkeys(json.loads(content), said)) if content.startswith("{") else said


def _with(content: str, said: str) -> str:
    """Every text in the answer with this behind it: the values of JSON, the last column of
    records.
    """
    if not content.startswith("{"):
        return re.sub(
            r"(?<=\t)[^\t\n]*[A-Za-z][^\t\n]*$",
            lambda cell: f"{cell[0]} {said}",
            content,
            flags=re.M,
        )

    def longer(value: object) -> object:
        if isinstance(value, dict):
            return {key: longer(item) for key, item in value.items()}
        if isinstance(value, list):
            return [longer(item) for item in value]
        return f"{value} {said}" if isinstance(value, str) and " " in value else value

    return json.dumps(longer(json.loads(content)), ensure_ascii=False)


def _emptied(content: str) -> str:
    """In form and without an item: the last line of records alone, an object with its lists
    empty.
    """
    if not content.startswith("{"):
        return content.rpartition("\n")[2]
    return json.dumps(_without_items(json.loads(content)))


def _without_items(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_items(item) for key, item in value.items()}
    return [] if isinstance(value, list) else value
