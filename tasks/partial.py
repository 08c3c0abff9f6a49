"""What do the reports say to the question? Portions in parallel, their points scored, the best ones for the answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from prompts.engine.calls import rough_tokens
from prompts.partial import Offered, Partial
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance
from storage.records import Chunk, Document, Report
from tasks.evidence import Place, Pool, pool_of
from tasks.reports.pack import Point, filled, packed, shuffled
from tasks.step import step
from tasks.together import together

ANSWER_TOKENS = 1_200  # of points in the final answer's context


@dataclass(frozen=True)
class Shown:
    """Reports as they are read, by community, and the pool of the sentences that show their findings."""

    offered: Mapping[str, Offered]
    pool: Pool


@dataclass(frozen=True)
class Library:
    """The documents that findings point into, and their chunks in order."""

    documents: Mapping[str, Document]
    chunks: Mapping[str, Sequence[Chunk]]

    def place(self, document: str, start: int, end: int) -> Place:
        """Where a finding stands, with the chunk that holds its beginning."""
        held = next(chunk for chunk in reversed(self.chunks[document]) if chunk.start <= start)
        title = self.documents[document].title
        return Place(document=document, title=title, chunk=held.id, start=start, end=end)


def shown_of(reports: Sequence[Report], library: Library, *, quotes_only: bool) -> Shown:
    """The reports with their findings as evidence; a finding whose document is not in the library is left out.

    `quotes_only` leaves out titles and summaries, which are made of all documents.
    """
    pool, offered = Pool((), ()), {}
    numbers: dict[tuple[str, int, int], Evidence] = {}
    for report in reports:
        findings = []
        for finding in report.findings:
            if finding.document not in library.documents:
                continue
            key = (finding.document, finding.start, finding.end)
            piece = numbers.get(key)
            if piece is None:
                place = library.place(*key)
                text = library.documents[finding.document].text[finding.start : finding.end]
                piece = numbers[key] = Evidence(len(pool.places), finding.document, place.title, text)
                pool = Pool((*pool.evidence, piece), (*pool.places, place))
            said = text_of(piece) if quotes_only else finding.summary
            findings.append((said, piece))
        if findings:
            title, summary = ("", "") if quotes_only else (report.title, report.summary)
            offered[report.community] = Offered(title, summary, tuple(findings), report.rating / 10)
    return Shown(offered, pool)


def with_sentences(pool: Pool, chunks: Sequence[Chunk]) -> tuple[Pool, list[Evidence]]:
    """The pool with the sentences of these chunks that do not stand in it yet, and those sentences."""
    known = {(place.document, place.start, place.end) for place in pool.places}
    new, places = list[Evidence](), list[Place]()
    found = pool_of(chunks)
    for piece in found.evidence:
        place = found.places[piece.number]
        if not piece.label and (place.document, place.start, place.end) not in known:
            new.append(replace(piece, number=len(pool.places) + len(places)))
            places.append(place)
    return Pool((*pool.evidence, *new), (*pool.places, *places)), new


def text_of(piece: Evidence) -> str:
    """The evidence as one line."""
    return " ".join(piece.text.split())


@step("partial")
async def partial_answers(shown: Shown, seed: str, relevance: Relevance, answerer: Partial) -> list[Point]:
    """The points that go into the answer, most helpful first (`tasks.reports.pack.filled`)."""
    names = shuffled(sorted(shown.offered), seed)
    portions = packed([shown.offered[name].written() for name in names])
    of_portions = [[names[place] for place in portion] for portion in portions]
    written = await together(
        answerer.run([shown.offered[name] for name in portion], relevance) for portion in of_portions
    )
    report_of = {piece.number: name for name, offered in sorted(shown.offered.items()) for _, piece in offered.findings}
    document_of = {piece.number: piece.document for piece in shown.pool.evidence}
    points = [
        Point(one.text, one.score, tuple(one.findings), report_of[one.findings[0]], document_of[one.findings[0]])
        for portion in written
        for one in portion
    ]
    points.sort(key=lambda point: (-point.score, point.findings))
    return filled(points, ANSWER_TOKENS, lambda point: rough_tokens(point.text))
