"""The quotable units of passages: sentences, table rows, list steps and triples, with their exact places."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from prompts.text.evidence import Evidence, cells_of, row_of
from prompts.text.segment import sentences
from storage.answer_records import Citation
from storage.records import Chunk, Document, Record

_HEADING = re.compile(r"^\s*#{1,6}\s+(.+?)\s*#*\s*$")
_MARKUP = re.compile(r"^(?:\s*(?:[*+>]|-(?= ))\s+)+")
_RULE = re.compile(r"^\s*\|?[\s|:-]+\|[\s|:-]*$")
_STEP = re.compile(r"^[ \t]*(?:(?:step|第)\s*)?(\d{1,2})(?:[.)、．:：](?!\d)|步[:：,，]?)\s*(?=\S)", re.I | re.M)
# What is longer is no step of a list, but a numbered section or the text after the list.
MOST_OF_A_STEP = 700
_AFTER_STEP = re.compile(r"\n\s*\n|\n#")


class Place(Record):
    """Where a unit stands: document offsets of its quote."""

    document: str
    title: str
    chunk: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Pool:
    """Evidence and, by its number, the place of each piece."""

    evidence: tuple[Evidence, ...]
    places: tuple[Place, ...]

    def inside(self, chunks: Collection[str]) -> "Pool":
        """Only what these chunks hold; numbers stay valid."""
        kept = set(chunks)
        return replace(self, evidence=tuple(e for e in self.evidence if self.places[e.number].chunk in kept))

    def by_chunk(self) -> dict[str, list[Evidence]]:
        """The evidence of each chunk, in order."""
        found: dict[str, list[Evidence]] = {}
        for piece in self.evidence:
            found.setdefault(self.places[piece.number].chunk, []).append(piece)
        return found

    def plus(self, chunks: Sequence[Chunk]) -> "Pool":
        """With the units of further chunks, numbered after the present ones; known chunks add nothing."""
        known = {place.chunk for place in self.places}
        more = pool_of([chunk for chunk in chunks if chunk.id not in known])
        shift = len(self.places)
        added = tuple(replace(piece, number=piece.number + shift) for piece in more.evidence)
        return Pool(self.evidence + added, self.places + more.places)


def pool_of(chunks: Sequence[Chunk]) -> Pool:
    """The units of chunks that are ordered best first; a stretch that two chunks share is taken once.

    Numbers start at 0, and `places[number]` is the place of a unit.
    """
    evidence: list[Evidence] = []
    places: list[Place] = []
    seen: set[tuple[str, int, int]] = set()
    for rank, chunk in enumerate(chunks):
        prior = 1.0 - rank / len(chunks)
        for start, end, piece in _units_of(chunk):
            key = (chunk.document, chunk.start + start, chunk.start + end)
            if key in seen or not chunk.text[start:end].strip():
                continue
            seen.add(key)
            evidence.append(replace(piece, number=len(evidence), prior=prior))
            places.append(
                Place(
                    document=chunk.document,
                    title=chunk.title,
                    chunk=chunk.id,
                    start=chunk.start + start,
                    end=chunk.start + end,
                )
            )
    return Pool(tuple(evidence), tuple(places))


@lru_cache(maxsize=8_192)
def _units_of(chunk: Chunk) -> tuple[tuple[int, int, Evidence], ...]:
    """The units of a chunk; kept, since the same chunks are read for many questions."""
    return tuple(_units(chunk))


def _units(chunk: Chunk) -> Iterator[tuple[int, int, Evidence]]:
    """(start, end, unit) of each sentence, row and step of a chunk; headings set the context of what follows."""
    heading, before = chunk.heading, ""
    header: tuple[str, ...] = ()
    headings: list[tuple[int, str]] = []
    for opening, end in sentences(chunk.text):
        lead = _MARKUP.match(chunk.text[opening:end])
        start = opening + (lead.end() if lead else 0)
        text = chunk.text[start:end]
        found = _HEADING.match(text)
        row = row_of(text)
        header = () if not row else header
        if row and not header:
            header = row
        elif not _RULE.match(text):
            cells = tuple(zip(header, row, strict=False)) if row else cells_of(text)
            yield start, end, Evidence(0, chunk.document, chunk.title, text, heading, before, cells=cells)
        if found:
            heading, before = found.group(1), ""
            headings.append((start, heading))
        elif not row:
            before = text
    yield from _steps(chunk, headings)


def _steps(chunk: Chunk, headings: Sequence[tuple[int, str]]) -> Iterator[tuple[int, int, Evidence]]:
    """The items of numbered lists as whole units, labelled with their number."""
    starts = list(_STEP.finditer(chunk.text))
    for match, following in zip(starts, [*starts[1:], None], strict=False):
        stop = following.start() if following else len(chunk.text)
        gap = _AFTER_STEP.search(chunk.text, match.end(), stop)
        end = gap.start() if gap else stop
        end -= len(chunk.text[match.end() : end]) - len(chunk.text[match.end() : end].rstrip())
        heading = next((name for at, name in reversed(headings) if at < match.start()), chunk.heading)
        start = match.end()
        if start < end <= start + MOST_OF_A_STEP:
            text = chunk.text[start:end]
            yield (
                start,
                end,
                Evidence(0, chunk.document, chunk.title, text, heading, label=match.group(1), attribute="step"),
            )


def cite(
    marker: int, place: Place, documents: Mapping[str, Document], quote: str, *, supportive: bool = True
) -> Citation:
    """A citation of a place. It is verified when the stored text holds the quote there, character by character, and it
    supports what it is cited for."""
    document = documents[place.document]
    return Citation(
        marker=f"[{marker}]",
        document=place.document,
        title=place.title,
        chunk=place.chunk,
        start=place.start,
        end=place.end,
        page=document.page_of(place.start),
        quote=quote,
        verified=supportive and document.text[place.start : place.end] == quote,
    )
