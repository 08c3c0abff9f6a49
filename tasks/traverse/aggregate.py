"""How many, which most, which least, what do two results share, what is left over? Counted in the database."""

from collections.abc import Mapping, Sequence
from typing import Literal

from prompts.traverse import Hop
from storage.graph import Direction, Measured, TraversalReader
from tasks.retrieve.facts import GraphFacts
from tasks.traverse.meta_path import chains_of, follow
from tasks.traverse.results import Chain, Found, Outcome, Problem

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
