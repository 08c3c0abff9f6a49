"""Which entity does a name mean that no spelling leads to? The one whose name is nearest in meaning, if near enough."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from storage.records import Entity
from tasks.retrieve.link import Link

Floats = NDArray[np.float32]

# "U.S. Navy" and "United States Navy" are at .96, "North Harbour" and "South Harbour" at .78.
LEAST_COSINE = 0.85
CANDIDATES = 2


class NameVectors:
    """The names of entities with their vectors, of unit length; immutable."""

    def __init__(self, entities: Sequence[Entity], vectors: Mapping[str, Floats]) -> None:
        """`vectors` by name; an entity whose name has none is not found by meaning."""
        self._entities = [place for place, entity in enumerate(entities) if entity.name in vectors]
        rows = [vectors[entities[place].name] for place in self._entities]
        self._matrix = np.stack(rows) if rows else np.zeros((0, 0), np.float32)

    def __bool__(self) -> bool:
        return bool(self._entities)

    def nearest(self, names: Sequence[str], vectors: Floats) -> list[Link]:
        """For each name the entities nearest to it, at least LEAST_COSINE; the score is the cosine."""
        links = []
        for name, cosines in zip(names, vectors @ self._matrix.T, strict=True):
            for place in np.argsort(-cosines, kind="stable")[:CANDIDATES]:
                if cosines[place] >= LEAST_COSINE:
                    score = round(float(cosines[place]), 4)
                    links.append(Link(text=name, entity=self._entities[place], score=score, end=len(name)))
        return links
