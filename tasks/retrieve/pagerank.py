"""Personalised PageRank (Haveliwala 2002) over passages and the entities that they name.

A walk starts from entities and passages, follows ties at random, and starts again now and then. The
graph of both is that of HippoRAG (arXiv 2405.14831).
"""

import numpy as np
import scipy

from tasks.retrieve.lexical import Scores

DAMPING = 0.85  # the chance that a walk goes on instead of starting again
STEPS = 24  # of the power iteration


class Walker:
    """Personalised PageRank on the bipartite graph of chunks and entities; immutable."""

    def __init__(self, named: "scipy.sparse.csr_matrix") -> None:
        """`named` is chunks × entities: how strongly a chunk and an entity are tied, or 0."""
        self.chunks, self.entities = named.shape
        self._ties = scipy.sparse.bmat(
            [[None, named], [named.T, None]], format="csr", dtype=np.float64
        )
        out = np.asarray(self._ties.sum(axis=0)).ravel()
        self._out = np.where(out > 0, out, 1.0)
        self.degree = np.bincount(named.indices, minlength=self.entities).astype(np.float64)

    def walk(self, entities: dict[int, float], chunks: dict[int, float]) -> Scores:
        """Return the stationary probability of every chunk.

        `entities` and `chunks` are restart weights by index, at least one of them positive.
        """
        restart = np.zeros(self.chunks + self.entities)
        for entity, weight in entities.items():
            restart[self.chunks + entity] = weight
        for chunk, weight in chunks.items():
            restart[chunk] = weight
        restart /= restart.sum()
        scores = restart
        for _ in range(STEPS):
            scores = DAMPING * (self._ties @ (scores / self._out)) + (1 - DAMPING) * restart
        return scores[: self.chunks]
