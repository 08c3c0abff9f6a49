"""What the reports give towards an answer: points of portions in parallel, scored, the best ones
for the answer.

Source: GraphRAG (arXiv 2404.16130), section 2.6: shuffled and packed; scored; descending until the
context is full. Its DRIFT search looks up what the points leave open, the best follow-ups first,
within bounds.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from prompts.engine.calls import first_fitting, rough_tokens
from prompts.engine.effort import Effort
from prompts.engine.helper import helped
from prompts.engine.step import Step
from prompts.read_reports import Explore, FollowUp, Offered, Partial, PointWritten
from prompts.text.evidence import Evidence
from prompts.text.relevance import CollectionTopic
from prompts.text.thesaurus import concept_terms
from prompts.text.words import fold
from storage.graph_records import Finding, Report
from storage.records import Chunk, DocumentText, by_key
from tasks.batches import gather_or_cancel, portions
from tasks.citations import pool_of
from tasks.read_reports.near import CommunityChunkIndex
from tasks.retrying import BRIEF
from tasks.step import step

T = TypeVar("T")
ANSWER_TOKENS = 1_200  # of points that are quoted where no model writes
MOST_POINTS = 12  # of these
LEAST_SHARE = 0.15  # of the best point's score: what helps less stays out
ALIKE = 0.7  # the share of its terms from which a point repeats another
NOWHERE = ("", "")
QUOTED = "the statements of the reports are quoted"


@dataclass(frozen=True)
class ReportTexts:
    """Reports as they are read, by community, and the pool of the sentences that show their
    findings.
    """

    offered: Mapping[str, Offered]
    pool: Sequence[Evidence]


@dataclass(frozen=True)
class CitedDocuments:
    """The documents that findings point into, and their chunks in order."""

    documents: Mapping[str, DocumentText]
    chunks: Mapping[str, Sequence[Chunk]]

    def evidence(self, number: int, finding: Finding, near: Mapping[str, float]) -> Evidence:
        """A finding's words where they stand, in the chunk that holds their beginning."""
        document = self.documents[finding.document]
        chunk = next(
            chunk for chunk in reversed(self.chunks[document.id]) if chunk.start <= finding.start
        )
        text, prior = document.text[finding.start : finding.end], near.get(chunk.id, 0.0)
        return Evidence(
            number, document.id, chunk.title, text, prior=prior, chunk=chunk.id, start=finding.start
        )


def report_texts(
    reports: Sequence[Report],
    library: CitedDocuments,
    near: Mapping[str, float],
    *,
    quotes_only: bool,
) -> ReportTexts:
    """The reports with their findings as evidence; a finding whose document is not in the library
    is left out.

    `near` says how near chunks are to the question. `quotes_only` leaves out titles and summaries,
    which are made of all documents. A report that quotes its statements has them once, as findings.
    """
    evidence: dict[tuple[str, int, int], Evidence] = {}
    offered = {}
    for report in reports:
        findings, quoted = [], quotes(report)
        for finding in report.findings:
            if finding.document not in library.documents:
                continue
            place = (finding.document, finding.start, finding.end)
            piece = evidence.setdefault(place, library.evidence(len(evidence), finding, near))
            findings.append(
                (text_of(piece) if quotes_only or quoted else _finding_text(finding), piece)
            )
        if findings:
            title = "" if quotes_only else report.title
            offered[report.community] = Offered(
                title, "" if quotes_only or quoted else report.summary, tuple(findings)
            )
    return ReportTexts(offered, tuple(evidence.values()))


def _finding_text(finding: Finding) -> str:
    """A finding as it is read: its summary and its explanation."""
    return " ".join(dict.fromkeys([finding.summary.strip(), finding.explanation.strip()]))


def quotes(report: Report) -> bool:
    """Whether a report is made of its statements: its summary then says what its findings say."""
    return bool(report.findings) and report.findings[0].explanation in report.summary


