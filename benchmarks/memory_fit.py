"""Where do the constants of the calibration come from? (`tasks.trigger`)

At each value of the common scale, which is the default embedder's cosine, so many pairs of different questions (score
of 2 or less of 5) lie above; the knot of another likeness is where as many lie above.
"""

import gzip
import itertools
import json
from pathlib import Path

import numpy as np

from prompts.engine.embedder import open_embedder
from tasks.question_similarity import alike, taken_apart
from tasks.trigger import UNRELATED

PAIRS = "qa/sts16_question_pairs.jsonl.gz"
DIFFERENT = 2.0


def fit(data: Path) -> None:
    """Prints the knots of likeness by words, and the quantiles of cosines of questions that have nothing in common."""
    with gzip.open(data / PAIRS, "rt", encoding="utf-8") as file:
        pairs = [json.loads(line) for line in file]
    embedder = open_embedder("bundled")
    vectors = embedder.embed([text for pair in pairs for text in (pair["a"], pair["b"])])
    other = np.array([pair["score"] <= DIFFERENT for pair in pairs])
    cosines = (vectors[0::2] * vectors[1::2]).sum(axis=1)[other]
    words = np.array([alike(taken_apart(pair["a"], ()), taken_apart(pair["b"], ())) for pair in pairs])[other]
    for value in (0.5, 0.6, 0.7, 0.8, 0.9):
        above = float((cosines >= value).mean())
        knot = np.quantile(words, 1 - above)
        print(f"{value}: {above:.3f} of {len(cosines)} different pairs above; by words at {knot:.2f}")
    zero = list(dict.fromkeys(pair["a"] for pair in pairs))
    found = embedder.embed(zero)
    near = [float(found[one] @ found[two]) for one, two in itertools.combinations(range(len(zero)), 2)]
    print("unrelated:", {share: round(float(np.quantile(near, share)), 2) for share in UNRELATED})
