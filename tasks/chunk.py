"""Chunking: cut documents into passages.

A passage consists of whole sentences, begins at a heading where that leaves no half-empty passage
behind, and keeps tables and lists whole where they fit. In source code it consists of whole lines,
and functions and classes stand for headings. A chunk's id depends on its own text, so that an edit
elsewhere in the document does not change it.
"""

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from prompts.text.languages import language_of
from prompts.text.segment import heading_words, units
from prompts.text.tokens import count_tokens
from storage.errors import SettingsError
from storage.records import Chunk, Document, content_id
from tasks.load.source_code import blocks, body_of, code_lines, is_code, title_of_block
from tasks.load.sources import JOINT
from tasks.step import step

SMALLEST = 20
_HEADING = re.compile(r"#{1,6}[ \t]+[^\n]+")
_LONG = 32  # characters a token: a longer text is never one passage, and is not counted as one
_KEPT_TOGETHER = ("row", "item", "code")
_DEEPEST = 16  # levels of blocks in source code


class TextPiece(NamedTuple):
    """A piece of text that is not cut, with its tokens up to the next piece.

    `level` is above 0 for a Markdown heading and for the first line of a block of source code,
    `whole` False for a part of a longer sentence.
    """

    start: int
    end: int
    tokens: int
    level: int = 0
    title: str = ""
    whole: bool = True


Group = Sequence[TextPiece]  # pieces that are kept together


class Span(NamedTuple):
    """A passage of a text; the part before `own` is shared with the previous passage.

    `heading` is the path of headings in force at `own`.
    """

    start: int
    end: int
    tokens: int
    own: int
    heading: str = ""


@step("chunk")
async def chunk(documents: Sequence[Document], size: int, overlap: int) -> list[Chunk]:
    """Cut documents into chunks of at most `size` tokens that share up to `overlap`."""
    return [chunk for document in documents for chunk in chunk_document(document, size, overlap)]


