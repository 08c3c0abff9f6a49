"""Cuts long texts into windows: consecutive spans that an embedding model can read whole."""

import re
from collections.abc import Sequence
from typing import NamedTuple

_SENTENCE_END = re.compile(r"[.!?][\"')\]”’]*(?=\s)|[。！？；][”’」』）]*|\n")
_SPACE = re.compile(r"\s")
# Without a tokenizer: four letters, one ideograph or one other character a token.
_ROUGH_TOKEN = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]|[^\W_]{1,4}|[^\w\s]|_")


class Token(NamedTuple):
    """One token of a text: where it starts, and whether a word starts there."""

    start: int
    opens_word: bool


def word_tokens(starts: Sequence[int], words: Sequence[int | None]) -> list[Token]:
    """Tokens with these starts, each in the word of this number."""
    pairs = zip(starts, words, [object(), *words], strict=False)
    return [Token(start, word != before) for start, word, before in pairs]


def estimated_tokens(text: str) -> list[Token]:
    """At least as many tokens as most tokenizers make of a text."""
    return [Token(match.start(), True) for match in _ROUGH_TOKEN.finditer(text)]


def windows_of(text: str, tokens: Sequence[Token], limit: int) -> list[tuple[int, int]]:
    """Consecutive [start, end) spans that cover `text`, each of at most `limit` tokens.

    A span ends after a sentence where one ends in its second half, else at white space, else
    between two words, else (a word of more than `limit` tokens) inside a word.
    """
    if limit < 1:
        raise ValueError(f"A window of {limit} tokens holds no text: raise max_tokens.")
    cuts, first = [0], 0
    while len(tokens) - first > limit:
        cuts.append(_cut(text, tokens[first : first + limit + 1], limit))
        while first < len(tokens) and tokens[first].start < cuts[-1]:
            first += 1
    return list(zip(cuts, [*cuts[1:], len(text)], strict=True))


def _cut(text: str, tokens: Sequence[Token], limit: int) -> int:
    begin = tokens[0].start
    later = [token for token in tokens[1:] if token.start > begin]
    words = [token.start for token in later if token.opens_word]
    if not words:  # one character can be several tokens: then it is a window
        return later[-1].start if later else begin + 1
    half, latest = tokens[limit // 2].start, words[-1]
    for ends in (_SENTENCE_END, _SPACE):
        if offsets := [match.end() for match in ends.finditer(text, half, latest)]:
            return offsets[-1]
    return latest
