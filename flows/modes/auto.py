"""The mode `auto`: choose the mode that answers a question before anything is searched.

walk the triples, if there are any → choose → answer → (nothing found) the search

Where the index has typed facts, the model that chooses may say that they hold the answer.
At high effort a large model is shown the first search: where it leaves a link of the question open,
the agent goes on from it.
Without a model, reports come after the search unless the wording plainly asks about the whole.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from flows.modes.agent import AGENT, open_link
from flows.modes.traversal import is_imported, walk
from flows.question import Resources, Response
from prompts.choose import Choose, ChooseWithFacts
from prompts.engine.models import Models
from prompts.plan_facts import PlanFacts
from storage.answer_records import Mode, ModeDecision, ModeTried
from tasks.route import SEARCH, WHOLE, choose

SHOWN_OF_TRIED = 160  # characters that the trace shows of an answer that was not taken


async def answer_in_turn(
    resources: Resources, respond: Callable[[Resources, Mode], Awaitable[Response]]
) -> Response:
    """Return the first answer that one of the fitting modes gives; `respond` asks one mode."""
    decision = await choose_mode(resources)
    modes = list(dict.fromkeys((decision.mode, SEARCH)))
    if decision.mode in WHOLE and Choose(resources.models).doubts(decision.confidence):
        modes.reverse()  # what is found shows whether the question is about a part
        decision = decision.model_copy(
            update={"reason": f"perhaps {decision.reason}; the passages come first"}
        )
    tried: list[Response] = []
    for mode in modes:
        if tried:
            resources.withdraw_draft()
        response = await respond(resources, mode)
        tried.append(response)
        if response.answered.fallback != "abstained":
            break
    else:
        # A model that has read evidence may say more than a mode that found nothing to read.
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
    """Choose the mode for the question.

    A structure or documents that the caller names are searched: there the router decides.
    """
    question = resources.question
    if question.options.structure is not None or question.options.documents is not None:
        return ModeDecision(mode=SEARCH, confidence=1.0, reason="what the caller names is searched")
    walked, titles = await _walk(resources), resources.search.session.titles
    decision = await choose(
        question.parsed, titles, walked, resources.reports.sizes, chooser_of(resources)
    )
    if decision.mode == SEARCH and (link := await open_link(resources)):
        reason = f"{decision.reason}; the first search leaves a link open: {link}"
        return decision.model_copy(update={"mode": AGENT.name, "reason": reason})
    return decision


def chooser_of(resources: Resources) -> Choose:
    """Return the step that chooses. It knows the types of facts where there are facts, a model
    plans over them, and the effort has room for the call.
    """
    models = resources.models
    if models.policy.effort == "low" or PlanFacts(models).is_offline:
        return Choose(models)
    types = resources.graph.fact_types
    return ChooseWithFacts(models, types) if types else Choose(models)


async def _walk(resources: Resources) -> str | None:
    """Return the path by which a walk without a model reaches an answer, or None.

    For a model that writes, it counts only where texts do not speak of the things that are named:
    elsewhere the search reads both. Where no model writes, only a look-up of triples counts.
    """
    question, graph = resources.question, resources.graph
    if resources.writes and not is_imported(question, graph):
        return None
    if not graph.traversal.spellings.named(question.text):
        return None
    result = await walk(replace(resources, models=Models.offline()))
    if result.stated is None or result.stated.fallback == "abstained":
        return None
    if not resources.writes and not result.stated.looked_up:
        return None
    return f"{result.route.reason if result.route else ''} ({len(result.subquestions)} steps)"
