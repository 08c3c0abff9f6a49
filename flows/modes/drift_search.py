"""Drift search: from the best reports to what they lead to, step by step (GraphRAG's DRIFT search).

primer over the reports that fit best ─ follow-ups by local search, best first ─ one answer
"""

from dataclasses import replace

from flows.modes.global_search import near_to, result_of, selected_for, shown_for
from flows.modes.registry import mode
from flows.question import ModeResult, QuestionContext
from prompts.engine.calls import rough_tokens
from prompts.reports import Explore, Offered
from prompts.text.relevance import CollectionTopic
from tasks.reports.points import LOOK_UPS, Agenda, ShownReports, explore, helpful_points, text_of, with_sentences
from tasks.step import first_fitting

PRIMER_REPORTS = 5
LOOK_UP_PASSAGES = 6


@mode("drift", structure="catalogue")
async def drift_search(question: QuestionContext) -> ModeResult:
    """Points of the best reports, then of what they lead to; the same question gives the same way."""
    near = near_to(question)
    selected = await selected_for(question, near)
    selected = replace(selected, reports=selected.reports[:PRIMER_REPORTS])
    shown = shown_for(question, selected.reports, near)
    explorer = Explore(question.models)
    points, follow_ups = await explore(question.text, list(shown.offered.items()), near.gist, explorer)
    agenda, looked_up = Agenda(LOOK_UPS[explorer.policy.effort]), list[str]()
    agenda.add(follow_ups, 0)
    while (following := agenda.next()) is not None:
        focus, depth = following
        looked_up.append(focus)
        shown = await _looked_up(focus, shown, question, near.gist)
        texts = [(focus, shown.offered[focus])] if focus in shown.offered else []
        more, follow_ups = await explore(focus, texts, near.gist, explorer) if texts else ([], [])
        points += more
        agenda.add(follow_ups, depth)
    points.sort(key=lambda point: (-point.score, point.findings))
    reason = f"{len(selected.reports)} reports, then {len(looked_up)} look-ups: {'; '.join(looked_up) or 'none'}"
    return result_of(question, helpful_points(points, explorer), shown, near.gist, reason, selected)


async def _looked_up(focus: str, shown: ShownReports, question: QuestionContext, gist: CollectionTopic) -> ShownReports:
    """What was shown, with the sentences nearest to the question in the passages that a search for the focus finds."""
    passages = await question.search([f"{focus} {question.text}"], LOOK_UP_PASSAGES)
    pool, new = with_sentences(shown.pool, [question.chunk(passage.chunk) for passage in passages])
    if not new:
        return ShownReports(shown.offered, pool)
    helpful = sorted(new, key=lambda piece: (-gist.worth(piece), piece.number))
    fitting = first_fitting(helpful, lambda piece: rough_tokens(piece.text), question.models.policy.limits.part)
    pieces = sorted(fitting, key=lambda piece: piece.number)
    return ShownReports(
        {**shown.offered, focus: Offered(focus, "", [(text_of(piece), piece) for piece in pieces])}, pool
    )
