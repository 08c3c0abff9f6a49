"""Meta-paths: sequences of directed relations, followed over sets of entities (PolyG), and the
relations of a graph by name.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice

from rapidfuzz import fuzz, process

from prompts.text.words import fold
from prompts.traverse import Hop
from storage.graph_records import Relation
from tasks.retrieve.facts import GraphFacts

WIDEST = 2_000  # entities from which one step leads on

Chain = tuple[Relation, ...]


def chains_along(
    facts: GraphFacts, sources: Sequence[str], hops: Sequence[Hop]
) -> dict[str, Chain]:
    """Follow a meta-path from the sources: return each entity at its end with the heaviest chain of
    relations that leads there.
    """
    chains: dict[str, Chain] = dict.fromkeys(sources, ()) if hops else {}
    for hop in hops:
        longer: dict[str, Chain] = {}
        for entity, chain in islice(chains.items(), WIDEST):
            for relation in facts.along(entity, hop.relation, hop.inverse):
                far = relation.source if hop.inverse else relation.target
                if not hop.kind or facts.is_a(far, hop.kind):
                    longer.setdefault(far, (*chain, relation))
        chains = longer
    return chains


# --- the relations of a graph ---------------------------------------------------------------------

MOST_NEAR = 3
MOST_SPELT = 1_000  # relations whose spelling is compared
_LEAST_SPELT = 60.0  # the least rapidfuzz ratio, of 100


class Vocabulary:
    """The relations of a graph by how often they are stated; immutable."""

    def __init__(self, predicates: Iterable[str]) -> None:
        """`predicates` holds that of each relation."""
        self.counts = Counter(predicates)

    @cached_property
    def _folded(self) -> Mapping[str, str]:
        by_count = sorted(self.counts, key=lambda name: (self.counts[name], name))
        return {_folded(name): name for name in by_count}

    def known(self, relation: str) -> str | None:
        """Return the relation as the graph writes it: "Place of Birth" may be `place_of_birth`."""
        return relation if relation in self.counts else self._folded.get(_folded(relation))

    def by_count(self) -> list[str]:
        return sorted(self.counts, key=lambda name: (-self.counts[name], name))

    def nearest(self, word: str) -> tuple[str, ...]:
        folded = {name: _folded(name) for name in self.by_count()[:MOST_SPELT]}
        spelt = process.extract(
            _folded(word), folded, scorer=fuzz.ratio, score_cutoff=_LEAST_SPELT, limit=MOST_NEAR
        )
        return tuple(name for _, _, name in spelt)


def _folded(relation: str) -> str:
    return fold(relation.replace("_", " ").replace("-", " ")).strip()
