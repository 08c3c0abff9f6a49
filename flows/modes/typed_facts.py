"""Typed facts: a question answered by a plan that SQL computes over the graph's typed facts (KAG,
FalkorDB).

plan → facts that hold at its time → compute → answer
"""

from dataclasses import replace

from flows.modes.query_mode import QueryMode
from flows.question import ModeResult, Resources
from prompts.plan_facts import PlanFacts
from storage.answer_records import RouteDecision
from storage.errors import UsageError
from storage.records import utc_now
from tasks.answer import NOTHING_FOUND, AnswerContext, StatedAnswer
from tasks.facts.answer import FactAnswer, answer_from_facts


async def compute(resources: Resources) -> ModeResult:
    """Compute the answer from typed facts; where a model writes, it reads the result as a note.

    Raises UsageError for an index without a schema.
    """
    question, search = resources.question, resources.search
    if not resources.graph.schema:
        raise UsageError(
            "The mode facts needs typed facts, and this index was made without a schema.",
            "Write a table [schema] into trellis.toml (docs/howto.md), index again, or ask in "
            "another mode.",
        )
    planner = PlanFacts(resources.models)
    typed = resources.graph.typed(question.only)
    answered = await answer_from_facts(question.text, typed, planner, utc_now()[:10])
    if not answered.is_computed:
        return _refused(resources, planner, answered)
    sources = search.bounded(answered.sources)
    names = dict.fromkeys(name for source in sources for name, _ in source.chunks)
    return ModeResult(
        context=AnswerContext(sources, answered.notes),
        passages=[search.passage(name) for name in names],
        stated=replace(answered, sources=sources).stated,
        route=RouteDecision(
            type="table", confidence=1.0, margin=1.0, reason="computed from typed facts"
        ),
        structure="table",
        subquestions=answered.subquestions,
    )


def _refused(resources: Resources, planner: PlanFacts, answered: FactAnswer) -> ModeResult:
    """Return a result that says why nothing is computed."""
    reason = "the model made no plan: the typed facts do not answer it"
    if planner.is_offline:
        reason = f"no model plans (role {planner.role})"
    elif answered.result.plan:
        reason = f"the plan {answered.result.plan}"
    nothing = NOTHING_FOUND[resources.question.parsed.chinese]
    return ModeResult(
        context=AnswerContext([]),
        stated=StatedAnswer(f"{nothing} ({reason})", fallback="abstained"),
        reason=reason,
        structure="table",
        subquestions=answered.subquestions,
    )


FACTS = QueryMode("facts", compute)
