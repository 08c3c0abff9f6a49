"""Plans of a traversal: checked against a graph, then run step by step (PolyG's query engine).

A checked plan has only names and relations that exist. The outcome of a step is what it found, or
why it found nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, zip_longest
from typing import Literal

from prompts.traverse import Hop, Operator, PlanStep
from storage.graph import Direction, Measured, TraversalReader
from storage.graph_records import Relation
from tasks.retrieve.facts import GraphFacts
from tasks.step import step
from tasks.traverse.entity_names import Spellings
from tasks.traverse.meta_paths import Chain, Vocabulary, chains_along

EVERYTHING = "*"
K = 3  # shortest paths
WIDE = 6  # results of a step from which further steps describe or connect things
MOST_AROUND = 40  # relations of one entity
MOST_COMPARED = 4  # with at most so many things, a comparison shows all of them
_REFERENCE = re.compile(r"\{(\d+)\}")
ProblemKind = Literal["no path", "not in the graph", "bad plan"]


@dataclass(frozen=True)
class StepResult:
    """The entities (ids) or plain values that a step found, and the chains that show them.

    If there are `values`, they are the answer; otherwise the entities are.
    """

    entities: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    chains: tuple[Chain, ...] = ()


@dataclass(frozen=True)
class Problem:
    """Why there is no answer: no path, an unknown name, or a plan that cannot be run.

    `reason` is a sentence for the reader; `nearest` are names or relations that may be meant.
    """

    kind: ProblemKind
    reason: str
    nearest: tuple[str, ...] = ()

    def sentence(self) -> str:
        """Return the reason and what may be meant."""
        meant = f" Nearest: {', '.join(self.nearest)}." if self.nearest else ""
        return f"{self.kind.capitalize()}: {self.reason}{meant}"


Outcome = StepResult | Problem


@dataclass(frozen=True)
class TraversalGraph:
    """The graph on which plans are checked and run; `tables` ranks and counts in SQL."""

    facts: GraphFacts
    vocabulary: Vocabulary
    spellings: Spellings
    tables: TraversalReader

    def names_of(self, entities: Sequence[str]) -> tuple[str, ...]:
        return tuple(self.facts.entities[entity].name for entity in entities)

    def leaving(self, entities: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(relation for relation, _ in self.facts.leaving(entities)))

    def unknown(self, name: str) -> Problem:
        near = [entity for entity in self.spellings.nearest(name) if entity in self.facts.entities]
        return Problem("not in the graph", f'nothing is called "{name}".', self.names_of(near))


# --- checking -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Operand:
    """What a step works on: entities, or the result of an earlier step (counted from 1)."""

    text: str
    entities: tuple[str, ...] = ()
    step: int | None = None


@dataclass(frozen=True)
class CheckedStep:
    """A step whose names and relations exist in the graph."""

    operator: Operator
    sources: tuple[Operand, ...]
    targets: tuple[Operand, ...]
    hops: tuple[Hop, ...]


class UnfitPlan(Exception):
    """A plan asks for what the graph does not have."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.reason)
        self.problem = problem


def check(steps: Sequence[PlanStep], graph: TraversalGraph) -> tuple[CheckedStep, ...] | Problem:
    """Replace the names of a plan by entities and by the graph's own relations, or return why this
    cannot be done.
    """
    try:
        return tuple(_checked(number, step, graph) for number, step in enumerate(steps, 1))
    except UnfitPlan as unfit:
        return unfit.problem


def _checked(number: int, step: PlanStep, graph: TraversalGraph) -> CheckedStep:
    operator = step.operator
    needs_start = not step.hops or operator not in {"count", "max", "min", "sort"}
    wrong = {
        "names no relation to follow": operator in {"follow", "check"} and not step.hops,
        "names nothing to reach": operator in {"connect", "check"} and not step.targets,
        "needs two results": operator in {"intersect", "difference"} and len(step.sources) < 2,
        "cannot start from everything": EVERYTHING in step.sources and needs_start,
    }
    for reason, is_wrong in wrong.items():
        if is_wrong:
            raise UnfitPlan(Problem("bad plan", f"step {number} ({operator}) {reason}."))
    hops = tuple(_hop(hop, graph) for hop in step.hops)
    sources, targets = (
        tuple(_operand(name, number, hops, graph) for name in names)
        for names in (step.sources, step.targets)
    )
    return CheckedStep(operator, sources, targets, hops)


