"""How is a question answered by search with one step left out? The steps of `flows.answering`, called one by one.

rewrite ─ trigger ─ retrieve ─ filter ─ route ─ structurize ─ decompose ─ answer ─ remember

With all steps an answer is that of `answer_question` in a mode that searches, save that a question whose parts need
different structures is answered whole, and that no answer is taken from the answer cache. Options of mode `auto` ask as
`auto` does where it chooses the search.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from flows.asking_view import AskOptions, View
from flows.contexts import ALL_KEPT, Context
from flows.recalling import keep, recalled
from flows.runtime import usage_of
from flows.searching import effort_of
from flows.session import Session
from flows.utilizing import utilized
from prompts.answer import AnswerStep
from prompts.decompose import Decompose
from prompts.engine.meter import Meter
from prompts.engine.models import Models
from prompts.filter import Filter
from prompts.rewrite import Rewrite
from prompts.route import Route
from prompts.structures.schema import ReadSchema
from prompts.structurize import Structurize
from storage.records import Answer, Passage, Trace
from tasks.answer import Answered, answer, settled
from tasks.better_supported import better
from tasks.decompose import decompose
from tasks.filter import Kept, filter_passages, with_disagreements
from tasks.rewrite import rewrite
from tasks.route import choose_structure, hop_count, hypothesis_of, question_type
from tasks.structurize.step import SHORT, Apart, structurize
from tasks.trigger import Recall

NOT_RECALLED = Recall(decisions=(), chunks=())


@dataclass(frozen=True)
class Steps:
    """Which steps are left in. Without `rewrite` the question is its only query; without `filter` all passages are
    read; without `utilizer` the structure is read at once: no plan over tables, no sub-questions."""

    rewrite: bool = True
    filter: bool = True
    utilizer: bool = True
    memory: bool = False


@dataclass(frozen=True)
class Outcome:
    """An answer, the documents of the passages that it was read from, how many those passages are, and whether they
    came from memory."""

    answer: Answer
    documents: frozenset[str]
    passages: int
    recalled: bool


async def stepwise(question: str, options: AskOptions, session: Session, steps: Steps) -> Outcome:
    """Answer in a mode that searches, by the steps left in."""
    started = time.monotonic()
    models = session.runtime.models.metered(Meter())
    asked, queries = question, [question]
    if steps.rewrite:
        rewritten = await rewrite(question, options.history, Rewrite(models))
        asked, queries = rewritten.question, rewritten.queries
    view = View(session, options, asked, session.runtime.embedder.metered(models.meter))
    recall = await recalled(view, queries, searches=True) if steps.memory else NOT_RECALLED
    found, said = await _said(view, await view.passages(queries, recall), recall, models, steps)
    if recall.used and not recall.does(said.reading.support):
        recall = recall.passed_over()
        found, said = await _said(view, await view.passages(queries, recall), recall, models, steps)
    if steps.memory and not recall.used:
        await keep(view, found, said)
    usage = usage_of(models.meter, time.monotonic() - started)
    whole = Answer(
        question=question, answer=said.text, values=said.reading.values, citations=said.citations,
        passages=tuple(found.passages[: options.k]), fallback=said.reading.support, trace=_trace(view, found, said),
        usage=usage, generation=session.number,
    )  # fmt: skip
    read = [one for one in found.passages if one.chunk in found.kept.chunks]
    return Outcome(whole, frozenset(one.document for one in read), len(read), recall.used)


async def _said(
    view: View, passages: Sequence[Passage], recall: Recall, models: Models, steps: Steps
) -> tuple[Context, Answered]:
    """filter ─ route ─ structurize ─ decompose ─ answer"""
    pool, kept = view.pool(passages), _all_of(passages)
    if steps.filter:
        judge, standing = Filter(models), view.standing(passages)
        kept = await filter_passages(hypothesis_of(view.taken), passages, pool, view.relevance, judge, standing)
    pool = pool.inside(kept.chunks)
    route = await choose_structure(view.taken, pool, Route(models), view.options.forced)
    if steps.utilizer:
        tabled = await utilized(view, passages, route, kept, models)
        if tabled is not None and tabled.reading is not None:
            return tabled, settled(tabled.reading, tabled.structured, view.documents)
    chains = view.chains(pool, route.type)
    if chains is not None:
        found = Context(passages, chains, route, kept)
    else:
        builder, apart = Structurize(models), Apart(ReadSchema(models), view.shelf)
        built = await structurize(route, pool, view.relevance, builder, effort_of(view, models), apart)
        if route.second is not None:
            instead = route.model_copy(update={"type": route.second})
            other = await structurize(instead, pool, view.relevance, builder, SHORT, apart)
            built, route = better(built, other, route, view.relevance)
        found = Context(passages, built, route, kept)
    return found, await _written(view, found, recall, models, steps)


async def _written(view: View, found: Context, recall: Recall, models: Models, steps: Steps) -> Answered:
    """decompose ─ answer; without a utilizer the question is its only part."""
    parts: Sequence[str] = [view.taken.text]
    if steps.utilizer:
        parts = await decompose(view.taken, found.structured.descriptions, Decompose(models))
    writer = AnswerStep(models, None, view.session.runtime.settings.tailoring.language)

    async def search(part: str, k: int) -> list[Passage]:
        return await view.search([part], k)

    said = await answer(parts, found.structured, view.relevance, writer, view.reach(search, recall))
    cited = {citation.chunk for citation in said.citations}
    text = with_disagreements(said.text, found.kept.counts, cited, view.taken.chinese)
    return Answered(text, said.reading, said.citations, said.subquestions)


def _all_of(passages: Sequence[Passage]) -> Kept:
    """All passages, none of them judged."""
    return Kept(chunks=tuple(one.chunk for one in passages), entailed=(), counts=ALL_KEPT.counts)


def _trace(view: View, found: Context, said: Answered) -> Trace:
    """What the measures look at: the mode, the route and the structure."""
    return Trace(
        mode=view.options.mode, rewritten=view.question, queries=(), trigger=(), filter=found.kept.counts,
        question_type=question_type(view.taken, hop_count(view.taken)), route=found.route,
        structure=found.structure or found.structured.type, subquestions=said.subquestions,
    )  # fmt: skip
