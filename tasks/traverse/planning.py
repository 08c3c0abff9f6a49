"""Planning a traversal: the type of a question, and the steps that answer it (PolyG, section 3).

One call to a model gives both. Without a model the graph is looked up (`lookup.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from prompts.engine.helper import helped
from prompts.traverse import PlanStep, PlanTraversal
from storage.answer_records import QuestionType
from tasks.retrying import BRIEF
from tasks.step import step
from tasks.traverse.entity_names import Linked
from tasks.traverse.lookup import plan_without_model
from tasks.traverse.plan import CheckedStep, Problem, TraversalGraph, check

_TYPES: dict[str, QuestionType] = {"follow": "sp*", "connect": "s*o", "neighbours": "s**"}
_REASONS = {
    "follow": "the question has the words of relations that the graph has",
    "connect": "names several things: the paths between them",
    "neighbours": "names one thing: what is stated of it",
}


@dataclass(frozen=True)
class Planned:
    """A question's type, and the steps that can be run on the graph, or why there are none."""

    type: QuestionType
    reason: str
    steps: tuple[CheckedStep, ...] | Problem


def wrong_with(steps: Sequence[PlanStep], graph: TraversalGraph) -> str:
    """Return why a plan cannot be run on the graph, and what may be meant; empty if it can."""
    checked = check(steps, graph)
    return checked.sentence() if isinstance(checked, Problem) else ""


@step("plan", BRIEF, asks_model=True)
async def plan(
    question: str, linked: Linked, graph: TraversalGraph, planner: PlanTraversal, *, imported: bool
) -> Planned:
    """Plan how to walk the graph: by the planner's model if it is asked, otherwise as a look-up.

    `imported`: everything that the question names comes from imported triples.
    """
    return await helped(
        planner,
        lambda step: _planned(question, linked, graph, step, imported=imported),
        "the graph is looked up",
    )


async def _planned(
    question: str, linked: Linked, graph: TraversalGraph, planner: PlanTraversal, *, imported: bool
) -> Planned:
    first = plan_without_model(question, linked, graph)
    looked_up = imported and not isinstance(first, Problem) and first.operator == "follow"
    if not planner.asks(looked_up=looked_up, named=bool(linked.named), imported=imported):
        if isinstance(first, Problem):
            return Planned("sp*", "names nothing that is known", first)
        return Planned(_TYPES[first.operator], _REASONS[first.operator], check([first], graph))
    entities = [entity for name in linked.named for entity in name.entities]
    relations = list(dict.fromkeys([*graph.leaving(entities), *graph.vocabulary.by_count()]))
    names = list(dict.fromkeys(graph.names_of(entities)))
    ways = ways_around(entities, graph)
    reply = await planner.run(question, names, linked.unlinked, ways, relations)
    return Planned(reply.type, reply.reasoning, check(reply.steps, graph))


def ways_around(entities: Sequence[str], graph: TraversalGraph) -> list[str]:
    """Return the ways that lead on from entities, like `Ada -[taught]->` and `Ada <-[taught]-`."""
    ways = [
        f"{name} <-[{relation}]-" if inverse else f"{name} -[{relation}]->"
        for entity, name in zip(entities, graph.names_of(entities), strict=True)
        for relation, inverse in graph.facts.leaving([entity])
    ]
    return list(dict.fromkeys(ways))
