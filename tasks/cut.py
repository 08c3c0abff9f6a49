"""Where may a text be cut? Atoms that a chunk takes whole, and the pieces of a sentence that is too long for one.

An atom is a sentence or a heading; a table, a list or a block of code is one atom where it fits.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from prompts.language.segment import UnitKind, units
from prompts.language.tokens import count_tokens

_CLAUSE = re.compile(r"(?<=[,;:，、；：])\s*|(?<=\s[-–—]\s)|(?<=——)")
_WORD = re.compile(r"\s*\S+")
_HEADING = re.compile(r"(#{1,6})[ \t]+(.+?)[ \t]*#*(?:\n|$)")


class Piece(NamedTuple):
    """A stretch of text with its tokens, counted up to the next piece; `level` is above 0 for a Markdown heading."""

    start: int
    end: int
    tokens: int
    level: int = 0
    title: str = ""
    whole: bool = True  # False: a part of a sentence that was too long


Atom = tuple[Piece, ...]


def atoms(text: str, size: int) -> list[Atom]:
    """The atoms of a text in order, each of at most `size` tokens; they hold all its non-space characters."""
    found = units(text)
    kinds = [unit.kind for unit in found]
    pieces = _measured(text, [(unit.start, unit.end) for unit in found])
    result: list[Atom] = []
    for kind, group in groupby(range(len(found)), key=lambda index: kinds[index]):
        members = [_headed(text, pieces[index], kind) for index in group]
        together = kind in ("row", "item", "code") and sum(piece.tokens for piece in members) <= size
        if together:
            result.append(tuple(members))
        else:
            result.extend((piece,) for member in members for piece in split(text, member, size))
    return result


def line_atoms(text: str, size: int) -> list[Atom]:
    """The lines of rendered triples; neighbours with one subject are one atom where they fit."""
    spans, position = [], 0
    for line in text.split("\n"):
        spans.append((position, position + len(line)))
        position += len(line) + 1
    result: list[Atom] = []
    for _, group in groupby(_measured(text, _trimmed(text, spans)), key=lambda piece: _subject(text, piece)):
        members = tuple(group)
        if sum(piece.tokens for piece in members) <= size:
            result.append(members)
        else:
            result.extend((piece,) for member in members for piece in split(text, member, size))
    return result


def _subject(text: str, piece: Piece) -> str:
    return text[piece.start : piece.end].partition(" -[")[0]


def split(text: str, piece: Piece, size: int) -> list[Piece]:
    """The piece, or where it is larger than `size` tokens its clauses, words or characters packed up to that size."""
    if piece.tokens <= size:
        return [piece]
    packed: list[Piece] = []
    for grain in _grains(text, piece, size):
        last = packed[-1] if packed else None
        joined = (
            count_tokens([text[last.start : grain.end]])[0] if last and last.tokens + grain.tokens <= size else size + 1
        )
        if last and joined <= size:
            packed[-1] = Piece(start=last.start, end=grain.end, tokens=last.tokens + grain.tokens, whole=False)
        else:
            packed.append(grain)
    return packed


def heading_of(text: str) -> str:
    """The words of the Markdown heading that a text begins with, else empty."""
    match = _HEADING.match(text)
    return " ".join(match.group(2).split()) if match else ""


def _headed(text: str, piece: Piece, kind: UnitKind) -> Piece:
    if kind != "heading":
        return piece
    line = text[piece.start : piece.end]
    return piece._replace(level=len(line) - len(line.lstrip("#")), title=heading_of(line))


def _measured(text: str, spans: Sequence[tuple[int, int]], whole: bool = True) -> list[Piece]:
    """Pieces with their tokens, the white space after each counted with it."""
    ends = [start for start, _ in spans[1:]] + [spans[-1][1]] if spans else []
    counts = count_tokens([text[start:end] for (start, _), end in zip(spans, ends, strict=True)])
    return [
        Piece(start=start, end=end, tokens=tokens, whole=whole)
        for (start, end), tokens in zip(spans, counts, strict=True)
    ]


def _grains(text: str, piece: Piece, size: int) -> Iterator[Piece]:
    """The smallest stretches worth keeping together: clauses, else words, else characters."""
    for clause in _measured(text, _trimmed(text, _clauses(text, piece)), whole=False):
        if clause.tokens <= size:
            yield clause
            continue
        words = [(match.start(), match.end()) for match in _WORD.finditer(text, clause.start, clause.end)]
        for word in _measured(text, _trimmed(text, words), whole=False):
            yield from [word] if word.tokens <= size else _halves(text, word, size)


def _clauses(text: str, piece: Piece) -> list[tuple[int, int]]:
    stops = [match.end() for match in _CLAUSE.finditer(text, piece.start, piece.end)]
    edges = [piece.start, *(stop for stop in stops if piece.start < stop < piece.end), piece.end]
    return list(pairwise(edges))


def _trimmed(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    trimmed = []
    for start, end in spans:
        raw = text[start:end]
        kept = raw.strip()
        if kept:
            first = start + len(raw) - len(raw.lstrip())
            trimmed.append((first, first + len(kept)))
    return trimmed


def _halves(text: str, word: Piece, size: int) -> list[Piece]:
    """A word without spaces cut in half until each part fits; a single character is as small as it gets."""
    tokens = count_tokens([text[word.start : word.end]])[0]
    if tokens <= size or word.end - word.start < 2:
        return [word._replace(tokens=tokens, whole=False)]
    middle = (word.start + word.end) // 2
    return _halves(text, word._replace(end=middle), size) + _halves(text, word._replace(start=middle), size)
