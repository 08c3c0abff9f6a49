"""Chunking: the passages that a document falls into.

Passages are whole sentences up to a number of tokens, begin at headings where that does not leave half-empty ones
behind, and keep tables and lists together where they fit. A chunk's id depends on its words alone, so that an edit
elsewhere in the document leaves it as it is.

A text is cut between atoms: a sentence or a heading; a table, a list or a block of code where it fits.
"""

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from prompts.text.languages import language_of
from prompts.text.segment import UnitKind, units
from prompts.text.tokens import count_tokens
from storage.errors import SettingsError
from storage.records import Chunk, Document, Part, Record, content_id
from tasks.load.sources import JOINT
from tasks.step import step

_WORD = re.compile(r"\s*\S+")
_HEADING = re.compile(r"(#{1,6})[ \t]+(.+?)[ \t]*#*(?:\n|$)")


class TextPiece(NamedTuple):
    """A stretch of text with its tokens, counted up to the next piece; `level` is above 0 for a Markdown heading."""

    start: int
    end: int
    tokens: int
    level: int = 0
    title: str = ""
    whole: bool = True  # False: a part of a sentence that was too long


Atom = tuple[TextPiece, ...]


def atoms(text: str, size: int) -> list[Atom]:
    """The atoms of a text in order, each of at most `size` tokens; they hold all its non-space characters."""
    found = units(text)
    pieces = zip(_measured(text, [(unit.start, unit.end) for unit in found]), found, strict=True)
    groups = (
        (kind in ("row", "item", "code"), [_headed(text, piece, kind) for piece, _ in group])
        for kind, group in groupby(pieces, key=lambda pair: pair[1].kind)
    )
    return _grouped(text, groups, size)


def line_atoms(text: str, size: int) -> list[Atom]:
    """The lines of rendered triples; neighbours with one subject are one atom where they fit."""
    spans, position = [], 0
    for line in text.split("\n"):
        spans.append((position, position + len(line)))
        position += len(line) + 1
    groups = groupby(_measured(text, _trimmed(text, spans)), key=lambda piece: _subject(text, piece))
    return _grouped(text, ((True, list(group)) for _, group in groups), size)


def _grouped(text: str, groups: Iterable[tuple[bool, Sequence[TextPiece]]], size: int) -> list[Atom]:
    """Groups that stay `together` where they fit as one atom each, the others piece by piece."""
    result: list[Atom] = []
    for together, members in groups:
        if together and _tokens(members) <= size:
            result.append(tuple(members))
        else:
            result.extend((piece,) for member in members for piece in split(text, member, size))
    return result


def _subject(text: str, piece: TextPiece) -> str:
    return text[piece.start : piece.end].partition(" -[")[0]


def split(text: str, piece: TextPiece, size: int) -> list[TextPiece]:
    """The piece, or where it is larger than `size` tokens its words or characters packed up to that size."""
    if piece.tokens <= size:
        return [piece]
    packed: list[TextPiece] = []
    for grain in _grains(text, piece, size):
        last = packed[-1] if packed else None
        joined = (
            count_tokens([text[last.start : grain.end]])[0] if last and last.tokens + grain.tokens <= size else size + 1
        )
        if last and joined <= size:
            packed[-1] = TextPiece(start=last.start, end=grain.end, tokens=last.tokens + grain.tokens, whole=False)
        else:
            packed.append(grain)
    return packed


def heading_of(text: str) -> str:
    """The words of the Markdown heading that a text begins with, else empty."""
    match = _HEADING.match(text)
    return " ".join(match.group(2).split()) if match else ""


def _headed(text: str, piece: TextPiece, kind: UnitKind) -> TextPiece:
    if kind != "heading":
        return piece
    line = text[piece.start : piece.end]
    return piece._replace(level=len(line) - len(line.lstrip("#")), title=heading_of(line))


