"""Citations: the sources that an answer is written from, the quotes of them, and their check
against the document.

A source is packed into the tokens that a prompt has for it; a citation of it is checked against the
stored document, character by character (`citation_of`). The units of a source that can be quoted
are its sentences, table rows and steps of lists.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial, reduce
from itertools import chain, islice
from typing import Any, TypeVar

from prompts.engine.calls import rough_tokens
from prompts.text.evidence import Evidence, cells_of, row_of
from prompts.text.regex import regex
from prompts.text.segment import heading_words, sentences
from prompts.text.words import content_terms
from storage.answer_records import Citation
from storage.records import Chunk, DocumentText

# A source of at most so many characters is quoted whole; of a longer one at most so much.
SHORT_SOURCE, LONGEST_QUOTE = 240, 600
MOST_NAMED = 5  # documents that hold the same text
# What a piece takes beside its title and text: its number and marks.
NUMBER_TOKENS = 4


def piece_tokens(title: str, text: str) -> int:
    """About how many tokens a numbered piece of evidence takes in a prompt."""
    return rough_tokens(text) + rough_tokens(title) + NUMBER_TOKENS


@dataclass(frozen=True, slots=True)
class Source:
    """`text` is `[start, end)` of a stored document, which is called `name`; `chunks` are (id,
    start) of the passages that it is made of, `also` the other documents that hold the same text.
    """

    document: str
    name: str
    text: str
    start: int
    chunks: tuple[tuple[str, int], ...]
    heading: str = ""
    language: str = ""  # where it is known
    also: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The document's title, with the other documents that hold the same text."""
        if not self.also:
            return self.name
        more = f" and {len(self.also) - MOST_NAMED} more" if len(self.also) > MOST_NAMED else ""
        return f"{self.name or self.document} (also in {', '.join(self.also[:MOST_NAMED])}{more})"

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def tokens(self) -> int:
        """About how many tokens it takes in a prompt."""
        return piece_tokens(self.title, self.text)

    def chunk_at(self, offset: int) -> str:
        """The passage that holds an offset of the document."""
        return next(
            (name for name, start in reversed(self.chunks) if start <= offset), self.chunks[0][0]
        )

    def holds(self, document: str, start: int, end: int) -> bool:
        return self.document == document and self.start <= start and end <= self.end


def source_of(chunk: Chunk, start: int | None = None, end: int | None = None) -> Source:
    """A passage, or the stretch [start, end) of its document that lies in it, as a source."""
    start, end = chunk.start if start is None else start, chunk.end if end is None else end
    text = chunk.text[start - chunk.start : end - chunk.start]
    chunks = ((chunk.id, chunk.start),)
    return Source(chunk.document, chunk.title, text, start, chunks, chunk.heading, chunk.language)


def merged(sources: Iterable[Source]) -> list[Source]:
    """Sources that overlap or touch as one, in the place of the better one; a text that one names
    as also in a document does not come from that document once more.
    """
    result: list[Source] = []
    for new in sources:
        if any(new.document in source.also and new.text == source.text for source in result):
            continue
        touching = [
            source
            for source in result
            if source.document == new.document
            and source.start <= new.end
            and new.start <= source.end
        ]
        if touching:
            result[result.index(touching[0])] = reduce(_joined, touching, new)
            result = [source for source in result if source not in touching[1:]]
        else:
            result.append(new)
    return result


def piece_source(piece: Evidence) -> Source:
    """A sentence, row or finding as a source."""
    return Source(
        piece.document,
        piece.title,
        piece.text,
        piece.start,
        ((piece.chunk, piece.start),),
        piece.heading,
    )


def number_of(sources: Sequence[Source], document: str, start: int, end: int) -> int | None:
    """The number (from 1) of the source that holds a stretch of a document."""
    return next(
        (n for n, source in enumerate(sources, 1) if source.holds(document, start, end)), None
    )


def _joined(source: Source, other: Source) -> Source:
    first, second = sorted((source, other), key=lambda source: source.start)
    text = first.text + second.text[max(first.end - second.start, 0) :]
    chunks = tuple(sorted({*first.chunks, *second.chunks}, key=lambda chunk: chunk[1]))
    also = tuple(name for name in first.also if name in second.also)
    return replace(first, text=text, chunks=chunks, also=also)


def of_passages(sources: Iterable[Source], most: int | None) -> list[Source]:
    """The sources that rest on the first `most` passages (None: any number); what needs a further
    one is left out.
    """
    known: set[str] = set()
    kept: list[Source] = []
    for source in sources:
        passages = known.union(name for name, _ in source.chunks)
        if most is None or len(passages) <= most:
            kept.append(source)
            known = passages
    return kept


def packed(sources: Iterable[Source], most: int) -> list[Source]:
    """The first sources that fit into so many tokens; at least one. One that does not fit is passed
    over.
    """
    chosen: list[Source] = []
    for source in sources:
        tokens = source.tokens
        if chosen and tokens > most:
            continue
        chosen.append(source)
        most -= tokens
        if most <= 0:
            break
    return chosen


def best_quote(statement: str, text: str) -> tuple[int, int]:
    """Code points [start, end) of the sentence which shares most with a statement.

    A short text is quoted whole; of a text that shares nothing the first sentence is.
    """
    if len(text) <= SHORT_SOURCE:
        return _stripped(text, 0, len(text))
    wanted = frozenset(content_terms(statement))
    spans = _sentence_terms(text) or ((0, len(text), frozenset()),)
    # Figures tell a sentence from others better than words do.
    weights = {term: 2.0 if any(sign.isdigit() for sign in term) else 1.0 for term in wanted}
    start, end, _ = max(spans, key=lambda span: sum(weights[term] for term in wanted & span[2]))
    return _stripped(text, start, min(end, start + LONGEST_QUOTE))


