"""The vocabulary of a graph: the relations that it has, and which of them another word means."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import chain

from rapidfuzz import fuzz, process

from prompts.text.thesaurus import handles, likeness, relation_words
from prompts.text.words import fold, is_han, stem
from prompts.traverse import Hop
from storage.graph_records import Relation
from tasks.traverse.cues import Cue
from tasks.traverse.meta_path import step_score

MOST_NEAR = 3
MOST_WORDS = 2  # of a relation that one word can mean
MOST_SPELT = 1_000  # relations whose spelling is compared
_LEAST_SPELT = 60.0
_WELL_WORDED = 0.5


class Vocabulary:
    """The relations of a graph by how often they are stated; immutable."""

    def __init__(self, relations: Iterable[Relation]) -> None:
        self.counts = Counter(one.predicate for one in relations)
        self._folded = {_folded(name): name for name in sorted(self.counts, key=lambda name: (self.counts[name], name))}
        self._worded: dict[str, str | None] = {}
        self._by_handle: dict[str, set[str]] = defaultdict(set)
        for name in self.counts:
            for word in chain.from_iterable(relation_words(name)):
                for handle in handles(word):
                    self._by_handle[handle].add(name)

    def __contains__(self, relation: str) -> bool:
        return relation in self.counts

    def known(self, relation: str) -> str | None:
        """The relation as the graph writes it ("Place of Birth" is `place_of_birth`), or None."""
        return relation if relation in self.counts else self._folded.get(_folded(relation))

    def commonest(self, limit: int) -> list[str]:
        """The most stated relations."""
        return [name for name, _ in sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))[:limit]]

    def worded_by(self, cue: Cue) -> str | None:
        """The relation that a cue by itself words well, in one direction or the other; None where there is none."""
        if cue.key not in self._worded:
            best = max(
                (
                    (step_score(Hop(relation=name, inverse=inverse), (cue,))[0], self.counts[name], name)
                    for name in self._alike(cue.key)
                    for inverse in (False, True)
                    if len(relation_words(name)[0]) <= MOST_WORDS
                ),
                default=(0.0, 0, ""),
            )
            self._worded[cue.key] = best[2] if best[0] >= _WELL_WORDED else None
        return self._worded[cue.key]

    def _alike(self, key: str) -> list[str]:
        """The relations with a word like a stem; more may be given, none is left out."""
        if is_han(key):
            return list(self.counts)
        return sorted({name for handle in handles(key) for name in self._by_handle.get(handle, ())})

    def nearest(self, word: str, among: Iterable[str] = ()) -> tuple[str, ...]:
        """The relations that a word may have meant, likeliest first: by meaning, by spelling; those `among` first."""
        first = list(dict.fromkeys(among))
        names = [*first, *(name for name in self.commonest(MOST_SPELT) if name not in set(first))]
        key = stem(fold(word))
        meant = [name for name in self._alike(key) if any(likeness(key, one) for one in relation_words(name)[0])]
        meant.sort(key=lambda name: (name not in first, len(relation_words(name)[0]), -self.counts[name], name))
        folded = [_folded(name) for name in names]
        spelt = process.extract(_folded(word), folded, scorer=fuzz.ratio, score_cutoff=_LEAST_SPELT, limit=MOST_NEAR)
        rest = sorted(first, key=lambda name: (-fuzz.ratio(_folded(word), _folded(name)), name))
        found = [*meant, *(names[place] for _, _, place in spelt), *rest]
        return tuple(dict.fromkeys(found))[:MOST_NEAR]


def _folded(relation: str) -> str:
    return fold(relation.replace("_", " ").replace("-", " ")).strip()