def _measured(text: str, spans: Sequence[tuple[int, int]], whole: bool = True) -> list[TextPiece]:
    """Pieces with their tokens, the white space after each counted with it."""
    ends = [start for start, _ in spans[1:]] + [spans[-1][1]] if spans else []
    counts = count_tokens([text[start:end] for (start, _), end in zip(spans, ends, strict=True)])
    return [
        TextPiece(start=start, end=end, tokens=tokens, whole=whole)
        for (start, end), tokens in zip(spans, counts, strict=True)
    ]


def _grains(text: str, piece: TextPiece, size: int) -> Iterator[TextPiece]:
    """The smallest stretches worth keeping together: words, else characters."""
    words = [match.span() for match in _WORD.finditer(text, piece.start, piece.end)]
    for word in _measured(text, _trimmed(text, words), whole=False):
        yield from [word] if word.tokens <= size else _halves(text, word, size)


def _trimmed(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    trimmed = []
    for start, end in spans:
        raw = text[start:end]
        kept = raw.strip()
        if kept:
            first = start + len(raw) - len(raw.lstrip())
            trimmed.append((first, first + len(kept)))
    return trimmed


def _halves(text: str, word: TextPiece, size: int) -> list[TextPiece]:
    """A word without spaces cut in half until each part fits; a single character is as small as it gets."""
    tokens = count_tokens([text[word.start : word.end]])[0]
    if tokens <= size or word.end - word.start < 2:
        return [word._replace(tokens=tokens, whole=False)]
    middle = (word.start + word.end) // 2
    return _halves(text, word._replace(end=middle), size) + _halves(text, word._replace(start=middle), size)


SMALLEST = 20


class Span(Record):
    """A passage of a text, with its exact number of tokens and the headings in force where it begins."""

    start: int
    end: int
    tokens: int
    heading: str = ""


def chunk_document(document: Document, size: int, overlap: int) -> list[Chunk]:
    """The chunks of a document in order, none of more than `size` tokens, `text[start:end]` being the chunk's text.

    Together they hold all non-space characters. Neighbours share up to `overlap` tokens of whole sentences, but not
    across a heading or between parts. A part of triples is cut between lines, subject by subject. Raises
    `SettingsError` unless `size` is at least 20 and `overlap` less than half of it.
    """
    _check(size, overlap)
    chunks: list[Chunk] = []
    seen: Counter[str] = Counter()
    offset = 0
    for part in document.parts:
        spans = _triple_spans(part, size) if part.kind == "triples" else _text_spans(part.text, size, overlap)
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


def _check(size: int, overlap: int) -> None:
    if size < SMALLEST:
        raise SettingsError("chunk_tokens", size, f"a number of tokens of at least {SMALLEST}")
    if not 0 <= overlap < size / 2:
        raise SettingsError(
            "chunk_overlap", overlap, f"a number of tokens from 0 to less than half of chunk_tokens ({size})"
        )


# --- packing ---------------------------------------------------------------------------------------------------


def _text_spans(text: str, size: int, overlap: int) -> list[Span]:
    stripped = text.strip()
    if not stripped:
        return []
    # Most texts are short: a look at the length saves counting a long one twice.
    tokens = count_tokens([stripped])[0] if len(stripped) <= 32 * size else size + 1
    if tokens <= size:
        start = len(text) - len(text.lstrip())
        return [Span(start=start, end=start + len(stripped), tokens=tokens, heading=heading_of(stripped))]
    found = atoms(text, size)
    return _with_headings(pack(text, found, size, overlap), found)


def _triple_spans(part: Part, size: int) -> list[Span]:
    return [span for span, _ in pack(part.text, line_atoms(part.text, size), size, 0)]


def _with_headings(spans: Iterable[tuple[Span, int]], found: Sequence[Atom]) -> list[Span]:
    """The spans with the path of headings in force where their own text begins (a heading there is in force)."""
    paths: list[tuple[int, str]] = [(-1, "")]
    above: list[TextPiece] = []
    for piece in (piece for atom in found for piece in atom if piece.level):
        above = [*(heading for heading in above if heading.level < piece.level), piece]
        paths.append((piece.start, " > ".join(heading.title for heading in above)))
    starts = [start for start, _ in paths]
    return [span.model_copy(update={"heading": paths[bisect_right(starts, own) - 1][1]}) for span, own in spans]


def pack(text: str, found: Iterable[Atom], size: int, overlap: int) -> list[tuple[Span, int]]:
    """Atoms packed in order into spans of at most `size` tokens, each with the offset at which its own text begins."""
    packed: list[tuple[Span, int]] = []
    queue = deque(found)
    shared: list[TextPiece] = []  # sentences that the last span holds too
    own: list[TextPiece] = []
    while queue:
        atom = queue.popleft()
        used = _tokens(shared) + _tokens(own)
        fits = used + _tokens(atom) <= size
        if fits and not (
            atom[0].level and used * 2 >= size and _has_body(own) and any(_has_body(later) for later in queue)
        ):
            own.extend(atom)
            continue
        if not own:
            shared = []
            queue.appendleft(atom)
            continue
        kept, carried = _without_lead(text, own, atom)
        if not kept and not fits and (loose := _loosened(text, atom, size - used, size)):
            queue.extendleft(reversed(loose))
            continue
        if not kept:
            kept, carried = own, []
        span, returned = _closed(text, shared, kept, size)
        packed.append((span, kept[0].start))
        queue.appendleft(atom)
        queue.extendleft((piece,) for piece in reversed(returned + (carried if returned else [])))
        room = min(overlap, size - _tokens(atom))
        shared = [] if carried or returned or atom[0].level else _last_sentences(shared + kept, room)
        own = [] if returned else carried
    while own:
        span, returned = _closed(text, shared, own, size)
        packed.append((span, own[0].start))
        shared, own = [], returned
    return packed


def _tokens(pieces: Iterable[TextPiece]) -> int:
    return sum(piece.tokens for piece in pieces)


def _has_body(pieces: Iterable[TextPiece]) -> bool:
    return any(not piece.level for piece in pieces)


def _without_lead(text: str, own: list[TextPiece], atom: Atom) -> tuple[list[TextPiece], list[TextPiece]]:
    """A chunk's own pieces, and those at its end that belong to what follows: headings, a list's announcement."""
    end = len(own)
    if len(atom) > 1 and text[own[-1].start : own[-1].end].rstrip("*_").endswith((":", "：")):
        end -= 1
    while end and own[end - 1].level:
        end -= 1
    return own[:end], own[end:]


def _loosened(text: str, atom: Atom, room: int, size: int) -> list[Atom]:
    """What does not fit below its heading, in smaller atoms; none where the heading leaves less than half the room."""
    if len(atom) > 1:
        return [(piece,) for piece in atom]
    if room * 2 < size or atom[0].level:
        return []
    return [(piece,) for piece in split(text, atom[0], room)]


def _closed(text: str, shared: list[TextPiece], own: list[TextPiece], size: int) -> tuple[Span, list[TextPiece]]:
    """The span, counted exactly, and pieces given back where the sum of the counts had promised too much."""
    pieces, returned = shared + own, list[TextPiece]()
    while True:
        start, end = pieces[0].start, pieces[-1].end
        tokens = count_tokens([text[start:end]])[0]
        if tokens <= size or len(pieces) == 1:
            return Span(start=start, end=end, tokens=tokens), returned
        if pieces[0] is not own[0]:
            pieces = own
        else:
            returned = [pieces[-1], *returned]
            pieces = pieces[:-1]


def _last_sentences(pieces: Sequence[TextPiece], room: int) -> list[TextPiece]:
    """The whole sentences at the end that fit into `room` tokens, never all and none before a heading."""
    found: list[TextPiece] = []
    for piece in reversed(pieces[1:]):
        room -= piece.tokens
        if room < 0 or piece.level or not piece.whole:
            break
        found.insert(0, piece)
    return found


@step("chunk")
async def chunk(documents: Sequence[Document], size: int, overlap: int) -> list[Chunk]:
    """Cut documents into chunks of at most `size` tokens that share up to `overlap` tokens with the one before."""
    return [made for document in documents for made in chunk_document(document, size, overlap)]
