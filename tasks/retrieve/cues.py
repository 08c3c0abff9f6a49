"""Does a passage say of another's subject what the question asks? "directed by X" is a cue for "the director"."""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from prompts.language.concepts import concept_terms
from prompts.language.words import fold_name

Scores = NDArray[np.float64]

_END = re.compile(r"(?<=[.!?])\s+")
_SHORTEST = 3


@lru_cache(maxsize=4_096)
def _sentences(text: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """Each sentence folded as names are, with its concepts."""
    return tuple((fold_name(one), frozenset(concept_terms(one))) for one in _END.split(text))


def cue(text: str, names: Collection[str], wanted: Mapping[str, float]) -> float:
    """The weight of the `wanted` concepts in the sentence that has most of it, among those with one of the names."""
    keys = [key for key in map(fold_name, names) if len(key) >= _SHORTEST]
    told = [
        sum(weight for concept, weight in wanted.items() if concept in concepts)
        for sentence, concepts in _sentences(text)
        if any(key in sentence for key in keys)
    ]
    return max(told, default=0.0)


def cues(
    texts: Sequence[str], mentions: NDArray[np.bool_], names: Sequence[Collection[str]], wanted: Mapping[str, float]
) -> Scores:
    """For each pair of passages the greater share (0 to 1) of the `wanted` concepts in a sentence in which one names
    what the other is about; `names[j]` are the names of what passage j is about."""
    total = sum(wanted.values())
    found = np.zeros(mentions.shape)
    if total > 0:
        for one, other in np.argwhere(mentions):
            found[one, other] = cue(texts[one], names[other], wanted) / total
    return np.maximum(found, found.T)
