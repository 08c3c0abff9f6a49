"""How does each retrieved passage stand beside the others, by the graph? The filter's signs, from what the search made.

The search ranks pairs of passages by how likely they are evidence together (`tasks.retrieve.sets`); a passage's share
is that of its pairs among all.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from prompts.language.words import is_han
from tasks.retrieve.search import SearchIndex
from tasks.retrieve.sets import pair_scores


def shares(index: SearchIndex, question: str, dense: Mapping[str, float], chunks: Sequence[str]) -> dict[str, float]:
    """For each chunk of the index its share of being evidence with another, the sum 1; `dense` as the search had it.

    Empty where the search does not rank by pairs: for Chinese, without the graph, for a single chunk.
    """
    known = [chunk for chunk in dict.fromkeys(chunks) if chunk in index.position]
    if len(known) < 2 or is_han(question) or not index.switches.sets:
        return {}
    places = [index.position[chunk] for chunk in known]
    pairs = pair_scores(index.gatherer.signs(index.asked(question, dense), places, index.switches))
    np.fill_diagonal(pairs, -np.inf)
    likely = np.exp(pairs - pairs.max()).sum(axis=1)
    return dict(zip(known, (likely / likely.sum()).tolist(), strict=True))
