"""Meta-paths: sequences of relations with their direction, followed over sets of entities (PolyG:
over relations that exist), and the relations of a graph by name.
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

WIDEST = 2_000  # entities of one step that are walked on from

Chain = tuple[Relation, ...]


def chains_along(
    facts: GraphFacts, sources: Sequence[str], hops: Sequence[Hop]
) -> dict[str, Chain]:
    """For each entity at the end of a meta-path from the sources one chain of relations that leads
    there, the heaviest first; none where it leads nowhere.
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
_LEAST_SPELT = 60.0


class Vocabulary:
    """The relations of a graph by how often they are stated; immutable."""

    def __init__(self, predicates: Iterable[str]) -> None:
        """`predicates` holds that of each relation."""
        self.counts = Counter(predicates)

    @cached_property
    def _folded(self) -> Mapping[str, str]:
        return {
            _folded(name): name
            for name in sorted(self.counts, key=lambda name: (self.counts[name], name))
        }

    def known(self, relation: str) -> str | None:
        """The relation as the graph writes it ("Place of Birth" is `place_of_birth`), or None."""
        return relation if relation in self.counts else self._folded.get(_folded(relation))

    def by_count(self) -> list[str]:
        """All relations, the most stated first."""
        return sorted(self.counts, key=lambda name: (-self.counts[name], name))

    def nearest(self, word: str, among: Sequence[str] = ()) -> tuple[str, ...]:
        """The relations that a word may have meant: those spelt much alike, then those `among`."""
        folded = {name: _folded(name) for name in self.by_count()[:MOST_SPELT]}
        spelt = process.extract(
            _folded(word), folded, scorer=fuzz.ratio, score_cutoff=_LEAST_SPELT, limit=MOST_NEAR
        )
        return tuple(dict.fromkeys([*(name for _, _, name in spelt), *among]))[:MOST_NEAR]


def _folded(relation: str) -> str:
    return fold(relation.replace("_", " ").replace("-", " ")).strip()
