"""How a question is answered once it is understood: in its mode, or in the first of those that fit it."""

from dataclasses import dataclass, replace

from flows.choosing import chosen
from flows.memory import keep, passages_of, recalled
from flows.modes.registry import RUN_MODE
from flows.modes.result import ModeResult
from flows.modes.structured_search import structured_search
from flows.question import QuestionContext
from prompts.engine.drafts import Withdrawn
from storage.records import Mode, ModeDecision, ModeTried
from tasks.answer import Answered, answer
from tasks.trigger import Recall

SHOWN_OF_TRIED = 160  # signs that are kept of what a mode said that gave no answer
NOT_RECALLED = Recall(decisions=(), chunks=())


@dataclass(frozen=True)
class Response:
    """What a mode brought and what was answered from it; `decision` says why this mode, where `auto` chose it."""

    mode: Mode
    result: ModeResult
    answered: Answered
    recall: Recall = NOT_RECALLED
    decision: ModeDecision | None = None


async def respond(question: QuestionContext) -> Response:
    """The answer in the mode asked for, or in the first of those that fit the question that gives any."""
    if question.options.mode != "auto":
        return await respond_in(question, question.options.mode)
    choice = await chosen(question)
    first: Response | None = None
    tried: list[ModeTried] = []
    for mode in choice.order:
        if tried:
            _withdraw(question)
        response = await respond_in(question, mode)
        if response.answered.fallback != "abstained":
            decision = choice.decision.model_copy(update={"mode": mode, "tried": tuple(tried)})
            return replace(response, decision=decision)
        first = first or response
        tried.append(ModeTried(mode=mode, said=response.answered.text[:SHOWN_OF_TRIED]))
    assert first is not None  # noqa: S101 -- the order holds one mode at least
    return replace(first, decision=choice.decision.model_copy(update={"tried": tuple(tried[1:])}))


async def respond_in(question: QuestionContext, mode: Mode) -> Response:
    """The answer in one mode; the search first looks into memory."""
    run = RUN_MODE.get(mode)
    if run is not None:
        asked = replace(question, options=replace(question.options, mode=mode))
        result = await run(asked)
        return Response(mode, result, await _answered(asked, result))
    recall = await recalled(question)
    if recall.used:
        result = await structured_search(question, passages_of(question, recall))
        answered = await _answered(question, result)
        if recall.does(answered.fallback):
            return Response(mode, result, answered, recall)
        # What memory has does not do for the question in these words: the documents are searched after all.
        recall = recall.passed_over()
        _withdraw(question)
    passages = await question.search(question.queries, question.depth)
    result = await structured_search(question, passages)
    answered = await _answered(question, result)
    await keep(question, result, answered)
    return Response(mode, result, answered, recall)


async def _answered(question: QuestionContext, result: ModeResult) -> Answered:
    writer = question.writer(result.writer)
    return await answer(question.wording, result.context, writer, question.answer_options, result.stated)


def _withdraw(question: QuestionContext) -> None:
    """Tell whoever reads the draft that it does not hold."""
    if question.options.on_text is not None:
        question.options.on_text(Withdrawn())
