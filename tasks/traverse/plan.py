"""Checking a plan against a graph: names become entities, relations are those that exist, steps refer back."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prompts.traverse import MAX_HOPS, MAX_STEPS, Hop, Operator, PlanStep, TraversalPlan
from tasks.retrieve.facts import GraphFacts
from tasks.traverse.names import Spellings
from tasks.traverse.results import Problem
from tasks.traverse.vocabulary import Vocabulary

EVERYTHING = "*"
_REFERENCE = re.compile(r"\{(\d+)\}")
_NEEDS_HOPS: frozenset[Operator] = frozenset({"follow", "check"})
_NEEDS_TARGETS: frozenset[Operator] = frozenset({"connect", "check"})
_OF_STEPS: frozenset[Operator] = frozenset({"intersect", "difference"})


@dataclass(frozen=True)
class Graph:
    """What plans are checked against and run on: the relations, their names, and the names of entities."""

    facts: GraphFacts
    vocabulary: Vocabulary
    spellings: Spellings


@dataclass(frozen=True)
class Operand:
    """What a step works on: entities, or the results of earlier steps (from 1), or `everything` the graph has."""

    text: str
    entities: tuple[str, ...] = ()
    step: int | None = None
    everything: bool = False


@dataclass(frozen=True)
class CheckedStep:
    """A step of which everything exists."""

    operator: Operator
    sources: tuple[Operand, ...]
    targets: tuple[Operand, ...]
    hops: tuple[Hop, ...]

    @property
    def needs(self) -> frozenset[int]:
        """The steps that must have run before."""
        return frozenset(one.step for one in (*self.sources, *self.targets) if one.step is not None)


class _Unfit(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.reason)
        self.problem = problem


def check(plan: TraversalPlan, graph: Graph) -> tuple[CheckedStep, ...] | Problem:
    """The plan's steps with entities for names and the graph's own relations; a Problem where that cannot be."""
    if len(plan.steps) > MAX_STEPS:
        return Problem("bad plan", f"it has {len(plan.steps)} steps, more than {MAX_STEPS}.")
    try:
        return tuple(_checked(number, one, graph) for number, one in enumerate(plan.steps, 1))
    except _Unfit as unfit:
        return unfit.problem


def _checked(number: int, step: PlanStep, graph: Graph) -> CheckedStep:
    def unfit(reason: str) -> _Unfit:
        return _Unfit(Problem("bad plan", f"step {number} ({step.operator}) {reason}."))

    if step.operator in _NEEDS_HOPS and not step.hops:
        raise unfit("names no relation to follow")
    if step.operator in _NEEDS_TARGETS and not step.targets:
        raise unfit("names nothing to reach")
    if len(step.hops) > MAX_HOPS:
        raise unfit(f"has {len(step.hops)} hops, more than {MAX_HOPS}")
    sources, targets = (
        tuple(_operand(name, number, graph) for name in names) for names in (step.sources, step.targets)
    )
    if step.operator in _OF_STEPS and len(sources) < 2:
        raise unfit("needs two results")
    if any(one.everything for one in sources) and not (step.hops and step.operator in {"count", "max", "min", "sort"}):
        raise unfit("cannot start from everything")
    return CheckedStep(step.operator, sources, targets, tuple(_hop(hop, graph) for hop in step.hops))


def _operand(name: str, number: int, graph: Graph) -> Operand:
    if name == EVERYTHING:
        return Operand(name, everything=True)
    reference = _REFERENCE.fullmatch(name.strip())
    if reference is not None:
        if not 1 <= int(reference[1]) < number:
            raise _Unfit(Problem("bad plan", f"step {number} refers to {name}, which is no earlier step."))
        return Operand(name, step=int(reference[1]))
    entities = tuple(entity for entity in graph.spellings.resolve(name) if entity in graph.facts.entities)
    if not entities:
        raise _Unfit(unknown(name, graph))
    return Operand(name, entities)


def _hop(hop: Hop, graph: Graph) -> Hop:
    relation = graph.vocabulary.known(hop.relation)
    if relation is None:
        nearest = graph.vocabulary.nearest(hop.relation)
        raise _Unfit(Problem("bad plan", f'the graph has no relation "{hop.relation}".', nearest))
    return hop.model_copy(update={"relation": relation})


def unknown(name: str, graph: Graph) -> Problem:
    """That the graph has nothing of this name, with names spelt much alike."""
    near = [entity for entity in graph.spellings.nearest(name) if entity in graph.facts.entities]
    return Problem("not in the graph", f'nothing is called "{name}".', names_of(near, graph))


def names_of(entities: Sequence[str], graph: Graph) -> tuple[str, ...]:
    """The main names of entities."""
    return tuple(graph.facts.entities[entity].name for entity in entities)