def _operand(name: str, number: int, hops: Sequence[Hop], graph: TraversalGraph) -> Operand:
    """Find what a name of a plan means; EVERYTHING is all that the first hop leads on from."""
    if name == EVERYTHING and hops:
        return Operand(name, graph.facts.starting(hops[0].relation, hops[0].inverse))
    reference = _REFERENCE.fullmatch(name.strip())
    if reference is not None:
        if not 1 <= int(reference[1]) < number:
            reason = f"step {number} refers to {name}, which is no earlier step."
            raise UnfitPlan(Problem("bad plan", reason))
        return Operand(name, step=int(reference[1]))
    resolved = graph.spellings.resolve(name)
    entities = tuple(entity for entity in resolved if entity in graph.facts.entities)
    if not entities:
        raise UnfitPlan(graph.unknown(name))
    return Operand(name, entities)


def _hop(hop: Hop, graph: TraversalGraph) -> Hop:
    relation = graph.vocabulary.known(hop.relation)
    if relation is None:
        reason = f'the graph has no relation "{hop.relation}".'
        raise UnfitPlan(Problem("bad plan", reason, graph.vocabulary.nearest(hop.relation)))
    return hop.model_copy(update={"relation": relation})


# --- running --------------------------------------------------------------------------------------


@step("traverse")
async def traverse(steps: Sequence[CheckedStep], graph: TraversalGraph) -> list[Outcome]:
    """Walk the graph: return the outcome of each step, of which the last is the answer.

    A step that needs the result of a failed step has the same Problem. A difference only needs its
    first operand.
    """
    walk = _Walk(graph)
    for checked in steps:
        walk.outcomes.append(walk.problem_before(checked) or walk.run(checked))
    return walk.outcomes


