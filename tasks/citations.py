"""Sources that an answer is written from, quotes of them, and their check against the document.

Sources are packed into the tokens that a prompt has room for. `citation_of` compares a quote with
the stored document character by character. What can be quoted are sentences, table rows and steps
of numbered lists.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial, reduce
from itertools import chain, islice, zip_longest
from typing import Any, TypeVar

from prompts.engine.messages import rough_tokens
from prompts.text.evidence import Evidence, cells_of, row_of
from prompts.text.segment import heading_words, sentences
from prompts.text.words import content_terms
from storage.answer_records import Citation
from storage.records import Chunk, DocumentText

SHORT_SOURCE = 240  # Characters; a source of at most as many is quoted whole
LONGEST_QUOTE = 600  # Characters
MOST_NAMED = 5  # Further documents with the same text that a title names
NUMBER_TOKENS = 4  # Of the number and brackets before a piece of evidence


def piece_tokens(title: str, text: str) -> int:
    """Estimate the tokens of a numbered piece of evidence in a prompt."""
    return rough_tokens(text) + rough_tokens(title) + NUMBER_TOKENS


@dataclass(frozen=True, slots=True)
class Source:
    """A stretch `[start, end)` of a stored document, which is called `name`.

    `chunks` are the (id, start) of its passages, `also` the other documents with the same text.
    """

    document: str
    name: str
    text: str
    start: int
    chunks: tuple[tuple[str, int], ...]
    heading: str = ""
    language: str = ""  # Empty: unknown
    also: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The document's title, followed by the other documents with the same text."""
        if not self.also:
            return self.name
        more = f" and {len(self.also) - MOST_NAMED} more" if len(self.also) > MOST_NAMED else ""
        return f"{self.name or self.document} (also in {', '.join(self.also[:MOST_NAMED])}{more})"

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def tokens(self) -> int:
        """The estimated tokens of the source in a prompt."""
        return piece_tokens(self.title, self.text)

    def chunk_at(self, offset: int) -> str:
        """Return the id of the passage that holds an offset of the document."""
        return next(
            (name for name, start in reversed(self.chunks) if start <= offset), self.chunks[0][0]
        )

    def holds(self, document: str, start: int, end: int) -> bool:
        return self.document == document and self.start <= start and end <= self.end


def source_of(chunk: Chunk, start: int | None = None, end: int | None = None) -> Source:
    """Make a source of a chunk, or of the stretch [start, end) of its document inside it."""
    start = chunk.start if start is None else start
    end = chunk.end if end is None else end
    text = chunk.text[start - chunk.start : end - chunk.start]
    chunks = ((chunk.id, chunk.start),)
    return Source(chunk.document, chunk.title, text, start, chunks, chunk.heading, chunk.language)


def merged(sources: Iterable[Source]) -> list[Source]:
    """Join sources that overlap or touch, in the place of the better one.

    A source whose text a better one already names as its own (`also`) is dropped.
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
    """Make a source of a sentence, row or finding."""
    return Source(
        piece.document,
        piece.title,
        piece.text,
        piece.start,
        ((piece.chunk, piece.start),),
        piece.heading,
    )


def number_of(sources: Sequence[Source], document: str, start: int, end: int) -> int | None:
    """Return the number (from 1) of the source that holds a stretch, None where none does."""
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
    """Keep the sources that lie in the first `most` passages (None: any number of passages)."""
    known: set[str] = set()
    kept: list[Source] = []
    for source in sources:
        passages = known.union(name for name, _ in source.chunks)
        if most is None or len(passages) <= most:
            kept.append(source)
            known = passages
    return kept


def packed(sources: Iterable[Source], most: int) -> list[Source]:
    """Keep the first sources that fit into `most` tokens, at least one; skip those that do not."""
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
    """Return the code points [start, end) of the sentence that shares most with a statement.

    A short text is quoted whole; where no sentence shares a word, the first is quoted.
    """
    if len(text) <= SHORT_SOURCE:
        return _stripped(text, 0, len(text))
    # Figures tell sentences apart better than words do.
    weights = {
        term: 2.0 if any(sign.isdigit() for sign in term) else 1.0
        for term in content_terms(statement)
    }
    start, end, _ = max(
        _sentence_terms(text),
        key=lambda sentence: sum(weights[term] for term in weights.keys() & sentence[2]),
        default=(0, len(text), frozenset[str]()),
    )
    return _stripped(text, start, min(end, start + LONGEST_QUOTE))


@lru_cache(maxsize=4_096)
def _sentence_terms(text: str) -> tuple[tuple[int, int, frozenset[str]], ...]:
    return tuple(
        (start, end, frozenset(content_terms(text[start:end]))) for start, end in sentences(text)
    )


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the place of `text[start:end]` without the white space around it."""
    stretch = text[start:end]
    start += len(stretch) - len(stretch.lstrip())
    return start, start + len(stretch.strip())


