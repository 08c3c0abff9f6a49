"""Token counts, and how common a word is by its rank in the encoding; without a network."""

import importlib.util
import math
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import tiktoken


class TokenizerUnavailable(RuntimeError):
    """The token encoding is neither among the installed packages nor in the cache folder."""


_ENCODING = "o200k_base"
_ENCODING_FILE = "fb374d419588a4632f3f557e76b4b70aebbca790"  # Its name in tiktoken's cache
_CACHE_SETTING = "TIKTOKEN_CACHE_DIR"
_PIECE = 100_000  # Characters; the encoder runs out of stack on a million spaces
_FREQUENT = 4_000  # The rank up to which a word tells nothing


def count_tokens(texts: Sequence[str]) -> list[int]:
    """Count the tokens (`o200k_base`) of each text; special tokens count as ordinary text.

    Raises TokenizerUnavailable where the encoding is not installed.
    """
    # tiktoken's own batches start a thread for each text.
    encode = encoding().encode_ordinary
    return [
        sum(len(encode(text[at : at + _PIECE])) for at in range(0, len(text), _PIECE))
        for text in texts
    ]


@lru_cache(maxsize=1)
def encoding() -> tiktoken.Encoding:
    """Load the tokenizer from the files of an installed package."""
    if os.environ.get(_CACHE_SETTING):
        return tiktoken.get_encoding(_ENCODING)
    os.environ[_CACHE_SETTING] = str(_installed())
    try:
        return tiktoken.get_encoding(_ENCODING)
    finally:
        os.environ.pop(_CACHE_SETTING, None)  # Another thread may have removed it


def _installed() -> Path:
    """Find the folder of the encoding in litellm without importing it, which takes two seconds."""
    spec = importlib.util.find_spec("litellm")
    for place in list(spec.submodule_search_locations or ()) if spec else []:
        folder = Path(place) / "litellm_core_utils" / "tokenizers"
        if (folder / _ENCODING_FILE).is_file():
            return folder
    raise TokenizerUnavailable(
        f"The token encoding {_ENCODING} was not found in the installed litellm package. Reinstall "
        f"the project's dependencies, or set {_CACHE_SETTING} to a folder that holds "
        f"{_ENCODING_FILE}."
    )


@lru_cache(maxsize=50_000)
def usually_lower(word: str) -> bool:
    """Whether an English word is frequent, and more often in lower case than capitalised."""
    small, capital = _rank(f" {word.lower()}"), _rank(f" {word.capitalize()}")
    if small is None:
        stem = _without_ending(word.lower())
        return stem is not None and usually_lower(stem)
    return capital is None or small < capital


@lru_cache(maxsize=50_000)
def rarity(word: str) -> float:
    """Return how much a word tells, from 0 bits ("say") to 6 (no token of its own)."""
    ranks = [rank for form in (word, word.capitalize()) if (rank := _rank(f" {form}")) is not None]
    return min(6.0, max(0.0, math.log2(min(ranks) / _FREQUENT))) if ranks else 6.0


def _without_ending(word: str) -> str | None:
    """Drop a regular ending that leaves four letters; None where there is none."""
    for ending in ("ing", "ed", "es", "s", "er", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return None


def _rank(text: str) -> int | None:
    """Return the rank of a string that is one token, else None."""
    try:
        return encoding().encode_single_token(text)
    except KeyError:
        return None