class _Walk:
    def __init__(self, graph: TraversalGraph) -> None:
        self.graph, self.facts, self.outcomes = graph, graph.facts, list[Outcome]()

    def problem_before(self, step: CheckedStep) -> Problem | None:
        needed = (
            step.sources[:1] if step.operator == "difference" else (*step.sources, *step.targets)
        )
        outcomes = (
            self.outcomes[operand.step - 1] for operand in needed if operand.step is not None
        )
        return next((outcome for outcome in outcomes if isinstance(outcome, Problem)), None)

    def run(self, step: CheckedStep) -> Outcome:
        sources = self.entities(step.sources)
        match step.operator:
            case "intersect" | "difference":
                return self.combined(step)
            case "max" | "min" | "sort":
                return ranked(self.graph, sources, step.hops, step.operator)
            case "neighbours":
                return self.described(sources[:WIDE])
            case "connect" | "check":
                return self.tied(step, sources[:WIDE])
        outcome = self.followed(step, sources) if step.hops else self.result(step.sources[0])
        if step.operator == "count" and isinstance(outcome, StepResult):
            return StepResult(values=(str(len(set(outcome.entities))),), chains=outcome.chains)
        return outcome

    def result(self, operand: Operand) -> StepResult:
        outcome = (
            self.outcomes[operand.step - 1]
            if operand.step is not None
            else StepResult(operand.entities)
        )
        return outcome if isinstance(outcome, StepResult) else StepResult()

    def entities(self, operands: Sequence[Operand]) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(
                entity for operand in operands for entity in self.result(operand).entities
            )
        )

    def combined(self, step: CheckedStep) -> Outcome:
        """Intersect all results, or subtract the others from the first."""
        results = [self.result(operand) for operand in step.sources]
        first, *others = (set(result.entities) for result in results)
        shared = step.operator == "intersect"
        picked = first.intersection(*others) if shared else first.difference(*others)
        if not picked:
            reason = "have nothing in common" if shared else "leave nothing over"
            return Problem("no path", f"the results {reason}.")
        chains = [
            chain
            for result in (results if shared else results[:1])
            for chain in result.chains
            if chain and picked & {chain[-1].source, chain[-1].target}
        ]
        return StepResult(tuple(sorted(picked)), chains=tuple(chains))

    def described(self, sources: Sequence[str]) -> Outcome:
        most = max(1, MOST_AROUND // max(1, len(sources)))
        relations = {
            relation.id: relation
            for source in sources
            for relation in around(self.facts, source, most)
        }
        if not relations:
            return Problem("no path", "nothing is stated of it but its name.")
        return StepResult(
            tuple(sources), chains=tuple((relation,) for relation in relations.values())
        )

    def followed(self, step: CheckedStep, sources: Sequence[str]) -> Outcome:
        chains = chains_along(self.facts, sources, step.hops)
        if chains:
            return StepResult(tuple(chains), chains=tuple(chains.values()))
        stuck, *rest = step.hops
        while further := tuple(chains_along(self.facts, sources, [stuck])):
            sources, (stuck, *rest) = further, rest
        names = self.graph.names_of(sources)
        of = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        relation = f"{'inverse ' if stuck.inverse else ''}{stuck.relation}"
        reason = f"the graph states no `{relation}` of {of}."
        return Problem("no path", reason, tuple(self.graph.leaving(sources)[:WIDE]))

    def tied(self, step: CheckedStep, sources: Sequence[str]) -> Outcome:
        """Connect the sources with the targets, or check that the hops lead to a target."""
        goals = [self.entities([target])[:WIDE] for target in step.targets]
        targets = tuple(dict.fromkeys(end for goal in goals for end in goal))
        if step.operator == "check":
            reached = chains_along(self.facts, sources, step.hops)
            chains = [reached[target] for target in targets if target in reached]
        else:
            relations = frozenset(hop.relation for hop in step.hops) or None
            paths = [
                shortest_paths(self.facts, sources, goal, relations=relations) for goal in goals
            ]
            # A goal that cannot be reached is the problem: paths to the others are no answer.
            targets = next(
                (goal for goal, own in zip(goals, paths, strict=True) if not own), targets
            )
            # The best path to each goal comes before the second best to any.
            mixed = [path for rank in zip_longest(*paths) for path in rank if path]
            chains = mixed[: max(K, len(paths))] if all(paths) else []
        if chains:
            ends = {end for chain in chains for end in (chain[-1].source, chain[-1].target)}
            return StepResult(tuple(end for end in targets if end in ends), chains=tuple(chains))
        source_names, target_names = (
            ", ".join(self.graph.names_of(ends)[:3]) for ends in (sources, targets)
        )
        way = f" by {', '.join(f'`{hop.relation}`' for hop in step.hops)}" if step.hops else ""
        return Problem(
            "no path", f"no chain of relations leads from {source_names} to {target_names}{way}."
        )


def ranked(
    graph: TraversalGraph,
    sources: Sequence[str],
    hops: Sequence[Hop],
    operator: Literal["max", "min", "sort"],
) -> Outcome:
    """Rank the sources by the number or date that the hops reach, or by how many things they reach.

    `max` and `min` give the best and its equals, `sort` all, the highest first.
    """
    direction: Direction = "min" if operator == "min" else "max"
    chains: dict[str, list[Chain]] = {}
    pairs: list[tuple[str, str]] = []
    for source in sources:
        reached = chains_along(graph.facts, [source], hops)
        chains[source] = list(reached.values())
        pairs += [(source, name) for name in graph.names_of(list(reached))]
    if not pairs:
        way = ", ".join(hop.relation for hop in hops) or "nothing"
        return Problem("no path", f"from none of {len(sources)} things does `{way}` lead on.")
    measured: Sequence[Measured] = graph.tables.ranked(pairs, direction)
    if 2 * len({row.item for row in measured}) <= len({item for item, _ in pairs}):
        measured = graph.tables.counted(pairs, direction)
    best = [row.item for row in measured if operator == "sort" or row.number == measured[0].number]
    shown = dict.fromkeys([*best, *chains] if len(chains) <= MOST_COMPARED else best)
    return StepResult(
        entities=tuple(best), chains=tuple(chain for item in shown for chain in chains[item])
    )


def around(facts: GraphFacts, source: str, most: int = MOST_AROUND) -> list[Relation]:
    """Return up to `most` relations of an entity, those to the best connected things first."""

    def rank(relation: Relation) -> tuple[int, float, str]:
        far = relation.target if relation.source == source else relation.source
        return -facts.entities[far].degree, -relation.weight, relation.id

    return sorted(facts.of(source), key=rank)[:most]


def shortest_paths(
    facts: GraphFacts,
    sources: Sequence[str],
    targets: Sequence[str],
    k: int = K,
    relations: frozenset[str] | None = None,
) -> list[Chain]:
    """Return up to k chains from any source to any target, the cheapest first.

    Each goes through other entities, and only along `relations` if they are given. A step through
    a hub costs more, so that entities which everything touches come last.
    """
    ways = facts.ways if relations is None else facts.ways_along(relations)
    chains = sorted(
        chain
        for source in sources
        for target in targets
        for chain in ways.cheapest(source, target, k)
    )
    unique = dict.fromkeys(tuple(nodes) for _, nodes in chains)
    return [
        tuple(_heaviest(facts, *pair, relations) for pair in pairwise(nodes))
        for nodes in islice(unique, k)
    ]


def _heaviest(
    facts: GraphFacts, entity: str, neighbour: str, relations: frozenset[str] | None
) -> Relation:
    between = (
        relation for relation in facts.of(entity) if neighbour in (relation.source, relation.target)
    )
    return next(
        relation for relation in between if relations is None or relation.predicate in relations
    )
