"""Partial answers from reports: portions in parallel, their points scored, the best ones for the answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from prompts.engine.calls import rough_tokens
from prompts.engine.step import Step
from prompts.partial import Offered, Partial
from prompts.text.evidence import Evidence
from prompts.text.relevance import CollectionTopic
from storage.graph_records import Finding, Report
from storage.records import Chunk, Document
from tasks.batching import gather_or_cancel
from tasks.evidence import Place, Pool, pool_of
from tasks.reports.near import CommunityChunkIndex, Sentence
from tasks.reports.pack import Point, filled, packed, shuffled
from tasks.step import step

ANSWER_TOKENS = 1_200  # of points that are quoted where no model writes


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


def shown_of(reports: Sequence[Report], library: Library, near: Mapping[str, float], *, quotes_only: bool) -> Shown:
    """The reports with their findings as evidence; a finding whose document is not in the library is left out.

    `near` says how near chunks are to the question. `quotes_only` leaves out titles and summaries, which are made of
    all documents. A report that quotes its statements has them once, as findings.
    """
    pool, offered = Pool((), ()), {}
    numbers: dict[tuple[str, int, int], Evidence] = {}
    for report in reports:
        findings, quoted = [], quotes(report)
        for finding in report.findings:
            if finding.document not in library.documents:
                continue
            key = (finding.document, finding.start, finding.end)
            piece = numbers.get(key)
            if piece is None:
                place = library.place(*key)
                text = library.documents[finding.document].text[finding.start : finding.end]
                prior = near.get(place.chunk, 0.0)
                piece = numbers[key] = Evidence(len(pool.places), finding.document, place.title, text, prior=prior)
                pool = Pool((*pool.evidence, piece), (*pool.places, place))
            findings.append((text_of(piece) if quotes_only or quoted else _said(finding), piece))
        if findings:
            title = "" if quotes_only else report.title
            offered[report.community] = Offered(title, "" if quotes_only or quoted else report.summary, tuple(findings))
    return Shown(offered, pool)


def _said(finding: Finding) -> str:
    """A finding as it is read: its summary and its explanation."""
    return " ".join(dict.fromkeys([finding.summary.strip(), finding.explanation.strip()]))


def quotes(report: Report) -> bool:
    """Whether a report is made of its statements: its summary then says what its findings say."""
    return bool(report.findings) and report.findings[0].explanation in report.summary


def read_tokens(report: Report) -> int:
    """About how many tokens a report is when it is read (`shown_of`)."""
    if quotes(report):
        return rough_tokens(" ".join([report.title, *(finding.explanation for finding in report.findings)]))
    said = " ".join(map(_said, report.findings))
    return rough_tokens(f"{report.title} {report.summary} {said}")


def joined(shown: Shown, sentences: Sequence[Sentence], grounds: CommunityChunkIndex) -> Shown:
    """With the sentences near to the question among the findings of the report whose community they speak of; those of
    no such report, and those that stand there already, are left out."""
    known = {(place.document, place.start, place.end) for place in shown.pool.places}
    added: dict[str, list[tuple[str, Evidence]]] = {}
    evidence, places = list(shown.pool.evidence), list(shown.pool.places)
    for piece, place in sentences:
        name = grounds.of(place.chunk, shown.offered)
        if name is None or (place.document, place.start, place.end) in known:
            continue
        numbered = replace(piece, number=len(places))
        evidence.append(numbered)
        places.append(place)
        added.setdefault(name, []).append((text_of(numbered), numbered))
    offered = {
        name: replace(report, findings=(*report.findings, *added.get(name, ())))
        for name, report in shown.offered.items()
    }
    return Shown(offered, Pool(tuple(evidence), tuple(places)))


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
async def partial_answers(shown: Shown, seed: str, gist: CollectionTopic, answerer: Partial) -> list[Point]:
    """The points that go into the answer, most helpful first."""
    names = shuffled(sorted(shown.offered), seed)
    portions = packed([shown.offered[name].written() for name in names], answerer.policy.limits.map)
    of_portions = [[names[place] for place in portion] for portion in portions]
    written = await gather_or_cancel(
        answerer.run([shown.offered[name] for name in portion], gist) for portion in of_portions
    )
    report_of = {piece.number: name for name, offered in sorted(shown.offered.items()) for _, piece in offered.findings}
    source_of = {piece.number: piece.title or piece.document for piece in shown.pool.evidence}
    points = [
        Point(
            one.text, one.score, tuple(one.findings), report_of[one.findings[0]] if one.findings else "",
            source_of[one.findings[0]] if one.findings else "",
        )
        for portion in written
        for one in portion
    ]  # fmt: skip
    points.sort(key=lambda point: (-point.score, point.findings))
    return helpful_points(points, answerer)


def helpful_points(points: Sequence[Point], answerer: Step) -> list[Point]:
    """Of points, best first, those that the final answer reads.

    A model's points by their score alone until the prompt is full (GraphRAG 2.6); without a model some of each source
    and theme (`tasks.reports.pack.filled`).
    """
    most = answerer.policy.limits.points
    if answerer.is_offline:
        return filled(points, min(most, ANSWER_TOKENS), lambda point: rough_tokens(point.text))
    kept: list[Point] = []
    for point in points:
        most -= rough_tokens(point.text)
        if point.score <= 0 or (kept and most < 0):
            break
        kept.append(point)
    return kept
