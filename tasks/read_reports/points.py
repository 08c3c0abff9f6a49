"""Points: what reports contribute to an answer, found in portions side by side, and scored.

Source: GraphRAG (arXiv 2404.16130), section 2.6: shuffle, pack, score, and take the best until the
context is full. Its DRIFT search looks up what the points leave open, the best follow-ups first.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import TypeVar

from prompts.engine.effort import Effort
from prompts.engine.helper import helped
from prompts.engine.messages import first_fitting, portions, rough_tokens
from prompts.engine.step import Step
from prompts.read_reports import Explore, FollowUp, Offered, Partial, PointWritten
from prompts.text.evidence import Evidence
from prompts.text.relevance import CollectionTopic
from prompts.text.thesaurus import concept_terms
from prompts.text.words import fold
from storage.graph_records import Finding, Report
from storage.records import Chunk, DocumentText, by_key
from tasks.batches import gather_or_cancel
from tasks.citations import pool_of
from tasks.read_reports.near import CommunityChunkIndex
from tasks.retrying import BRIEF
from tasks.step import step

T = TypeVar("T")
# Without a model an answer quotes at most so many points, in so many tokens.
MOST_POINTS, ANSWER_TOKENS = 12, 1_200
LEAST_SHARE = 0.15  # of the best score: points that help less are left out
ALIKE = 0.7  # the share of common terms above which a point repeats another
QUOTED = "the statements of the reports are quoted"


@dataclass(frozen=True)
class ReportTexts:
    """Reports as they are read, by community, and the sentences that show their findings."""

    offered: Mapping[str, Offered]
    pool: Sequence[Evidence]


@dataclass(frozen=True)
class CitedDocuments:
    """The documents that findings cite, and their chunks in order."""

    documents: Mapping[str, DocumentText]
    chunks: Mapping[str, Sequence[Chunk]]

    def evidence(self, number: int, finding: Finding, near: Mapping[str, float]) -> Evidence:
        """Return a finding's words where they stand, in the chunk in which they begin."""
        document = self.documents[finding.document]
        chunk = next(
            chunk for chunk in reversed(self.chunks[document.id]) if chunk.start <= finding.start
        )
        return Evidence(
            number,
            document.id,
            chunk.title,
            document.text[finding.start : finding.end],
            prior=near.get(chunk.id, 0.0),
            chunk=chunk.id,
            start=finding.start,
        )


def report_texts(
    reports: Sequence[Report],
    library: CitedDocuments,
    near: Mapping[str, float],
    *,
    quotes_only: bool,
) -> ReportTexts:
    """Prepare reports for reading, with their findings as evidence.

    Findings whose document is not in the library are left out. `near` says how near chunks are to
    the question. `quotes_only` shows the quoted statements alone: titles, summaries and
    explanations are made of all documents.
    """
    evidence: dict[tuple[str, int, int], Evidence] = {}
    offered = {}
    for report in reports:
        only_quotes = quotes_only or quotes(report)
        findings = []
        for finding in report.findings:
            if finding.document in library.documents:
                place = (finding.document, finding.start, finding.end)
                piece = evidence.setdefault(place, library.evidence(len(evidence), finding, near))
                findings.append((text_of(piece) if only_quotes else _finding_text(finding), piece))
        if findings:
            title, summary = (
                "" if quotes_only else report.title,
                "" if only_quotes else report.summary,
            )
            offered[report.community] = Offered(title, summary, tuple(findings))
    return ReportTexts(offered, tuple(evidence.values()))


def _finding_text(finding: Finding) -> str:
    return " ".join(dict.fromkeys([finding.summary.strip(), finding.explanation.strip()]))


def quotes(report: Report) -> bool:
    """Whether a report quotes its statements, so that its summary repeats its findings."""
    return bool(report.findings) and report.findings[0].explanation in report.summary


def read_tokens(report: Report) -> int:
    """Estimate the tokens of a report in `report_texts`."""
    if quotes(report):
        texts = [report.title, *(finding.explanation for finding in report.findings)]
    else:
        texts = [report.title, report.summary, *map(_finding_text, report.findings)]
    return rough_tokens(" ".join(texts))


