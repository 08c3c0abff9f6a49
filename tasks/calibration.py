"""Calibration: one scale for likenesses of two kinds and for τ, the cosine of the default embedder.

Each kind (an embedder, likeness of words, of Chinese characters) has a monotone map onto that scale, straight between
knots (likeness, on the scale): at each knot as many pairs of different questions lie above the one as above the other.
`python -m benchmarks memory_scale --data DIR` prints what the constants come from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DEFAULT = "all-MiniLM-L6-v2"
# Of the default embedder: its cosines of questions that have nothing in common, by the share of pairs below them.
UNRELATED = {0.5: 0.09, 0.99: 0.36, 0.999: 0.47}
LEAST_UNRELATED = 60  # texts

Knots = tuple[tuple[float, float], ...]
WORDS: Knots = ((0.0, 0.0), (0.44, 0.5), (0.57, 0.6), (0.65, 0.7), (0.74, 0.8), (0.87, 0.9), (1.0, 1.0))
CHARACTERS: Knots = ((0.0, 0.0), (0.22, 0.47), (0.7, 0.8), (1.0, 1.0))


@dataclass(frozen=True)
class Scale:
    """A map onto the common scale, and what it comes from."""

    name: str
    knots: Knots

    def common(self, likeness: float) -> float:
        """The likeness on the common scale; rises with it."""
        raw, scaled = zip(*self.knots, strict=True)
        return float(np.interp(likeness, raw, scaled))


def of_words() -> Scale:
    """Of likeness by words."""
    return Scale("words", WORDS)


def of_characters() -> Scale:
    """Of likeness of Chinese questions by what they share."""
    return Scale("characters", CHARACTERS)


def of_cosines(embedder: str, unrelated: NDArray[np.float32]) -> Scale:
    """Of an embedder's cosines. One that is not the default is measured by `unrelated`, the vectors (n × d, unit) of
    texts of this corpus that have nothing to do with each other; of too few texts its cosines are taken as they are."""
    if embedder == DEFAULT:
        return Scale("cosines", ((-1.0, -1.0), (1.0, 1.0)))
    if len(unrelated) < LEAST_UNRELATED:
        return Scale(f"cosines of {embedder}, not calibrated: {len(unrelated)} passages", ((-1.0, -1.0), (1.0, 1.0)))
    cosines = (unrelated @ unrelated.T)[np.triu_indices(len(unrelated), 1)]
    return Scale(f"cosines of {embedder}, by {len(unrelated)} passages", quantile_knots(cosines, UNRELATED))


def quantile_knots(likenesses: "NDArray[np.floating]", shares: Mapping[float, float]) -> Knots:
    """Knots that bring the likeness below which each share of the pairs lies to the value given for that share."""
    found = [(float(np.quantile(likenesses, share)), value) for share, value in sorted(shares.items())]
    return rising([(-1.0, -1.0), *found, (1.0, 1.0)])


def rising(knots: Sequence[tuple[float, float]]) -> Knots:
    """The knots of which each lies above the one before: a map that rises needs no others."""
    kept: list[tuple[float, float]] = []
    for raw, scaled in sorted(knots):
        if not kept or (raw > kept[-1][0] and scaled >= kept[-1][1]):
            kept.append((raw, scaled))
    return tuple(kept)
