"""How does a question wander from reports to passages? (GraphRAG's DRIFT search)

primer over the reports that fit best ─ follow-ups by local search, best first ─ one answer
"""

from collections.abc import Sequence

from flows.asking_view import View
from flows.by_reports import answered, near_to, passages_of, read_of, selected_for, shown_for, told
from flows.contexts import Context
from prompts.engine.calls import rough_tokens
from prompts.engine.models import Models
from prompts.explore import Explore
from prompts.partial import Offered
from prompts.reading.sure import within
from storage.records import RouteDecision
from tasks.explore import Agenda, explore
from tasks.partial import ANSWER_TOKENS, Shown, text_of, with_sentences
from tasks.reports.near import Near
from tasks.reports.pack import filled
from tasks.structurize.step import Structured

PRIMER_REPORTS = 5
LOOK_UP_PASSAGES = 6
LOOK_UP_TOKENS = 700


async def drifted(view: View, queries: Sequence[str], models: Models) -> Context:
    """Points of the best reports, then of what they lead to; the same question gives the same way."""
    near = near_to(view)
    selected = await selected_for(view, near, models)
    best = selected.reports[:PRIMER_REPORTS]
    shown = shown_for(view, best, near)
    points, follow_ups = await explore(view.question, list(shown.offered.items()), near.gist, Explore(models))
    agenda, looked_up = Agenda(), list[str]()
    agenda.add(follow_ups, 0)
    while (following := agenda.next()) is not None:
        focus, depth = following
        looked_up.append(focus)
        shown = await _looked_up(focus, shown, view, near)
        texts = [(focus, shown.offered[focus])] if focus in shown.offered else []
        more, follow_ups = await explore(focus, texts, near.gist, Explore(models)) if texts else ([], [])
        points += more
        agenda.add(follow_ups, depth)
    points.sort(key=lambda point: (-point.score, point.findings))
    kept = filled(points, ANSWER_TOKENS, lambda point: rough_tokens(point.text))
    reason = f"{len(best)} reports, then {len(looked_up)} look-ups: {'; '.join(looked_up) or 'none'}"
    return Context(
        passages=passages_of(kept, shown, view),
        structured=Structured("catalogue", (), (reason,), shown.pool),
        route=RouteDecision(type="catalogue", confidence=1.0, margin=1.0, reason=reason),
        reading=await answered(kept, shown, view, models, near.gist),
        subquestions=tuple(told(point, shown) for point in kept),
        reports=read_of(best, selected.ratings, points),
    )


async def _looked_up(focus: str, shown: Shown, view: View, near: Near) -> Shown:
    """What was shown, with the sentences nearest to the question in the passages that a search for the focus finds."""
    found = await view.search([f"{focus} {view.question}"], LOOK_UP_PASSAGES)
    pool, new = with_sentences(shown.pool, [view.chunk(passage.chunk) for passage in found])
    if not new:
        return Shown(shown.offered, pool)
    helpful = sorted(new, key=lambda piece: (-near.gist.worth(piece), piece.number))
    pieces = sorted(within(helpful, LOOK_UP_TOKENS), key=lambda piece: piece.number)
    return Shown({**shown.offered, focus: Offered(focus, "", [(text_of(piece), piece) for piece in pieces])}, pool)
