"""Fit the weights of the offline classifier from the committed development lists.

    python -m benchmarks.train_offline [--folds] [--write]

`route.csv` (which structure): router_dev.jsonl, router_dev_mixed.jsonl and router_dev_more.jsonl. `choose.csv` (the
whole collection or a part of it): auto_dev.jsonl and auto_dev_more.jsonl, and the router's lists without their
overviews as questions about a part. Multinomial logistic regression with a ridge penalty, fitted twice: on all
features, then on those that matter most. `--folds` reads each fifth by the weights of the rest (for `choose` a fifth
of the collections). The lists kept aside (router_questions, router_mixed, auto_questions) and the published sets have
no part in it.
"""

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from benchmarks.compare_sets import Row, rows
from prompts.offline.route import LEAST_WHOLE, STRUCTURES, UNIT, WEIGHTS, LinearClassifier, features
from prompts.text.question import parse_question

HERE = Path(__file__).parent
FOLDS, LEAST_SEEN, STEPS = 5, 2, 150
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Example:
    """A question, its label, how much it counts, and what must not be divided between folds."""

    question: str
    label: str
    weight: float
    group: str


@dataclass(frozen=True)
class Task:
    """A table to fit: its labels, its examples, how many features it keeps, and how loose the penalty is."""

    name: str
    labels: tuple[str, ...]
    read: Callable[[], list[Example]]
    kept: int
    looseness: float


def routed() -> list[Example]:
    """The questions that the structures are learnt from; rarer structures count more."""
    found: list[Row] = [*rows(HERE / "router_dev.jsonl"), *rows(HERE / "router_dev_more.jsonl")]
    for row in rows(HERE / "router_dev_mixed.jsonl"):
        found += [{**part, "language": row["language"]} for part in row["parts"]]
    sizes = Counter((row["language"], row["type"]) for row in found)
    mean = len(found) / len(sizes)
    return [
        Example(row["question"], row["type"], (mean / sizes[row["language"], row["type"]]) ** 0.5, str(place))
        for place, row in enumerate(found)
    ]


def scoped() -> list[Example]:
    """The questions that the scope is learnt from; those about the whole are few, so each counts double."""
    lists = [*rows(HERE / "auto_dev.jsonl"), *rows(HERE / "auto_dev_more.jsonl")]
    found = [
        Example(row["question"], "whole", 2.0, row["collection"])
        if row["family"] == "whole"
        else Example(row["question"], "part", 1.0, row["collection"])
        for row in lists
    ]
    return found + [Example(one.question, "part", 0.05, one.group) for one in routed() if one.label != "catalogue"]


TASKS = (
    Task("route", STRUCTURES, routed, kept=5_000, looseness=70.0),
    Task("choose", ("part", "whole"), scoped, kept=2_000, looseness=20.0),
)


def fit(task: Task, examples: Sequence[Example], shown: Sequence[set[str]]) -> LinearClassifier:
    """The classifier that remains of all features: those with the largest weight times the root of how often they are
    seen, fitted once more by themselves."""
    seen = Counter(feature for found in shown for feature in found)
    names = sorted(feature for feature, count in seen.items() if count >= LEAST_SEEN)
    weights = solve(task, examples, shown, names)
    weight = np.abs(weights).max(axis=1) * np.sqrt([seen[name] for name in names])
    names = sorted(names[place] for place in np.argsort(-weight, kind="stable")[: task.kept])
    weights = np.round(solve(task, examples, shown, names) * UNIT) / UNIT
    return LinearClassifier(
        task.labels, {name: tuple(row) for name, row in zip(names, weights.tolist(), strict=True) if any(row)}
    )


def solve(task: Task, examples: Sequence[Example], shown: Sequence[set[str]], names: Sequence[str]) -> Floats:
    """The weights of features (rows) for labels (columns)."""
    place = {name: number for number, name in enumerate(names)}
    known = [sorted(place[feature] for feature in found if feature in place) for found in shown]
    starts = np.cumsum([0, *map(len, known)])
    shares = np.concatenate([np.full(len(one), 1 / np.sqrt(max(len(one), 1))) for one in known])
    seen = csr_matrix((shares, np.concatenate(known), starts), shape=(len(known), len(names)))
    gold = np.array([[example.label == label for label in task.labels] for example in examples], float)
    counts = np.array([example.weight for example in examples])[:, None]

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(len(names), len(task.labels))
        scores = seen @ weights
        scores -= scores.max(axis=1, keepdims=True)
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        slope = seen.T @ (counts * (np.exp(logs) - gold)) + weights / task.looseness
        return float(-(counts * gold * logs).sum() + (weights**2).sum() / task.looseness / 2), slope.ravel()

    start = np.zeros(len(names) * len(task.labels))
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x).reshape(
        len(names), len(task.labels)
    )


def across(task: Task, examples: Sequence[Example], shown: Sequence[set[str]]) -> list[str]:
    """The label that each question gets by the weights of the other folds."""
    groups = {group: number % FOLDS for number, group in enumerate(dict.fromkeys(one.group for one in examples))}
    folds = [groups[example.group] for example in examples]
    told = [""] * len(examples)
    for fold in range(FOLDS):
        own = [place for place, one in enumerate(folds) if one != fold]
        fitted = fit(task, [examples[place] for place in own], [shown[place] for place in own])
        for place, one in enumerate(folds):
            if one == fold:
                best = fitted.classify(parse_question(examples[place].question))[0]
                told[place] = best.label
                if task.name == "choose" and best.label == "whole" and best.probability < LEAST_WHOLE:
                    told[place] = "part"
    return told


def report(examples: Sequence[Example], told: Sequence[str]) -> list[str]:
    """How many questions of each language and label get their label."""
    right: Counter[tuple[str, str]] = Counter()
    every: Counter[tuple[str, str]] = Counter()
    for example, label in zip(examples, told, strict=True):
        key = ("zh" if parse_question(example.question).chinese else "en", example.label)
        every[key] += 1
        right[key] += label == example.label
    return [f"  {language} {label:9} {right[language, label] / every[language, label]:.3f} of "
            f"{every[language, label]}" for language, label in sorted(every)]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit both tables; say how well they tell unseen questions, or write them where they are read."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.train_offline", description=__doc__.split("\n")[0])
    parser.add_argument("--folds", action="store_true", help="read each fifth by the weights of the rest")
    parser.add_argument("--write", action="store_true", help="write the tables into prompts/offline/weights")
    options = parser.parse_args(arguments)
    for task in TASKS:
        examples = task.read()
        shown = [features(parse_question(example.question)) for example in examples]
        if options.folds:
            told = across(task, examples, shown)
            share = sum(one == example.label for one, example in zip(told, examples, strict=True)) / len(told)
            print("\n".join([f"{task.name}: {len(examples)} questions, {share:.3f}", *report(examples, told)]))
        if options.write:
            fitted = fit(task, examples, shown)
            with (WEIGHTS / f"{task.name}.csv").open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(["feature", *task.labels])
                writer.writerows([name, *(round(one * UNIT) for one in row)] for name, row in fitted.weights.items())
            print(f"{task.name}: {len(fitted.weights)} features written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
