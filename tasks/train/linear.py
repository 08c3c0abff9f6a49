"""Linear classifiers: multinomial logistic regression with a ridge penalty (scipy's L-BFGS).

A classifier of wordings is fitted twice: on all features, then on the most telling ones.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from prompts.route import UNIT, LinearClassifier, features
from prompts.text.question import parse_question

LEAST_SEEN = 2  # Rarer features are left out
STEPS = 150  # At most, of the optimiser
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Labelled:
    """A question, its label, and how much it counts."""

    question: str
    label: str
    weight: float = 1.0


def evened(pairs: Sequence[tuple[str, str, str]]) -> list[Labelled]:
    """Weigh (question, language, label) so that rarer pairs of language and label count more."""
    sizes = Counter((language, label) for _, language, label in pairs)
    mean = len(pairs) / max(len(sizes), 1)
    return [
        Labelled(text, label, (mean / sizes[language, label]) ** 0.5)
        for text, language, label in pairs
    ]


def fit(
    examples: Sequence[Labelled], labels: Sequence[str], kept: int = 5_000, looseness: float = 70.0
) -> LinearClassifier:
    """Fit a classifier of wordings to at most `kept` features.

    Kept are the features with the largest weight times the root of their count. A smaller
    `looseness` holds weights closer to 0.
    """
    shown = [features(parse_question(example.question)) for example in examples]
    gold = np.array([[example.label == label for label in labels] for example in examples], float)
    counts = np.array([example.weight for example in examples])
    seen = Counter(feature for own in shown for feature in own)
    names = sorted(feature for feature, count in seen.items() if count >= LEAST_SEEN)
    weights = solve(_matrix(shown, names), gold, counts, looseness)
    weight = np.abs(weights).max(axis=1) * np.sqrt([seen[name] for name in names])
    names = sorted(names[place] for place in np.argsort(-weight, kind="stable")[:kept])
    weights = np.round(solve(_matrix(shown, names), gold, counts, looseness) * UNIT) / UNIT
    rows: Mapping[str, tuple[float, ...]] = {
        name: tuple(row) for name, row in zip(names, weights.tolist(), strict=True) if any(row)
    }
    return LinearClassifier(tuple(labels), rows)


def _matrix(shown: Sequence[frozenset[str]], names: Sequence[str]) -> csr_matrix:
    place = {name: number for number, name in enumerate(names)}
    known = [sorted(place[feature] for feature in own if feature in place) for own in shown]
    starts = np.cumsum([0, *map(len, known)])
    shares = np.concatenate([np.full(len(row), 1 / np.sqrt(max(len(row), 1))) for row in known])
    return csr_matrix((shares, np.concatenate(known), starts), shape=(len(known), len(names)))


def solve(seen: "csr_matrix | Floats", gold: Floats, counts: Floats, looseness: float) -> Floats:
    """Return the weights of features (rows) for labels (columns); `gold` is one-hot."""
    size = seen.shape[1], gold.shape[1]

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(size)
        scores = seen @ weights
        scores -= scores.max(axis=1, keepdims=True)
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        slope = seen.T @ (counts[:, None] * (np.exp(logs) - gold)) + weights / looseness
        likelihood = (counts[:, None] * gold * logs).sum()
        return float(-likelihood + (weights**2).sum() / looseness / 2), slope.ravel()

    start = np.zeros(size[0] * size[1])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return np.asarray(found.x).reshape(size)
