"""How does a question become an answer?

rewrite ─ trigger check ─ retrieve ─ filter ─ route ─ structurize ─ decompose ─ answer ─ remember

This is the story without Prefect; `flows.query` runs it as a recorded flow.
"""

import time
from functools import partial

from flows.asking_view import AskOptions, View
from flows.modes import CONTEXTS, look_up, ranked
from flows.restricting import restricted
from flows.runtime import usage_of
from flows.searching import searched
from flows.session import Session
from prompts.answer import AnswerStep
from prompts.decompose import Decompose
from prompts.engine.meter import Meter
from prompts.rewrite import Rewrite
from storage.records import Answer, Retrieval, Trace
from tasks.answer import answer, settled
from tasks.decompose import decompose
from tasks.rewrite import rewrite
from tasks.route import hop_count, question_type
from tasks.structurize.step import shown_of
from tasks.trigger import check_trigger

__all__ = ["AskOptions", "answer_question", "retrieve_passages"]


async def answer_question(question: str, options: AskOptions, session: Session) -> Answer:
    """Answer from the session's generation. The answer's fields are described at `storage.records.Answer`."""
    started = time.monotonic()
    options = restricted(options, session)
    models = session.runtime.models.metered(Meter())
    asked = await rewrite(question, options.history, Rewrite(models))
    view = View(session, options, asked.question, session.runtime.embedder.metered(models.meter))
    taken = view.taken
    bring = CONTEXTS.get(options.mode)
    recall = await check_trigger(asked.queries, [] if bring else view.memory(), view.likeness)
    found = await (bring(view, asked.queries, models) if bring else searched(view, asked.queries, recall, models))
    structured = found.structured
    if found.reading is None:
        parts = await decompose(taken, structured.descriptions, Decompose(models))
        writer = AnswerStep(models, options.on_text, session.runtime.settings.tailoring.language)
        answered = await answer(parts, structured, view.relevance, writer, view.reach(partial(look_up, view)))
    else:
        answered = settled(found.reading, structured, view.documents)
    if answered.reading.support == "none" and not recall.used:
        await view.remember(found.passages, found.kept)
    trace = Trace(
        mode=view.mode, rewritten=asked.question, queries=tuple(asked.queries), trigger=recall.decisions,
        filter=found.kept.counts, question_type=found.question_type or question_type(taken, hop_count(taken)),
        route=found.route, structure=structured.type, subquestions=found.subquestions or answered.subquestions,
        structures=shown_of(structured), unlinked=view.unlinked,
    )  # fmt: skip
    return Answer(
        question=question, answer=answered.text, values=answered.reading.values, citations=answered.citations,
        passages=tuple(found.passages[: options.k]), fallback=answered.reading.support, trace=trace,
        usage=usage_of(models.meter, time.monotonic() - started), generation=session.number,
    )  # fmt: skip


async def retrieve_passages(question: str, options: AskOptions, session: Session) -> Retrieval:
    """The k best passages for a question, without answering it."""
    started = time.monotonic()
    options = restricted(options, session)
    models = session.runtime.models.metered(Meter())
    rewritten = await rewrite(question, options.history, Rewrite(models))
    view = View(session, options, rewritten.question, session.runtime.embedder.metered(models.meter))
    passages = await ranked(view, [rewritten.question], models, options.k)
    usage = usage_of(models.meter, time.monotonic() - started)
    return Retrieval(question=question, passages=tuple(passages), usage=usage, generation=session.number)
