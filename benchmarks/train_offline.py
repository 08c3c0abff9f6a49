"""Fits the weights of the offline classifiers from the committed development lists, by
`tasks/train/linear.py`.
"""

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.runner import DATA, Cell, Run, measure, option, share
from benchmarks.sets import Row, read_rows
from prompts.offline.route import LEAST_WHOLE, STRUCTURES, UNIT, WEIGHTS
from prompts.text.question import parse_question
from tasks.train.linear import Labelled, fit

FOLDS = 5


@dataclass(frozen=True)
class Example(Labelled):
    """A labelled question, and what must not be divided between folds."""

    group: str = ""


@dataclass(frozen=True)
class Task:
    """A table to fit: its labels, its examples, how many features it keeps, and how loose the
    penalty is.
    """

    name: str
    labels: tuple[str, ...]
    read: Callable[[], list[Example]]
    kept: int
    looseness: float


def routed() -> list[Example]:
    """The questions that the structures are learnt from; rarer structures count more."""
    found: list[Row] = [
        *read_rows(DATA / "router_dev.jsonl"),
        *read_rows(DATA / "router_dev_more.jsonl"),
    ]
    for row in read_rows(DATA / "router_dev_mixed.jsonl"):
        found += [{**part, "language": row["language"]} for part in row["parts"]]
    sizes = Counter((row["language"], row["type"]) for row in found)
    mean = len(found) / len(sizes)
    return [
        Example(
            row["question"],
            row["type"],
            (mean / sizes[row["language"], row["type"]]) ** 0.5,
            str(place),
        )
        for place, row in enumerate(found)
    ]


def scoped() -> list[Example]:
    """The questions that the scope is learnt from; those about the whole are few, so each counts
    double.
    """
    lists = [
        row
        for name in ("", "_more", "_manuals")
        for row in read_rows(DATA / f"auto_dev{name}.jsonl")
    ]
    found = [
        (
            Example(row["question"], "whole", 2.0, row["collection"])
            if row["family"] == "whole"
            else Example(row["question"], "part", 1.0, row["collection"])
        )
        for row in lists
    ]
    return found + [
        Example(one.question, "part", 0.05, one.group)
        for one in routed()
        if one.label != "catalogue"
    ]


TASKS = (
    Task("route", STRUCTURES, routed, kept=5_000, looseness=70.0),
    Task("choose", ("part", "whole"), scoped, kept=2_000, looseness=20.0),
)


def across(task: Task, examples: Sequence[Example]) -> list[str]:
    """The label that each question gets by the weights of the other folds."""
    groups = {
        group: number % FOLDS
        for number, group in enumerate(dict.fromkeys(one.group for one in examples))
    }
    folds = [groups[example.group] for example in examples]
    told = [""] * len(examples)
    for fold in range(FOLDS):
        own = [example for example, one in zip(examples, folds, strict=True) if one != fold]
        fitted = fit(own, task.labels, task.kept, task.looseness)
        for place, one in enumerate(folds):
            if one == fold:
                best = fitted.classify(parse_question(examples[place].question))[0]
                told[place] = best.label
                if (
                    task.name == "choose"
                    and best.label == "whole"
                    and best.probability < LEAST_WHOLE
                ):
                    told[place] = "part"
    return told


@measure(
    option("--folds", action="store_true", help="read each fifth by the weights of the rest"),
    option("--write", action="store_true", help="write the tables into prompts/offline/weights"),
)
def train_offline(run: Run) -> None:
    """Fit the weights of the offline classifier, and read unseen questions with them.

    `route.csv` (which structure): router_dev, router_dev_mixed and router_dev_more. `choose.csv`
    (the whole collection or a part of it): auto_dev, auto_dev_more and auto_dev_manuals, and the
    router's lists without their overviews as questions about a part. --folds reads each fifth by
    the weights of the rest (for `choose` a fifth of the collections). The lists kept aside
    (router_questions, auto_questions) and the published sets have no part in it.
    """
    for task in TASKS:
        examples = task.read()
        if run.options.folds:
            told = across(task, examples)
            run.table(f"{task.name}, across folds", by_label(examples, told))
        if run.options.write:
            classifier = fit(examples, task.labels, task.kept, task.looseness)
            with (WEIGHTS / f"{task.name}.csv").open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(["feature", *task.labels])
                writer.writerows(
                    [name, *(round(one * UNIT) for one in row)]
                    for name, row in classifier.weights.items()
                )
            print(f"{task.name}: {len(classifier.weights)} features written")


def by_label(examples: Sequence[Example], told: Sequence[str]) -> dict[str, dict[str, Cell]]:
    """How many questions there are of each language and label, and the share that gets its
    label.
    """
    marks: dict[str, list[bool]] = {"all": []}
    for example, label in zip(examples, told, strict=True):
        key = f"{'zh' if parse_question(example.question).chinese else 'en'} {example.label}"
        for name in ("all", key):
            marks.setdefault(name, []).append(label == example.label)
    return {
        name: {"questions": len(own), "right": share(own)} for name, own in sorted(marks.items())
    }