def citation_of(
    marker: str, source: Source, start: int, end: int, document: DocumentText
) -> Citation:
    """Cite `source.text[start:end]`.

    `verified` says whether the stored document holds the quote there, character by character.
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

_HEADING = re.compile(r"\s*+#{1,6}\s++.*[^\s#]")
_MARKUP = re.compile(r"^(?:\s*+(?:[*+>]|-(?= ))\s++)+")
_RULE = re.compile(r"(?=(?s:.)+\|)[\s|:-]+$")
_STEP = re.compile(
    r"^[ \t]*(?:(?:step|第)\s*)?(\d{1,2})(?:[.)、．:：](?!\d)|步[:：,，]?)\s*(?=\S)", re.I | re.M
)
_LONGEST_STEP = 700  # Characters; a longer one is a numbered section
_AFTER_STEP = re.compile(r"\n\s*\n|\n#")

T = TypeVar("T")


class LazySequence(Sequence[T]):
    """A sequence that is computed at first use; few questions look at every sentence."""

    def __init__(self, make: Callable[[], Iterable[T]]) -> None:
        self._make = make

    @cached_property
    def _items(self) -> tuple[T, ...]:
        return tuple(self._make())

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, at: Any) -> Any:
        return self._items[at]

    def __iter__(self) -> Iterator[T]:  # That of Sequence hides an IndexError of `make`.
        return iter(self._items)


def openings(chunks: Sequence[Chunk]) -> list[Evidence]:
    """Return the first unit of each chunk."""
    return [unit for chunk in chunks for unit in _units_of(chunk)[:1]]


def first_units(chunks: Sequence[Chunk], count: int) -> list[Evidence]:
    """Return the first `count` units of all chunks together."""
    return list(islice(chain.from_iterable(map(_units_of, chunks)), count))


def pool_of(chunks: Sequence[Chunk]) -> tuple[Evidence, ...]:
    """Return the units of chunks, best chunk first, numbered from 0, without repeated stretches."""
    evidence: dict[tuple[str, int, int], Evidence] = {}
    for rank, chunk in enumerate(chunks):
        prior = 1.0 - rank / len(chunks)
        for unit in _units_of(chunk):
            place = (unit.document, unit.start, unit.end)
            if place not in evidence:
                evidence[place] = unit._replace(number=len(evidence), prior=prior)
    return tuple(evidence.values())


@lru_cache(maxsize=8_192)
def _units_of(chunk: Chunk) -> tuple[Evidence, ...]:
    """Return each sentence, row and step of a chunk, with the heading that it stands under."""
    unit = partial(Evidence, 0, chunk.document, chunk.title, chunk=chunk.id)
    found: list[Evidence] = []
    heading, before = chunk.heading, ""
    header: tuple[str, ...] = ()
    headings: list[tuple[int, str]] = []
    for opening, end in sentences(chunk.text):
        lead = _MARKUP.match(chunk.text[opening:end])
        start = opening + (lead.end() if lead else 0)
        text = chunk.text[start:end]
        row = row_of(text)
        if row and not header:
            header = row
        elif not _RULE.match(text):
            cells = tuple(zip(header, row, strict=False)) if row else cells_of(text)
            found.append(unit(text, heading, before, cells=cells, start=chunk.start + start))
        if not row:
            header = ()
            before = text
        if _HEADING.match(text):
            heading, before = heading_words(text), ""
            headings.append((start, heading))
    return (*found, *_steps(chunk, headings))


def _steps(chunk: Chunk, headings: Sequence[tuple[int, str]]) -> Iterator[Evidence]:
    """Yield the items of numbered lists as whole units, labelled with their number."""
    items = list(_STEP.finditer(chunk.text))
    for item, following in zip_longest(items, items[1:]):
        stop = following.start() if following else len(chunk.text)
        gap = _AFTER_STEP.search(chunk.text, item.end(), stop)
        start, end = _stripped(chunk.text, item.end(), gap.start() if gap else stop)
        above = (name for at, name in reversed(headings) if at < item.start())
        if start < end <= start + _LONGEST_STEP:
            yield Evidence(
                0,
                chunk.document,
                chunk.title,
                chunk.text[start:end],
                next(above, chunk.heading),
                label=item[1],
                attribute="step",
                chunk=chunk.id,
                start=chunk.start + start,
            )
