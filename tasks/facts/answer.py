"""Answers from typed facts: a model plans, and SQL computes over the things of a kind.

Nothing that a model writes is executed: a plan names operations and columns that exist. The result
cites what states the deciding facts.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from prompts.engine.helper import helped
from prompts.plan_facts import EVER, FactPlan, PlanFacts
from prompts.plan_table import TablePlan
from prompts.schema import Schema
from prompts.text.words import fold
from storage.answer_records import TableResult
from storage.facts import DatedFact, Thing
from storage.records import Chunk
from tasks.answer import Note
from tasks.citations import Source, packed, source_of
from tasks.facts.typed_values import day_of, last_day, years_between
from tasks.facts.views import FactCell, FactRelation, FactViews, Other
from tasks.retrying import BRIEF
from tasks.step import step
from tasks.tables.answer import TableAnswer, table_result
from tasks.tables.run_plan import DoesNotFit, PlanOutcome, run
from tasks.traverse.entity_names import NamedEntity

MOST_CITED = 20  # statements behind a result
MOST_OTHERS = 5  # things with several values that a note tells


@dataclass(frozen=True)
class TypedGraph:
    """The things and typed facts that a question may look into.

    `facts_at` returns those that hold on a day (ISO; None: at any time), `aliases` are pairs of a
    thing and another name of it, `named` finds the things that a question names.
    """

    schema: Schema
    things: Sequence[Thing]
    facts_at: Callable[[str | None], Sequence[DatedFact]]
    aliases: Sequence[tuple[str, str]]
    chunk_of: Callable[[str], Chunk]
    named: Callable[[str], Sequence[NamedEntity]]

    def views(self, day: str | None) -> FactViews:
        """Return the tables of what holds on a day."""
        return FactViews(self.schema, self.things, self.facts_at(day), self.aliases, self.chunk_of)


@dataclass(frozen=True)
class FactAnswer(TableAnswer):
    """The result of a plan over typed facts, the statements behind it, what contradicts it, and the
    things that the question names and the plan leaves out.
    """

    others: Sequence[Other] = ()
    left_out: Sequence[str] = ()

    @property
    def problem(self) -> str:
        """Why this does not answer the question; empty where it may."""
        if not self.is_computed:
            return self.result.plan
        return f"{self.result.plan} leaves out {', '.join(self.left_out)}" if self.left_out else ""

    @property
    def supports(self) -> bool:
        """Whether something is cited for it, and nothing left out that the question names."""
        return super().supports and bool(self.sources) and not self.left_out

    @property
    def notes(self) -> list[Note]:
        """The computed result, its rows, and the values that were not used."""
        notes = super().notes
        if self.left_out:
            notes.append(
                Note("Named in the question, not in the computation", ", ".join(self.left_out))
            )
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
    shown, most = views.views(), planner.policy.limits.structure

    @lru_cache(maxsize=2)  # the model's plan is computed when it is checked, and then taken
    def computed(plan: TablePlan) -> FactAnswer:
        try:
            answered = _computed(plan, views, graph, today, graph.named(question), most)
        except DoesNotFit as problem:
            return FactAnswer(TableResult(plan=f"does not fit: {problem}"), ())
        return replace(answered, trusted=planner.policy.profile == "large")

    def asked(step: PlanFacts) -> Awaitable[TablePlan | None]:
        return step.run(question, shown, lambda plan: computed(plan).problem)

    plan = await helped(planner, asked, "nothing is computed") if shown else None
    if plan is None:
        return FactAnswer(TableResult(), ())
    return await asyncio.to_thread(computed, plan)


def _computed(
    plan: TablePlan,
    shown: FactViews,
    graph: TypedGraph,
    today: str,
    named: Sequence[NamedEntity],
    most: int,
) -> FactAnswer:
    """Run a plan over what holds at its time. Raises DoesNotFit."""
    as_of = plan.as_of.strip() if isinstance(plan, FactPlan) else ""
    if as_of.lower() == EVER:
        day, time = None, ", at any time"
    elif as_of:
        if not (dated := day_of(as_of)):
            raise DoesNotFit(f"{as_of!r} is no date")
        day, time = last_day(dated), f", as of {dated}"
    else:
        day, time = today, ""
    views = graph.views(day)
    plan, relation = views.table_for(plan, shown.kind_for(plan))
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
    left_out = _left_out(named, outcome, result, views)
    return FactAnswer(timed, sources, others=others, left_out=left_out)


def _left_out(
    named: Sequence[NamedEntity], outcome: PlanOutcome, result: TableResult, views: FactViews
) -> list[str]:
    """Return the things that a question names and a plan does not: neither a condition nor, for
    an extreme, the result is about them.
    """
    said = [text for one in outcome.conditions for text, _ in one.values if text]
    if outcome.plan.operation in {"max", "min"}:
        said += map(fold, result.values)
    left = []
    for one in named:
        labels = [views.labels[name] for name in one.entities if name in views.labels]
        names = [fold(name) for name in (one.text, *labels)]
        if labels and not any(name in text or text in name for name in names for text in said):
            left.append(one.text)
    return left


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