@lru_cache(maxsize=4_096)
def _sentence_terms(text: str) -> tuple[tuple[int, int, frozenset[str]], ...]:
    return tuple(
        (start, end, frozenset(content_terms(text[start:end])))
        for start, end in sentences(text)
        if text[start:end].strip()
    )


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    stretch = text[start:end]
    return start + len(stretch) - len(stretch.lstrip()), end - (
        len(stretch) - len(stretch.rstrip())
    )


def citation_of(
    marker: str, source: Source, start: int, end: int, document: DocumentText
) -> Citation:
    """The citation of [start, end) of a source's text; `verified`: the stored text holds the quote
    there, character by character.
    """
    quote = source.text[start:end]
    begin = source.start + start
    return Citation(
        marker=marker,
        document=source.document,
        title=source.title,
        chunk=source.chunk_at(begin),
        start=begin,
        end=begin + len(quote),
        page=document.page_of(begin),
        quote=quote,
        verified=document.text[begin : begin + len(quote)] == quote,
    )


# --- evidence -------------------------------------------------------------------------------------

_HEADING = regex(r"\s*+#{1,6}\s++.*[^\s#]")
_MARKUP = regex(r"^(?:\s*+(?:[*+>]|-(?= ))\s++)+")
_RULE = regex(r"(?=(?s:.)+\|)[\s|:-]+$")
_STEP = regex(
    r"^[ \t]*(?:(?:step|第)\s*)?(\d{1,2})(?:[.)、．:：](?!\d)|步[:：,，]?)\s*(?=\S)", re.I | re.M
)
# What is longer is no step of a list, but a numbered section or the text after the list.
MOST_OF_A_STEP = 700
_AFTER_STEP = regex(r"\n\s*\n|\n#")


T = TypeVar("T")


class LazySequence(Sequence[T]):
    """What is made when somebody first looks at it: most questions never look at every sentence of
    their passages.
    """

    def __init__(self, make: Callable[[], Iterable[T]]) -> None:
        self._maker = make

    @cached_property
    def _items(self) -> tuple[T, ...]:
        return tuple(self._maker())

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, at: Any) -> Any:
        return self._items[at]

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)


def openings(chunks: Sequence[Chunk]) -> list[Evidence]:
    """The first unit of each chunk."""
    return [unit for chunk in chunks for unit in _units_of(chunk)[:1]]


def first_units(chunks: Sequence[Chunk], count: int) -> list[Evidence]:
    """The first units of chunks together."""
    return list(islice(chain.from_iterable(map(_units_of, chunks)), count))


def pool_of(chunks: Sequence[Chunk]) -> tuple[Evidence, ...]:
    """The units of chunks, ordered best first and numbered from 0; a stretch that two chunks share
    is taken once.
    """
    evidence: dict[tuple[str, int, int], Evidence] = {}
    for rank, chunk in enumerate(chunks):
        prior = 1.0 - rank / len(chunks)
        for piece in _units_of(chunk):
            place = (piece.document, piece.start, piece.end)
            if place not in evidence:
                evidence[place] = piece._replace(number=len(evidence), prior=prior)
    return tuple(evidence.values())


@lru_cache(maxsize=8_192)
def _units_of(chunk: Chunk) -> tuple[Evidence, ...]:
    """The units of a chunk; kept, since the same chunks are read for many questions."""
    return tuple(unit for unit in _units(chunk) if unit.text.strip())


def _units(chunk: Chunk) -> Iterator[Evidence]:
    """Each sentence, row and step of a chunk; headings set the context of what follows."""
    unit = partial(Evidence, 0, chunk.document, chunk.title, chunk=chunk.id)
    heading, before = chunk.heading, ""
    header: tuple[str, ...] = ()
    headings: list[tuple[int, str]] = []
    for opening, end in sentences(chunk.text):
        lead = _MARKUP.match(chunk.text[opening:end])
        start = opening + (lead.end() if lead else 0)
        text = chunk.text[start:end]
        heading_match = _HEADING.match(text)
        row = row_of(text)
        header = () if not row else header
        if row and not header:
            header = row
        elif not _RULE.match(text):
            cells = tuple(zip(header, row, strict=False)) if row else cells_of(text)
            yield unit(text, heading, before, cells=cells, start=chunk.start + start)
        if heading_match:
            heading, before = heading_words(text), ""
            headings.append((start, heading))
        elif not row:
            before = text
    yield from _steps(chunk, headings)


def _steps(chunk: Chunk, headings: Sequence[tuple[int, str]]) -> Iterator[Evidence]:
    """The items of numbered lists as whole units, labelled with their number."""
    starts = list(_STEP.finditer(chunk.text))
    for match, following in zip(starts, [*starts[1:], None], strict=False):
        stop = following.start() if following else len(chunk.text)
        gap = _AFTER_STEP.search(chunk.text, match.end(), stop)
        end = gap.start() if gap else stop
        end -= len(chunk.text[match.end() : end]) - len(chunk.text[match.end() : end].rstrip())
        heading = next(
            (name for at, name in reversed(headings) if at < match.start()), chunk.heading
        )
        start = match.end()
        if start < end <= start + MOST_OF_A_STEP:
            yield Evidence(
                0,
                chunk.document,
                chunk.title,
                chunk.text[start:end],
                heading,
                label=match.group(1),
                attribute="step",
                chunk=chunk.id,
                start=chunk.start + start,
            )
