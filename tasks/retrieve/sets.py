"""Which passages answer a question together? Evidence is a set, so pairs of passages are ranked, not passages.

A pair is good where its passages are near the question's names, tell of what the question asks, one what the other
does not, and hang together: one names what the other is about, or both name the same rare thing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from storage.records import Record
from tasks.retrieve.bridges import Ties

Scores = NDArray[np.float64]
Flags = NDArray[np.bool_]

CHOSEN = 10
# A passage that has found its second half wants another one less.
MATCHED = 0.6
_LEAST_WALKED = 1e-5
# What a passage counts by itself, beside its pairs with those chosen.
_ALONE = 0.01


class Weights(Record):
    """What each sign of a pair counts: the coefficients of a log-linear model of which pair is evidence, fitted to
    every other question of two public sets and read on the questions between and on others (docs/retrieval.md)."""

    walked: float = 0.4
    meaning: float = 6.8
    subject: float = 2.2
    covered: float = -2.4
    together: float = 10.4
    mention: float = 1.6
    shared: float = 3.7
    cue: float = 2.4


WEIGHTS = Weights()


@dataclass(frozen=True)
class Signs:
    """What is known of the n passages of a pool.

    `walked`: their part in the walk, the best 1. `meaning`: cosine with the question. `subject`: how surely the
    question names what they are about, 0 to 1. `holds[i, t]`: passage i has concept t of the question, and `rarity[t]`
    is that concept's share of the question, all of them 1. `cues`: n × n, 0 to 1.
    """

    walked: Scores
    meaning: Scores
    subject: Scores
    holds: Flags
    rarity: Scores
    ties: Ties
    cues: Scores


def pair_scores(signs: Signs, weights: Weights = WEIGHTS) -> Scores:
    """n × n, symmetric: the logarithm of how likely two passages are evidence together, up to a constant."""
    covered = signs.holds @ signs.rarity
    both = (signs.holds * signs.rarity) @ signs.holds.T
    alone = (
        weights.walked * np.log(np.maximum(signs.walked, _LEAST_WALKED))
        + weights.meaning * signs.meaning
        + weights.subject * signs.subject
        + weights.covered * covered
    )
    return np.asarray(
        alone[:, None] + alone[None, :]
        + weights.together * (covered[:, None] + covered[None, :] - both)
        + weights.mention * (signs.ties.mentions | signs.ties.mentions.T)
        + weights.shared * signs.ties.shared
        + weights.cue * signs.cues
    )  # fmt: skip


def choose(pairs: Scores, subject: Scores, size: int = CHOSEN) -> list[int]:
    """Up to `size` places of the pool, the best pair first, the earlier place before the later; then, one after
    another, what makes the likeliest pairs with those chosen. Ties go to the earlier place.

    `subject` tells which passages are about what the question names: each of them waits for a second half.
    """
    count = len(pairs)
    if count < 2:
        return list(range(count))
    likely = np.exp(pairs - pairs[~np.eye(count, dtype=bool)].max())
    np.fill_diagonal(likely, 0.0)
    alone = likely.sum(axis=1)
    first, second = divmod(int(likely.argmax()), count)
    chosen = [first, second]
    waiting = np.ones(count)
    _match(first, second, subject, waiting)
    _match(second, first, subject, waiting)
    while len(chosen) < min(size, count):
        gained = waiting[chosen] @ likely[chosen] + _ALONE * alone
        gained[chosen] = -1.0
        best = int(gained.argmax())
        _match(max(chosen, key=lambda place: (likely[best, place], -place)), best, subject, waiting)
        chosen.append(best)
    return chosen


def _match(place: int, found: int, subject: Scores, waiting: Scores) -> None:
    """Note that `found` is a second half for `place`, unless it is a beginning itself."""
    if subject[found] == 0:
        waiting[place] *= MATCHED


def fused(rankings: Sequence[Sequence[int]], constant: int = 60) -> list[int]:
    """Rankings as one (reciprocal rank fusion, Cormack 2009), best first; ties go to the smaller number."""
    total: dict[int, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, 1):
            total[item] = total.get(item, 0.0) + 1 / (constant + rank)
    return sorted(total, key=lambda item: (-total[item], item))
