"""Which known names are spelt almost like this one? Looked up among names that share a word or an end with it.

One slip of the pen cannot spoil both ends of a name, so the right one is in the bucket of the one or of the other; a
name of several words also shares an unspoilt word. So few names are compared, however many there are.
"""

from collections import defaultdict
from collections.abc import Iterable

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

ENDS = 2
SHORTEST = 5
# A word that more names share tells too little to compare them all.
COMMON = 400
FUZZY_CUTOFF = 84.0
Near = tuple[str, float]


class NearNames:
    """Keys of names, for looking up what is spelt almost alike; immutable once made."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._by_end: dict[tuple[str, int], list[str]] = defaultdict(list)
        self._by_word: dict[str, list[str]] = defaultdict(list)
        for key in keys:
            if len(key) < SHORTEST:
                continue
            self._by_end[key[:ENDS], len(key)].append(key)
            self._by_end["…" + key[-ENDS:], len(key)].append(key)
            for word in set(key.split()):
                self._by_word[word].append(key)

    def one_slip(self, key: str) -> list[Near]:
        """Keys that one letter left out, added, changed, or swapped with the next makes of this one, with likeness."""
        if len(key) < SHORTEST:
            return []
        pool = self._by_ends(key, 1)
        found = process.extract(key, list(dict.fromkeys(pool)), scorer=OSA.distance, score_cutoff=1, limit=3)
        return [(near, 1 - distance / max(len(near), len(key))) for near, distance, _ in found]

    def alike(self, key: str, limit: int = 2) -> list[Near]:
        """The keys most alike, at least FUZZY_CUTOFF in a hundred, with likeness (rapidfuzz ratio, 0 to 1)."""
        if len(key) < SHORTEST:
            return []
        pool = self._by_ends(key, 2)
        for word in key.split():
            sharing = self._by_word.get(word, ())
            pool += sharing if len(sharing) <= COMMON else ()
        # By name among equals, whatever the order in which they were found.
        found = process.extract(key, sorted(set(pool)), scorer=fuzz.ratio, score_cutoff=FUZZY_CUTOFF, limit=limit)
        return [(near, score / 100) for near, score, _ in found]

    def _by_ends(self, key: str, span: int) -> list[str]:
        """Names of about this length that begin or end like this one."""
        pool: list[str] = []
        for size in range(len(key) - span, len(key) + span + 1):
            pool += self._by_end.get((key[:ENDS], size), ())
            pool += self._by_end.get(("…" + key[-ENDS:], size), ())
        return pool
