"""Running a checked plan: its steps in order, those that wait for nothing side by side (PolyG's traversals)."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from prompts.traverse import Hop
from storage.graph import Direction, Measured, TraversalReader
from storage.graph_records import Relation
from tasks.retrieve.facts import GraphFacts
from tasks.traverse.meta_path import chains_of, follow
from tasks.traverse.paths import K, shortest_paths
from tasks.traverse.plan import CheckedStep, Graph, Operand, names_of
from tasks.traverse.results import Chain, Found, Outcome, Problem

WIDE = 6  # results of a step that are described or connected further


@dataclass(frozen=True)
class TraversalGraph:
    """What plans run on."""

    graph: Graph
    tables: TraversalReader

    @property
    def facts(self) -> GraphFacts:
        return self.graph.facts


async def run_plan(steps: Sequence[CheckedStep], ground: TraversalGraph) -> list[Outcome]:
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


def run_step(step: CheckedStep, done: Mapping[int, Outcome], ground: TraversalGraph) -> Outcome:
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


def _walked(step: CheckedStep, done: Mapping[int, Outcome], ground: TraversalGraph) -> Outcome:
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


def _followed(step: CheckedStep, sources: Sequence[str], ground: TraversalGraph) -> Outcome:
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


def _tied(step: CheckedStep, sources: Sequence[str], done: Mapping[int, Outcome], ground: TraversalGraph) -> Outcome:
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


FEW = 4


def counted(tables: TraversalReader, found: Found) -> Found:
    """How many different things were found."""
    return Found(values=(str(tables.count(found.entities)),), chains=found.chains)


def shared(tables: TraversalReader, results: Sequence[Found]) -> Found:
    """What all results hold, with the chains that lead there in each; nothing found where they share nothing."""
    return _picked(tables.shared([one.entities for one in results]), results)


def left_over(tables: TraversalReader, results: Sequence[Found]) -> Found:
    """What the first result holds and no other one."""
    return _picked(tables.left_over([one.entities for one in results]), results[:1])


def _picked(entities: Sequence[str], results: Sequence[Found]) -> Found:
    kept = set(entities)
    ending = [chain for one in results for chain in one.chains if kept & ends_of(chain)]
    return Found(entities=tuple(entities), chains=tuple(ending))


def ends_of(chain: Chain) -> frozenset[str]:
    """The two entities of a chain's last relation."""
    return frozenset((chain[-1].source, chain[-1].target)) if chain else frozenset()


def ranked(
    tables: TraversalReader,
    facts: GraphFacts,
    sources: Sequence[str],
    hops: Sequence[Hop],
    operator: Literal["max", "min", "sort"],
) -> Outcome:
    """The sources by the number or date that the hops reach from each; where those are none, by how many things it is.

    `max` and `min` give the best and its equals, `sort` all, the highest first. A Problem where hops lead nowhere from
    any of them.
    """
    direction: Direction = "min" if operator == "min" else "max"
    chains: dict[str, list[Chain]] = {}
    pairs: list[tuple[str, str]] = []
    for source in sources:
        reached = chains_of(follow(facts, [source], hops), [source], hops) if hops else {}
        chains[source] = list(reached.values())
        pairs += [(source, facts.entities[end].name) for end in reached]
    if not pairs:
        way = ", ".join(hop.relation for hop in hops) or "nothing"
        return Problem("no path", f"from none of {len(sources)} things does `{way}` lead on.")
    measured = tables.ranked(pairs, direction)
    by_value = 2 * len({one.item for one in measured}) > len({item for item, _ in pairs})
    if not by_value:
        measured = tables.counted(pairs, direction)
    return _best(measured, chains, operator == "sort")


def _best(measured: Sequence[Measured], chains: Mapping[str, Sequence[Chain]], whole: bool) -> Found:
    first = measured[0].number
    kept = [one.item for one in measured if whole or one.number == first]
    # Of few things all are shown, so that the comparison can be followed.
    shown = list(dict.fromkeys([*kept, *chains])) if len(chains) <= FEW else kept
    return Found(entities=tuple(kept), chains=tuple(chain for item in shown for chain in chains[item]))


DEPTH = 1
MOST = 40


def around(facts: GraphFacts, sources: Sequence[str], depth: int = DEPTH, most: int = MOST) -> list[Relation]:
    """At most so many relations within `depth` steps of the sources: the nearest first, then the best connected."""
    seen = set(sources)
    edge = list(dict.fromkeys(sources))
    found: dict[str, Relation] = {}
    for _ in range(depth):
        touching = [(one, entity) for entity in edge for one in facts.of(entity) if one.id not in found]
        touching.sort(key=lambda item: (-_far(facts, *item), -item[0].weight, item[0].id))
        found.update((one.id, one) for one, _ in touching)
        reached = dict.fromkeys(end for one, _ in touching for end in (one.source, one.target))
        edge = [entity for entity in reached if entity not in seen]
        seen.update(edge)
        if len(found) >= most or not edge:
            break
    return list(found.values())[:most]


def _far(facts: GraphFacts, relation: Relation, entity: str) -> int:
    far = relation.target if relation.source == entity else relation.source
    return facts.entities[far].degree


def leading(facts: GraphFacts, sources: Sequence[str], targets: Sequence[str], hops: Sequence[Hop]) -> list[Chain]:
    """For each target that the hops reach from the sources, the chain that does so."""
    chains = chains_of(follow(facts, sources, hops), sources, hops)
    return [chains[target] for target in targets if target in chains]


def by_relations(facts: GraphFacts, sources: Sequence[str], targets: Sequence[str], hops: Sequence[Hop]) -> list[Chain]:
    """The cheapest chains between the two that walk on the hops' relations alone, in whatever order and direction."""
    relations = frozenset(hop.relation for hop in hops)
    return [tuple(path) for path in shortest_paths(facts, sources, targets, K, relations)]
