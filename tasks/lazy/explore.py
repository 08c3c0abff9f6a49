"""The order in which the passages of a question are tested for relevance. No model is asked here.

Best-first: the communities of the graph come in the order of their best passages. Breadth-first:
a few passages of each are tested, and a pass ends after many irrelevant ones in a row.
Iterative deepening: the next pass goes into the sub-communities of those that gave something, with
the communities that were not reached. Source: LazyGraphRAG (Microsoft Research, 25 November 2024).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from storage.records import by_key

# None of these is fitted. So many passages of a community are tested before it is judged: if all
# are irrelevant, it is left with all that is below it. One that gave something and has no parts is
# visited again, for twice as many.
A_VISIT = 4
IRRELEVANT = 20  # passages in a row, of several communities, that end a pass
ROUNDS = 5  # in which the tests are made, at least, so that later ones follow what was found

# Returns which of some communities holds most of what a passage names, None for none of them.
Home = Callable[[str, Collection[str]], str | None]


@dataclass
class Branch:
    """A community (None: what belongs to none), its untested passages, best first, the
    sub-communities that they may be divided into, and how many are tested in the next visit.
    """

    community: str | None
    passages: Sequence[str]
    below: Sequence[str] = ()
    visit: int = A_VISIT


class Exploration:
    """The passages to test next; ask `next`, test what it returns, and `tell` what was relevant."""

    def __init__(
        self,
        scores: Mapping[str, float],
        roots: Sequence[str],
        below: Mapping[str, Sequence[str]],
        home: Home,
        most: int,
    ) -> None:
        """`scores` are those of passages, best first; `most` is the number of tests."""
        self.tests = 0
        self.visited: set[str] = set()  # communities
        self._scores, self._below, self._home, self._most = scores, below, home, most
        self._round = max(2 * A_VISIT, most // ROUNDS)
        self._waiting = self._divided(Branch(None, list(scores), roots))
        self._asked: list[tuple[Branch, Sequence[str]]] = []
        self._found: list[Branch] = []
        self._misses = 0

    def next(self) -> list[str]:
        """Return the passages to test; none where the tests are spent or nothing promises more."""
        if not self._waiting or self._misses >= IRRELEVANT:
            unreached = self._waiting if self._found else []
            deeper = [part for branch in self._found for part in self._divided(branch)]
            self._waiting = self._in_order([*deeper, *unreached])
            self._found, self._misses = [], 0
        left = min(self._round, self._most - self.tests)
        while self._waiting and left > 0:
            branch = self._waiting.pop(0)
            taken = branch.passages[: min(branch.visit, left)]
            branch.passages = branch.passages[len(taken) :]
            self._asked.append((branch, taken))
            left -= len(taken)
        return [passage for _, taken in self._asked for passage in taken]

    def tell(self, relevant: Collection[str]) -> None:
        """Take in which of the passages of `next` were relevant."""
        for branch, taken in self._asked:
            self.tests += len(taken)
            if branch.community is not None:
                self.visited.add(branch.community)
            if any(passage in relevant for passage in taken):
                self._found.append(branch)
                self._misses = 0
            else:
                self._misses += len(taken)
        self._asked = []

    def _divided(self, branch: Branch) -> list[Branch]:
        """Divide a branch into its sub-communities; what belongs to none stays a branch."""
        homes = dict.fromkeys(branch.below)
        parts = by_key((self._home(name, homes), name) for name in branch.passages)
        rest = Branch(branch.community, parts.pop(None, []), visit=2 * branch.visit)
        divided = [
            Branch(own, names, self._below.get(own, ()))
            for own, names in parts.items()
            if own is not None
        ]
        return self._in_order([*divided, rest])

    def _in_order(self, branches: Sequence[Branch]) -> list[Branch]:
        """Order branches by their best passages, of which a visit tests some; drop empty ones."""

        def worth(branch: Branch) -> float:
            return sum(self._scores[name] for name in branch.passages[:A_VISIT])

        return sorted((branch for branch in branches if branch.passages), key=worth, reverse=True)
