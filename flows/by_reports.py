"""How is a question about the whole collection answered? From community reports, by map and reduce (GraphRAG, 2.6).

select ─ shuffle and pack ─ partial answers ─ the most helpful ─ answer
"""

from collections.abc import Mapping, Sequence
from functools import partial

from flows.asking_view import View
from flows.contexts import Context
from prompts.answer import AnswerStep
from prompts.engine.models import Models
from prompts.partial import Partial
from prompts.rate import Rate
from prompts.reading.claims import Desk, Reading, Support, abstain
from prompts.reading.gist import Gist
from storage.records import Passage, Report, ReportRead, RouteDecision, SubQuestion
from tasks.partial import Shown, joined, partial_answers, read_tokens, shown_of
from tasks.rate import rate_reports, rated_free, rating_tokens
from tasks.reports.near import Near, near_of, sentences_near
from tasks.reports.pack import Point
from tasks.reports.themes import themed, topic_of
from tasks.reports.tree import Selected, at_level, descend, weightiest
from tasks.structurize.step import Structured

NEAR_SENTENCES = 40
# From these shares of its words missing in the collection on, a question is answered in part at best, or not at all.
MUCH_MISSING, MOST_MISSING = 0.5, 0.75
# A model rates reports where reading one costs so many times what rating it costs.
RATING_PAYS = 3


async def by_reports(view: View, queries: Sequence[str], models: Models) -> Context:
    """One answer from the reports of a level, or of the branches that are relevant, and from the sentences under them
    that are nearest to the question, with the places that show it."""
    near = near_to(view)
    selected = await selected_for(view, near, models)
    shown = shown_for(view, selected.reports, near)
    points = await partial_answers(shown, f"{view.question}\n{view.session.number}", near.gist, Partial(models))
    reading = await answered(points, shown, view, models, near.gist)
    structured = Structured("catalogue", (), (f"{len(selected.reports)} reports",), shown.pool)
    return Context(
        passages=passages_of(points, shown, view),
        structured=structured,
        route=RouteDecision(type="catalogue", confidence=1.0, margin=1.0, reason=_reason(selected, view)),
        reading=reading,
        subquestions=tuple(told(point, shown) for point in points),
        reports=read_of(selected.reports, selected.ratings, points),
    )


def near_to(view: View) -> Near:
    """What stands near to the question, of what it may look into."""
    documents = view.options.documents
    cosines = view.session.dense([view.question], documents, view.embedder)[0]
    return near_of(view.relevance, view.session.index, cosines, documents)


async def selected_for(view: View, near: Near, models: Models) -> Selected:
    """The reports of the level that is asked for, else those of the relevant branches."""
    tree = view.session.reports
    if view.options.level is not None and view.options.mode == "global":
        return at_level(tree, view.options.level)
    free = rated_free(tree, near, view.session.grounds)
    if not near.gist.asked:
        return weightiest(tree, free, read_tokens)
    rater = Rate(models)
    unrated = await descend(tree, free, read_tokens)
    rating = RATING_PAYS * sum(map(rating_tokens, unrated.reports))
    if rater.is_offline or sum(map(read_tokens, unrated.reports)) < rating:
        return unrated
    return await descend(tree, free, read_tokens, partial(rate_reports, free=free, gist=near.gist, rater=rater))


def shown_for(view: View, reports: Sequence[Report], near: Near) -> Shown:
    """The reports as they are read, with the sentences under them that are nearest to the question."""
    library = view.library({finding.document for report in reports for finding in report.findings})
    shown = shown_of(reports, library, near.chunks, quotes_only=view.options.documents is not None)
    return joined(shown, sentences_near(near, view.session.index, NEAR_SENTENCES), view.session.grounds)


def _reason(selected: Selected, view: View) -> str:
    if view.options.level is not None:
        return f"{len(selected.reports)} reports of level {view.options.level}"
    return (
        f"{len(selected.reports)} reports read, {len(selected.ratings)} rated, {selected.pruned} left with their branch"
    )


async def answered(points: Sequence[Point], shown: Shown, view: View, models: Models, gist: Gist) -> Reading:
    """The points as one answer: written by a model, or one quoted claim for each, under the themes of their reports."""
    if not points:
        return abstain(view.taken)
    writer = AnswerStep(models, view.options.on_text, view.session.runtime.settings.tailoring.language)
    if writer.is_offline:
        if gist.missing > MOST_MISSING and not view.relevance.names:
            return abstain(view.taken)
        support: Support = "partial" if gist.missing > MUCH_MISSING else "none"
        return Reading(claims=tuple(themed(points, gist)), support=support)
    numbers = {number for point in points for number in point.findings}
    evidence = tuple(piece for piece in shown.pool.evidence if piece.number in numbers)
    found = [(f"{point.score}:", f"{point.text} {list(point.findings)}") for point in points]
    return await writer.run(Desk(view.taken, evidence, (), view.relevance), found)


def told(point: Point, shown: Shown) -> SubQuestion:
    """A partial answer: what its report is about in place of a question."""
    chunks = dict.fromkeys(shown.pool.places[number].chunk for number in point.findings)
    return SubQuestion(question=topic_of(shown.offered[point.report].title), answer=point.text, evidence=tuple(chunks))


def passages_of(points: Sequence[Point], shown: Shown, view: View) -> tuple[Passage, ...]:
    """The chunks that the points rest on, the most helpful first."""
    best: dict[str, int] = {}
    for point in points:
        for number in point.findings:
            best.setdefault(shown.pool.places[number].chunk, point.score)
    found = []
    for name, score in best.items():
        chunk = view.chunk(name)
        found.append(
            Passage(document=chunk.document, title=chunk.title, chunk=name, score=score / 100, text=chunk.text)
        )
    return tuple(found)


def read_of(reports: Sequence[Report], ratings: Mapping[str, float], points: Sequence[Point]) -> tuple[ReportRead, ...]:
    """What the trace tells of the reports: which were read, how they were rated, how many points they gave."""
    given = [point.report for point in points]
    return tuple(
        ReportRead(
            community=report.community, level=report.level, title=report.title,
            rating=ratings.get(report.community), points=given.count(report.community),
        )
        for report in reports
    )  # fmt: skip
