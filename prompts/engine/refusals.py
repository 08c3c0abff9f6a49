"""Understands a server's refusal: an error with a remedy, another try, or another form of request.

The patterns know the wordings of OpenAI, vLLM, Ollama, llama.cpp and Anthropic. The message of an
error always quotes the server.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from prompts.engine.errors import (
    AnswerWithheld,
    BadKey,
    BatchTooLarge,
    ContextOverflow,
    EngineError,
    ModelMisconfigured,
    ModelRefused,
    ModelUnavailable,
    QuotaExhausted,
    UnknownModel,
)
from prompts.engine.key_masking import mask_keys
from prompts.engine.messages import Call

LONGEST_WAIT = 60.0  # seconds between two tries
# Seconds. A server that is started anew at its address may take what it refused before; to find out
# costs a refused request or two.
REMEMBERED = 600.0
LONGEST_REPLY = 32_000_000  # bytes: the vectors of a batch may take 10 MB, an answer never one
_RETRYABLE = {408, 409, 425, 429}
_LEAST_ANSWER = 256  # tokens: a request for a shorter answer is not worth sending
_NO_WORDS = {"param", "type", "object", "status", "request_id"}  # keys of an error body


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


_OVERFLOW = _words(
    r"context[_ ](?:length|window|size)|max(?:imum|_)? ?model[_ ]len|prompt (?:is )?too long"
    r"|too many (?:input )?tokens|exceed(?:s|ed|ing)? (?:the )?(?:max\w*|available) context|num_ctx"
    r"|longer than the|(?:less|fewer) than \d+ tokens|input (?:is |was )?too (?:long|large)"
    r"|(?:input|prompt|total)[ _](?:tokens?|length|size)\b.{0,40}(?:exceed|greater|longer|larger)"
)
_QUOTA = _words(
    r"insufficient[_ ](?:quota|balance|credit)|exceeded your current quota|balance is too low"
    r"|plan and billing|billing_(?:hard_limit|not_active)|payment required|out of credits"
)
_NO_MODEL = _words(
    r"model_not_found|unknown model|no such model|not a valid model|invalid model"
    r"|(?:model|deployment)\b.{0,120}?\b(?:not found|not exist|no access|is not available)"
)
_BAD_KEY = _words(r"(?:invalid|incorrect)[_ ](?:x-)?api[_ -]key|unauthorized|authentication")
_WITHHELD = _words(r"content[_ ](?:filter|management|policy)|safety system|responsible ai")
_BATCH = _words(
    r"batch|tokens? per request|too many (?:input|text|item|document|string)s?|array (?:is )?too"
    r"|(?:number|amount|count) of (?:input|text|item|document|string)s?"
    r"|(?:at most|max(?:imum)?|limit)(?: of)? \d+ (?:input|text|item|document|string|element)s?"
)
_LONGEST_ANSWER = _words(
    r"max[_ ](?:completion_|output_|new_)?tokens|maxOutputTokens|completion tokens"
    r"|max(?:imum)? (?:number of )?(?:completion|output|new) tokens"
)
_OTHER_NAME = _words(
    r"max_completion_tokens|max_tokens.{0,60}(?:not (?:support|permit|allow|recogni)|un(?:support"
    r"|recogni|known|expected)|extra)|(?:un(?:support|recogni|known|expected)|extra).{0,60}max_tok"
)
_FORM = _words(
    r"response_format|response_schema|additionalProperties|json_schema|json_object"
    r"|structured output|guided|grammar|\$defs"
)
_CONTEXT = _words(r"(?:context|max_model_len|model length|inputs` tokens \+)\D{0,40}?(\d[\d,]*)")
_NUMBER = re.compile(r"(?<![\w.,-])\d{1,3}(?:,\d{3})+(?![\w-])|(?<![\w.-])\d+(?![\w-])")
_ROLES = _words(r"\broles?\b|system (?:message|prompt|instruction)|developer instruction")
_STREAM = _words(r"\bstream|non-stream|include_usage")
_WEAKER = {"json_schema": "json_object", "json_object": "text"}


class Failure(Exception):
    """Raised for a call without a reply; holds the error to raise where no other try can help.

    `wait`: seconds before the next try. `broken`: there was no answer, or it broke off;
    `timed_out`: because the wait ended. `adapted`: the next request leaves out what the server
    refused in this one. `words` and `status` are the server's.
    """

    def __init__(
        self, error: EngineError, *, retryable: bool = False, broken: bool = False
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.retryable = retryable
        self.broken = broken
        self.wait: float | None = None
        self.adapted = False
        self.timed_out = False
        self.words = error.message
        self.status = 0


def unreachable(name: str, address: str, problem: str) -> Failure:
    """The failure of a call that got no complete answer."""
    error = ModelUnavailable(
        f"{name} at {address} gave no answer: {mask_keys(problem)}.",
        "Check that its server runs under this address, then run again.",
    )
    return Failure(error, retryable=True, broken=True)


def too_slow(name: str, address: str, waited: float, begun: bool) -> Failure:
    """The failure of a call whose wait has ended; the server may be alive."""
    what = "its answer was not complete" if begun else "no word of an answer came"
    error = ModelUnavailable(
        f"{name} at {address}: {what} within {waited:.0f} s.",
        "Check that its server runs. If it is only slow, raise TRELLIS_TIMEOUT (seconds), lower "
        "TRELLIS_CONCURRENCY to the calls that it answers at once, or make prompts shorter "
        "(TRELLIS_CHUNK_TOKENS).",
    )
    failure = Failure(error, retryable=True, broken=True)
    failure.timed_out = True
    return failure


def refused(
    where: tuple[str, str],
    status: int,
    body: str,
    retry_after: str | None = None,
    setting: str = "TRELLIS_LM",
) -> Failure:
    """The failure that an HTTP status and the body of an error mean.

    `where` is the model's name and the server's address; `setting` is where the name is set.
    """
    words = mask_keys(words_of(body))
    shown = f"{where[0]} at {where[1]}: HTTP {status} {words[:300]}"
    wait = None
    error = _final_error(shown, where[1], status, words, setting)
    retryable = error is None and (status in _RETRYABLE or status >= 500)
    if retryable:
        limits = "Lower TRELLIS_RPM, TRELLIS_TPM or TRELLIS_CONCURRENCY, or run again later."
        error = ModelUnavailable(shown, limits if status == 429 else "Run again later.")
        wait = seconds_asked(retry_after)
    refusal = ModelRefused(shown, "The server does not take this request: see its words.")
    failure = Failure(error or refusal, retryable=retryable)
    failure.wait, failure.words, failure.status = wait, words, status
    return failure


def _final_error(
    shown: str, address: str, status: int, words: str, setting: str
) -> EngineError | None:
    """The error that no other try can prevent; None for any other status."""
    of_lm, bad = setting == "TRELLIS_LM", status in {400, 404, 413, 422, 500}
    of_embedding = setting == "TRELLIS_EMBEDDING"
    role = ", or TRELLIS_LM_<ROLE>" if of_lm else ""
    context = "TRELLIS_GGUF_CONTEXT" if shown.startswith("gguf/") else "the server's context"
    shorter = "a lower TRELLIS_MAX_TOKENS" if of_lm else "a model that reads more"
    rules: list[tuple[object, type[EngineError], str]] = [
        (
            status == 402 or _QUOTA.search(words),
            QuotaExhausted,
            f"Add credit, or use another model ({setting}).",
        ),
        (
            of_embedding and (status == 413 or (bad and _BATCH.search(words))),
            BatchTooLarge,
            "The server does not take even one text: see its words.",
        ),
        (
            bad and _OVERFLOW.search(words),
            ContextOverflow,
            f"Raise {context}, use smaller chunks (TRELLIS_CHUNK_TOKENS), or {shorter}.",
        ),
        (
            status in {401, 403} or (status == 400 and _BAD_KEY.search(words)),
            BadKey,
            f"Set the key of this server: {setting}_API_KEY{role and f'{role}_API_KEY'}.",
        ),
        (
            bad and _NO_MODEL.search(words),
            UnknownModel,
            f"Name a model that the server offers (see {address}/models): {setting}{role}.",
        ),
        (
            status in {301, 302, 303, 307, 308, 404, 405},
            ModelMisconfigured,
            f"Check {setting}_BASE_URL: the path that the program calls must be under it; "
            "mostly it ends in `/v1`.",
        ),
        (
            status in {400, 403} and _WITHHELD.search(words),
            AnswerWithheld,
            "Use another model for this text.",
        ),
    ]
    return next((kind(shown, remedy) for holds, kind, remedy in rules if holds), None)


def words_of(body: str) -> str:
    """The texts of an error body in JSON, or else all of it, on one line."""
    try:
        said = list(dict.fromkeys(_texts(json.loads(body))))
    except (ValueError, RecursionError):
        said = []
    return " ".join(("; ".join(said) or body).split())


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str) and not value.isdigit():
        yield value
    elif isinstance(value, dict):
        value = [inner for key, inner in value.items() if key not in _NO_WORDS]
    if isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def seconds_asked(header: str | None) -> float | None:
    """The seconds that a Retry-After header (a number or a date) asks for; None without one."""
    try:
        seconds = float(header or "nan")
    except ValueError:
        try:
            asked = parsedate_to_datetime(header or "").astimezone(UTC)
        except ValueError:
            return None
        seconds = (asked - datetime.now(UTC)).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def backoff(failed: int, asked: float | None, chance: float) -> float:
    """Seconds before the next try: those `asked` for and up to a tenth more, else doubling.

    `chance` in [0, 1) spreads the tries of many callers.
    """
    if asked is not None:
        return min(LONGEST_WAIT, asked * (1 + 0.1 * chance))
    return min(LONGEST_WAIT, 0.5 * 2.0 ** (failed - 1)) * (0.5 + 0.5 * chance)


# --- learning ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sent:
    """A refused request; `form` is the kind of its response format, `has` its optional parts."""

    call: Call
    form: str | None
    max_tokens: int
    has: frozenset[str]  # of "temperature", "max_tokens", "system", "stream"
    may_stream: bool


@dataclass
class Habits:
    """How a server wants its requests, learnt from its refusals and forgotten after some minutes.

    `structured` is the strictest response format that it takes (empty: unknown). `left_out` may
    hold "temperature" and "max_tokens" (which this server calls max_completion_tokens). `streams`:
    True where it answers only in streams, False where it never does. `user_only`: instructions go
    into the user's turn. `most_tokens` is its longest answer, `context` the most that it reads and
    writes together, `most_texts` the number of texts that it embeds at once. `since` is the time at
    which the first of this was learnt.
    """

    structured: str = ""
    left_out: set[str] = field(default_factory=set)
    streams: bool | None = None
    user_only: bool = False
    most_tokens: int | None = None
    context: int | None = None
    most_texts: int | None = None
    since: float | None = None

    def forget_old(self, now: float) -> None:
        """Forget everything where it was learnt long ago."""
        if self.since is not None and now - self.since > REMEMBERED:
            vars(self).update(vars(Habits()))

    def room(self, call: Call) -> int:
        """The tokens that the answer to a call may have."""
        room = min(call.max_tokens, self.most_tokens or call.max_tokens)
        left = self.context - call.most_tokens() if self.context is not None else 0
        return min(room, left) if left >= _LEAST_ANSWER else room

    def take_fewer_texts(self, words: str, sent: int) -> None:
        """Learn from a refusal of `sent` texts: take as many as the words say, or half."""
        self.most_texts = min(largest_below(sent, words) or sent // 2, self.most_texts or sent)

    def learn(self, words: str, sent: Sent) -> bool:
        """Learn from the words of a refusal; False where no other form of request can help."""
        return (
            self._shorten_for_context(words, sent)
            or (bool(_FORM.search(words)) and self.weaken_form(sent))
            or (bool(_LONGEST_ANSWER.search(words)) and self._limit_tokens(words, sent))
            or ("temperature" in words.lower() and self._leave_out("temperature", sent))
            or (bool(_ROLES.search(words)) and self._use_user_only(sent))
            or (bool(_STREAM.search(words)) and self.switch_streaming(sent))
        )

    def weaken_form(self, sent: Sent) -> bool:
        """Use the next weaker response format."""
        if sent.form == self.structured:  # otherwise another call has learnt it
            self.structured = _WEAKER.get(self.structured, "text")
        return sent.form in _WEAKER

    def switch_streaming(self, sent: Sent) -> bool:
        """Ask for a stream where a whole answer was refused, and the other way round."""
        if not sent.may_stream or self.streams is ("stream" in sent.has):
            return False
        self.streams = "stream" not in sent.has
        return True

    def _leave_out(self, name: str, sent: Sent) -> bool:
        self.left_out |= {name} & sent.has
        return name in sent.has

    def _limit_tokens(self, words: str, sent: Sent) -> bool:
        if _OTHER_NAME.search(words) and self._leave_out("max_tokens", sent):
            return True
        fewer = largest_below(sent.max_tokens, words)
        if fewer is not None:
            self.most_tokens = min(fewer, self.most_tokens or fewer)
        return fewer is not None

    def _shorten_for_context(self, words: str, sent: Sent) -> bool:
        """Learn the context's size where the prompt fits into it, but not with its answer."""
        found = _CONTEXT.search(words)
        context = int(found[1].replace(",", "")) if found else 0
        if not _LEAST_ANSWER <= context - sent.call.most_tokens() < sent.max_tokens:
            return False
        self.context = min(context, self.context or context)
        return True

    def _use_user_only(self, sent: Sent) -> bool:
        self.user_only = self.user_only or "system" in sent.has
        return "system" in sent.has


def largest_below(number: int, words: str) -> int | None:
    """The largest number in the words that is below this one (and above 1); None without one."""
    figures = [int(figure.replace(",", "")) for figure in _NUMBER.findall(words)]
    return max((figure for figure in figures if 1 < figure < number), default=None)


# What was learnt, by the server's address and the model's name.
HABITS: defaultdict[tuple[str, str], Habits] = defaultdict(Habits)
