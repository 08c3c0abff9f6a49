"""How is a question answered once it is rewritten? In the mode that fits it, from memory where that does."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from flows.answer_shelf import AnswerShelf
from flows.asking_view import View
from flows.choosing import chosen, in_mode, speaks_to
from flows.contexts import Context
from flows.modes import CONTEXTS, look_up
from flows.parted import parted, parts_of, passages_of
from flows.recalling import keep, recalled
from flows.searching import searched
from prompts.answer import AnswerStep
from prompts.decompose import Decompose
from prompts.engine.drafts import Withdrawn
from prompts.engine.models import Models
from storage.records import Answer, ModeDecision, ModeTried, Passage
from tasks.answer import Answered, answer, settled
from tasks.choose import SEARCH
from tasks.decompose import decompose
from tasks.filter import with_disagreements
from tasks.trigger import Recall

SAID = 160  # signs that are kept of what a mode said that gave no answer


@dataclass(frozen=True)
class Response:
    """What the trigger decided, what was laid before the answer, and what was said; `remembered` is what memory has of
    it from now on, `decision` why this mode was followed, where the caller left that open."""

    recall: Recall
    found: Context
    answered: Answered
    shelf: AnswerShelf
    remembered: tuple[Passage, ...] = ()
    decision: ModeDecision | None = None

    def shelve(self, whole: Answer) -> None:
        """Keep the answer for the same question over the same evidence."""
        bound = self.found.reading is not None or len(whole.trace.subquestions) > 1
        self.shelf.put(whole, self.found.passages, self.remembered, bound)


async def respond(view: View, queries: Sequence[str], models: Models) -> Response | Answer:
    """The answer in the mode asked for, or in the first of those that fit the question that gives any.

    Where none does, what the first one said.
    """
    if view.options.mode != "auto":
        return await respond_in(view, queries, models)
    choice = await chosen(view, models)
    said: list[Response] = []
    tried: list[ModeTried] = []
    for mode in choice.order:
        if tried and view.options.on_text is not None:
            view.options.on_text(Withdrawn())
        one = await respond_in(in_mode(view, mode), queries, models)
        if isinstance(one, Answer):
            return one
        if one.answered.reading.support != "abstained" and (
            not tried or mode == SEARCH or speaks_to(view, one.answered.citations)
        ):
            return replace(one, decision=choice.decision.model_copy(update={"mode": mode, "tried": tuple(tried)}))
        said.append(one)
        tried.append(ModeTried(mode=mode, said=one.answered.text[:SAID]))
    return replace(said[0], decision=choice.decision.model_copy(update={"tried": tuple(tried[1:])}))


async def respond_in(view: View, queries: Sequence[str], models: Models) -> Response | Answer:
    """The answer that was written before from the same evidence, or a new one, in the view's mode."""
    shelf = AnswerShelf(view, models)
    bring = CONTEXTS.get(view.options.mode)
    recall = await recalled(view, queries, searches=bring is None)
    if bring is not None:
        found = await bring(view, queries, models)
        return Response(recall, found, await _answered(view, found, recall, models), shelf)
    parts = await parts_of(view)
    recall = recall.passed_over() if parts else recall
    while True:
        passages = passages_of(parts) or await view.passages(queries, recall)
        stored = shelf.get(passages)
        if stored is not None:
            if view.options.on_text is not None:
                view.options.on_text(stored.answer)
            return stored
        if parts:
            return Response(recall, *await parted(parts, models, _answered), shelf)
        found = await searched(view, passages, models)
        answered = await _answered(view, found, recall, models)
        if not recall.used:
            return Response(recall, found, answered, shelf, await keep(view, found, answered))
        if recall.does(answered.reading.support):
            return Response(recall, found, answered, shelf)
        # What memory has does not do for the question in these words: the documents are searched after all.
        recall = recall.passed_over()
        if view.options.on_text is not None:
            view.options.on_text(Withdrawn())


async def _answered(view: View, found: Context, recall: Recall, models: Models) -> Answered:
    """decompose ─ answer, or what was read already"""
    if found.reading is not None:
        return settled(found.reading, found.structured, view.documents)
    parts = await decompose(view.taken, found.structured.descriptions, Decompose(models))
    writer = AnswerStep(models, view.options.on_text, view.session.runtime.settings.tailoring.language)
    reach = view.reach(partial(look_up, view), recall)
    answered = await answer(parts, found.structured, view.relevance, writer, reach)
    cited = {citation.chunk for citation in answered.citations}
    told = with_disagreements(answered.text, found.kept.counts, cited, view.taken.chinese)
    return replace(answered, text=told)
