"""A question from its words to its answer, without Prefect; `flows.query` runs it as a recorded flow.

rewrite ─ choose the mode ─ trigger check ─ retrieve ─ filter ─ route ─ structurize ─ decompose ─ answer ─ remember
"""

import time
from collections.abc import Sequence

from flows.answering import Response, respond
from flows.modes.dual_level_search import LEVEL_OF, search_levels
from flows.question import AskOptions, QuestionContext, restricted
from flows.runtime import usage_of
from flows.session import Session
from prompts.engine.meter import Meter
from prompts.rewrite import Ambiguous, Rewrite
from storage.records import Ambiguity, Answer, Citation, Passage, Retrieval, RouteDecision, SparedCall, Trace
from tasks.ambiguity import Places, ambiguities, several_meant
from tasks.rewrite import rewrite
from tasks.route import hop_count, question_type

__all__ = ["AskOptions", "answer_question", "retrieve_passages"]

CITED = 10.0  # what a cited chunk counts beside the best passage, where a name is read by what was found


async def answer_question(question: str, options: AskOptions, session: Session) -> Answer:
    """Answer from the session's generation. The answer's fields are described at `storage.records.Answer`."""
    started = time.monotonic()
    asked, ambiguous = await _understood(question, options, session)
    response = await respond(asked)
    result, answered = response.result, response.answered
    trace = Trace(
        mode=response.mode, decision=response.decision, effort=asked.models.policy.effort,
        rewritten=asked.text, queries=tuple(asked.queries), trigger=response.recall.decisions,
        filter=result.filtered.counts,
        question_type=result.question_type or question_type(asked.parsed, hop_count(asked.parsed)),
        route=result.route or _unrouted(response), structure=result.structure, subquestions=result.subquestions,
        structures=result.structures, reports=result.reports, unlinked=asked.unlinked,
        ambiguity=_readings(asked, ambiguous, result.passages, answered.citations), answered_by=answered.answered_by,
        reasoning=answered.reasoning, removed_markers=answered.removed_markers,
        spared=tuple(SparedCall(step=step, reason=reason) for step, reason in asked.models.meter.spared()),
    )  # fmt: skip
    return Answer(
        question=question, answer=answered.text, values=answered.values, citations=answered.citations,
        passages=tuple(result.passages[: options.k]), fallback=answered.fallback, grounding=answered.grounding,
        trace=trace, usage=usage_of(asked.models.meter, time.monotonic() - started), generation=session.number,
    )  # fmt: skip


async def retrieve_passages(question: str, options: AskOptions, session: Session) -> Retrieval:
    """The k best passages for a question, without answering it."""
    started = time.monotonic()
    asked, _ = await _understood(question, options, session)
    if options.mode in LEVEL_OF:
        passages = (await search_levels(asked, options.k)).passages
    else:
        passages = await asked.search([asked.text], options.k, graph=options.mode != "naive")
    usage = usage_of(asked.models.meter, time.monotonic() - started)
    return Retrieval(question=question, passages=tuple(passages[: options.k]), usage=usage, generation=session.number)


async def _understood(question: str, options: AskOptions, session: Session) -> tuple[QuestionContext, list[Ambiguous]]:
    """The question rewritten so that it stands on its own, and what is ambiguous in it."""
    options = restricted(options, session)
    policy = session.runtime.settings.policy(options.effort)
    models = session.runtime.query_models.metered(Meter()).with_policy(policy)
    rewritten = await rewrite(question, options.history, Rewrite(models))
    embedder = session.runtime.embedder.metered(models.meter)
    asked = QuestionContext(session, options, rewritten.question, rewritten.queries, models, embedder)
    return asked, rewritten.ambiguities


def _unrouted(response: Response) -> RouteDecision:
    return RouteDecision(
        type="chunk", confidence=1.0, margin=1.0, reason=f"the mode {response.mode} does not choose a structure"
    )


def _readings(
    asked: QuestionContext, ambiguous: list[Ambiguous], passages: Sequence[Passage], citations: Sequence[Citation]
) -> tuple[Ambiguity, ...]:
    """What the question leaves open, and how it was read; the store is asked only where a name means several things."""
    index = asked.session.index
    meant = several_meant(asked.links, index.entities)
    if not meant:
        return ambiguities(ambiguous, [], index.entities, Places({}, {}, {}))
    ids = [index.entities[place].id for one in meant for place in one.entities]
    chunks: dict[str, list[str]] = {}
    for place in asked.session.generation.graph.occurrences("entity", ids):
        chunks.setdefault(place.item, []).append(place.chunk)
    titles = {chunk: index.chunk(chunk).title for found in chunks.values() for chunk in found}
    weights = {passage.chunk: 1 / rank for rank, passage in enumerate(passages, 1)}
    weights |= {citation.chunk: CITED for citation in citations}
    return ambiguities(ambiguous, meant, index.entities, Places(chunks, titles, weights))
