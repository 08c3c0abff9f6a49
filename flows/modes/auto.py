"""The mode `auto`: one decision for each question, made before anything is searched, on the mode that answers it.

walk the triples, if there are any ─ choose ─ answer ─ (nothing found) the search
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from flows.modes.traversal import is_imported, walk
from flows.question import QuestionContext, Response
from flows.session import SAMPLE
from prompts.choose import Choose
from prompts.engine.models import Models
from storage.answer_records import Mode, ModeDecision, ModeTried
from tasks.choose import SEARCH, Choice, Sizes, Walk, choose

SHOWN_OF_TRIED = 160  # signs that are kept of what a mode said that gave no answer


async def answer_in_turn(
    question: QuestionContext, respond: Callable[[QuestionContext, Mode], Awaitable[Response]]
) -> Response:
    """The answer of the first of the modes that fit the question that gives any; `respond` answers in one mode."""
    choice = await choose_modes(question)
    first: Response | None = None
    tried: list[ModeTried] = []
    for mode in choice.order:
        if tried:
            question.withdraw_draft()
        response = await respond(question, mode)
        if response.answered.fallback != "abstained":
            decision = choice.decision.model_copy(update={"mode": mode, "tried": tuple(tried)})
            return replace(response, decision=decision)
        first = first or response
        tried.append(ModeTried(mode=mode, said=response.answered.text[:SHOWN_OF_TRIED]))
    assert first is not None  # noqa: S101 -- the order holds one mode at least
    return replace(first, decision=choice.decision.model_copy(update={"tried": tuple(tried[1:])}))


async def choose_modes(question: QuestionContext) -> Choice:
    """The mode for the question, and the one that follows where it gives nothing.

    A structure or documents that the caller names are searched: there the router decides.
    """
    if question.options.structure is not None or question.options.documents is not None:
        decision = ModeDecision(mode=SEARCH, confidence=1.0, reason="what the caller names is searched")
        return Choice((SEARCH,), decision)
    walk = await _walk(question)
    return await choose(question.parsed, _titles(question), walk, _sizes(question), Choose(question.models))


async def _walk(question: QuestionContext) -> Walk | None:
    """What a walk without a model gives; None where the question names something that texts speak of too, or nothing:
    there the search reads both."""
    if not is_imported(question) or not question.session.traversal_graph.spellings.named(question.text):
        return None
    result = await walk(question, Models.offline())
    answers = result.stated is not None and result.stated.fallback != "abstained"
    reason = result.route.reason if result.route else ""
    return Walk(answers, f"{reason} ({len(result.subquestions)} steps)")


def _titles(question: QuestionContext) -> list[str]:
    return list(dict.fromkeys(chunk.title for chunk in question.session.index.chunks[:SAMPLE] if chunk.title))


def _sizes(question: QuestionContext) -> Sizes:
    reports = question.session.report_sizes
    return Sizes(reports=reports.reports, documents=len(question.session.index.documents), reported=reports.documents)
