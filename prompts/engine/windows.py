"""Which spans of a long text does an embedding model read one by one, and which texts can MiniLM read at all?"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_SENTENCE_END = re.compile(r"[.!?][\"')\]”’]*(?=\s)|[。！？；][”’」』）]*|\n")
_SPACE = re.compile(r"\s")
# Without a tokenizer: four letters, one ideograph or one sign a token: a little more than real tokenizers make.
_ROUGH_TOKEN = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]|[^\W_]{1,4}|[^\w\s]|_")
_IDEOGRAPH_LETTERS = 3  # one ideograph or syllable says about as much as three Latin letters


class Piece(NamedTuple):
    """One token of a text: where it starts, and whether a word starts there (a cut there changes no token)."""

    start: int
    opens_word: bool


def rough_pieces(text: str) -> list[Piece]:
    """What the tokens of a text may be where its model's tokenizer is not at hand."""
    return [Piece(found.start(), True) for found in _ROUGH_TOKEN.finditer(text)]


def spans(text: str, pieces: Sequence[Piece], limit: int) -> list[tuple[int, int]]:
    """Consecutive [start, end) spans that cover `text`, each of at most `limit` pieces.

    A span ends after a sentence where one ends in its second half, else at white space, else between two words, else
    (a word of more than `limit` pieces) inside a word.
    """
    if limit < 1:
        raise ValueError(f"A window of {limit} tokens holds no text: raise max_tokens.")
    cuts = [0]
    first = 0
    while len(pieces) - first > limit:
        cut = _cut(text, pieces, first, limit)
        cuts.append(cut)
        while first < len(pieces) and pieces[first].start < cut:
            first += 1
    return list(zip(cuts, [*cuts[1:], len(text)], strict=True))


def _cut(text: str, pieces: Sequence[Piece], first: int, limit: int) -> int:
    words = [piece.start for piece in pieces[first + 1 : first + limit + 1] if piece.opens_word]
    begin = pieces[first].start
    words = [start for start in words if start > begin]
    if not words:
        later = [piece.start for piece in pieces[first + 1 : first + limit + 1] if piece.start > begin]
        # one character can be several tokens: then it stands alone
        return later[-1] if later else begin + 1
    half = pieces[first + limit // 2].start
    latest = words[-1]
    sentence_ends = [found.end() for found in _SENTENCE_END.finditer(text, half, latest)]
    spaces = [found.end() for found in _SPACE.finditer(text, half, latest)]
    return next((found[-1] for found in (sentence_ends, spaces) if found), latest)


def is_latin(text: str) -> bool:
    """Whether most of what the text says is in Latin script (ASCII code and figures count), weighed by letters."""
    if text.isascii():
        return not text.isspace() and text != ""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    lower = codes | 0x20
    ascii_letters = np.count_nonzero((lower >= 0x61) & (lower <= 0x7A))
    blocks = np.bincount(_BLOCK_KIND[np.searchsorted(_BLOCK_START, codes, "right")], minlength=4)
    latin = int(ascii_letters) + int(blocks[1])
    foreign = int(blocks[2]) + _IDEOGRAPH_LETTERS * int(blocks[3])
    if foreign:
        return latin >= foreign
    return latin > 0 or any(character.isalnum() for character in text)


# Where a kind starts: 0 a sign (and ASCII), 1 a Latin letter, 2 another alphabet's, 3 an ideograph or syllable.
_BLOCKS = (
    (0x0000, 0), (0x00C0, 1), (0x0250, 0), (0x0370, 2), (0x1E00, 1), (0x1F00, 2), (0x2000, 0), (0x2C00, 2), (0x2C60, 1),
    (0x2C80, 2), (0x2E00, 0), (0x2E80, 3), (0x3000, 0), (0x3040, 3), (0xA000, 3), (0xA500, 2), (0xA720, 1), (0xA800, 2),
    (0xAC00, 3), (0xD7B0, 0), (0xF900, 3), (0xFB00, 1), (0xFB10, 2), (0xFE00, 0), (0xFE70, 2), (0xFF00, 0), (0xFF21, 1),
    (0xFF5B, 0), (0xFF66, 3), (0xFFE0, 0), (0x10000, 2), (0x17000, 3), (0x1D000, 0), (0x1E000, 2), (0x1F000, 0),
    (0x20000, 3), (0x32000, 0),
)  # fmt: skip
_BLOCK_START = np.array([start for start, _ in _BLOCKS[1:]], np.uint32)
_BLOCK_KIND = np.array([kind for _, kind in _BLOCKS], np.int64)
