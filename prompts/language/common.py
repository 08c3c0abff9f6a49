"""Is a word usually written in lower case? Then a capital at a sentence's start says nothing about it.

A byte-pair encoding lists frequent strings before rarer ones (Sennrich et al. 2016), so where " life" has a lower
number than " Life" the word is mostly written small, and where " london" comes after " London" it is a name. No list of
words is kept, and the tokenizer is an installed package.
"""

from functools import lru_cache

from prompts.language.tokens import encoding


@lru_cache(maxsize=50_000)
def usually_lower(word: str) -> bool:
    """Whether an English word is frequent and seen in lower case more than capitalised; False for rare words."""
    small, capital = _rank(f" {word.lower()}"), _rank(f" {word.capitalize()}")
    if small is None:
        stem = _without_ending(word.lower())
        return stem is not None and usually_lower(stem)
    return capital is None or small < capital


def _without_ending(word: str) -> str | None:
    """The word without a regular ending, where one is long enough to leave a word."""
    for ending in ("ing", "ed", "es", "s", "er", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return None


def _rank(text: str) -> int | None:
    """The number of a string that the encoding holds as one token."""
    try:
        return encoding().encode_single_token(text)
    except KeyError:
        return None
