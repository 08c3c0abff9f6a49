"""Where do the weights in `tasks.retrieve.passage_sets` come from?

    python -m benchmarks.weights WORKSPACE --data DIR [--fit SET] [--read SET]

Fits a log-linear model of which pair of passages is evidence to every other question of the sets named by --fit, and
reads it on the questions between, on those of --read, and with all weights as they are. `WORKSPACE` is the folder that
`python -m benchmarks.retrieval --keep WORKSPACE` filled.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.questions import SETS, Question
from benchmarks.ranking import quality
from flows.runtime import open_runtime
from flows.session import open_session
from flows.settings import Settings
from tasks.retrieve.passage_sets import WEIGHTS, Switches, Weights, choose, pair_scores

Floats = NDArray[np.float64]

NAMES = tuple(Weights.model_fields)
PENALTY = 0.05
DEPTHS = (5, 8)


@dataclass(frozen=True)
class Case:
    """A question with its pool: the documents of the n passages, which of them the question names (0 to 1), and the
    signs of each pair (n × n × weights)."""

    question: Question
    documents: list[str]
    subject: Floats
    signs: Floats

    @property
    def pairs(self) -> tuple[Floats, NDArray[np.bool_]]:
        """The signs of each pair, and whether it is evidence."""
        gold = np.isin(self.documents, self.question.gold)
        other = np.array(self.documents)[:, None] != np.array(self.documents)[None, :]
        one, two = np.triu_indices(len(gold), 1)
        return self.signs[one, two], (gold[:, None] & gold[None, :] & other)[one, two]


def cases(name: str, folder: Path, data: Path) -> list[Case]:
    """The questions of a set with the pools that the search gathers for them."""
    known = next(one for one in SETS if one.name == name)
    found = []
    with open_session(open_runtime(Settings(workspace=folder / name / "workspace"))) as session:
        index = session.index
        for question in known.read_questions(data, None):
            asked = index.asked(question.text, session.dense([question.text])[0])
            pool = index.selector.pool(asked, index.allowed(None), Switches())
            signs = index.selector.signs(asked, pool, Switches())
            each = [pair_scores(signs, Weights(**{one: float(one == name) for one in NAMES})) for name in NAMES]
            documents = [index.chunks[place].document for place in pool]
            found.append(Case(question, documents, signs.subject, np.stack(each, axis=-1)))
    return found


def fitted(given: Sequence[Case]) -> Weights:
    """The weights under which the pairs of evidence are likeliest among all pairs of their pools."""
    pairs = [(signs, gold) for signs, gold in (case.pairs for case in given) if gold.any()]
    spread = np.concatenate([signs for signs, _ in pairs]).std(axis=0) + 1e-9

    def loss(scaled: Floats) -> tuple[float, Floats]:
        total, slope = 0.0, np.zeros(len(NAMES))
        for signs, gold in pairs:
            scores = signs @ (scaled / spread)
            likely = np.exp(scores - scores.max())
            right = likely * gold
            total += float(np.log(likely.sum()) - np.log(right.sum() + 1e-300))
            slope += likely @ signs / likely.sum() - right @ signs / (right.sum() + 1e-300)
        return (
            total / len(pairs) + PENALTY * float(scaled @ scaled) / 2,
            slope / spread / len(pairs) + PENALTY * scaled,
        )

    found = minimize(loss, np.zeros(len(NAMES)), jac=True, method="L-BFGS-B").x / spread
    return Weights(**{name: round(float(value), 2) for name, value in zip(NAMES, found, strict=True)})


def read(given: Sequence[Case], weights: Weights) -> str:
    """How many of the questions have all their evidence among the first passages."""
    values = np.array([getattr(weights, name) for name in NAMES])
    ranked = [
        [case.documents[place] for place in choose(case.signs @ values, case.subject)] if case.documents else []
        for case in given
    ]
    found = quality([case.question for case in given], ranked, DEPTHS).all_gold
    return ", ".join(f"all@{depth} {found[depth]:.3f}" for depth in DEPTHS) + f" of {len(given)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the fitted weights and what they and the present ones reach."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.weights", description="Fit the weights of pairs.")
    parser.add_argument("workspace", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--fit", action="append", metavar="SET")
    parser.add_argument("--read", action="append", metavar="SET")
    options = parser.parse_args(arguments)
    fit = {name: cases(name, options.workspace, options.data) for name in options.fit or FITTED}
    held = {name: cases(name, options.workspace, options.data) for name in options.read or HELD_OUT}
    weights = fitted([case for given in fit.values() for case in given[::2]])
    print(weights)
    for label, chosen in (("fitted", weights), ("as they are", WEIGHTS)):
        for name, given in fit.items():
            print(f"{label:12} {name}: fitted on {read(given[::2], chosen)}; not on {read(given[1::2], chosen)}")
        for name, given in held.items():
            print(f"{label:12} {name}: {read(given, chosen)}")
    return 0


FITTED = ("hotpot_train100", "musique_train100")
HELD_OUT = ("2wiki_780",)

if __name__ == "__main__":
    sys.exit(main())
