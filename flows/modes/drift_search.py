"""Drift search: from the best reports to what they lead to (GraphRAG's DRIFT search).

primer over the best reports → follow-ups by local search, best first → one answer
"""

from collections.abc import Mapping
from dataclasses import replace

from flows.modes.global_search import near_to, reports_read, result_of, selected_for, texts_to_read
from flows.modes.query_mode import QueryMode
from flows.question import ModeResult, PassageSearch, Resources, depth
from prompts.engine.effort import Effort
from prompts.engine.messages import first_fitting, rough_tokens
from prompts.engine.models import Models
from prompts.read_reports import Explore, Offered, Rate
from prompts.text.relevance import CollectionTopic
from tasks.read_reports.points import (
    LOOK_UPS,
    Agenda,
    ReportTexts,
    explore,
    helpful_points,
    text_of,
    with_sentences,
)

# The reports that the primer reads at most.
PRIMER_REPORTS: Mapping[Effort, int] = {"low": 5, "medium": 5, "high": 20}


async def drift_search(resources: Resources) -> ModeResult:
    """Find points in the best reports, then in what they lead to."""
    question, search, models = resources.question, resources.search, resources.models
    reports = resources.reports
    near = near_to(question, search)
    selected = await selected_for(question, near, reports, Rate(models))
    selected = replace(selected, reports=selected.reports[: PRIMER_REPORTS[models.policy.effort]])
    texts = texts_to_read(question, selected.reports, near, reports)
    explorer = Explore(models)
    points, follow_ups = await explore(
        question.text, list(texts.offered.items()), near.topic, explorer
    )
    agenda, looked_up = Agenda(*LOOK_UPS[explorer.policy.effort]), list[str]()
    agenda.add(follow_ups, 0)
    while (following := agenda.next()) is not None:
        focus, steps = following
        looked_up.append(focus)
        texts = await _with_look_up(focus, texts, search, near.topic, models)
        if focus in texts.offered:
            found = [(focus, texts.offered[focus])]
            more, follow_ups = await explore(focus, found, near.topic, explorer)
            points += more
            agenda.add(follow_ups, steps)
    points.sort(key=lambda point: (-point.score, point.findings))
    reason = (
        f"{len(selected.reports)} reports, then {len(looked_up)} look-ups: "
        f"{'; '.join(looked_up) or 'none'}"
    )
    helpful = helpful_points(points, explorer)
    result = result_of(helpful, texts, near.topic, search, reason)
    return replace(result, reports=reports_read(selected, helpful))


async def _with_look_up(
    focus: str, texts: ReportTexts, search: PassageSearch, topic: CollectionTopic, models: Models
) -> ReportTexts:
    """Search for the focus; add to the texts the sentences found that are nearest to the
    question.
    """
    most = models.policy.limits.part
    wanted = depth(models, search.session, most)
    passages = await search.passages([f"{focus} {topic.relevance.question.text}"], wanted)
    pool, new = with_sentences(texts.pool, [search.chunk(passage.chunk) for passage in passages])
    if not new:
        return ReportTexts(texts.offered, pool)
    helpful = sorted(new, key=lambda piece: (-topic.worth(piece), piece.number))
    fitting = first_fitting(helpful, lambda piece: rough_tokens(piece.text), most)
    pieces = sorted(fitting, key=lambda piece: piece.number)
    found = Offered(focus, "", [(text_of(piece), piece) for piece in pieces])
    return ReportTexts({**texts.offered, focus: found}, pool)


DRIFT = QueryMode("drift", drift_search)
