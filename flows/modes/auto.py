"""The mode `auto`: one decision for each question, made before anything is searched, on the mode
that answers it.

walk the triples, if there are any ─ choose ─ answer ─ (nothing found) the search

Without a model the reports come after the search where only the wording says, and not plainly, that
the whole is meant.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from flows.modes.traversal import is_imported, walk
from flows.question import Resources, Response
from prompts.choose import Choose
from prompts.engine.models import Models
from storage.answer_records import Mode, ModeDecision, ModeTried
from tasks.route import SEARCH, WHOLE, choose

SHOWN_OF_TRIED = 160  # signs that are kept of what a mode said that gave no answer


async def answer_in_turn(
    resources: Resources, respond: Callable[[Resources, Mode], Awaitable[Response]]
) -> Response:
    """The answer of the first of the modes that fit the question that gives any; `respond` answers
    in one mode.
    """
    decision = await choose_mode(resources)
    tried: list[Response] = []
    modes = list(dict.fromkeys((decision.mode, SEARCH)))
    if decision.mode in WHOLE and Choose(resources.models).doubts(decision.confidence):
        modes.reverse()  # what is found tells whether the question is about a part
        decision = decision.model_copy(
            update={"reason": f"perhaps {decision.reason}; the passages come first"}
        )
    for mode in modes:
        if tried:
            resources.withdraw_draft()
        response = await respond(resources, mode)
        tried.append(response)
        if response.answered.fallback != "abstained":
            break
    else:
        # What a model says of evidence that it has read comes before what nobody has read anything
        # for.
        read = (earlier for earlier in tried if resources.writes and earlier.result.context.sources)
        response = next(read, tried[0])
    others = tuple(
        ModeTried(mode=each.mode, said=each.answered.text[:SHOWN_OF_TRIED])
        for each in tried
        if each is not response
    )
    return replace(
        response, decision=decision.model_copy(update={"mode": response.mode, "tried": others})
    )


async def choose_mode(resources: Resources) -> ModeDecision:
    """The mode for the question; the search follows where it gives nothing.

    A structure or documents that the caller names are searched: there the router decides.
    """
    question = resources.question
    if question.options.structure is not None or question.options.documents is not None:
        return ModeDecision(mode=SEARCH, confidence=1.0, reason="what the caller names is searched")
    walked, titles = await _walk(resources), resources.search.session.titles
    return await choose(
        question.parsed, titles, walked, resources.reports.sizes, Choose(resources.models)
    )


async def _walk(resources: Resources) -> str | None:
    """Say along what a walk without a model comes to an answer.

    None where it comes to none, and where the question names something that texts speak of too, or
    nothing: there the search reads both. Where no model writes, only a look-up of triples is one.
    """
    question, graph = resources.question, resources.graph
    if not is_imported(question, graph) or not graph.traversal.spellings.named(question.text):
        return None
    result = await walk(replace(resources, models=Models.offline()))
    if result.stated is None or result.stated.fallback == "abstained":
        return None
    if not resources.writes and not result.stated.looked_up:
        return None
    return f"{result.route.reason if result.route else ''} ({len(result.subquestions)} steps)"
