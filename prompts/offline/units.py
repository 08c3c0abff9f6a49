"""Quotable units of a passage: sentences, list items, table rows and lines of code, and what each is read with.

A row has the row that names its columns; in a text that is laid out in lines a unit has the rest of its section.
Nothing is changed in the text: a unit is a span of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from prompts.text.languages import ENGLISH, Language
from prompts.text.regex import regex
from prompts.text.segment import Unit, UnitKind, heading_words, units

PARAGRAPH = 600  # characters: where lines are longer on average, a text runs on
LONGEST = 700  # characters of a list item whose sentences are one unit
_COLON = regex(r"[:：][*_`]*$")
_RULE = regex(r"[\s|:+=_*-]+$")
_FENCE = regex(r"\s*(?:```|~~~)")
_CLOSING = regex(r"\n[ \t]*```")
_IMAGE = regex(r"!\[[^\]]*\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Quotable:
    """A piece of a passage that can stand on its own: `text[start:end]`.

    `header` is the row that names a row's columns; `heading` the line above it, or "" where the passage holds none;
    `leads` says that it ends in a colon.
    """

    start: int
    end: int
    kind: UnitKind
    heading: str
    terms: frozenset[str]
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
            heading, header = heading_words(text[piece.start : piece.end]).strip("*_ "), None
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
        quotes.append(
            Quotable(
                piece.start,
                piece.end,
                piece.kind,
                heading,
                frozenset(language.terms(line.replace("_", " "))),
                header,
                piece.kind in ("plain", "item") and _COLON.search(line) is not None,
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


def is_laid_out(text: str, unit: Quotable) -> bool:
    """Whether a unit belongs to a section of a text in lines; a row that names its columns itself stands alone."""
    lines = text.strip().count("\n")
    in_lines = lines > 0 and len(text) < PARAGRAPH * (lines + 1)
    return (bool(unit.heading) or in_lines) and (unit.kind != "row" or unit.header is not None)


def section_around(
    text: str, quotes: Sequence[Quotable], place: int, room: int, quoted: Sequence[tuple[int, int]] = ()
) -> tuple[int, int]:
    """What a unit is read with: the units of its section after it, then those before it, while they fit in `room`.

    `quoted` are spans that it must not touch. What is not laid out stays alone.
    """
    unit = quotes[place]
    if not is_laid_out(text, unit):
        return unit.start, unit.end

    def reads_on(other: int, start: int, end: int) -> bool:
        return (
            0 <= other < len(quotes)
            and quotes[other].heading == unit.heading
            and end - start <= room
            and not any(start < last and first < end for first, last in quoted)
        )

    first = last = place
    while reads_on(last + 1, unit.start, quotes[min(last + 1, len(quotes) - 1)].end):
        last += 1
    while reads_on(first - 1, quotes[first - 1].start, quotes[last].end):
        first -= 1
    start, end = quotes[first].start, quotes[last].end
    fence = _CLOSING.match(text, end) if text.count("```", start, end) % 2 else None
    return start, fence.end() if fence else end
