"""What does a checked plan find? Its steps run in order; those that wait for nothing run side by side."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from storage.graph import TraversalReader
from storage.records import Relation
from tasks.retrieve.facts import GraphFacts
from tasks.traverse.aggregate import counted, left_over, ranked, shared
from tasks.traverse.bfs import MOST, around
from tasks.traverse.constrained import by_relations, leading
from tasks.traverse.meta_path import chains_of, follow
from tasks.traverse.paths import K, shortest_paths
from tasks.traverse.plan import CheckedStep, Graph, Operand, names_of
from tasks.traverse.results import Found, Outcome, Problem

WIDE = 6  # results of a step that are described or connected further


@dataclass(frozen=True)
class Ground:
    """What plans run on."""

    graph: Graph
    tables: TraversalReader

    @property
    def facts(self) -> GraphFacts:
        return self.graph.facts


async def run_plan(steps: Sequence[CheckedStep], ground: Ground) -> list[Outcome]:
    """What each step found, in their order; the last one is the answer.

    A step that needs one without a result has that one's Problem.
    """
    done: dict[int, Outcome] = {}
    while len(done) < len(steps):
        ready = [n for n, one in enumerate(steps, 1) if n not in done and all(need in done for need in one.needs)]
        if len(ready) == 1:
            outcomes = [run_step(steps[ready[0] - 1], done, ground)]
        else:
            outcomes = await asyncio.gather(*(asyncio.to_thread(run_step, steps[n - 1], done, ground) for n in ready))
        done |= dict(zip(ready, outcomes, strict=True))
    return [done[number] for number in range(1, len(steps) + 1)]


def run_step(step: CheckedStep, done: Mapping[int, Outcome], ground: Ground) -> Outcome:
    """What one step finds."""
    missing = next((done[n] for n in sorted(step.needs) if isinstance(done[n], Problem)), None)
    if missing is not None and not (step.operator == "difference" and step.sources[0].step not in _failed(done)):
        return missing
    if step.operator in {"intersect", "difference"} or (step.operator == "count" and not step.hops):
        return _of_results(step, [_result(one, done) for one in step.sources], ground.tables)
    return _walked(step, done, ground)


def _of_results(step: CheckedStep, results: Sequence[Found], tables: TraversalReader) -> Outcome:
    if step.operator == "count":
        return counted(tables, results[0])
    found = shared(tables, results) if step.operator == "intersect" else left_over(tables, results)
    none = "have nothing in common" if step.operator == "intersect" else "leave nothing over"
    return found if found.entities else Problem("no path", f"the results {none}.")


def _walked(step: CheckedStep, done: Mapping[int, Outcome], ground: Ground) -> Outcome:
    facts = ground.facts
    sources = _entities(step.sources, done, step, facts)
    match step.operator:
        case "max" | "min" | "sort":
            return ranked(ground.tables, facts, sources, step.hops, step.operator)
        case "neighbours":
            return _described(sources, facts)
        case "connect" | "check":
            return _tied(step, sources, done, ground)
        case "count":
            found = _followed(step, sources, ground)
            return counted(ground.tables, found) if isinstance(found, Found) else found
        case _:
            return _followed(step, sources, ground)


def _failed(done: Mapping[int, Outcome]) -> set[int]:
    return {number for number, outcome in done.items() if isinstance(outcome, Problem)}


def _result(operand: Operand, done: Mapping[int, Outcome]) -> Found:
    if operand.step is None:
        return Found(entities=operand.entities)
    outcome = done[operand.step]
    return outcome if isinstance(outcome, Found) else Found()


def _entities(
    operands: Sequence[Operand], done: Mapping[int, Outcome], step: CheckedStep, facts: GraphFacts
) -> tuple[str, ...]:
    """The entities of operands; `everything` is what the step's first hop leads on from."""
    if any(one.everything for one in operands):
        hop = step.hops[0]
        relations = (one for one in facts.relations.values() if one.predicate == hop.relation)
        return tuple(dict.fromkeys(one.target if hop.inverse else one.source for one in relations))
    return tuple(dict.fromkeys(entity for one in operands for entity in _result(one, done).entities))


def _described(sources: Sequence[str], facts: GraphFacts) -> Outcome:
    chosen = sources[:WIDE]
    share = max(1, MOST // max(1, len(chosen)))
    relations: dict[str, Relation] = {one.id: one for source in chosen for one in around(facts, [source], most=share)}
    if not relations:
        return Problem("no path", "nothing is stated of it but its name.")
    return Found(entities=tuple(chosen), chains=tuple((one,) for one in relations.values()))


def _followed(step: CheckedStep, sources: Sequence[str], ground: Ground) -> Outcome:
    walked = follow(ground.facts, sources, step.hops)
    chains = chains_of(walked, sources, step.hops)
    if chains:
        return Found(entities=tuple(chains), chains=tuple(chains.values()))
    stuck = walked[-1].hop
    here = walked[-2].ends if len(walked) > 1 else tuple(sources)
    return no_such_way(here, f"{'inverse ' if stuck.inverse else ''}{stuck.relation}", ground.graph)


def no_such_way(here: Sequence[str], relation: str, graph: Graph) -> Problem:
    """That a relation leads on from none of some entities, with those that do."""
    ways = dict.fromkeys(name for name, _ in graph.facts.leaving(here))
    shown = names_of(here, graph)
    of = ", ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")
    return Problem("no path", f"the graph states no `{relation}` of {of}.", tuple(ways)[:WIDE])


def _tied(step: CheckedStep, sources: Sequence[str], done: Mapping[int, Outcome], ground: Ground) -> Outcome:
    facts = ground.facts
    sources, targets = sources[:WIDE], _entities(step.targets, done, step, facts)[:WIDE]
    if step.operator == "check":
        chains = leading(facts, sources, targets, step.hops)
    elif step.hops:
        chains = by_relations(facts, sources, targets, step.hops)
    elif len(step.targets) > 1:
        # Several things to reach: the best way to each before the second best to any.
        ways = [shortest_paths(facts, sources, _entities([one], done, step, facts)[:WIDE]) for one in step.targets]
        chains = [tuple(way) for rank in zip_longest(*ways, fillvalue=[]) for way in rank if way][: max(K, len(ways))]
    else:
        chains = [tuple(path) for path in shortest_paths(facts, sources, targets)]
    if chains:
        reached = dict.fromkeys(end for chain in chains for end in (chain[-1].source, chain[-1].target))
        return Found(entities=tuple(end for end in targets if end in reached), chains=tuple(chains))
    one, two = (", ".join(names_of(ends, ground.graph)[:3]) for ends in (sources, targets))
    way = f" by {', '.join(f'`{hop.relation}`' for hop in step.hops)}" if step.hops else ""
    return Problem("no path", f"no chain of relations leads from {one} to {two}{way}.")
