"""How does a question become an answer?

rewrite ─ trigger check ─ retrieve ─ filter ─ route ─ structurize ─ decompose ─ answer ─ remember

This is the story without Prefect; `flows.query` runs it as a recorded flow.
"""

import time

from flows.asking_view import AskOptions, View
from flows.runtime import usage_of
from flows.session import Session
from prompts.answer import AnswerStep
from prompts.decompose import Decompose
from prompts.engine.meter import Meter
from prompts.filter import Filter
from prompts.rewrite import Rewrite
from prompts.route import Route
from prompts.structurize import Structurize
from storage.records import Answer, Retrieval, Trace
from tasks.answer import answer
from tasks.decompose import decompose
from tasks.filter import filter_passages
from tasks.retrieve.search import retrieve
from tasks.rewrite import rewrite
from tasks.route import choose_structure, hop_count, hypothesis_of, question_type
from tasks.structurize import structurize
from tasks.trigger import check_trigger

__all__ = ["AskOptions", "answer_question", "retrieve_passages"]


async def answer_question(question: str, options: AskOptions, session: Session) -> Answer:
    """Answer from the session's generation. The answer's fields are described at `storage.records.Answer`."""
    started = time.monotonic()
    models = session.runtime.models.metered(Meter())
    asked = await rewrite(question, options.history, Rewrite(models))
    view = View(session, options, asked.question, session.runtime.embedder.metered(models.meter))
    taken, relevance = view.taken, view.relevance
    recall = await check_trigger(asked.queries, view.memory(), view.likeness)
    passages = await view.passages(asked.queries, recall)
    pool = view.pool(passages)
    kept = await filter_passages(hypothesis_of(taken), passages, pool, relevance, Filter(models))
    pool = pool.inside(kept.chunks)
    route = await choose_structure(taken, pool, Route(models), options.forced)
    structured = view.connected(await structurize(route, pool, relevance, Structurize(models)))
    parts = await decompose(taken, structured.descriptions, Decompose(models))
    writer = AnswerStep(models, options.on_text, session.runtime.settings.tailoring.language)
    answered = await answer(parts, structured, relevance, writer, view.reach)
    if answered.reading.support == "none" and not recall.used:
        await view.remember(passages, kept)
    trace = Trace(
        mode=view.mode, rewritten=asked.question, queries=tuple(asked.queries), trigger=recall.decisions,
        filter=kept.counts, question_type=question_type(taken, hop_count(taken)), route=route,
        structure=structured.type, subquestions=answered.subquestions,
    )  # fmt: skip
    return Answer(
        question=question, answer=answered.text, values=answered.reading.values, citations=answered.citations,
        passages=tuple(passages[: options.k]), fallback=answered.reading.support, trace=trace,
        usage=usage_of(models.meter, time.monotonic() - started), generation=session.number,
    )  # fmt: skip


async def retrieve_passages(question: str, options: AskOptions, session: Session) -> Retrieval:
    """The k best passages for a question, without answering it."""
    started = time.monotonic()
    models = session.runtime.models.metered(Meter())
    rewritten = await rewrite(question, options.history, Rewrite(models))
    embedder = session.runtime.embedder.metered(models.meter)
    dense = session.dense([rewritten.question], options.documents, embedder)
    passages = await retrieve(session.index, [rewritten.question], dense, options.k, options.documents)
    usage = usage_of(models.meter, time.monotonic() - started)
    return Retrieval(question=question, passages=tuple(passages), usage=usage, generation=session.number)
