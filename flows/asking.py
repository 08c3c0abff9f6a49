"""How does a question become an answer?

rewrite ─ choose the mode ─ trigger check ─ retrieve ─ filter ─ route ─ structurize ─ decompose ─ answer ─ remember

This is the story without Prefect; `flows.query` runs it as a recorded flow.
"""

import time

from flows.answer_shelf import shown_again
from flows.answering import respond
from flows.asking_view import AskOptions, View
from flows.modes import ranked
from flows.readings import readings
from flows.restricting import restricted
from flows.runtime import usage_of
from flows.session import Session
from prompts.engine.meter import Meter
from prompts.rewrite import Rewrite
from storage.records import Answer, Retrieval, Trace
from tasks.rewrite import rewrite
from tasks.route import hop_count, question_type
from tasks.structurize.step import shown_of

__all__ = ["AskOptions", "answer_question", "retrieve_passages"]


async def answer_question(question: str, options: AskOptions, session: Session) -> Answer:
    """Answer from the session's generation. The answer's fields are described at `storage.records.Answer`."""
    started = time.monotonic()
    options = restricted(options, session)
    models = session.runtime.models.metered(Meter())
    asked = await rewrite(question, options.history, Rewrite(models))
    view = View(session, options, asked.question, session.runtime.embedder.metered(models.meter))
    taken = view.taken
    said = await respond(view, asked.queries, models)
    if isinstance(said, Answer):
        now = usage_of(models.meter, time.monotonic() - started)
        return shown_again(said, question, now, session.number)
    recall, found, answered = said.recall, said.found, said.answered
    structured = found.structured
    trace = Trace(
        mode=said.decision.mode if said.decision else options.mode, decision=said.decision,
        rewritten=asked.question, queries=tuple(asked.queries), trigger=recall.decisions,
        filter=found.kept.counts, question_type=found.question_type or question_type(taken, hop_count(taken)),
        route=found.route, structure=found.structure or structured.type,
        subquestions=found.subquestions or answered.subquestions,
        structures=found.structures or shown_of(structured), reports=found.reports, unlinked=view.unlinked,
        ambiguity=readings(view, asked.ambiguities, found.passages, answered.citations),
    )  # fmt: skip
    whole = Answer(
        question=question, answer=answered.text, values=answered.reading.values, citations=answered.citations,
        passages=tuple(found.passages[: options.k]), fallback=answered.reading.support, trace=trace,
        usage=usage_of(models.meter, time.monotonic() - started), generation=session.number,
    )  # fmt: skip
    said.shelve(whole)
    return whole


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
