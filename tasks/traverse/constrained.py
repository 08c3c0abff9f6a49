"""Do stated relations lead from one thing to another? (PolyG: paths constrained by relation)"""

from collections.abc import Sequence

from prompts.traverse import Hop
from tasks.retrieve.facts import GraphFacts
from tasks.traverse.meta_path import chains_of, follow
from tasks.traverse.paths import K, shortest_paths
from tasks.traverse.results import Chain


def leading(facts: GraphFacts, sources: Sequence[str], targets: Sequence[str], hops: Sequence[Hop]) -> list[Chain]:
    """For each target that the hops reach from the sources, the chain that does so."""
    chains = chains_of(follow(facts, sources, hops), sources, hops)
    return [chains[target] for target in targets if target in chains]


def by_relations(facts: GraphFacts, sources: Sequence[str], targets: Sequence[str], hops: Sequence[Hop]) -> list[Chain]:
    """The cheapest chains between the two that walk on the hops' relations alone, in whatever order and direction."""
    relations = frozenset(hop.relation for hop in hops)
    return [tuple(path) for path in shortest_paths(facts, sources, targets, K, relations)]
