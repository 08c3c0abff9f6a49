"""Tokens of texts: how many, and how common a word is by its place in the encoding; offline, the same everywhere."""

import importlib.util
import math
import os
from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken


class TokenizerUnavailable(RuntimeError):
    """The token encoding is neither among the installed packages nor in the cache folder."""


_ENCODING = "o200k_base"
_ENCODING_FILE = "fb374d419588a4632f3f557e76b4b70aebbca790"  # how tiktoken names that encoding in its cache folder
_PIECE = 100_000  # characters
_CACHE_SETTING = "TIKTOKEN_CACHE_DIR"


def count_tokens(texts: Sequence[str]) -> list[int]:
    """Tokens (`o200k_base`) of each text, with no network; special-token names count as ordinary text.

    Raises `TokenizerUnavailable` where the encoding is not installed.
    """
    # Not tiktoken's batches: they start a job on a thread for each text, which halves the speed for short ones.
    encode = encoding().encode_ordinary
    return [
        # In pieces where it is long: the encoder's regular expression runs out of stack on a million spaces.
        sum(len(encode(text[at : at + _PIECE])) for at in range(0, len(text), _PIECE)) if len(text) > _PIECE
        else len(encode(text))
        for text in texts
    ]  # fmt: skip


@lru_cache(maxsize=1)
def encoding() -> "tiktoken.Encoding":
    """The tokenizer, from the files of an installed package; loaded once."""
    import tiktoken

    if os.environ.get(_CACHE_SETTING):
        return tiktoken.get_encoding(_ENCODING)
    os.environ[_CACHE_SETTING] = str(_installed().parent)
    try:
        return tiktoken.get_encoding(_ENCODING)
    finally:
        del os.environ[_CACHE_SETTING]


def _installed() -> Path:
    """The file of the encoding: litellm ships it; importing litellm for it would cost two seconds, its folder is
    enough."""
    spec = importlib.util.find_spec("litellm")
    for place in list(spec.submodule_search_locations or ()) if spec else []:
        file = Path(place) / "litellm_core_utils" / "tokenizers" / _ENCODING_FILE
        if file.is_file():
            return file
    raise TokenizerUnavailable(
        f"The token encoding {_ENCODING} was not found in the installed litellm package. "
        f"Reinstall the project's dependencies, or set {_CACHE_SETTING} to a folder that holds {_ENCODING_FILE}."
    )


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
    number = _ranks().get(b64encode(text.encode()))
    return None if number is None else int(number)


@lru_cache(maxsize=1)
def _ranks() -> dict[bytes, bytes]:
    """The strings that the encoding holds, as its file has them (base64), with their numbers: read in a tenth of the
    time that the tokenizer takes, which a question mostly does without."""
    own = Path(os.environ.get(_CACHE_SETTING) or "", _ENCODING_FILE)
    words = iter((own if own.is_file() else _installed()).read_bytes().split())
    return dict(zip(words, words, strict=True))
