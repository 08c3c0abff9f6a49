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
from prompts.reading.claims import Claim, Desk, Reading, abstain
from storage.records import Passage, Report, ReportRead, RouteDecision, SubQuestion
from tasks.partial import Shown, partial_answers, shown_of
from tasks.rate import rate_reports
from tasks.reports.pack import Point
from tasks.reports.tree import Selected, at_level, descend
from tasks.structurize.step import Structured

MOST_THEMES = 6


async def by_reports(view: View, queries: Sequence[str], models: Models) -> Context:
    """One answer from the reports of a level, or of the branches that are relevant, with the places that show it."""
    selected = await _selected(view, models)
    only = view.options.documents
    library = view.library({finding.document for report in selected.reports for finding in report.findings})
    shown = shown_of(selected.reports, library, quotes_only=only is not None)
    points = await partial_answers(shown, f"{view.question}\n{view.session.number}", view.relevance, Partial(models))
    reading = await answered(points, shown, view, models)
    structured = Structured("catalogue", (), (f"{len(selected.reports)} reports",), shown.pool)
    return Context(
        passages=passages_of(points, shown, view),
        structured=structured,
        route=RouteDecision(type="catalogue", confidence=1.0, margin=1.0, reason=_reason(selected, view)),
        reading=reading,
        subquestions=tuple(told(point, shown) for point in points),
        reports=read_of(selected.reports, selected.ratings, points),
    )


async def _selected(view: View, models: Models) -> Selected:
    tree = view.session.reports
    if view.options.level is not None:
        return at_level(tree, view.options.level)
    return await descend(tree, partial(rate_reports, relevance=view.relevance, rater=Rate(models)))


def _reason(selected: Selected, view: View) -> str:
    if view.options.level is not None:
        return f"{len(selected.reports)} reports of level {view.options.level}"
    return (
        f"{len(selected.reports)} reports read, {len(selected.ratings)} rated, {selected.pruned} left with their branch"
    )


async def answered(points: Sequence[Point], shown: Shown, view: View, models: Models) -> Reading:
    """The points as one answer: written by a model, or one quoted claim for each, under the themes of their reports."""
    if not points:
        return abstain(view.taken)
    writer = AnswerStep(models, view.options.on_text, view.session.runtime.settings.tailoring.language)
    if writer.is_offline:
        claims = tuple(Claim(point.text, point.findings) for point in points)
        return Reading(claims=claims, lead=_themes(points, shown))
    numbers = {number for point in points for number in point.findings}
    evidence = tuple(piece for piece in shown.pool.evidence if piece.number in numbers)
    found = [(f"{point.score}:", f"{point.text} {list(point.findings)}") for point in points]
    return await writer.run(Desk(view.taken, evidence, (), view.relevance), found)


def _themes(points: Sequence[Point], shown: Shown) -> str:
    titles = dict.fromkeys(shown.offered[point.report].title for point in points)
    named = [title for title in titles if title][:MOST_THEMES]
    return "; ".join(named) + "." if named else ""


def told(point: Point, shown: Shown) -> SubQuestion:
    """A partial answer: the report's title in place of a question."""
    chunks = dict.fromkeys(shown.pool.places[number].chunk for number in point.findings)
    return SubQuestion(question=shown.offered[point.report].title, answer=point.text, evidence=tuple(chunks))


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
