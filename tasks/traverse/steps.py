"""By which steps a question is answered from the graph, and what they find (PolyG, section 3).

At most one call to a model comes before the traversal: it gives type and plan. While walking none is made.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from prompts.engine.models import Models
from prompts.traverse import SURE, PlanTraversal, TraversalPlan
from storage.answer_records import QuestionType
from tasks.step import step
from tasks.traverse.draft import Draft, draft
from tasks.traverse.names import Linked
from tasks.traverse.plan import CheckedStep, Graph, check, names_of
from tasks.traverse.results import Outcome, Problem
from tasks.traverse.run import TraversalGraph, run_plan

_ASKS_IF = re.compile(
    r"^\W*(?:did|does|do|was|were|is|are|has|have|had)\b(?!.*\bor\b.*\bor\b)|是不是|是否|吗\W*$", re.I
)


@dataclass(frozen=True)
class Planned:
    """A question with its type and the steps that can be run on the graph, or why there are none."""

    question: str
    type: QuestionType
    confidence: float
    reason: str
    steps: tuple[CheckedStep, ...] | Problem

    @property
    def asks_if(self) -> bool:
        """Whether yes or no is asked."""
        return _ASKS_IF.search(self.question) is not None


def planner_of(models: Models, graph: Graph) -> PlanTraversal:
    """The planning step with this graph's names and relations to check plans against."""
    return PlanTraversal(models, partial(wrong_with, graph=graph))


def wrong_with(plan: TraversalPlan, graph: Graph) -> str:
    """Why a plan cannot be run on the graph, with what may have been meant; empty where it can."""
    checked = check(plan, graph)
    return checked.sentence() if isinstance(checked, Problem) else ""


@step("plan")
async def plan(question: str, linked: Linked, graph: Graph, planner: PlanTraversal, *, imported: bool) -> Planned:
    """The type and the plan, by the planner's model where it is asked, else by the question's words.

    `imported`: the graph has all that the question names from imported triples.
    """
    by_words = _by_words(question, linked, graph, planner)
    drafted = by_words.confidence >= SURE and not isinstance(by_words.steps, Problem)
    if not planner.asks(drafted=drafted, named=bool(linked.named), imported=imported):
        return by_words
    here = [entity for name in linked.named for entity in name.entities]
    near = dict.fromkeys(relation for relation, _ in graph.facts.leaving(here))
    relations = list(dict.fromkeys([*near, *graph.vocabulary.commonest(len(graph.vocabulary.counts))]))
    names = list(dict.fromkeys(names_of(here, graph)))
    made = await planner.run(question, names, linked.unlinked, ways_around(here, graph), relations)
    return Planned(question, made.type, 1.0, made.reasoning, check(TraversalPlan(steps=made.steps), graph))


def _by_words(question: str, linked: Linked, graph: Graph, planner: PlanTraversal) -> Planned:
    typed = planner.typed_by_words(question, _names_for_type(question, linked, planner))
    drafted: Draft = draft(question, typed.type, linked.named, linked.unlinked, graph)
    steps = check(drafted, graph) if isinstance(drafted, TraversalPlan) else drafted
    return Planned(question, typed.type, typed.confidence, typed.reason, steps)


def _names_for_type(question: str, linked: Linked, planner: PlanTraversal) -> list[str]:
    """The names by which a question is typed.

    Ordinary words, and names that the graph lacks, count only where they make it one about two things.
    """
    sure = [name.text for name in linked.named if not name.doubtful]
    every = [name.text for name in linked.named]
    if len(sure) > 1:
        return sure
    for names in (every, [*sure, *linked.unlinked]):
        typed = planner.typed_by_words(question, names)
        if len(names) > 1 and (typed.type == "s*o" or (typed.type == "spo" and _ASKS_IF.search(question))):
            return names
    return sure or every


def ways_around(entities: Sequence[str], graph: Graph) -> list[str]:
    """The relations that lead on from entities, in their direction: `Ada -[taught]->`, `Ada <-[taught]-`."""
    found = [
        f"{name} <-[{relation}]-" if inverse else f"{name} -[{relation}]->"
        for entity, name in zip(entities, names_of(entities, graph), strict=True)
        for relation, inverse in graph.facts.leaving([entity])
    ]
    return list(dict.fromkeys(found))


@step("traverse")
async def traverse(steps: Sequence[CheckedStep], ground: TraversalGraph) -> list[Outcome]:
    """What each step finds; the last is the answer."""
    return await run_plan(steps, ground)
