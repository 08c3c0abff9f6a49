"""Where do the weights in `prompts.reading.entail` come from?

    python -m benchmarks.filter_weights --data DIR [--keep DIR]

Fits a logistic regression of which of the first 20 passages is evidence: under the weak hypothesis to all questions of
two public sets, under the strong one to those that our rules take for single-hop ones and to every other question of
RGB. Reads it on other questions: 2WikiMultihopQA, and those of RGB between.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.filter_cases import RGB, Case, area, before, cases
from prompts.reading.entail import WEIGHTS, Hypothesis

FITTED = ("hotpot_train100", "musique_train100")
READ = "2wiki_780"
PENALTY = 1.0

Floats = NDArray[np.float64]


def rows(given: Sequence[Case], hypothesis: Hypothesis) -> tuple[Floats, Floats]:
    """The signs that the hypothesis weighs, a row for each candidate, and whether it is evidence."""
    names = [name for name in WEIGHTS[hypothesis] if name != "bias"]
    signs = [[getattr(one, name) or 0.0 for name in names] for case in given for one in case.signs(hypothesis)]
    return np.array(signs), np.concatenate([case.gold for case in given]).astype(float)


def fitted(given: Sequence[Case], hypothesis: Hypothesis) -> dict[str, float]:
    """The weights and the bias under which the evidence is likeliest, with a ridge penalty on the scaled weights."""
    signs, gold = rows(given, hypothesis)
    mean, spread = signs.mean(axis=0), signs.std(axis=0) + 1e-9
    scaled = (signs - mean) / spread

    def loss(values: Floats) -> tuple[float, Floats]:
        odds = scaled @ values[1:] + values[0]
        wrong = 1 / (1 + np.exp(-odds)) - gold
        total = np.logaddexp(0, odds).sum() - odds @ gold + PENALTY * float(values[1:] @ values[1:]) / 2
        return float(total), np.concatenate([[wrong.sum()], scaled.T @ wrong + PENALTY * values[1:]])

    found = minimize(loss, np.zeros(signs.shape[1] + 1), jac=True, method="L-BFGS-B").x
    weights = found[1:] / spread
    names = [name for name in WEIGHTS[hypothesis] if name != "bias"]
    return {
        **{name: round(float(weight), 2) for name, weight in zip(names, weights, strict=True)},
        "bias": round(float(found[0] - weights @ mean), 2),
    }


def read(given: Sequence[Case], hypothesis: Hypothesis, weights: dict[str, float]) -> str:
    """How well weights tell evidence from the rest: over all candidates, and within each question."""
    signs, gold = rows(given, hypothesis)
    values = np.array([weight for name, weight in weights.items() if name != "bias"])
    scores, places = signs @ values, np.cumsum([0, *(len(case.gold) for case in given)])
    pairs = [
        (before(part[case.gold], part[~case.gold]), int(case.gold.sum() * (~case.gold).sum()))
        for case, part in zip(given, np.split(scores, places[1:-1]), strict=True)
    ]
    total = sum(count for _, count in pairs)
    within = sum(share * count for share, count in pairs) / max(total, 1)
    return f"AUC {area(scores, gold > 0):.3f}, pairs within a question {within:.3f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the fitted weights beside the present ones, and what both reach."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.filter_weights", description="Fit the filter's weights."
    )
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--keep", type=Path, metavar="DIR")
    options = parser.parse_args(arguments)
    if not options.data.is_dir():
        print(f"There is no folder {options.data}. Name the one that holds the sets: --data DIR.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as temporary:
        keep = options.keep or Path(temporary)
        known = {name: cases(name, options.data, keep) for name in (*FITTED, READ, RGB)}
    several = [case for name in FITTED for case in known[name]]
    single = [case for case in several if case.hypothesis == "strong"] + known[RGB][1::2]
    held: dict[Hypothesis, list[Case]] = {"weak": known[READ], "strong": known[RGB][::2]}
    to_fit: tuple[tuple[Hypothesis, list[Case]], ...] = (("weak", several), ("strong", single))
    for hypothesis, given in to_fit:
        for label, weights in (("fitted", fitted(given, hypothesis)), ("as they are", WEIGHTS[hypothesis])):
            print(f"{hypothesis} {label}: {weights}")
            print(f"  on what they are fitted to: {read(given, hypothesis, weights)}")
            print(f"  on others: {read(held[hypothesis], hypothesis, weights)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
