"""Common words: which are usually written in lower case, so that a capital at a sentence's start says nothing.

A byte-pair encoding lists frequent strings before rarer ones (Sennrich et al. 2016), so where " life" has a lower
number than " Life" the word is mostly written small, and where " london" comes after " London" it is a name. No list of
words is kept, and the tokenizer is an installed package.
"""

import math
from functools import lru_cache

from prompts.text.tokens import encoding

_FREQUENT = 4_000  # the number of the last string that tells nothing by itself


@lru_cache(maxsize=50_000)
def usually_lower(word: str) -> bool:
    """Whether an English word is frequent and seen in lower case more than capitalised; False for rare words."""
    small, capital = _rank(f" {word.lower()}"), _rank(f" {word.capitalize()}")
    if small is None:
        stem = _without_ending(word.lower())
        return stem is not None and usually_lower(stem)
    return capital is None or small < capital


@lru_cache(maxsize=50_000)
def rarity(word: str) -> float:
    """How much a word tells, in bits from 0 ("say") to 6 ("insomnia", and what the encoding does not hold whole)."""
    ranks = [rank for form in (word, word.capitalize()) if (rank := _rank(f" {form}")) is not None]
    return min(6.0, max(0.0, math.log2(min(ranks) / _FREQUENT))) if ranks else 6.0


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
