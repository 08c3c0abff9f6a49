"""Which words must never leave this process, and how are they taken out of what does?

Keys reach nothing that is written on purpose. This is for what is not: an address with a password in it, an error of a
library that quotes a header.
"""

from collections.abc import Iterable

HIDDEN = "(hidden)"
# What is shorter ("none", "EMPTY") stands where no key is needed, and is a word that texts are full of.
SHORTEST = 8

_SECRETS: set[str] = set()


def keep_secret(words: Iterable[str]) -> None:
    """Hide these from now on; those of fewer than 8 characters are no secrets."""
    _SECRETS.update(word for word in words if len(word) >= SHORTEST)


def redacted(text: str) -> str:
    """The text without what is secret."""
    for secret in sorted(_SECRETS, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def redact(error: BaseException | None) -> None:
    """Take what is secret out of an error and of those that it came from, in place."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.args = tuple(redacted(part) if isinstance(part, str) else part for part in error.args)
        for name, value in vars(error).items():
            if isinstance(value, str):
                setattr(error, name, redacted(value))
        error = error.__cause__ or error.__context__