def read_tokens(report: Report) -> int:
    """About how many tokens a report is when it is read (`report_texts`)."""
    if quotes(report):
        return rough_tokens(
            " ".join([report.title, *(finding.explanation for finding in report.findings)])
        )
    findings = " ".join(map(_finding_text, report.findings))
    return rough_tokens(f"{report.title} {report.summary} {findings}")


def with_near_sentences(
    texts: ReportTexts, near: Sequence[Evidence], index: CommunityChunkIndex
) -> ReportTexts:
    """With the sentences near to the question among the findings of the report whose community they
    speak of; those of no such report, and those that stand there already, are left out.
    """
    home = {piece.chunk: index.of(piece.chunk, texts.offered) for piece in near}
    pool, new = _added(texts.pool, (piece for piece in near if home[piece.chunk] is not None))
    offered = dict(texts.offered)
    for piece in new:
        name = home[piece.chunk] or ""
        offered[name] = replace(
            offered[name], findings=(*offered[name].findings, (text_of(piece), piece))
        )
    return ReportTexts(offered, pool)


def with_sentences(
    pool: Sequence[Evidence], chunks: Sequence[Chunk]
) -> tuple[list[Evidence], list[Evidence]]:
    """The pool with the sentences of these chunks that do not stand in it yet, and those
    sentences.
    """
    return _added(pool, (piece for piece in pool_of(chunks) if not piece.label))


def _added(
    pool: Sequence[Evidence], pieces: Iterable[Evidence]
) -> tuple[list[Evidence], list[Evidence]]:
    """The pool with those of the pieces whose places it does not hold yet, and these, by their new
    numbers.
    """
    known = {(piece.document, piece.start, piece.end) for piece in pool}
    other = (piece for piece in pieces if (piece.document, piece.start, piece.end) not in known)
    new = [piece._replace(number=number) for number, piece in enumerate(other, len(pool))]
    return [*pool, *new], new


def text_of(piece: Evidence) -> str:
    """The evidence as one line."""
    return " ".join(piece.text.split())


# --- points ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Point:
    """A partial answer: what is said, how much it helps (1-100), the findings that show it, its
    report and source.
    """

    text: str
    score: int
    findings: tuple[int, ...]
    report: str
    source: str


def shuffled(reports: Sequence[T], seed: str) -> list[T]:
    """In an order of their own, the same for the same seed, so that no neighbourhood of reports
    fills one portion.
    """
    mixed = list(reports)
    random.Random(seed).shuffle(mixed)  # noqa: S311 -- an order, not a secret
    return mixed


@step("partial", BRIEF, asks_model=True)
async def partial_answers(
    texts: ReportTexts, seed: str, topic: CollectionTopic, answerer: Partial
) -> list[Point]:
    """Find the points that go into the answer, most helpful first."""
    names = shuffled(sorted(texts.offered), seed)
    sizes = [rough_tokens(texts.offered[name].written()) for name in names]
    calls = [
        [texts.offered[names[place]] for place in call]
        for call in portions(sizes, answerer.policy.limits.map)
    ]
    written = await gather_or_cancel(_points_of(call, topic, answerer) for call in calls)
    points = _points((point for call in written for point in call), sorted(texts.offered.items()))
    return helpful_points(
        sorted(points, key=lambda point: (-point.score, point.findings)), answerer
    )


async def _points_of(
    reports: Sequence[Offered], topic: CollectionTopic, answerer: Partial
) -> list[PointWritten]:
    return await helped(answerer, lambda step: step.run(reports, topic), QUOTED)


def _points(written: Iterable[PointWritten], texts: Iterable[tuple[str, Offered]]) -> list[Point]:
    """What a step wrote, each point with the name of the text, and the source, of the first finding
    that shows it.
    """
    of = {
        piece.number: (name, piece.title or piece.document)
        for name, text in texts
        for _, piece in text.findings
    }
    return [
        Point(
            point.text,
            point.score,
            tuple(point.findings),
            *(of[point.findings[0]] if point.findings else NOWHERE),
        )
        for point in written
    ]