def chunk_document(document: Document, size: int, overlap: int) -> list[Chunk]:
    """Cut a document into chunks of at most `size` tokens that hold all its characters but spaces.

    Neighbours share up to `overlap` tokens of whole sentences, but not across a heading or between
    parts. Triples are cut between lines, subject by subject. Raises `SettingsError` unless `size`
    is at least 20 and `overlap` less than half of it.
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
        if part.kind == "triples":
            spans = _pack(part.text, _line_groups(part.text, size), size, 0)
        else:
            spans = _text_spans(part.text, size, overlap, is_code(part.document))
        for span in spans:
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


def _text_spans(text: str, size: int, overlap: int, code: bool = False) -> list[Span]:
    stripped = text.strip()
    if not stripped:
        return []
    tokens = count_tokens([stripped])[0] if len(stripped) <= _LONG * size else size + 1
    if tokens <= size:
        start = len(text) - len(text.lstrip())
        heading = "" if code else _heading_of(stripped)
        return [Span(start, start + len(stripped), tokens, start, heading)]
    groups = _code_groups(text, size) if code else _text_groups(text, size)
    starts, paths = [-1], [""]  # of the headings in force
    above: list[TextPiece] = []
    for piece in (piece for group in groups for piece in group if piece.level):
        above = [*(heading for heading in above if heading.level < piece.level), piece]
        starts.append(piece.start)
        paths.append(" > ".join(heading.title for heading in above if heading.title))
    spans = _pack(text, groups, size, overlap)
    return [span._replace(heading=paths[bisect_right(starts, span.own) - 1]) for span in spans]


def _heading_of(text: str) -> str:
    match = _HEADING.match(text)
    return " ".join(heading_words(match.group()).split()) if match else ""


# --- what is kept together ---


def _text_groups(text: str, size: int) -> list[Group]:
    """Divide a text into groups of at most `size` tokens.

    Tables, lists and code blocks stay whole where they fit; a heading and an announcement ("…:")
    stay with what follows.
    """
    groups: list[Group] = []
    waiting: list[TextPiece] = []
    parts = units(text)
    measured = _measured(text, [(unit.start, unit.end) for unit in parts])
    for kind, members in groupby(zip(measured, parts, strict=True), key=lambda pair: pair[1].kind):
        pieces = [_headed(text, piece) if kind == "heading" else piece for piece, _ in members]
        for group in [pieces] if kind in _KEPT_TOGETHER else [[piece] for piece in pieces]:
            waiting += group
            announces = text[group[-1].start : group[-1].end].rstrip("*_").endswith((":", "："))
            if not (group[-1].level or (announces and kind not in _KEPT_TOGETHER)):
                groups += _within(text, waiting, size)
                waiting = []
    return groups + _within(text, waiting, size)


def _code_groups(text: str, size: int) -> list[Group]:
    """Divide source code into its blocks, those of more than `size` tokens into what they hold."""
    lines = code_lines(text)
    pieces = _measured(text, [(line.start, line.end) for line in lines])

    def divide(first: int, end: int, level: int) -> list[Group]:
        block = lines[first:end]
        opening = pieces[first]._replace(level=level, title=title_of_block(text, block))
        group = [opening, *pieces[first + 1 : end]]
        body = body_of(block)
        if _tokens(group) <= size or body == len(block) or level == _DEEPEST:
            return _within(text, group, size)
        inner = [
            group
            for start, stop in blocks(text, block[body:], block[0].indent)
            for group in divide(first + body + start, first + body + stop, level + 1)
        ]
        # The line that defines the block stays with what follows it.
        opening_with_first = [*group[:body], *inner[0]]
        if _tokens(opening_with_first) <= size:
            return [opening_with_first, *inner[1:]]
        return [*_within(text, group[:body], size), *inner]

    return [group for block in blocks(text, lines) for group in divide(*block, 1)]


def _line_groups(text: str, size: int) -> list[Group]:
    """Group the lines of rendered triples by their subject."""
    pieces = _measured(text, [match.span() for match in re.finditer(r"\S.*", text)])
    subjects = groupby(pieces, key=lambda piece: text[piece.start : piece.end].partition(" -[")[0])
    return [part for _, lines in subjects for part in _within(text, list(lines), size)]


def _measured(text: str, spans: Sequence[tuple[int, int]]) -> list[TextPiece]:
    """Count the tokens of each span, with the white space after it."""
    ends = [start for start, _ in spans[1:]] + [spans[-1][1]] if spans else []
    counts = count_tokens([text[start:end] for (start, _), end in zip(spans, ends, strict=True)])
    return [
        TextPiece(start, end, tokens) for (start, end), tokens in zip(spans, counts, strict=True)
    ]


def _headed(text: str, piece: TextPiece) -> TextPiece:
    line = text[piece.start : piece.end]
    return piece._replace(level=len(line) - len(line.lstrip("#")), title=_heading_of(line))


def _within(text: str, group: Group, size: int) -> list[Group]:
    """Return the group, or its pieces where it does not fit; headings stay with the first."""
    if _tokens(group) <= size:
        return [group] if group else []
    body = next((place for place, piece in enumerate(group) if not piece.level), 0)
    head = [] if _tokens(group[: body + 1]) > size else [group[: body + 1]]
    alone = group[body + 1 :] if head else group
    return head + [[part] for piece in alone for part in _split(text, piece, size)]


def _split(text: str, piece: TextPiece, size: int) -> list[TextPiece]:
    """Halve a piece at spaces until each part fits into `size` tokens."""
    length = piece.end - piece.start
    if piece.tokens > size and length <= _LONG * size:
        piece = piece._replace(tokens=count_tokens([text[piece.start : piece.end]])[0])
    if piece.tokens <= size or length < 2:
        return [piece]
    middle = (piece.start + piece.end) // 2
    at = next((place for place in range(middle, piece.start, -1) if text[place].isspace()), middle)
    parts = []
    for start, end in ((piece.start, at), (at, piece.end)):
        raw = text[start:end]
        first = start + len(raw) - len(raw.lstrip())
        half = TextPiece(first, first + len(raw.strip()), size + 1, whole=False)
        parts += _split(text, half, size) if raw.strip() else []
    return parts


# --- packing ---


def _pack(text: str, groups: Iterable[Group], size: int, overlap: int) -> list[Span]:
    """Pack groups into spans of at most `size` tokens; a heading ends one that is half full."""
    packed: list[Span] = []
    left = deque(groups)
    shared: list[TextPiece] = []  # sentences that the previous span holds too
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
            if start == own[0].start:  # Together they have more tokens than one by one.
                left.appendleft([own.pop()])
            start = own[0].start
        packed.append(Span(start, own[-1].end, tokens, own[0].start))
        if not left or left[0][0].level:
            shared = []
        else:
            shared = _last_sentences([*shared, *own], min(overlap, size - _tokens(left[0])))
    return packed


def _tokens(pieces: Iterable[TextPiece]) -> int:
    return sum(piece.tokens for piece in pieces)


def _last_sentences(pieces: Sequence[TextPiece], room: int) -> list[TextPiece]:
    """Return the last whole sentences that fit into `room` tokens, but never all pieces."""
    last: list[TextPiece] = []
    for piece in reversed(pieces[1:]):
        room -= piece.tokens
        if room < 0 or piece.level or not piece.whole:
            break
        last.insert(0, piece)
    return last
