"""Which are the cheapest chains of neighbours between two nodes of a graph, when each step through a hub costs more?

Exact distances to the goal are computed first; then partial chains are tried on in the order of what they would cost in
the end, so that little more than the chains themselves is looked at, however large the graph.
"""

import heapq
from collections.abc import Iterable, Mapping
from math import isfinite, log1p
from typing import Literal

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from storage.records import Entity, Relation

Direction = Literal["along", "against", "either"]

MAX_HOPS = 5
MAX_TRIED = 5_000  # partial chains that are taken up again


class Ways:
    """The relations as weighted edges between entities; immutable.

    A step costs 1 and the mean of log(1 + degree) of its ends.
    """

    def __init__(self, entities: Mapping[str, Entity], relations: Iterable[Relation]) -> None:
        pairs = sorted({(one.source, one.target) for one in relations if one.source != one.target})
        self.nodes = sorted({end for pair in pairs for end in pair})
        self.place = {node: index for index, node in enumerate(self.nodes)}
        penalty = {node: log1p(entities[node].degree) / 2 for node in self.nodes}
        rows = np.array([self.place[one] for one, _ in pairs], np.int32)
        columns = np.array([self.place[two] for _, two in pairs], np.int32)
        costs = np.array([1.0 + penalty[one] + penalty[two] for one, two in pairs])
        along = csr_matrix((costs, (rows, columns)), shape=(len(self.nodes), len(self.nodes)))
        against = along.T.tocsr()
        self._steps: dict[Direction, csr_matrix] = {
            "along": along,
            "against": against,
            "either": along.maximum(against).tocsr(),
        }

    def cheapest(self, source: str, target: str, direction: Direction, k: int) -> list[tuple[float, list[str]]]:
        """The k cheapest chains with their cost, at most `MAX_HOPS` long and no node twice; all if fewer."""
        if source == target or source not in self.place or target not in self.place:
            return []
        steps = self._steps[direction]
        back: dict[Direction, Direction] = {"along": "against", "against": "along", "either": "either"}
        start, goal = self.place[source], self.place[target]
        left = dijkstra(self._steps[back[direction]], indices=goal)
        found: list[tuple[float, list[str]]] = []
        heap: list[tuple[float, float, tuple[int, ...]]] = [(float(left[start]), 0.0, (start,))]
        for _ in range(MAX_TRIED):
            if not heap or len(found) == k or not isfinite(heap[0][0]):
                break
            _, cost, chain = heapq.heappop(heap)
            here = chain[-1]
            if here == goal:
                found.append((cost, [self.nodes[place] for place in chain]))
            elif len(chain) <= MAX_HOPS:
                inside = slice(steps.indptr[here], steps.indptr[here + 1])
                for far, step in zip(steps.indices[inside].tolist(), steps.data[inside].tolist(), strict=True):
                    if far not in chain:
                        heapq.heappush(heap, (cost + step + float(left[far]), cost + step, (*chain, far)))
        return found
