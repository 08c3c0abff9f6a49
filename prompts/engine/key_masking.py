"""Masks configured keys in texts of servers and libraries before they are shown, logged or stored.

A server may repeat its key in an answer, an error, or a quoted header.
"""

import base64
import html
import json
import logging
import re
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

MASK = "[key masked]"
_SHORTEST = 8  # a shorter key ("x", "EMPTY") is no secret
# Words that manuals of local servers use as a key.
_PLACEHOLDERS = frozenset(
    "anything changeme dummy-key dummy_key lm-studio no-api-key no-key-needed no-key-required"
    " not-needed not-required notneeded password placeholder undefined".split()
)
_OF_THE_ENVIRONMENT = re.compile(
    r"(?:(?:API_?|ACCOUNT_)KEY|CONNECTION_STRING|AUTH_STRING|AUTH_CREDENTIALS|TOKEN(?:_BEDROCK)?"
    r"|SECRET(?:_ACCESS_KEY)?)$"
)
_IN_A_QUERY = re.compile(r"key|token|secret|password|auth|sig", re.IGNORECASE)
_VISIBLE = "".join(map(chr, range(0x21, 0x7F)))

_LOCK = threading.Lock()
_FORMS: tuple[str, ...] = ()  # each secret as it may be written, the longest first


def keep_secret(words: Iterable[str | None]) -> None:
    """Mask these from now on, except placeholders and those of fewer than 8 characters."""
    global _FORMS  # noqa: PLW0603 -- the whole process masks a secret
    new = [it for it in words if it and len(it) >= _SHORTEST and it.lower() not in _PLACEHOLDERS]
    with _LOCK:
        forms = {*_FORMS, *(form for word in new for form in _forms(word))}
        _FORMS = tuple(sorted(forms, key=lambda form: (-len(form), form)))


def _forms(secret: str) -> set[str]:
    """A secret as it is, in a URL, in HTML, in JSON, and in JSON inside of JSON."""
    in_url = (quote(secret, safe=""), quote_plus(secret))
    in_json = (secret.replace("/", "\\/"), json.dumps(secret, ensure_ascii=False)[1:-1])
    escaped = "".join(f"\\u{ord(character):04x}" for character in secret)
    forms = {secret, secret.lower(), html.escape(secret), escaped, *in_url, *in_json}
    for _ in range(2):
        forms |= {json.dumps(form)[1:-1] for form in forms}
    return forms


def secrets_of_address(url: str | None) -> Iterator[str]:
    """The password (or lone user name, which is a token) in a URL, and the keys in its query."""
    try:
        parts = urlsplit(url or "")
    except ValueError:
        return  # it is refused when it is used
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
    """The text with every secret masked."""
    for form in _FORMS:
        text = text.replace(form, MASK)
    return text


def held_back(text: str) -> int:
    """The number of characters at the end of an unfinished text that may begin a secret."""
    tail = text[-max(map(len, _FORMS), default=0) :] if _FORMS else ""
    return len(tail) - len(tail.rstrip(_VISIBLE))


def mask_error(error: BaseException) -> BaseException:
    """Mask the secrets in an error and in all of its causes, in place.

    Returns the error, or a stand-in with the masked words where a library's error cannot change.
    """
    return _mask_error(error, {})


def _mask_error(error: BaseException, seen: dict[int, BaseException]) -> BaseException:
    if id(error) in seen:
        return seen[id(error)]
    seen[id(error)] = error
    error.args = tuple(_masked(part, seen) for part in error.args)
    inner = ("strerror", "filename") if isinstance(error, OSError) else ()
    for name in (*getattr(error, "__dict__", ()), *inner, "__cause__", "__context__"):
        value = getattr(error, name)
        if (clean := _masked(value, seen)) is not value:
            setattr(error, name, clean)
    for part in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        _mask_error(part, seen)
    words = str(error)
    if (masked := mask_keys(words)) != words:
        stand_in = RuntimeError(f"{type(error).__name__}: {masked}")
        seen[id(error)] = stand_in.with_traceback(error.__traceback__)
    return seen[id(error)]


def _masked(value: object, seen: dict[int, BaseException]) -> object:
    """A value of an error, or its masked text where it shows a secret."""
    if isinstance(value, BaseException):
        return _mask_error(value, seen)
    words = value if isinstance(value, str) else repr(value)
    return value if (masked := mask_keys(words)) == words else masked


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
    """Mask the secrets in log records without a handler, which go to standard error."""
    last = logging.lastResort
    if last is not None and not any(isinstance(known, LogMask) for known in last.filters):
        last.addFilter(LogMask())
