"""Which passages are tied to each other, by what they name and by what they are about?

Evidence is a chain: a passage about the question's name mentions a second thing, and what is asked of that stands in
the passage about it, or beside it in a third.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Scores = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Ties:
    """How the n passages of a pool are tied; each array is n × n.

    Passages about the same are not tied. `mentions[i, j]`: passage i names what passage j is about. `shared[i, j]`: how
    rare the rarest entity is that both name, 0 to 1; those that the question names do not count. `about` holds for each
    passage the entities that it is about.
    """

    mentions: Flags
    shared: Scores
    about: tuple[tuple[int, ...], ...]

    def cut(self) -> "Ties":
        """The same passages, untied."""
        return Ties(np.zeros_like(self.mentions), np.zeros_like(self.shared), self.about)


class Bridges:
    """What every chunk names and is about; immutable, so safe to share between threads."""

    def __init__(self, mentions: Sequence[Collection[int]], about: Sequence[tuple[int, ...]], entities: int) -> None:
        """For each chunk the entities that it names and those that it is about, by index below `entities`."""
        self.about = tuple(about)
        self._mentions = _matrix(mentions, entities)
        self._about = _matrix(about, entities)
        columns, sizes = self._mentions.indices, np.diff(self._mentions.indptr)
        found = np.bincount(columns, minlength=entities).astype(np.float64)
        most = np.log1p((len(mentions) + 0.5) / 0.5)
        self._rarity = np.log1p((len(mentions) - found + 0.5) / (found + 0.5)) / most
        self._width = np.sqrt(np.maximum(sizes, 1))

    def further(self, first: Sequence[int], linked: Collection[int]) -> Scores:
        """For every chunk how much it shares with the first ones (the earlier, the more), ≥ 0; rare entities count
        most, and those in `linked` do not: they led to the first ones."""
        start = np.zeros(len(self.about))
        start[list(first)] = 1 / np.arange(1, len(first) + 1)
        reached = (self._mentions.T @ start) * self._rarity**2
        reached[list(linked)] = 0.0
        found: Scores = np.asarray(self._mentions @ reached) / self._width
        return found

    def ties(self, pool: Sequence[int], linked: Collection[int]) -> Ties:
        """How the chunks of a pool are tied; `linked` are the entities that the question names."""
        rows, about = self._mentions[list(pool)], self._about[list(pool)]
        same = (about @ about.T).toarray() > 0
        mentions = ((rows @ about.T).toarray() > 0) & ~same
        known = np.setdiff1d(rows.indices, list(linked))
        rarity = rows[:, known].toarray() * self._rarity[known]
        shared = np.stack([np.minimum(rarity, row).max(axis=1, initial=0.0) for row in rarity])
        return Ties(mentions, np.where(same, 0.0, shared), tuple(self.about[chunk] for chunk in pool))


def _matrix(rows: Sequence[Collection[int]], width: int) -> sparse.csr_matrix:
    """1 where a row holds a column."""
    columns = np.array([column for row in rows for column in sorted(row)], np.int64)
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
    return sparse.csr_matrix((np.ones(len(columns)), columns, starts), shape=(len(rows), width))
