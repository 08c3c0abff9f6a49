"""Global search: a question about the whole collection, from community reports by map and reduce (GraphRAG 2.6).

select ─ shuffle and pack ─ partial answers ─ the most helpful ─ answer
"""

from collections.abc import Mapping, Sequence
from functools import partial

from flows.modes.registry import mode
from flows.question import ModeResult, QuestionContext
from prompts.answer import ReduceStep
from prompts.reports import Partial, Rate
from prompts.text.relevance import CollectionTopic
from storage.answer_records import ReportRead, SubQuestion
from storage.graph_records import Report
from tasks.answer import AnswerContext, Note, StatedAnswer
from tasks.reports.near import Near, near_of, sentences_near
from tasks.reports.points import (
    Library,
    Point,
    ShownReports,
    by_source,
    joined,
    partial_answers,
    read_tokens,
    shown_of,
)
from tasks.reports.select import (
    SelectedReports,
    at_level,
    descend,
    rate_reports,
    rated_free,
    rating_tokens,
    reach_of,
    weightiest,
)
from tasks.sources import piece_source

NEAR_SENTENCES = 40
# Without a model: from these shares of its words missing in the collection on, a question is answered in part at best,
# or not at all.
MOST_MISSING = 0.75
# A model rates reports where reading one costs so many times what rating it costs.
RATING_PAYS = 3
EVERYTHING = "the question asks about everything: the weightiest reports are read"
CHEAP = "reading the reports costs less than rating them"
LOW = "low effort: what lies near to the question chooses the reports"


@mode("global", structure="catalogue")
async def global_search(question: QuestionContext) -> ModeResult:
    """Points from the reports of a level, or of the branches that are relevant, and from the sentences under them that
    are nearest to the question."""
    near = near_to(question)
    selected = await selected_for(question, near)
    shown = shown_for(question, selected.reports, near)
    seed = f"{question.text}\n{question.session.number}"
    points = await partial_answers(shown, seed, near.gist, Partial(question.models))
    reason = (
        f"{len(selected.reports)} reports read, {len(selected.ratings)} rated, {selected.pruned} left with their branch"
    )
    return result_of(question, points, shown, near.gist, reason, selected)


def result_of(
    question: QuestionContext, points: Sequence[Point], shown: ShownReports, gist: CollectionTopic, reason: str,
    selected: SelectedReports | None = None,
) -> ModeResult:  # fmt: skip
    """Points as the context of one answer: they are the notes, the statements that show them the sources.

    Without a model the answer is a quoted statement for each point, under the titles of their sources.
    """
    numbers = list(dict.fromkeys(number for point in points for number in point.findings))
    of = {number: place for place, number in enumerate(numbers, 1)}
    pieces = {piece.number: piece for piece in shown.pool.evidence}
    report_ids = [point.report for point in points]
    best: dict[str, int] = {}  # the chunks that the points rest on, the most helpful first
    parts = []
    for point in points:
        chunks = list(dict.fromkeys(shown.pool.places[number].chunk for number in point.findings))
        best |= dict.fromkeys((name for name in chunks if name not in best), point.score)
        report = shown.offered.get(point.report)
        topic = report.title if report else ""
        parts.append(SubQuestion(question=topic, answer=point.text, evidence=tuple(chunks)))
    if not points or (gist.missing > MOST_MISSING and not question.relevance.names):
        nothing = "文档中没有说明。" if question.parsed.chinese else "The documents do not say."
        stated = StatedAnswer(nothing, fallback="abstained")
    else:
        lines = [f"{claim.text} {_marks(claim.evidence, of)}" for claim in by_source(points)]
        # Nothing shows that quotes from some reports say all that a collection does.
        stated = StatedAnswer("\n".join(lines), fallback="partial")
    notes = [f"({point.score}) {point.text} {_marks(point.findings, of)}".rstrip() for point in points]
    return ModeResult(
        context=AnswerContext(
            [piece_source(pieces[number], shown.pool.places[number]) for number in numbers],
            [Note("Points", "\n".join(notes))] if notes else [],
        ),
        passages=[question.passage_of(question.chunk(name), score / 100) for name, score in best.items()],
        stated=stated,
        writer=ReduceStep,
        reason=reason,
        structure="catalogue",
        subquestions=tuple(parts),
        reports=tuple(
            ReportRead(
                community=report.community, level=report.level, title=report.title,
                rating=selected.ratings.get(report.community), points=report_ids.count(report.community),
            )
            for report in selected.reports
        ) if selected else (),
    )  # fmt: skip


def _marks(findings: Sequence[int], of: Mapping[int, int]) -> str:
    return "".join(f"[{of[number]}]" for number in findings)


def near_to(question: QuestionContext) -> Near:
    """What stands near to the question, of what it may look into."""
    documents = question.options.documents
    cosines = question.session.dense([question.text], documents, question.embedder)[0]
    return near_of(question.relevance, question.session.index, cosines, documents)


async def selected_for(question: QuestionContext, near: Near) -> SelectedReports:
    """The reports of the level that is asked for, else those of the relevant branches."""
    tree = question.session.reports
    if question.options.level is not None and question.options.mode == "global":
        return at_level(tree, question.options.level)
    free = rated_free(tree, near, question.session.community_chunks)
    rater = Rate(question.models)
    reach, limits = reach_of(rater.policy), rater.policy.limits
    if not near.gist.asked and (rater.is_offline or rater.spares(EVERYTHING)):
        return weightiest(tree, free, read_tokens, reach)
    unrated = await descend(tree, free, read_tokens, reach)
    if rater.is_offline or (rater.policy.effort == "low" and rater.spares(LOW)):
        return unrated
    rating = RATING_PAYS * sum(rating_tokens(report, limits) for report in unrated.reports)
    if sum(map(read_tokens, unrated.reports)) < rating and rater.spares(CHEAP):
        return unrated
    rate = partial(rate_reports, free=free, gist=near.gist, rater=rater)
    return await descend(tree, free, read_tokens, reach, rate)


def library_of(reports: Sequence[Report], question: QuestionContext) -> Library:
    """The documents that reports rest on, of those that the question may look into, with their chunks in order."""
    only, session = question.options.documents, question.session
    names = {finding.document for report in reports for finding in report.findings}
    documents = {name for name in names if only is None or name in only}
    return Library(session.documents(sorted(documents)), session.chunks_of(documents))


def shown_for(question: QuestionContext, reports: Sequence[Report], near: Near) -> ShownReports:
    """The reports as they are read, with the sentences under them that are nearest to the question."""
    library = library_of(reports, question)
    shown = shown_of(reports, library, near.chunks, quotes_only=question.options.documents is not None)
    return joined(
        shown, sentences_near(near, question.session.index, NEAR_SENTENCES), question.session.community_chunks
    )
