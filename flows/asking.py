"""How does a question become an answer?

rewrite ─ trigger check ─ retrieve ─ filter ─ route ─ structurize ─ decompose ─ answer ─ remember

This is the story without Prefect; `flows.query` runs it as a recorded flow.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from flows.asking_view import aliases_of, look_up_for, memory_of, mode_of, recalled, similarity_of, weights_of
from flows.runtime import usage_of
from flows.session import Session
from prompts.answer import AnswerStep
from prompts.decompose import Decompose
from prompts.engine.meter import Meter
from prompts.filter import Filter
from prompts.language.asked import Ask
from prompts.language.question import ask
from prompts.reading.relevance import Relevance
from prompts.rewrite import Rewrite
from prompts.route import Route
from prompts.structurize import Structurize
from storage.records import Answer, Mode, Passage, Retrieval, StructureType, Trace
from tasks.answer import answer
from tasks.decompose import decompose
from tasks.evidence import pool_of
from tasks.filter import filter_passages
from tasks.remember import remember
from tasks.retrieve.search import retrieve
from tasks.rewrite import rewrite
from tasks.route import choose_structure, depth, hop_count, question_type
from tasks.structurize import Structured, structurize, with_paths
from tasks.trigger import check_trigger


@dataclass(frozen=True)
class AskOptions:
    """How a question is answered; `documents` restricts the evidence to those ids, `history` holds earlier turns."""

    mode: Mode = "auto"
    structure: StructureType | None = None
    k: int = 8
    documents: tuple[str, ...] | None = None
    history: tuple[str, ...] = ()


async def answer_question(question: str, options: AskOptions, session: Session) -> Answer:
    """Answer from the session's generation. The answer's fields are described at `storage.records.Answer`."""
    started = time.monotonic()
    models = session.runtime.models.metered(Meter())
    rewritten = await rewrite(question, options.history, Rewrite(models))
    taken = ask(rewritten.question)
    recall = await check_trigger(
        rewritten.queries, memory_of(session, taken, options.documents), session.runtime.settings.tau,
        session.runtime.settings.theta, similarity_of(session), session.named,
    )  # fmt: skip
    remembered = recalled(session, recall)
    passages = remembered or await _retrieve(rewritten.queries, taken, options, session)
    pool = pool_of([session.index.chunk(passage.chunk) for passage in passages])
    relevance = Relevance(taken, weights_of(session, taken.text), aliases_of(session, taken.text))
    kept = await filter_passages(
        taken.text, "strong" if taken.form == "fact" and hop_count(taken) == 1 else "weak", passages, pool, relevance, Filter(models)
    )
    pool = pool.inside(kept.chunks)
    route = await choose_structure(taken, pool, Route(models), options.structure)
    structured = await structurize(taken.text, route, pool, relevance, Structurize(models))
    structured = _connected(taken, structured, session)
    parts = await decompose(taken, structured.descriptions, Decompose(models))
    answered = await answer(
        taken, parts, structured, weights_of(session, taken.text), aliases_of(session, taken.text), AnswerStep(models),
        look_up_for(session, options.documents), session.documents,
    )  # fmt: skip
    if options.documents is None and not remembered and answered.reading.support == "none":
        session.remember(await remember(taken.text, [p for p in passages if p.chunk in kept.entailed], session.number))
    trace = Trace(
        mode=mode_of(options.mode, taken), rewritten=rewritten.question, queries=tuple(rewritten.queries),
        trigger=recall.decisions, filter=kept.counts, question_type=question_type(taken, hop_count(taken)), route=route,
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
    dense = session.dense([rewritten.question], options.documents)
    passages = await retrieve(session.index, [rewritten.question], dense, options.k, options.documents)
    usage = usage_of(models.meter, time.monotonic() - started)
    return Retrieval(question=question, passages=tuple(passages), usage=usage, generation=session.number)


async def _retrieve(queries: Sequence[str], taken: Ask, options: AskOptions, session: Session) -> list[Passage]:
    """As many passages as a question of this form reads."""
    dense = session.dense(queries, options.documents)
    return await retrieve(session.index, queries, dense, depth(taken, options.k), options.documents)


def _connected(taken: Ask, structured: Structured, session: Session) -> Structured:
    """For "how are A and B connected": the chains of relations between them instead of the passages' triples."""
    if taken.form != "connect" or structured.type != "graph":
        return structured
    paths = session.paths(taken.text)
    if not paths:
        return Structured(structured.type, (), ("no chain of relations",), structured.pool)
    facts = session.facts
    chunks = [session.index.chunk(place.chunk) for path in paths for r in path for place in facts.places[r.id]]
    return with_paths(structured, paths[:1], facts, chunks)
