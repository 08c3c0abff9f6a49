"""Which failures of a call are worth another try, and what does a person do about the others?

The wordings are those of OpenAI, vLLM, Ollama, llama.cpp and Anthropic; a server's own text is always in the message.
"""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from prompts.engine.errors import (
    AnswerWithheld,
    BadKey,
    ContextOverflow,
    EngineError,
    ModelMisconfigured,
    ModelRefused,
    ModelUnavailable,
    QuotaExhausted,
    UnknownModel,
)

_RETRYABLE = {408, 409, 425, 429}
_OVERFLOW = re.compile(
    r"context[_ ](?:length|window|size)|maximum model length|max_model_len|prompt (?:is )?too long|input is too long"
    r"|too many (?:input )?tokens|exceed(?:s|ed)? (?:the )?(?:max|maximum|available) context|reduce the length|num_ctx"
    r"|longer than the (?:maximum|context)",
    re.I,
)
_QUOTA = re.compile(
    r"insufficient[_ ](?:quota|balance|credit)|exceeded your current quota|credit balance is too low|plan and billing"
    r"|billing_(?:hard_limit|not_active)|payment required|out of credits",
    re.I,
)
_NO_MODEL = re.compile(
    r"model_not_found|unknown model|(?:model|deployment)\b.{0,120}?\b(?:not found|not exist|no access|is not available)"
    r"|no such model|not a valid model|invalid model",
    re.I | re.S,
)
_BAD_KEY = re.compile(r"invalid[_ ]api[_ ]key|incorrect api key|invalid x-api-key|unauthorized|authentication", re.I)
_WITHHELD = re.compile(r"content[_ ](?:filter|management|policy)|safety system|responsible ai", re.I)
_NO_MEMORY = re.compile(r"requires more system memory|out of memory|cuda error|unable to load model", re.I)
_SHOWN = 300


class Failure(Exception):
    """A call without a reply: the error to raise at last, whether trying again can help, and how long to wait first.

    `adapted`: the next request leaves out what the server did not take in this one.
    """

    def __init__(self, error: EngineError, *, retryable: bool = False, wait: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.retryable = retryable
        self.wait = wait
        self.adapted = False
        self.said = error.message
        self.status = 0


def unreachable(name: str, address: str, problem: str) -> Failure:
    """The server did not answer at all, or not in time."""
    error = ModelUnavailable(
        f"{name} at {address} gave no answer: {problem}.",
        "Check that its server runs under this address, then run again.",
    )
    return Failure(error, retryable=True)


def refused(name: str, address: str, status: int, said: str, retry_after: str | None = None) -> Failure:
    """What an HTTP status and the server's words mean."""
    shown = f"{name} at {address}: HTTP {status} {' '.join(said.split())[:_SHOWN]}"
    failure = _permanent(name, address, status, said, shown)
    if failure is None and (status in _RETRYABLE or status >= 500):
        limits = "Lower TRELLIS_RPM, TRELLIS_TPM or TRELLIS_CONCURRENCY, or run again later."
        remedy = limits if status == 429 else "Run again later."
        failure = Failure(ModelUnavailable(shown, remedy), retryable=True, wait=seconds_asked(retry_after))
    if failure is None:
        failure = Failure(ModelRefused(shown, "The server does not take this request: see its words."))
    failure.said, failure.status = said, status
    return failure


_Kind = Callable[[str, str], EngineError]


def _permanent(name: str, address: str, status: int, said: str, shown: str) -> Failure | None:
    pull = f"Run `ollama pull {name.rpartition('/')[2]}`, or name" if "pull" in said else "Name"
    rules: tuple[tuple[bool, _Kind, str], ...] = (
        (status == 402 or bool(_QUOTA.search(said)), QuotaExhausted, "Add credit, or use another model (TRELLIS_LM)."),
        (
            status in {400, 413, 422, 500} and bool(_OVERFLOW.search(said)), ContextOverflow,
            "Use a longer context, smaller chunks (TRELLIS_CHUNK_TOKENS), or a lower TRELLIS_MAX_TOKENS.",
        ),
        (
            status in {401, 403} or (status == 400 and bool(_BAD_KEY.search(said))), BadKey,
            "Set the key of this server: TRELLIS_LM_API_KEY, or TRELLIS_LM_<ROLE>_API_KEY.",
        ),
        (
            status in {400, 404, 422, 500} and bool(_NO_MODEL.search(said)), UnknownModel,
            f"{pull} a model that the server offers (see {address}/models): TRELLIS_LM, or TRELLIS_LM_<ROLE>.",
        ),
        (
            status in {301, 302, 303, 307, 308, 404, 405}, ModelMisconfigured,
            "Check TRELLIS_LM_BASE_URL: `/chat/completions` must be under it; mostly it ends in `/v1`.",
        ),
        (status in {400, 403} and bool(_WITHHELD.search(said)), AnswerWithheld, "Use another model for this text."),
        (
            status >= 500 and bool(_NO_MEMORY.search(said)), ModelMisconfigured,
            "Use a smaller model, or give the server more memory.",
        ),
    )  # fmt: skip
    for applies, kind, remedy in rules:
        if applies:
            return Failure(kind(shown, remedy))
    return None


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
