"""Answers from typed facts: a model plans, and SQL computes over the things of a kind.

Nothing that a model writes is executed: a plan names operations and columns that exist. The result
cites what states the deciding facts.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from prompts.engine.helper import helped
from prompts.plan_facts import EVER, FactPlan, PlanFacts
from prompts.plan_table import TablePlan
from prompts.schema import Schema
from storage.answer_records import TableResult
from storage.facts import DatedFact, Thing
from storage.records import Chunk
from tasks.answer import Note, StatedAnswer
from tasks.citations import Source, packed, source_of
from tasks.facts.typed_values import day_of, last_day, years_between
from tasks.facts.views import FactCell, FactRelation, FactViews, Other
from tasks.retrying import BRIEF
from tasks.step import step
from tasks.tables.answer import TableAnswer, table_result
from tasks.tables.run_plan import DoesNotFit, PlanOutcome, run

MOST_CITED = 20  # statements behind a result
MOST_OTHERS = 5  # things with several values that a note tells


@dataclass(frozen=True)
class TypedGraph:
    """The things and typed facts that a question may look into.

    `facts_at` returns those that hold on a day (ISO; None: at any time), `aliases` are pairs of a
    thing and another name of it.
    """

    schema: Schema
    things: Sequence[Thing]
    facts_at: Callable[[str | None], Sequence[DatedFact]]
    aliases: Sequence[tuple[str, str]]
    chunk_of: Callable[[str], Chunk]

    def views(self, day: str | None) -> FactViews:
        """Return the tables of what holds on a day."""
        return FactViews(self.schema, self.things, self.facts_at(day), self.aliases, self.chunk_of)


@dataclass(frozen=True)
class FactAnswer(TableAnswer):
    """The result of a plan over typed facts, the statements behind it, and what contradicts it."""

    others: Sequence[Other] = ()

    @property
    def stated(self) -> StatedAnswer:
        """The answer without a model; a result that nothing can be cited for is not supported."""
        return replace(super().stated, fallback="none" if self.sources else "partial")

    @property
    def notes(self) -> list[Note]:
        """The computed result, its rows, and the values that were not used."""
        notes = super().notes
        told = [
            f"{one.thing}: {one.type} is stated as {' and '.join(one.values)}; the first is used"
            for one in self.others[:MOST_OTHERS]
        ]
        return (
            [*notes, Note("Facts that contradict each other", "\n".join(told))] if told else notes
        )


@step("facts", BRIEF, asks_model=True)
async def answer_from_facts(
    question: str, graph: TypedGraph, planner: PlanFacts, today: str
) -> FactAnswer:
    """Compute the answer from typed facts; it is empty if no model plans, or it makes no plan.

    `today` is the day (ISO) on which facts must hold where the question names no time. If the plan
    does not fit, the result has no cells, and its `plan` says why.
    """
    views = await asyncio.to_thread(graph.views, None)
    shown = views.views()
    plan = None
    if shown:
        plan = await helped(planner, lambda step: step.run(question, shown), "nothing is computed")
    if plan is None:
        return FactAnswer(TableResult(), ())
    most = planner.policy.limits.structure
    try:
        answered = await asyncio.to_thread(_computed, plan, views, graph, today, most)
    except DoesNotFit as problem:
        return FactAnswer(TableResult(plan=f"does not fit: {problem}"), ())
    return answered


def _computed(
    plan: TablePlan, shown: FactViews, graph: TypedGraph, today: str, most: int
) -> FactAnswer:
    """Run a plan over what holds at its time. Raises DoesNotFit."""
    as_of = plan.as_of.strip() if isinstance(plan, FactPlan) else ""
    if as_of.lower() == EVER:
        day, time = None, ", at any time"
    elif as_of:
        if not (named := day_of(as_of)):
            raise DoesNotFit(f"{as_of!r} is no date")
        day, time = last_day(named), f", as of {named}"
    else:
        day, time = today, ""
    if plan.table > len(shown.shown_kinds) or plan.table < 1:
        raise DoesNotFit(f"there is no table {plan.table} (there are {len(shown.shown_kinds)})")
    views = graph.views(day)
    kind = shown.shown_kinds[plan.table - 1]
    plan, relation = views.table_for(plan, kind)
    outcome = _with_years(run(plan, [relation]), relation)
    result = table_result(outcome, most)
    used = {relation.things[row] for row in outcome.rows}
    others = [one for (thing, _), one in views.others.items() if thing in used]
    sources = packed(_sources(outcome, graph.chunk_of), most)
    made = "".join(
        f", {one.name} = {one.first} {one.operation.replace('_', ' ')} {one.second}"
        for one in (plan.computed if isinstance(plan, FactPlan) else ())
        if one.name in relation.columns
    )
    timed = result.model_copy(update={"plan": f"{result.plan}{made}{time}"})
    return FactAnswer(timed, sources, others)


def _with_years(outcome: PlanOutcome, relation: FactRelation) -> PlanOutcome:
    """Return a difference of two dates in whole years. Raises DoesNotFit for a sum of dates."""
    cells = [
        cell
        for row in outcome.rows
        for column in outcome.columns
        if isinstance(cell := relation.rows[row][column], FactCell) and cell.day
    ]
    if not cells or outcome.number is None or outcome.plan.operation == "count":
        return outcome
    if outcome.plan.operation != "difference" or len(cells) != 2:
        raise DoesNotFit(f"there is no {outcome.plan.operation} of dates")
    return replace(outcome, number=float(years_between(cells[0].day, cells[1].day)))


def _sources(outcome: PlanOutcome, chunk_of: Callable[[str], Chunk]) -> list[Source]:
    """Return what states the deciding facts, in the order of the result: those of its columns and
    conditions with the relations that lead to them, or else the places that name the things.
    """
    label = outcome.relation.label
    named = [*outcome.columns, *(condition.column for condition in outcome.conditions)]
    if outcome.by is not None:
        named.append(outcome.by)
    deciding = [column for column in dict.fromkeys(named) if column != label] or [label]
    cells = [
        cell
        for row in outcome.rows
        for column in deciding
        if isinstance(cell := outcome.relation.rows[row][column], FactCell)
    ]
    places = dict.fromkeys(
        (one.chunk, *one.stated) for cell in cells for one in cell.stating if one.document
    )
    return [source_of(chunk_of(name), start, end) for name, start, end in list(places)[:MOST_CITED]]
