"""Quotable units of a passage: sentences, list items, table rows and lines of code, each with what belongs to it.

A line that ends in a colon has the list, table or code under it; a numbered step has the steps around it; a row has the
row that names its columns. Nothing is changed in the text: a unit is a span of it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from prompts.text.languages import ENGLISH, Language
from prompts.text.segment import Unit, UnitKind, units

LONGEST = 700  # characters of a list, of steps or of a block of code that are quoted together
BLOCK = 700  # characters of a list, table or block of code that are quoted together where a list is asked for
_COLON = re.compile(r"[:：][*_`]*$")
_RULE = re.compile(r"[\s|:+=_*-]+$")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_STEP = re.compile(r"\(?\d{1,3}[.)、．]|[（(]?[一二三四五六七八九十]{1,3}[）)、]")
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_HEADING = re.compile(r"[\s#*_]+|[\s#*_]+$")


@dataclass(frozen=True, slots=True)
class Quotable:
    """A piece of a passage that can stand on its own: `text[start:end]`.

    `whole` is the span of what it belongs to, itself included: the list under its colon, or the steps around it;
    `around` that of its list, table or code, or as much of it as is quoted together.
    `header` is the row that names a row's columns; `heading` the line above it, or "" where the passage holds none.
    """

    start: int
    end: int
    kind: UnitKind
    heading: str
    terms: frozenset[str]
    whole: tuple[int, int]
    around: tuple[int, int]
    header: tuple[int, int] | None = None
    leads: bool = False


@lru_cache(maxsize=4096)
def quotables(text: str, language: Language = ENGLISH) -> tuple[Quotable, ...]:
    """What can be quoted from a text, in order; kept, since passages are found again and again."""
    pieces = _pieces(text)
    quotes: list[Quotable] = []
    heading, header = "", None
    for place, piece in enumerate(pieces):
        if piece.kind == "heading":
            heading, header = _HEADING.sub(" ", text[piece.start : piece.end]).strip(), None
            continue
        line = text[piece.start : piece.end]
        if piece.kind != "row":
            header = None
        elif _RULE.match(line):
            header = (
                (pieces[place - 1].start, pieces[place - 1].end) if quotes and pieces[place - 1].kind == "row" else None
            )
            if header is not None:
                quotes.pop()  # the row above the rule names the columns: it is shown with every row, never alone
            continue
        if _IMAGE.fullmatch(line):
            continue
        if piece.kind == "code" and (_FENCE.match(line) or not any(map(str.isalnum, line))):
            continue
        whole, leads = _whole(text, pieces, place)
        quotes.append(
            Quotable(
                piece.start,
                piece.end,
                piece.kind,
                heading,
                frozenset(language.terms(line.replace("_", " "))),
                whole,
                _around(text, pieces, place),
                header,
                leads,
            )
        )
    return tuple(quotes)


def _pieces(text: str) -> list[Unit]:
    """The units of a text, the sentences of one list item joined."""
    pieces: list[Unit] = []
    for unit in units(text):
        joins = (
            unit.kind == "item"
            and pieces
            and pieces[-1].kind == "item"
            and "\n" not in text[pieces[-1].end : unit.start]
        )
        if joins and unit.end - pieces[-1].start <= LONGEST:
            pieces[-1] = Unit(pieces[-1].start, unit.end, "item")
        else:
            pieces.append(unit)
    return pieces


def _whole(text: str, pieces: Sequence[Unit], place: int) -> tuple[tuple[int, int], bool]:
    """What a piece belongs to, and whether it leads a list."""
    piece = pieces[place]
    leads = piece.kind in ("plain", "item") and _COLON.search(text, piece.start, piece.end) is not None
    if leads or piece.kind == "plain":
        under = [p for p in _under(pieces, place) if p.end - piece.start <= LONGEST]
        return ((piece.start, under[-1].end), leads) if under else ((piece.start, piece.end), False)
    if piece.kind == "code" or (piece.kind == "item" and _STEP.match(text, piece.start, piece.end)):
        return _run(text, pieces, place), False
    return (piece.start, piece.end), False


def _around(text: str, pieces: Sequence[Unit], place: int) -> tuple[int, int]:
    """The list, table or code that a piece stands in, with the line that leads it; of a long one what is around it."""
    piece, first, last = pieces[place], place, place
    if piece.kind == "plain":
        return piece.start, piece.end

    def belongs(other: Unit) -> bool:
        return other.kind == piece.kind and not _FENCE.match(text, other.start, other.end)

    while first > 0 and belongs(pieces[first - 1]) and piece.end - pieces[first - 1].start <= BLOCK:
        first -= 1
    while last + 1 < len(pieces) and belongs(pieces[last + 1]):
        if pieces[last + 1].end - pieces[first].start > BLOCK:
            break
        last += 1
    lead = pieces[first - 1] if first else piece
    leads = lead.kind == "plain" and _COLON.search(text, lead.start, lead.end)
    return lead.start if leads else pieces[first].start, pieces[last].end


def _under(pieces: Sequence[Unit], place: int) -> Sequence[Unit]:
    """The list, table or code right under a line."""
    end = place + 1
    while (
        end < len(pieces)
        and pieces[end].kind == pieces[place + 1].kind
        and pieces[end].kind not in ("plain", "heading")
    ):
        end += 1
    return pieces[place + 1 : end]


def _run(text: str, pieces: Sequence[Unit], place: int) -> tuple[int, int]:
    """The steps, or the lines of code, around a piece: as many as may be quoted together, those after it first."""
    kind = pieces[place].kind

    def belongs(other: Unit) -> bool:
        return other.kind == kind and not _FENCE.match(text, other.start, other.end)

    first = last = place
    while last + 1 < len(pieces) and belongs(pieces[last + 1]):
        if pieces[last + 1].end - pieces[first].start > LONGEST:
            break
        last += 1
    while first > 0 and belongs(pieces[first - 1]) and pieces[last].end - pieces[first - 1].start <= LONGEST:
        first -= 1
    return pieces[first].start, pieces[last].end
