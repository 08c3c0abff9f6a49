"""Sources: the stretches of documents that an answer is written from, packed into a prompt's room, and quoted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from prompts.engine.calls import rough_tokens
from prompts.text.evidence import Evidence
from prompts.text.segment import sentences
from prompts.text.words import content_terms
from storage.answer_records import Citation
from storage.records import Chunk, Document
from tasks.evidence import Place

# A source of at most so many characters is quoted whole; of a longer one at most so much.
SHORT_SOURCE, LONGEST_QUOTE = 240, 600
# From so much more of a statement on a second sentence is quoted with the first.
WORTH_A_SECOND = 1.3
# What a piece takes beside its title and text: its number and marks.
NUMBER_TOKENS = 4


@dataclass(frozen=True, slots=True)
class Source:
    """`text` is `[start, end)` of a stored document; `chunks` are (id, start) of the passages that it is made of."""

    document: str
    title: str
    text: str
    start: int
    chunks: tuple[tuple[str, int], ...]
    heading: str = ""

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def tokens(self) -> int:
        """About how many tokens it takes in a prompt."""
        return rough_tokens(self.text) + rough_tokens(self.title) + NUMBER_TOKENS

    def chunk_at(self, offset: int) -> str:
        """The passage that holds an offset of the document."""
        return next((name for name, start in reversed(self.chunks) if start <= offset), self.chunks[0][0])

    def holds(self, document: str, start: int, end: int) -> bool:
        return self.document == document and self.start <= start and end <= self.end


def source_of(chunk: Chunk) -> Source:
    """A passage as a source."""
    return Source(chunk.document, chunk.title, chunk.text, chunk.start, ((chunk.id, chunk.start),), chunk.heading)


def span_of(chunk: Chunk, start: int, end: int) -> Source:
    """The stretch [start, end) of a passage's document."""
    text = chunk.text[start - chunk.start : end - chunk.start]
    return Source(chunk.document, chunk.title, text, start, ((chunk.id, chunk.start),), chunk.heading)


def merged(sources: Iterable[Source]) -> list[Source]:
    """Sources that overlap or touch as one, in the place of the better one."""
    found: list[Source] = []
    for new in sources:
        touching = [one for one in found if _touch(one, new)]
        if not touching:
            found.append(new)
            continue
        whole = new
        for one in touching:
            whole = _joined(one, whole)
        found[found.index(touching[0])] = whole
        found = [one for one in found if one not in touching[1:]]
    return found


def piece_source(piece: Evidence, place: Place) -> Source:
    """A sentence, row or finding with its place as a source."""
    return Source(place.document, place.title, piece.text, place.start, ((place.chunk, place.start),), piece.heading)


def number_of(sources: Sequence[Source], document: str, start: int, end: int) -> int | None:
    """The number (from 1) of the source that holds a stretch of a document."""
    return next((n for n, source in enumerate(sources, 1) if source.holds(document, start, end)), None)


def _touch(one: Source, two: Source) -> bool:
    return one.document == two.document and one.start <= two.end and two.start <= one.end


def _joined(one: Source, two: Source) -> Source:
    first, second = sorted((one, two), key=lambda source: source.start)
    text = first.text + second.text[max(first.end - second.start, 0) :]
    chunks = tuple(sorted({*first.chunks, *second.chunks}, key=lambda chunk: chunk[1]))
    return replace(first, text=text, chunks=chunks)


def packed(sources: Iterable[Source], most: int) -> list[Source]:
    """The first sources that fit into so many tokens; at least one. One that does not fit is passed over."""
    kept: list[Source] = []
    for source in sources:
        if kept and source.tokens > most:
            continue
        kept.append(source)
        most -= source.tokens
        if most <= 0:
            break
    return kept


def best_quote(statement: str, text: str) -> tuple[int, int]:
    """Code points [start, end) of the sentence, or of two that follow each other, which shares most with a statement.

    A short text is quoted whole; of a text that shares nothing the first sentence is.
    """
    if len(text) <= SHORT_SOURCE:
        return _stripped(text, 0, len(text))
    wanted = frozenset(content_terms(statement))
    units = _units(text)
    if not units:
        return _stripped(text, 0, min(len(text), LONGEST_QUOTE))
    shares = [_weight(wanted & terms) for _, _, terms in units]
    best = max(range(len(units)), key=lambda place: (shares[place], -place))
    start, end, terms = units[best]
    further = [
        (_weight(wanted & (terms | units[place][2])), place)
        for place in (best - 1, best + 1)
        if 0 <= place < len(units) and max(end, units[place][1]) - min(start, units[place][0]) <= LONGEST_QUOTE
    ]
    gain, place = max(further, default=(0.0, best))
    if gain >= WORTH_A_SECOND * shares[best] and gain > 0:
        start, end = min(start, units[place][0]), max(end, units[place][1])
    return _stripped(text, start, min(end, start + LONGEST_QUOTE))


def _weight(terms: Iterable[str]) -> float:
    """Figures tell a sentence from others better than words do."""
    return float(sum(2.0 if any(sign.isdigit() for sign in term) else 1.0 for term in terms))


@lru_cache(maxsize=4_096)
def _units(text: str) -> tuple[tuple[int, int, frozenset[str]], ...]:
    return tuple(
        (start, end, frozenset(content_terms(text[start:end])))
        for start, end in sentences(text)
        if text[start:end].strip()
    )


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    found = text[start:end]
    return start + len(found) - len(found.lstrip()), end - (len(found) - len(found.rstrip()))


def citation_of(marker: str, source: Source, start: int, end: int, document: Document) -> Citation:
    """The citation of [start, end) of a source's text; `verified`: the stored text holds the quote there, character by
    character."""
    quote = source.text[start:end]
    begin = source.start + start
    return Citation(
        marker=marker, document=source.document, title=source.title, chunk=source.chunk_at(begin),
        start=begin, end=begin + len(quote), page=document.page_of(begin), quote=quote,
        verified=document.text[begin : begin + len(quote)] == quote,
    )  # fmt: skip
