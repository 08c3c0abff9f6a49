"""Masks configured keys in every text that comes from a server or a library, before it is shown, logged or stored.

A server may repeat the key that it was called with: in an answer, an error, a header that an error quotes. The
transports pass all that they receive through `mask_keys`; what else may end a run passes it where it becomes a message.
"""

import base64
import html
import json
import logging
import re
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from urllib.parse import parse_qsl, unquote, urlsplit

from prompts.text.regex import regex

MASK = "[key masked]"
# A shorter key ("x", "EMPTY", "ollama") is given where none is needed, and is a word that texts are full of.
SHORTEST = 8
# What is left of a key that was cut, at least: less may be a word that keys and texts begin with alike.
_SHORTEST_PART = 12
# So are these, which manuals of local servers give: whoever sets one keeps no secret.
_PLACEHOLDERS = frozenset(
    "anything changeme dummy-key dummy_key lm-studio no-api-key no-key-needed no-key-required not-needed not-required"
    " notneeded password placeholder undefined".split()
)
_OF_THE_ENVIRONMENT = regex(r"(?:API_?KEY|AUTH_STRING|AUTH_CREDENTIALS|TOKEN(?:_BEDROCK)?|SECRET(?:_ACCESS_KEY)?)$")
_IN_A_QUERY = regex(r"key|token|secret|password|auth|sig", re.I)
_JSON_ESCAPE = regex(r'\\+(?:u([0-9a-fA-F]{4})|(["/\\]))')
_VISIBLE = "".join(map(chr, range(0x21, 0x7F)))
_LONGEST_ESCAPE = 8  # characters, such as the last of them in `\\u0041`

_LOCK = threading.Lock()
# Each secret as it mostly stands, the longest first.
_FORMS: tuple[str, ...] = ()


def keep_secret(words: Iterable[str | None]) -> None:
    """Mask these from now on; those of fewer than 8 characters, and placeholders, are no secrets."""
    global _FORMS  # noqa: PLW0603 -- what a process was told once holds for all of it
    with _LOCK:
        new = [word for word in words if word and len(word) >= SHORTEST and word.lower() not in _PLACEHOLDERS]
        forms = {*_FORMS, *(form for word in new for form in _forms(word))}
        _FORMS = tuple(sorted(forms, key=lambda form: (-len(form), form)))


def secrets_of_address(url: str | None) -> Iterator[str]:
    """The password (or the lone user name, which is a token) in a URL, as it travels too, and the keys in its query."""
    try:
        parts = urlsplit(url or "")
    except ValueError:
        return  # refused where it is used
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if password:
        both = f"{user}:{password}"
        yield from (password, both, base64.b64encode(both.encode()).decode().rstrip("="))
    elif user:
        yield user
    yield from (value for name, value in parse_qsl(parts.query) if _IN_A_QUERY.search(name))


def secrets_of_environment(environment: Mapping[str, str]) -> Iterator[str]:
    """The keys that providers' own clients look for in the environment."""
    yield from (value for name, value in environment.items() if _OF_THE_ENVIRONMENT.search(name))


def mask_keys(text: str) -> str:
    """The text with every secret masked. Where one stands in it escaped (URL, JSON, HTML), all escapes are undone.

    Libraries cut what they quote: what is left of a secret is masked too where half of it and 12 characters are.
    """
    for form in _FORMS:
        text = text.replace(form, MASK)
    if _FORMS and ("%" in text or "\\u00" in text or "\\/" in text or "&" in text):
        plain = _JSON_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else escape[2], text)
        plain = html.unescape(unquote(plain, errors="replace"))
        if any(form in plain for form in _FORMS):
            return mask_keys(plain)
        if (masked := _without_parts(plain)) != plain:
            return masked
    return _without_parts(text)


def _without_parts(text: str) -> str:
    for form in _FORMS:
        if (half := max(_SHORTEST_PART, len(form) // 2)) < len(form):
            text = _without_beginnings(text, form, half, MASK)
            text = _without_beginnings(text[::-1], form[::-1], half, MASK[::-1])[::-1]
    return text


def _without_beginnings(text: str, form: str, half: int, mask: str) -> str:
    before, *behind = text.split(form[:half])
    return before + "".join(mask + piece[_alike(piece, form[half:]) :] for piece in behind)


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def held_back(text: str) -> int:
    """How many characters at the end of an unfinished text may be the beginning of a secret: mostly its last word."""
    longest = max(map(len, _FORMS), default=0)
    tail = text[max(0, len(text) - _LONGEST_ESCAPE * longest) :]
    return len(tail) - len(tail.rstrip(_VISIBLE))


def mask_error(error: BaseException) -> BaseException:
    """Mask the secrets in an error and in those that it came from, in place.

    Returns the error, or a stand-in with its masked words where a library lets nobody change them.
    """
    return _mask_error(error, {})


def _mask_error(error: BaseException, seen: dict[int, BaseException]) -> BaseException:
    if id(error) in seen:
        return seen[id(error)]
    seen[id(error)] = error
    if (args := tuple(_masked(part, seen) for part in error.args)) != error.args:
        error.args = args
    inner = ("strerror", "filename") if isinstance(error, OSError) else ()
    for name in (*getattr(error, "__dict__", ()), *inner, "__cause__", "__context__"):
        value = getattr(error, name)
        if (clean := _masked(value, seen)) is not value:
            setattr(error, name, clean)
    for part in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        _mask_error(part, seen)
    words = str(error)
    if (masked := mask_keys(words)) != words:
        seen[id(error)] = RuntimeError(f"{type(error).__name__}: {masked}").with_traceback(error.__traceback__)
    return seen[id(error)]


def _masked(value: object, seen: dict[int, BaseException]) -> object:
    """A value of an error: itself, or its masked text where it shows a secret."""
    if isinstance(value, BaseException):
        return _mask_error(value, seen)
    words = value if isinstance(value, str) else repr(value)
    return value if (masked := mask_keys(words)) == words else masked


def _forms(secret: str) -> tuple[str, ...]:
    # Libraries lower the names and values of some headers before they quote them.
    return secret, secret.lower(), json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]


class LogMask(logging.Filter):
    """Masks the secrets in a log record: in its message, its arguments and its traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if (clean := mask_keys(message)) != message:
            record.msg, record.args = clean, ()
        if record.exc_info and record.exc_info[1] is not None:
            written = "".join(traceback.format_exception(record.exc_info[1]))
            if (clean := mask_keys(written)) != written:
                record.exc_info, record.exc_text = None, clean
        return True


def mask_logs() -> None:
    """Mask the secrets in what is logged and nobody handles, which Python writes to standard error."""
    if logging.lastResort is not None and not any(isinstance(known, LogMask) for known in logging.lastResort.filters):
        logging.lastResort.addFilter(LogMask())
