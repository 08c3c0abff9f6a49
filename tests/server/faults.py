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
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tests.server.ledger import tokens_of
from tests.server.wire import texts_of

# The server answers in place of the model.
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
# The connection is closed at once, or within the body; there is no answer for `seconds`, or it
# comes in small pieces.
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
    "overflow_silent",
    "nothing",
    "twice",
    "says_only",
    "says_too",
    "writes",
]
Kind = Refused | Broken | Spoiled
REFUSAL = "I'm sorry, but I can't help with that request."
SHORT_ANSWER = 1500  # tokens that `short_answers` allows
THOUGHT = 'The text names things. Perhaps {"entities": []}? No: I look again, then answer.'


class Rule(BaseModel):
    """When to misbehave and how. `retry_after` is the header's text: seconds or a date.

    `says` is part of every refusal, or replaces what was asked for (`says_only`), follows each text
    in it (`says_too`), or is the whole answer (`writes`).
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
        """The tokens of a request that are read where the server cuts it silently, as Ollama."""
        return self.over if self.kind == "overflow_silent" else None

    def is_about(self, step: str, text: str, body: Mapping[str, object]) -> bool:
        return (
            self.step in {None, step}
            and (self.text or "") in text
            and (self.key is None or self.key in body)
            and (self.over is None or tokens_of(texts_of(body)) > self.over)
        )


@dataclass(slots=True)
class _Counted:
    rule: Rule
    seen: int = 0
    fired: int = 0

    def fires(self, step: str, text: str, body: Mapping[str, object]) -> bool:
        rule = self.rule
        if not rule.is_about(step, text, body):
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
        """The rule that decides this request, by its body as sent and as read; call it once."""
        firing = [counted for counted in self.rules if counted.fires(step, text, body)]
        if not firing:
            return None
        firing[0].fired += 1
        return firing[0].rule


def particular(rule: Rule, body: Mapping[str, Any]) -> Mapping[str, object] | None:
    """The error of a server that wants its requests otherwise, not in OpenAI's form."""
    roles = [turn["role"] for turn in body.get("messages", ())]
    most = body.get("max_tokens") or 0
    if rule.kind == "no_system" and "system" in roles:
        kind = {"object": "error", "type": "BadRequestError", "code": 400}
        return {**kind, "message": "System role not supported"}
    if rule.kind == "stream_alone" and not body.get("stream"):
        return {"detail": "This model only supports stream mode."}
    if rule.kind == "short_answers" and most > SHORT_ANSWER:
        words = f"Input should be at most {SHORT_ANSWER}"
        return {"detail": [{"loc": ["body", "max_tokens"], "msg": words, "input": most}]}
    return None


INVALID = "invalid_request_error"


def refused(
    rule: Rule, model: str, tokens: int
) -> tuple[int, Mapping[str, str], Mapping[str, object]] | None:
    """Status, headers and body where the server refuses a request; None for other kinds."""
    overflow = (
        f"This model's maximum context length is {rule.over or tokens // 2} tokens. However, your "
        f"messages resulted in {tokens} tokens."
    )
    unsupported = f"Unsupported parameter: '{rule.key}' is not supported with this model."
    busy = "Rate limit reached: too many requests per minute."
    spent = "You exceeded your current quota; check your plan."
    unknown = f"The model `{model}` does not exist."
    known: dict[str, tuple[int, str, str, str | int | None]] = {
        "rate_limit": (429, busy, "requests", "rate_limit_exceeded"),
        "quota": (429, spent, "insufficient_quota", "insufficient_quota"),
        "server_error": (rule.status, "The server had an error.", "server_error", None),
        "unauthorized": (401, "Incorrect API key provided: sk-…", INVALID, "invalid_api_key"),
        "no_model": (404, unknown, INVALID, "model_not_found"),
        "overflow_openai": (400, overflow, INVALID, "context_length_exceeded"),
        "unsupported": (400, unsupported, INVALID, "unsupported_parameter"),
        "error_in_success": (200, "The model crashed while it answered.", "server_error", 500),
    }
    if rule.kind not in known:
        return None
    status, message, kind, code = known[rule.kind]
    words = f"{message} {rule.says}".strip()
    after = {"Retry-After": rule.retry_after} if rule.retry_after else {}
    return status, after, {"error": {"message": words, "type": kind, "param": None, "code": code}}


@dataclass(frozen=True, slots=True)
class Reply:
    """A message as the server sends it."""

    content: str | None
    finish: str = "stop"
    refusal: str | None = None


def spoiled(rule: Rule, content: str) -> Reply:
    """The reply with what the rule's kind does to its content."""
    fenced = f"Here is the result:\n```json\n{content}\n```\nLet me know if you need more."
    replies = {
        "empty": Reply(""),
        "refusal": Reply(REFUSAL),
        "refusal_field": Reply(None, refusal=REFUSAL),
        "malformed": Reply(_malformed(content)),
        "truncated": Reply(content[: len(content) // 2], finish="length"),
        "fenced": Reply(fenced),
        "thinking": Reply(f"<think>\n{THOUGHT}\n</think>\n\n{content}"),
        "nothing": Reply(_emptied(content)),
        "twice": Reply(f"{content}\n{content}"),
        "says_only": Reply(_instead(content, rule.says)),
        "says_too": Reply(_with(content, rule.says)),
        "writes": Reply(rule.says),
    }
    return replies.get(rule.kind, Reply(content))


def _malformed(content: str) -> str:
    """JSON with bare keys and without its last bracket; records with the first tab gone."""
    if content.startswith("{"):
        return re.sub(r'"(\w+)":', r"\1:", content)[:-1]
    return content.replace("\t", " ", 1)


def _instead(content: str, said: str) -> str:
    """This as the value of each key of JSON, or as the whole of records."""
    return json.dumps(dict.fromkeys(json.loads(content), said)) if content.startswith("{") else said


def _with(content: str, said: str) -> str:
    """Every text in the answer followed by this: values of JSON, the last column of records."""
    if not content.startswith("{"):
        last = re.compile(r"(?<=\t)[^\t\n]*[A-Za-z][^\t\n]*$", re.M)
        return last.sub(lambda cell: f"{cell[0]} {said}", content)

    def longer(value: object) -> object:
        if isinstance(value, dict):
            return {key: longer(item) for key, item in value.items()}
        if isinstance(value, list):
            return [longer(item) for item in value]
        return f"{value} {said}" if isinstance(value, str) and " " in value else value

    return json.dumps(longer(json.loads(content)), ensure_ascii=False)


def _emptied(content: str) -> str:
    """In form and without an item: the last line of records, or an object with empty lists."""
    if not content.startswith("{"):
        return content.rpartition("\n")[2]
    return json.dumps(_without_items(json.loads(content)))


def _without_items(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_items(item) for key, item in value.items()}
    return [] if isinstance(value, list) else value
