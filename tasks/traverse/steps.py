"""By which steps is a question answered from the graph, and what do they find? (PolyG, section 3)

At most one call to a model comes before the traversal: for the type where the rules are unsure, else for the plan where
the question's words give none. While walking none is made.
"""

from collections.abc import Sequence

from prompts.traverse import PlanTraversal, TraversalPlan
from tasks.classify import Question
from tasks.step import step
from tasks.traverse.draft import draft
from tasks.traverse.plan import CheckedStep, Graph, check, names_of
from tasks.traverse.results import Outcome, Problem
from tasks.traverse.run import Ground, run_plan

MOST_RELATIONS = 60  # that a planning model reads


@step("plan")
async def plan(question: Question, graph: Graph, planner: PlanTraversal) -> tuple[CheckedStep, ...] | Problem:
    """Steps that can be run on this graph, or why there are none."""
    drafted = draft(question.text, question.typed.type, question.named, question.unlinked, graph)
    if isinstance(drafted, TraversalPlan):
        return check(drafted, graph)
    if drafted.kind != "bad plan" or planner.is_offline or question.by_model:
        return drafted
    here = [entity for name in question.named for entity in name.entities]
    near = dict.fromkeys(relation for relation, _ in graph.facts.leaving(here))
    relations = list(dict.fromkeys([*near, *graph.vocabulary.commonest(MOST_RELATIONS)]))[:MOST_RELATIONS]
    names = list(dict.fromkeys(names_of(here, graph)))
    return check(await planner.run(question.text, question.typed.type, names, relations), graph)


@step("traverse")
async def traverse(steps: Sequence[CheckedStep], ground: Ground) -> list[Outcome]:
    """What each step finds; the last is the answer."""
    return await run_plan(steps, ground)
