"""Chunking: the passages that a document falls into.

Passages are whole sentences up to a number of tokens, begin at headings where that does not leave half-empty ones
behind, and keep tables and lists together where they fit. A chunk's id depends on its words alone, so that an edit
elsewhere in the document leaves it as it is.
"""

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from prompts.text.languages import language_of
from prompts.text.regex import regex
from prompts.text.segment import heading_words, units
from prompts.text.tokens import count_tokens
from storage.errors import SettingsError
from storage.records import Chunk, Document, content_id
from tasks.load.sources import JOINT
from tasks.step import step

_HEADING = regex(r"#{1,6}[ \t]+[^\n]+")
_LONG = 32  # characters for each token of a passage: what has more is not one passage
_STAY_TOGETHER = ("row", "item", "code")


class TextPiece(NamedTuple):
    """A stretch of text that is not cut, with its tokens, counted up to the next piece; `level` is above 0 for a
    Markdown heading."""

    start: int
    end: int
    tokens: int
    level: int = 0
    title: str = ""
    whole: bool = True  # False: a part of a sentence that was too long


Group = Sequence[TextPiece]  # what stays together


def text_groups(text: str, size: int) -> list[Group]:
    """The pieces of a text in order, in groups of at most `size` tokens; they hold all its non-space characters.

    Tables, lists and blocks of code stay together where they fit, and headings and what announces a list ("…:") stay
    with what follows.
    """
    groups: list[Group] = []
    waiting: list[TextPiece] = []
    parts = units(text)
    pieces = zip(_measured(text, [(unit.start, unit.end) for unit in parts]), parts, strict=True)
    for kind, members in groupby(pieces, key=lambda pair: pair[1].kind):
        headed = [_headed(text, piece, kind == "heading") for piece, _ in members]
        for group in [headed] if kind in _STAY_TOGETHER else [[piece] for piece in headed]:
            waiting += group
            announces = text[group[-1].start : group[-1].end].rstrip("*_").endswith((":", "："))
            if not (group[-1].level or (announces and kind not in _STAY_TOGETHER)):
                groups += _within(text, waiting, size)
                waiting = []
    return groups + _within(text, waiting, size)


def line_groups(text: str, size: int) -> list[Group]:
    """The lines of rendered triples; neighbours with one subject are a group."""
    spans = [match.span() for match in re.finditer(r"\S.*", text)]
    subjects = groupby(_measured(text, spans), key=lambda piece: text[piece.start : piece.end].partition(" -[")[0])
    return [part for _, lines in subjects for part in _within(text, list(lines), size)]


def _within(text: str, group: Group, size: int) -> list[Group]:
    """The group, or where it does not fit its pieces, the first of them still with the headings above it."""
    if _tokens(group) <= size:
        return [group] if group else []
    body = next((place for place, piece in enumerate(group) if not piece.level), 0)
    head = [] if _tokens(group[: body + 1]) > size else [group[: body + 1]]
    alone = group[body + 1 :] if head else group
    return head + [[part] for piece in alone for part in split(text, piece, size)]


def split(text: str, piece: TextPiece, size: int) -> list[TextPiece]:
    """The piece, or where it is larger than `size` tokens its parts, halved at a space until each fits."""
    if piece.tokens <= size:
        return [piece]
    # A look at the length saves counting a long one at each halving.
    length = piece.end - piece.start
    tokens = count_tokens([text[piece.start : piece.end]])[0] if length <= _LONG * size else size + 1
    if tokens <= size or length < 2:
        return [piece._replace(tokens=tokens)]
    middle = (piece.start + piece.end) // 2
    at = next((place for place in range(middle, piece.start, -1) if text[place].isspace()), middle)
    parts = []
    for start, end in ((piece.start, at), (at, piece.end)):
        raw = text[start:end]
        first = start + len(raw) - len(raw.lstrip())
        half = TextPiece(first, first + len(raw.strip()), size + 1, whole=False)
        parts += split(text, half, size) if raw.strip() else []
    return parts


def heading_of(text: str) -> str:
    """The words of the Markdown heading that a text begins with, else empty."""
    match = _HEADING.match(text)
    return " ".join(heading_words(match.group()).split()) if match else ""


def _headed(text: str, piece: TextPiece, heading: bool) -> TextPiece:
    line = text[piece.start : piece.end]
    return piece._replace(level=len(line) - len(line.lstrip("#")), title=heading_of(line)) if heading else piece


def _measured(text: str, spans: Sequence[tuple[int, int]]) -> list[TextPiece]:
    """Pieces with their tokens, the white space after each counted with it."""
    ends = [start for start, _ in spans[1:]] + [spans[-1][1]] if spans else []
    counts = count_tokens([text[start:end] for (start, _), end in zip(spans, ends, strict=True)])
    return [TextPiece(start, end, tokens) for (start, end), tokens in zip(spans, counts, strict=True)]


SMALLEST = 20


