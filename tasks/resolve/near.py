"""Names so near in meaning that they may mean one thing, found without comparing each with every other.

Names are sorted into cells around some of them, each into the few cells whose centres are nearest; only names of one
cell are compared (an inverted file, Jégou, Douze and Schmid 2011).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

# Fewer are compared with one another at once.
EXACT = 4096
CELLS_EACH = 4
_BLOCK = 2048


def near_pairs(names: Sequence[str], vectors: Floats, least_cosine: float) -> list[tuple[str, str]]:
    """The pairs of names whose vectors have at least this cosine, each once, in the order of `names`.

    The names are distinct; `vectors[i]` is that of `names[i]`, of unit length. Exact up to EXACT names; beyond, a few
    pairs are missed, fewer the nearer they are. The same input gives the same pairs.
    """
    if len(names) != len(vectors):
        raise ValueError(f"{len(names)} names meet {len(vectors)} vectors: give one vector for each name.")
    found: set[tuple[int, int]] = set()
    for members in _cells(vectors):
        found |= _within(members, vectors, least_cosine)
    return [(names[one], names[two]) for one, two in sorted(found)]


def _cells(vectors: Floats) -> list[NDArray[np.int64]]:
    """The members of each cell, ascending."""
    size = len(vectors)
    if size <= EXACT:
        return [np.arange(size)]
    count = int(np.sqrt(size))
    centres = vectors[np.linspace(0, size - 1, count).astype(np.int64)]
    nearest = np.concatenate(
        [
            np.argpartition(-(vectors[at : at + _BLOCK] @ centres.T), CELLS_EACH, axis=1)[:, :CELLS_EACH]
            for at in range(0, size, _BLOCK)
        ]
    )
    order = np.argsort(nearest.ravel(), kind="stable")
    bounds = np.searchsorted(nearest.ravel()[order], np.arange(count + 1))
    return [order[bounds[cell] : bounds[cell + 1]] // CELLS_EACH for cell in range(count)]


def _within(members: NDArray[np.int64], vectors: Floats, least: float) -> set[tuple[int, int]]:
    """The near pairs among some names."""
    inside = vectors[members]
    pairs: set[tuple[int, int]] = set()
    for at in range(0, len(members), _BLOCK):
        rows, columns = np.nonzero(inside[at : at + _BLOCK] @ inside.T >= least)
        later = columns > rows + at
        pairs.update(zip(members[rows[later] + at].tolist(), members[columns[later]].tolist(), strict=True))
    return pairs
