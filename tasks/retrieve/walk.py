"""Which chunks are near the question's entities? Personalised PageRank over chunks and the entities they name.

Source: Haveliwala 2002; over a passage-entity graph as in HippoRAG (arXiv 2405.14831).
"""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

DAMPING = 0.85
STEPS = 24

Scores = NDArray[np.float64]


class Walker:
    """Random walks with restart on the bipartite graph of `chunks` and `entities`; immutable."""

    def __init__(
        self,
        chunks: int,
        entities: int,
        chunk_index: NDArray[np.int32],
        entity_index: NDArray[np.int32],
        weights: NDArray[np.float64],
    ) -> None:
        """Edge i ties chunk `chunk_index[i]` to entity `entity_index[i]` with `weights[i]` > 0."""
        self.chunks = chunks
        self.entities = entities
        size = chunks + entities
        rows = np.concatenate([chunk_index, entity_index.astype(np.int64) + chunks])
        columns = np.concatenate([entity_index.astype(np.int64) + chunks, chunk_index])
        both = sparse.csr_matrix((np.concatenate([weights, weights]), (rows, columns)), shape=(size, size))
        out = np.asarray(both.sum(axis=0)).ravel()
        self.transition = (both @ sparse.diags(1.0 / np.where(out > 0, out, 1.0))).tocsr()
        self.degree = np.bincount(entity_index, minlength=entities).astype(np.float64)

    def walk(self, entities: dict[int, float], chunks: dict[int, float], damping: float = DAMPING) -> Scores:
        """Stationary probability of every chunk; restart weights of entities and chunks, at least one positive."""
        restart = np.zeros(self.chunks + self.entities)
        for entity, weight in entities.items():
            restart[self.chunks + entity] = weight
        for chunk, weight in chunks.items():
            restart[chunk] = weight
        restart /= restart.sum()
        here = restart
        for _ in range(STEPS):
            here = damping * (self.transition @ here) + (1 - damping) * restart
        return np.asarray(here[: self.chunks])