def helpful_points(points: Sequence[Point], answerer: Step) -> list[Point]:
    """Of points, best first, those that the final answer reads.

    A model's points by their score alone until the prompt is full (GraphRAG 2.6); without a model a
    few of each source.
    """
    most = answerer.policy.limits.points
    if answerer.is_offline:
        return spread(points, min(most, ANSWER_TOKENS), lambda point: rough_tokens(point.text))
    return first_fitting(
        (point for point in points if point.score > 0), lambda point: rough_tokens(point.text), most
    )


def spread(points: Sequence[Point], most: int, size: Callable[[Point], int]) -> list[Point]:
    """The points that are quoted where no model writes: none twice, the most helpful first, as many
    as fit. A point counts half as much for each time that its source has spoken.
    """
    top = max((point.score for point in points), default=0)
    left = [point for point in points if point.score >= max(1.0, LEAST_SHARE * top)]
    terms = {point: frozenset(concept_terms(point.text)) for point in left}
    chosen: list[Point] = []
    spoken: Counter[str] = Counter()
    while left and len(chosen) < MOST_POINTS:
        best = max(
            left, key=lambda point: (point.score * 0.5 ** spoken[point.source], -left.index(point))
        )
        left.remove(best)
        own = terms[best]
        if any(
            len(own & terms[other]) > ALIKE * min(len(own), len(terms[other]))
            or own == terms[other]
            for other in chosen
        ):
            continue
        most -= size(best)
        if chosen and most < 0:
            break
        chosen.append(best)
        spoken[best.source] += 1
    return chosen


def by_source(points: Sequence[Point]) -> Iterator[Point]:
    """The points of each source together, the best source first; its title stands over the first of
    them, where there are several sources.
    """
    groups = by_key((point.source, point) for point in points)
    for source, group in groups.items():
        head = f"{source}:\n" if source and len(groups) > 1 else ""
        for point in group:
            yield replace(point, text=f"{head}{point.text}")
            head = ""


# --- what to look up next -------------------------------------------------------------------------


# How many follow-ups are looked up, and how far from the reports one may come up (1: from the
# reports alone).
LOOK_UPS: Mapping[Effort, tuple[int, int]] = {"low": (2, 1), "medium": (5, 2), "high": (10, 3)}
DECAY = 0.7  # what is asked further on counts less


@dataclass
class Agenda:
    """What is still to be looked up: the most helpful first, then what came first; nothing
    twice.
    """

    most: int
    depth: int
    looked_up: int = 0
    _waiting: list[tuple[float, int, int, str]] = field(default_factory=list)
    _known: set[str] = field(default_factory=set)

    def add(self, follow_ups: Sequence[FollowUp], depth: int) -> None:
        """Follow-ups that came up at a depth (0: the reports); what is too deep or known is
        dropped.
        """
        for follow_up in follow_ups if depth < self.depth else ():
            if (key := fold(follow_up.question.strip())) and key not in self._known:
                self._known.add(key)
                rank = -follow_up.score * DECAY**depth, len(self._known)
                self._waiting.append((*rank, depth + 1, follow_up.question))

    def next(self) -> tuple[str, int] | None:
        """(question, depth) of the best one; None where nothing is left or enough was looked up."""
        if not self._waiting or self.looked_up >= self.most:
            return None
        self.looked_up += 1
        best = min(self._waiting)
        self._waiting.remove(best)
        return best[3], best[2]


@step("explore", BRIEF, asks_model=True)
async def explore(
    focus: str, texts: Sequence[tuple[str, Offered]], topic: CollectionTopic, explorer: Explore
) -> tuple[list[Point], list[FollowUp]]:
    """Find the points of these texts (name, text), and what to look up next."""
    offered = [text for _, text in texts]
    explored = await helped(explorer, lambda step: step.run(focus, offered, topic), QUOTED)
    return _points(explored.points, texts), explored.follow_ups
