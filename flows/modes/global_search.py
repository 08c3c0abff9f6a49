"""Global search: a question about the whole collection, from community reports by map and reduce
(GraphRAG 2.6).

select → shuffle and pack → partial answers → the most helpful → answer
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from flows.modes.query_mode import QueryMode
from flows.question import ModeResult, PassageSearch, Question, Resources
from flows.session import ReportReader
from prompts.answer import ReduceStep
from prompts.engine.helper import helped
from prompts.read_reports import Partial, Rate
from prompts.text.relevance import CollectionTopic
from storage.answer_records import ReportRead, SubQuestion
from storage.graph_records import Report
from tasks.answer import NOTHING_FOUND, AnswerContext, Note, StatedAnswer
from tasks.citations import piece_source
from tasks.read_reports.near import NearPassages, near_of, sentences_near
from tasks.read_reports.points import (
    Point,
    ReportTexts,
    by_source,
    partial_answers,
    read_tokens,
    report_texts,
    with_near_sentences,
)
from tasks.read_reports.select import (
    SelectedReports,
    at_level,
    descend,
    estimated_ratings,
    rate_reports,
    rating_tokens,
    reach_of,
    weightiest,
)

NEAR_SENTENCES = 40
# Without a model, a question of which more than this share is missing in the collection is not
# answered.
MOST_MISSING = 0.75
# A model rates reports where reading them costs this many times what rating them costs.
RATING_PAYS = 3
EVERYTHING = "the question asks about everything: the weightiest reports are read"
CHEAP = "reading the reports costs less than rating them"
NEAR_CHOOSES = "what lies near to the question chooses the reports"
LOW = f"low effort: {NEAR_CHOOSES}"


async def global_search(resources: Resources) -> ModeResult:
    """Find points in the reports of a level or of the relevant branches, and in the sentences under
    them that are nearest to the question.
    """
    question, search, models = resources.question, resources.search, resources.models
    reports = resources.reports
    near = near_to(question, search)
    selected = await selected_for(question, near, reports, Rate(models))
    texts = texts_to_read(question, selected.reports, near, reports)
    points = await partial_answers(texts, question.text, near.topic, Partial(models))
    reason = (
        f"{len(selected.reports)} reports read, {len(selected.ratings)} rated, {selected.pruned} "
        "left with their branch"
    )
    result = result_of(points, texts, near.topic, search, reason)
    return replace(result, reports=reports_read(selected, points))


def result_of(
    points: Sequence[Point],
    texts: ReportTexts,
    topic: CollectionTopic,
    search: PassageSearch,
    reason: str,
) -> ModeResult:
    """Make points the context of one answer: they are its notes, and the statements that show them
    its sources, within the limit of passages.

    Without a model the answer quotes a statement for each point, under the titles of their sources.
    """
    numbers = dict.fromkeys(number for point in points for number in point.findings)
    pieces = {number: piece_source(texts.pool[number]) for number in numbers}
    sources = search.bounded(pieces.values())
    places = {source: place for place, source in enumerate(sources, 1)}
    shown = {number: places[source] for number, source in pieces.items() if source in places}

    def marks(findings: Sequence[int]) -> str:
        return "".join(f"[{shown[number]}]" for number in findings if number in shown)

    best: dict[str, int] = {}  # the chunks that the points rest on, the most helpful first
    parts = []
    for point in points:
        chunks = list(dict.fromkeys(texts.pool[number].chunk for number in point.findings))
        best |= dict.fromkeys((name for name in chunks if name not in best), point.score)
        report = texts.offered.get(point.report)
        title = report.title if report else ""
        parts.append(SubQuestion(question=title, answer=point.text, evidence=tuple(chunks)))
    stated: StatedAnswer | None = None
    if points and topic.missing > MOST_MISSING and not topic.relevance.names:
        stated = StatedAnswer(NOTHING_FOUND[topic.relevance.question.chinese], fallback="abstained")
    elif points:
        marked = ((claim.text, marks(claim.findings)) for claim in by_source(points))
        lines = [f"{text} {cited}" for text, cited in marked if cited]
        # Nothing shows that quotes from some reports say all that a collection does.
        stated = StatedAnswer("\n".join(lines), fallback="partial")
    notes = "\n".join(
        f"({point.score}) {point.text} {marks(point.findings)}".rstrip() for point in points
    )
    return ModeResult(
        context=AnswerContext(sources, [Note("Points", notes)] if points else []),
        passages=[search.passage(name, score / 100) for name, score in best.items()],
        stated=stated,
        writer=ReduceStep,
        reason=reason,
        structure="catalogue",
        subquestions=tuple(parts),
    )


def reports_read(selected: SelectedReports, points: Sequence[Point]) -> tuple[ReportRead, ...]:
    """Return the reports for the trace, each with its rating and its number of points."""
    counts = Counter(point.report for point in points)
    return tuple(
        ReportRead(
            community=report.community,
            level=report.level,
            title=report.title,
            rating=selected.ratings.get(report.community),
            points=counts[report.community],
        )
        for report in selected.reports
    )


def near_to(question: Question, search: PassageSearch) -> NearPassages:
    """Find the passages near to the question, in the documents that it may look into."""
    return near_of(question.relevance, question.index, search.cosines(question.text), question.only)


async def selected_for(
    question: Question, near: NearPassages, reports: ReportReader, rater: Rate
) -> SelectedReports:
    """Select the reports of the level that the caller names, else those of relevant branches."""
    tree = reports.tree
    if question.options.level is not None and question.options.mode == "global":
        return at_level(tree, question.options.level)
    return await helped(rater, lambda step: _relevant(near, reports, step), NEAR_CHOOSES)


async def _relevant(near: NearPassages, reports: ReportReader, rater: Rate) -> SelectedReports:
    """Select the reports of relevant branches; the model rates them where that saves tokens."""
    tree = reports.tree
    estimates = estimated_ratings(tree, near, reports.chunks)
    reach, limits = reach_of(rater.policy), rater.policy.limits
    if not near.topic.asked and (rater.is_offline or rater.spares(EVERYTHING)):
        return weightiest(tree, estimates, read_tokens, reach)
    unrated = await descend(tree, estimates, read_tokens, reach)
    if rater.is_offline or (rater.policy.effort == "low" and rater.spares(LOW)):
        return unrated
    rating = RATING_PAYS * sum(rating_tokens(report, limits) for report in unrated.reports)
    if sum(map(read_tokens, unrated.reports)) < rating and rater.spares(CHEAP):
        return unrated
    rate = partial(rate_reports, estimates=estimates, topic=near.topic, rater=rater)
    rated = await descend(tree, estimates, read_tokens, reach, rate)
    return rated if rated.ratings else unrated


def texts_to_read(
    question: Question, selected: Sequence[Report], near: NearPassages, reports: ReportReader
) -> ReportTexts:
    """Return the reports as they are read, with the sentences under them nearest to the
    question.
    """
    library = reports.library(selected, question.only)
    texts = report_texts(selected, library, near.chunks, quotes_only=question.only is not None)
    sentences = sentences_near(near, question.index, NEAR_SENTENCES)
    return with_near_sentences(texts, sentences, reports.chunks)


GLOBAL = QueryMode("global", global_search)