def with_near_sentences(
    texts: ReportTexts, near: Sequence[Evidence], index: CommunityChunkIndex
) -> ReportTexts:
    """Add the sentences near to the question to the reports whose communities they name.

    Sentences without such a report, or already in the pool, are left out.
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
    """Add the sentences of chunks to a pool; return the new pool, and what was added."""
    return _added(pool, (piece for piece in pool_of(chunks) if not piece.label))


def _added(
    pool: Sequence[Evidence], pieces: Iterable[Evidence]
) -> tuple[list[Evidence], list[Evidence]]:
    """Add the pieces whose places are not in the pool; number them; return the pool and these."""
    known = {(piece.document, piece.start, piece.end) for piece in pool}
    other = (piece for piece in pieces if (piece.document, piece.start, piece.end) not in known)
    new = [piece._replace(number=number) for number, piece in enumerate(other, len(pool))]
    return [*pool, *new], new


def text_of(piece: Evidence) -> str:
    """Return the evidence as one line."""
    return " ".join(piece.text.split())


# --- points ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Point:
    """A partial answer; `score` says how much it helps (1-100), `findings` are what shows it.

    `report` (a community) and `source` (a title) are those of the first finding, or empty.
    """

    text: str
    score: int
    findings: tuple[int, ...]
    report: str
    source: str


def shuffled(reports: Sequence[T], seed: str) -> list[T]:
    """Shuffle reports, so that a portion is not filled by neighbours."""
    mixed = list(reports)
    random.Random(seed).shuffle(mixed)  # noqa: S311 -- an order, not a secret
    return mixed


@step("partial", BRIEF, asks_model=True)
async def partial_answers(
    texts: ReportTexts,
    seed: str | None,
    topic: CollectionTopic,
    answerer: Partial,
    most: int | None = None,
) -> list[Point]:
    """Find the points for the answer, the most helpful first.

    A call reads `most` tokens (None: those of the map step). Without a seed the texts are read in
    their order.
    """
    names = list(texts.offered) if seed is None else shuffled(sorted(texts.offered), seed)
    offered = [texts.offered[name] for name in names]
    sizes = (rough_tokens(text.written()) for text in offered)
    calls = portions(offered, sizes, most or answerer.policy.limits.map)
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
    """Give each point the report and the source of the first finding that shows it."""
    of = {
        piece.number: (name, piece.title or piece.document)
        for name, text in texts
        for _, piece in text.findings
    }
    points = []
    for point in written:
        report, source = of[point.findings[0]] if point.findings else ("", "")
        points.append(Point(point.text, point.score, tuple(point.findings), report, source))
    return points


def helpful_points(points: Sequence[Point], answerer: Step) -> list[Point]:
    """Choose the points that the final answer reads from points in order, best first.

    A model's points are taken by their score alone until the prompt is full (GraphRAG 2.6); without
    a model a few are taken from each source.
    """
    most = answerer.policy.limits.points
    if answerer.is_offline:
        return spread(points, min(most, ANSWER_TOKENS), lambda point: rough_tokens(point.text))
    helpful = (point for point in points if point.score > 0)
    return first_fitting(helpful, lambda point: rough_tokens(point.text), most)


def spread(points: Sequence[Point], most: int, size: Callable[[Point], int]) -> list[Point]:
    """Choose the points to quote without a model, most helpful first, within `most` tokens.

    None repeats another. A point counts half as much for each earlier point of its source.
    """
    top = max((point.score for point in points), default=0)
    left = [point for point in points if point.score >= max(1.0, LEAST_SHARE * top)]
    terms = {point: frozenset(concept_terms(point.text)) for point in left}
    chosen: list[Point] = []
    counts: Counter[str] = Counter()
    while left and len(chosen) < MOST_POINTS:
        # Of equals `max` returns the first.
        best = max(left, key=lambda point: point.score * 0.5 ** counts[point.source])
        left.remove(best)
        own = terms[best]
        others = [terms[other] for other in chosen]
        if any(
            own == other or len(own & other) > ALIKE * min(len(own), len(other)) for other in others
        ):
            continue
        most -= size(best)
        if chosen and most < 0:
            break
        chosen.append(best)
        counts[best.source] += 1
    return chosen


def by_source(points: Sequence[Point]) -> Iterator[Point]:
    """Yield the points of each source together; with several sources, the first gets its title."""
    groups = by_key((point.source, point) for point in points)
    for source, group in groups.items():
        head = f"{source}:\n" if source and len(groups) > 1 else ""
        for point in group:
            yield replace(point, text=f"{head}{point.text}")
            head = ""


# --- what to look up next -------------------------------------------------------------------------


# How many follow-ups are looked up, and from which depth none are taken (the reports have depth 0).
LOOK_UPS: Mapping[Effort, tuple[int, int]] = {"low": (2, 1), "medium": (5, 2), "high": (10, 3)}
DECAY = 0.7  # the weight of a follow-up, for each level of depth


@dataclass
class Agenda:
    """What is still to be looked up: the most helpful first, nothing twice."""

    most: int
    depth: int
    looked_up: int = 0
    _waiting: list[tuple[float, int, int, str]] = field(default_factory=list)
    _known: set[str] = field(default_factory=set)

    def add(self, follow_ups: Sequence[FollowUp], depth: int) -> None:
        """Add follow-ups that came up at a depth, except those that are too deep or known."""
        for follow_up in follow_ups if depth < self.depth else ():
            if (key := fold(follow_up.question.strip())) and key not in self._known:
                self._known.add(key)
                rank = -follow_up.score * DECAY**depth, len(self._known)
                heappush(self._waiting, (*rank, depth + 1, follow_up.question))

    def next(self) -> tuple[str, int] | None:
        """Take the best question with its depth; None if there is none, or enough was looked up."""
        if not self._waiting or self.looked_up >= self.most:
            return None
        self.looked_up += 1
        *_, depth, question = heappop(self._waiting)
        return question, depth


@step("explore", BRIEF, asks_model=True)
async def explore(
    focus: str, texts: Sequence[tuple[str, Offered]], topic: CollectionTopic, explorer: Explore
) -> tuple[list[Point], list[FollowUp]]:
    """Find the points of named texts, and what to look up next."""
    offered = [text for _, text in texts]
    explored = await helped(explorer, lambda step: step.run(focus, offered, topic), QUOTED)
    return _points(explored.points, texts), explored.follow_ups
