"""Failed calls: which are worth another try and when, and what a person does about the others.

The wordings are those of OpenAI, vLLM, Ollama, llama.cpp and Anthropic; a server's own text is always in the message.
"""

import math
import re
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
from prompts.engine.limits import Clock, Limits
from prompts.text.regex import regex

LONGEST_WAIT = 60.0  # seconds
_FIRST_WAIT = 0.5
_MOST_ADAPTED = 9  # more than there is to send otherwise in a request
_RETRYABLE = {408, 409, 425, 429}
_OVERFLOW = regex(
    r"context[_ ](?:length|window|size)|maximum model length|max_model_len|prompt (?:is )?too long|input is too long"
    r"|too many (?:input )?tokens|exceed(?:s|ed)? (?:the )?(?:max|maximum|available) context|reduce the length|num_ctx"
    r"|longer than the (?:maximum|context)|(?:less|fewer) than \d+ tokens|range of input length"
    r"|(?:input|prompt|total)[ _](?:tokens?|length|size)\b.{0,40}(?:exceeds?|greater|longer|larger)"
    r"|input (?:is |was )?too (?:long|large)",
    re.I,
)
_QUOTA = regex(
    r"insufficient[_ ](?:quota|balance|credit)|exceeded your current quota|credit balance is too low|plan and billing"
    r"|billing_(?:hard_limit|not_active)|payment required|out of credits",
    re.I,
)
_NO_MODEL = regex(
    r"model_not_found|unknown model|(?:model|deployment)\b.{0,120}?\b(?:not found|not exist|no access|is not available)"
    r"|no such model|not a valid model|invalid model",
    re.I | re.S,
)
_BAD_KEY = regex(r"invalid[_ ]api[_ ]key|incorrect api key|invalid x-api-key|unauthorized|authentication", re.I)
_WITHHELD = regex(r"content[_ ](?:filter|management|policy)|safety system|responsible ai", re.I)
_NO_MEMORY = regex(r"requires more system memory|out of memory|cuda error|unable to load model", re.I)
_BATCH = regex(
    r"batch|tokens? per request|too many (?:input|text|item|document|string)s?"
    r"|(?:number|amount|count) of (?:input|text|item|document|string)s?|array (?:is )?too (?:long|large)"
    r"|(?:at most|maximum of|max(?:imum)?|limit of) \d+"
    r" (?:input|text|item|document|string|request|element)s?",
    re.I,
)
_LONGEST_ANSWER = regex(r"max[_ ](?:completion_|output_|new_)?tokens|completion tokens", re.I)
_SHOWN = 300


