"""How is a question answered whose parts need different structures? Each over the documents that are found for it.

split ─ retrieve and route each part ─ (where the types differ) filter ─ structurize ─ answer each ─ join

"Which depot burned most diesel, and how do we switch a depot to electric buses?" is a table and an algorithm. Where one
structure serves all parts, the question is answered whole.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from flows.asking_view import View
from flows.contexts import Context
from flows.searching import searched
from prompts.engine.models import Models
from prompts.language.conversation import stand_alone
from prompts.language.parts import parts_in
from prompts.route import TRY_BOTH
from storage.records import FilterCounts, Passage, RouteDecision
from tasks.answer import Answered
from tasks.evidence import Pool
from tasks.filter import Kept
from tasks.join_parts import PartAnswered, join_parts
from tasks.route import by_rules
from tasks.structurize.step import Structured, shown_of
from tasks.trigger import Recall

# A question with more parts is a list of questions: answered whole.
MOST_PARTS = 4
NOT_RECALLED = Recall(decisions=(), chunks=())
# decompose ─ answer, as every question has it.
Answering = Callable[[View, Context, Recall, Models], Awaitable[Answered]]


@dataclass(frozen=True)
class Part:
    """A part as a question of its own, and the passages found for it; `text` is the part as it was asked."""

    text: str
    view: View
    passages: Sequence[Passage]


async def parts_of(view: View) -> list[Part]:
    """The parts that need different structures, each with its passages; nothing where the question is one.

    The rules alone look at the parts: no model is asked whether there are any. Where they are not sure of a part, it
    does not count as different.
    """
    texts = parts_in(view.question) if view.options.forced is None else []
    if not 1 < len(texts) <= MOST_PARTS:
        return []
    parts = [await _part(view, text, texts[:place]) for place, text in enumerate(texts)]
    routed = [by_rules(part.view.taken, part.view.pool(part.passages))[0] for part in parts]
    return parts if len({best.structure for best in routed if best.margin >= TRY_BOTH}) > 1 else []


async def _part(view: View, text: str, before: Sequence[str]) -> Part:
    """A part with what it means by the parts before it and their answers ("and who owns it?")."""
    alone = replace(view, question=stand_alone(text, before).text)
    return Part(text, alone, await alone.passages([alone.question], NOT_RECALLED))


def passages_of(parts: Sequence[Part]) -> list[Passage]:
    """The passages of all parts, the best of each first."""
    return _in_turn([part.passages for part in parts])


def _in_turn(lists: Sequence[Sequence[Passage]]) -> list[Passage]:
    ranks = zip_longest(*lists)
    return list({one.chunk: one for rank in ranks for one in rank if one is not None}.values())


async def parted(parts: Sequence[Part], models: Models, answering: Answering) -> tuple[Context, Answered]:
    """Each part in its own structure, and the answers together."""
    found: list[Context] = []
    answers: list[PartAnswered] = []
    said: list[str] = []
    for part in parts:
        if stand_alone(part.text, said).text != part.view.question:  # what was answered says what "it" is
            part = await _part(part.view, part.text, said)  # noqa: PLW2901 -- the same part, better understood
        if said and part.view.options.on_text is not None:
            part.view.options.on_text("\n")
        context = await searched(part.view, part.passages, models)
        answered = await answering(part.view, context, NOT_RECALLED, models)
        found.append(context)
        answers.append(PartAnswered(part.view.question, context.route, answered))
        said += [part.view.question, *answered.reading.values[:1]]
    joined = join_parts(answers)
    together = Context(
        passages=_in_turn([context.passages for context in found]), structured=_together(found),
        route=_overall(found), kept=_kept(found),
        question_type="nested", subquestions=joined.subquestions,
        structures=tuple(shown for context in found for shown in shown_of(context.structured)),
        structure=" + ".join(dict.fromkeys(context.structured.type for context in found)),
    )  # fmt: skip
    return together, joined


def _together(found: Sequence[Context]) -> Structured:
    """What all parts were answered from, under the type of the first; the places stay with the parts."""
    built = tuple(one for context in found for one in context.structured.built)
    descriptions = tuple(told for context in found for told in context.structured.descriptions)
    return Structured(found[0].structured.type, (), descriptions, Pool((), ()), built)


def _overall(found: Sequence[Context]) -> RouteDecision:
    """The decision on the first part, as sure as the least sure one; the reason names all of them."""
    routes = [context.route for context in found]
    told = "; ".join(f"{route.type} ({route.reason})" for route in routes)
    return RouteDecision(
        type=routes[0].type, confidence=min(route.confidence for route in routes),
        margin=min(route.margin for route in routes), reason=f"each part by itself: {told}",
    )  # fmt: skip


def _kept(found: Sequence[Context]) -> Kept:
    """What the filter kept for the parts, and its counts together."""
    counts = [context.kept.counts for context in found]
    return Kept(
        chunks=tuple(dict.fromkeys(chunk for context in found for chunk in context.kept.chunks)),
        entailed=tuple(dict.fromkeys(chunk for context in found for chunk in context.kept.entailed)),
        counts=FilterCounts(
            entailment=sum(one.entailment for one in counts), neutral=sum(one.neutral for one in counts),
            contradiction=sum(one.contradiction for one in counts), hypothesis=counts[0].hypothesis,
            tier=counts[0].tier, judged=tuple(told for one in counts for told in one.judged),
            conflicts=tuple(told for one in counts for told in one.conflicts),
        ),
    )  # fmt: skip