class Span(NamedTuple):
    """A passage of a text, with its exact number of tokens, the offset at which its own text begins (not shared with
    the one before), and the headings in force there."""

    start: int
    end: int
    tokens: int
    own: int
    heading: str = ""


def chunk_document(document: Document, size: int, overlap: int) -> list[Chunk]:
    """The chunks of a document in order, none of more than `size` tokens, `text[start:end]` being the chunk's text.

    Together they hold all non-space characters. Neighbours share up to `overlap` tokens of whole sentences, but not
    across a heading or between parts. A part of triples is cut between lines, subject by subject. Raises
    `SettingsError` unless `size` is at least 20 and `overlap` less than half of it.
    """
    if size < SMALLEST:
        raise SettingsError("chunk_tokens", size, f"a number of tokens of at least {SMALLEST}")
    if not 0 <= overlap < size / 2:
        expected = f"a number of tokens from 0 to less than half of chunk_tokens ({size})"
        raise SettingsError("chunk_overlap", overlap, expected)
    chunks: list[Chunk] = []
    seen: Counter[str] = Counter()
    offset = 0
    for part in document.parts:
        triples = part.kind == "triples"
        packed = pack(part.text, line_groups(part.text, size), size, 0) if triples else []
        for span in packed if triples else _text_spans(part.text, size, overlap):
            text = part.text[span.start : span.end]
            language = language_of(text, document.language)
            chunks.append(
                Chunk(
                    id=content_id("chk", document.id, text, str(seen[text])),
                    document=document.id,
                    ordinal=len(chunks),
                    start=offset + span.start,
                    end=offset + span.end,
                    text=text,
                    tokens=span.tokens,
                    language=document.language if language == "und" else language,
                    title=document.title,
                    heading=span.heading,
                    kind=part.kind,
                )
            )
            seen[text] += 1
        offset += len(part.text) + len(JOINT)
    return chunks


# --- packing ---------------------------------------------------------------------------------------------------


def _text_spans(text: str, size: int, overlap: int) -> list[Span]:
    stripped = text.strip()
    if not stripped:
        return []
    # Most texts are short: a look at the length saves counting a long one twice.
    tokens = count_tokens([stripped])[0] if len(stripped) <= _LONG * size else size + 1
    if tokens <= size:
        start = len(text) - len(text.lstrip())
        return [Span(start, start + len(stripped), tokens, start, heading_of(stripped))]
    groups = text_groups(text, size)
    return _with_headings(pack(text, groups, size, overlap), [piece for group in groups for piece in group])


def _with_headings(spans: Iterable[Span], pieces: Sequence[TextPiece]) -> list[Span]:
    """The spans with the path of headings in force where their own text begins (a heading there is in force)."""
    paths: list[tuple[int, str]] = [(-1, "")]
    above: list[TextPiece] = []
    for piece in (piece for piece in pieces if piece.level):
        above = [*(heading for heading in above if heading.level < piece.level), piece]
        paths.append((piece.start, " > ".join(heading.title for heading in above)))
    starts = [start for start, _ in paths]
    return [span._replace(heading=paths[bisect_right(starts, span.own) - 1][1]) for span in spans]


def pack(text: str, groups: Iterable[Group], size: int, overlap: int) -> list[Span]:
    """Groups packed in order into spans of at most `size` tokens; a heading begins a span where one is half full."""
    packed: list[Span] = []
    left = deque(groups)
    shared: list[TextPiece] = []  # sentences that the last span holds too
    while left:
        own = list(left.popleft())
        while left and (used := _tokens([*shared, *own])) + _tokens(left[0]) <= size:
            if left[0][0].level and 2 * used >= size:
                break
            own += left.popleft()
        start = (shared or own)[0].start
        while (tokens := count_tokens([text[start : own[-1].end]])[0]) > size and (
            start < own[0].start or len(own) > 1
        ):
            if start == own[0].start:  # the sum of the pieces has promised too much
                left.appendleft([own.pop()])
            start = own[0].start
        packed.append(Span(start, own[-1].end, tokens, own[0].start))
        ends = not left or left[0][0].level
        shared = [] if ends else _last_sentences([*shared, *own], min(overlap, size - _tokens(left[0])))
    return packed


def _tokens(pieces: Iterable[TextPiece]) -> int:
    return sum(piece.tokens for piece in pieces)


def _last_sentences(pieces: Sequence[TextPiece], room: int) -> list[TextPiece]:
    """The whole sentences at the end that fit into `room` tokens, never all and none before a heading."""
    last: list[TextPiece] = []
    for piece in reversed(pieces[1:]):
        room -= piece.tokens
        if room < 0 or piece.level or not piece.whole:
            break
        last.insert(0, piece)
    return last


@step("chunk")
async def chunk(documents: Sequence[Document], size: int, overlap: int) -> list[Chunk]:
    """Cut documents into chunks; each of at most `size` tokens, up to `overlap` shared with the one before."""
    return [chunk for document in documents for chunk in chunk_document(document, size, overlap)]