class Failure(Exception):
    """A call without a reply: the error to raise at last, whether trying again can help, and how long to wait first.

    `adapted`: the next request leaves out what the server did not take in this one. `broken`: there was no answer, or
    one that broke off; `timed_out`: because nobody waited longer.
    """

    def __init__(
        self, error: EngineError, *, retryable: bool = False, wait: float | None = None, broken: bool = False
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.retryable = retryable
        self.wait = wait
        self.adapted = False
        self.broken = broken
        self.timed_out = False
        self.words = error.message
        self.status = 0


# Bytes of a server's reply: the vectors of a batch of texts may take 10 MB, a written answer never one.
LONGEST_REPLY = 32_000_000


class Retries:
    """The tries of one call to a server; at most `most` of them fail."""

    def __init__(self, most: int, limits: Limits, clock: Clock) -> None:
        self._most = most
        self._limits = limits
        self._clock = clock
        self._failed = 0
        self._adapted = 0

    async def after(self, failure: Failure) -> None:
        """Returns when the call is to be tried again; raises the failure's error where it is not."""
        if failure.adapted and self._adapted < _MOST_ADAPTED:
            self._adapted += 1
            return
        self._failed += 1
        if not failure.retryable:
            raise failure.error from failure
        if self._failed == self._most:
            error = failure.error
            raise type(error)(f"{error.message} (after {self._failed} attempts)", error.remedy) from failure
        if failure.wait is not None:
            # All calls wait that long: they would be refused as well.
            self._limits.pause(min(failure.wait, LONGEST_WAIT))
        await self._clock.sleep(backoff(self._failed, failure.wait, self._clock.chance()))


def backoff(failed: int, asked: float | None, chance: float) -> float:
    """Seconds: what the server asks for and a tenth more by chance, else doubling with jitter; a minute at most."""
    if asked is not None:
        return min(LONGEST_WAIT, asked * (1 + 0.1 * chance))
    return min(LONGEST_WAIT, _FIRST_WAIT * 2.0 ** (failed - 1)) * (0.5 + 0.5 * chance)


def unreachable(name: str, address: str, problem: str) -> Failure:
    """The server did not answer at all, or not in time."""
    error = ModelUnavailable(
        f"{name} at {address} gave no answer: {problem}.",
        "Check that its server runs under this address, then run again.",
    )
    return Failure(error, retryable=True, broken=True)


def too_slow(name: str, address: str, waited: float, begun: bool) -> Failure:
    """The server may be alive, but nobody waited longer for it."""
    what = "its answer was not complete" if begun else "no word of an answer came"
    error = ModelUnavailable(
        f"{name} at {address}: {what} within {waited:.0f} s.",
        "Check that its server runs. If it is only slow, raise TRELLIS_TIMEOUT (seconds), lower TRELLIS_CONCURRENCY to "
        "the calls that it answers at once, or make prompts shorter (TRELLIS_CHUNK_TOKENS).",
    )
    failure = Failure(error, retryable=True, broken=True)
    failure.timed_out = True
    return failure


def refused(
    name: str, address: str, status: int, words: str, retry_after: str | None = None, setting: str = "TRELLIS_LM"
) -> Failure:
    """What an HTTP status and the server's words mean; `setting` is where the model's name is set."""
    shown = f"{name} at {address}: HTTP {status} {' '.join(words.split())[:_SHOWN]}"
    failure = _permanent(name, address, status, words, shown, setting)
    if failure is None and (status in _RETRYABLE or status >= 500):
        limits = "Lower TRELLIS_RPM, TRELLIS_TPM or TRELLIS_CONCURRENCY, or run again later."
        remedy = limits if status == 429 else "Run again later."
        failure = Failure(ModelUnavailable(shown, remedy), retryable=True, wait=seconds_asked(retry_after))
    if failure is None:
        failure = Failure(ModelRefused(shown, "The server does not take this request: see its words."))
    failure.words, failure.status = words, status
    return failure


def _permanent(name: str, address: str, status: int, words: str, shown: str, setting: str) -> Failure | None:
    of_lm = setting == "TRELLIS_LM"
    pull = f"Run `ollama pull {name.rpartition('/')[2]}`, or name" if "pull" in words else "Name"
    rules: tuple[tuple[bool, type[EngineError], str], ...] = (
        (status == 402 or bool(_QUOTA.search(words)), QuotaExhausted, f"Add credit, or use another model ({setting})."),
        (
            setting == "TRELLIS_EMBEDDING"
            and (status == 413 or (status in {400, 422, 500} and bool(_BATCH.search(words)))),
            BatchTooLarge, "The server does not take even one text: see its words.",
        ),
        (
            status in {400, 413, 422, 500} and bool(_OVERFLOW.search(words)), ContextOverflow,
            ("Raise TRELLIS_GGUF_CONTEXT" if address.startswith("gguf/") else "Use a longer context")
            + ", smaller chunks (TRELLIS_CHUNK_TOKENS), "
            + ("or a lower TRELLIS_MAX_TOKENS." if of_lm else "or a model that reads more."),
        ),
        (
            status in {401, 403} or (status == 400 and bool(_BAD_KEY.search(words))), BadKey,
            f"Set the key of this server: {setting}_API_KEY"
            + (", or TRELLIS_LM_<ROLE>_API_KEY." if setting == "TRELLIS_LM" else "."),
        ),
        (
            status in {400, 404, 422, 500} and bool(_NO_MODEL.search(words)), UnknownModel,
            f"{pull} a model that the server offers (see {address}/models): {setting}"
            + (", or TRELLIS_LM_<ROLE>." if setting == "TRELLIS_LM" else "."),
        ),
        (
            status in {301, 302, 303, 307, 308, 404, 405}, ModelMisconfigured,
            f"Check {setting}_BASE_URL: the path that the program calls must be under it; mostly it ends in `/v1`.",
        ),
        (
            of_lm and status in {400, 422} and bool(_LONGEST_ANSWER.search(words)), ModelRefused,
            "Lower TRELLIS_MAX_TOKENS to what the server allows.",
        ),
        (status in {400, 403} and bool(_WITHHELD.search(words)), AnswerWithheld, "Use another model for this text."),
        (
            status >= 500 and bool(_NO_MEMORY.search(words)), ModelMisconfigured,
            "Use a smaller model, or give the server more memory.",
        ),
    )  # fmt: skip
    return next((Failure(kind(shown, remedy)) for applies, kind, remedy in rules if applies), None)


def seconds_asked(header: str | None) -> float | None:
    """Seconds to wait by a Retry-After header (seconds or a date); None without a usable one."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(header).astimezone(UTC) - datetime.now(UTC)).total_seconds()
        except ValueError:
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None
