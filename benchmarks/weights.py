"""Where the weights in `tasks.retrieve.passage_sets` come from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.retrieval import quality
from benchmarks.runner import Cell, Run, measure, names_of, option
from benchmarks.sets import SETS, Question, files_of, open_set
from tasks.retrieve.passage_sets import WEIGHTS, Switches, Weights, choose, pair_scores

Floats = NDArray[np.float64]

NAMES = tuple(Weights.model_fields)
PENALTY = 0.05
DEPTHS = (5, 8)
LEARNT = ["hotpot_train100", "musique_train100"]


@measure(
    option("--fit", type=names_of(SETS), default=LEARNT, metavar="A,B", help="fit to these"),
    sets=files_of(*SETS), default=[*LEARNT, "2wiki_780"],
)  # fmt: skip
def weights(run: Run) -> None:
    """Where do the weights of pairs of passages come from, and what do they reach?

    A log-linear model of which pair of passages is evidence, fitted to every other question of the sets named by --fit,
    and read on the questions between, on the other sets, and with the weights as they are.
    """
    known = {name: cases(run, name) for name in run.options.sets}
    learnt = [case for name in run.options.fit if name in known for case in known[name][::2]]
    chosen = fitted(learnt)
    run.table("weights", {"fitted": chosen.model_dump(), "as they are": WEIGHTS.model_dump()})
    rows: dict[str, dict[str, Cell]] = {}
    for label, values in (("fitted", chosen), ("as they are", WEIGHTS)):
        for name, given in known.items():
            if name in run.options.fit:
                rows[f"{label}: {name}, fitted to"] = read(given[::2], values)
                rows[f"{label}: {name}, between"] = read(given[1::2], values)
            else:
                rows[f"{label}: {name}"] = read(given, values)
    run.table("all gold passages", rows)


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


def cases(run: Run, name: str) -> list[Case]:
    """The questions of a set with the pools that the search gathers for them."""
    found = []
    with open_set(run, name) as session:
        index = session.index
        for question in SETS[name].read_questions(run.options.data, run.limit):
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


def read(given: Sequence[Case], weights: Weights) -> dict[str, Cell]:
    """The share of the questions that have all their evidence among the first passages."""
    values = np.array([getattr(weights, name) for name in NAMES])
    ranked = [
        [case.documents[place] for place in choose(case.signs @ values, case.subject)] if case.documents else []
        for case in given
    ]
    found = quality([case.question for case in given], ranked, DEPTHS)
    return {"questions": len(given), **{f"all@{depth}": found[f"all@{depth}"] for depth in DEPTHS}}
