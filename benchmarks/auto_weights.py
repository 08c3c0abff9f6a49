"""Where do the weights in `prompts.routing.scope_weights` come from?

    python -m benchmarks.auto_weights --data DIR [--write]

Fits a logistic regression of which question is about a whole collection, with a lasso penalty so that few signs
remain, to the lists written for it (auto_dev*.jsonl), to the router's development lists but for their overviews, and to
questions of public sets: those about the podcasts from the 21st on are about the whole, the others (every other one of
the router's) about a part. Reads it on a fifth after the other, fitted to the rest. `auto_questions.jsonl` has no part
in it.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.compare_sets import GLOBAL_QUESTIONS, PODCAST_QUESTIONS, rows
from prompts.language.asked import Ask
from prompts.language.question import ask
from prompts.routing.scope import BIAS, NAMED, signs_of

HERE = Path(__file__).parent
WEIGHTS = HERE.parent / "prompts" / "routing" / "scope_weights.py"
LISTS = ("auto_dev.jsonl", "auto_dev_more.jsonl")
PARTS = {
    "corpora/cmrc2018_zh_dev_questions.jsonl.gz": "question",
    "multihop/hotpot_train100_questions.jsonl.gz": "question",
    "multihop/musique_train100_questions.jsonl.gz": "question",
    "qa/strategyqa_229.jsonl.gz": "question",
    "qa/condambigqa_500.jsonl.gz": "question",
    "qa/rgb_en_fact.jsonl.gz": "query",
    "kgqa/pathquestion_2h_questions.jsonl.gz": "question",
}
ROUTED = "router/structrag_router_test.jsonl.gz"
OF_EACH = 80
LEAST_SEEN, PENALTY, STEPS, FOLDS = 6, 3.0, 400, 5
# Signs that are wordings may weigh more than words: each stands for many of them.
EASED = 0.2
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """A question, whether it is about the whole, and what it counts."""

    taken: Ask
    whole: bool
    weight: float


def read(data: Path) -> list[Row]:
    """All questions to fit to."""
    found = []
    for name in LISTS:
        found += [Row(ask(row["question"]), row["family"] == "whole", 1.5) for row in rows(HERE / name)]
    found += [Row(ask(r["question"]), False, 1.0) for r in rows(HERE / "router_dev.jsonl") if r["type"] != "catalogue"]
    found += [Row(ask(row["question"]), False, 1.0) for row in rows(HERE / "router_dev_mixed.jsonl")]
    published = list(rows(data / ROUTED))[::2]
    found += [Row(ask(row["query"]), False, 1.0) for row in published]
    podcasts = list(rows(data / PODCAST_QUESTIONS))[GLOBAL_QUESTIONS:]
    found += [Row(ask(row["question"]), True, 1.0) for row in podcasts]
    for file, field in PARTS.items():
        every = list(rows(data / file))
        found += [Row(ask(row[field]), False, 0.5) for row in every[:: max(1, len(every) // OF_EACH)]]
    return found


def fitted(found: Sequence[Row]) -> dict[str, float]:
    """The weights that remain, by accelerated proximal gradient descent."""
    shown = [signs_of(row.taken) for row in found]
    seen = Counter(sign for signs in shown for sign, value in signs.items() if value)
    names = sorted(name for name, count in seen.items() if count >= LEAST_SEEN)
    place = {name: number for number, name in enumerate(names)}
    signs = np.zeros((len(found), len(names)))
    for row, given in zip(signs, shown, strict=True):
        for name, value in given.items():
            if name in place:
                row[place[name]] = value
    gold, counts = np.array([row.whole for row in found], float), np.array([row.weight for row in found])
    penalty = np.array([0.0 if name == BIAS else PENALTY * (EASED if " " in name else 1.0) for name in names])
    step = 4 / (np.linalg.norm(signs * np.sqrt(counts)[:, None], 2) ** 2)
    weights = ahead = np.zeros(len(names))
    pace = 1.0
    for _ in range(STEPS):
        slope = signs.T @ (counts * (1 / (1 + np.exp(-signs @ ahead)) - gold))
        moved = ahead - step * slope
        after = np.sign(moved) * np.maximum(np.abs(moved) - step * penalty, 0)
        faster = (1 + np.sqrt(1 + 4 * pace**2)) / 2
        ahead, weights, pace = after + (pace - 1) / faster * (after - weights), after, faster
    rounded = zip(names, np.round(weights, 2).tolist(), strict=True)
    return {name: weight for name, weight in rounded if abs(weight) >= 0.05}


def odds(taken: Ask, weights: dict[str, float]) -> float:
    """Above 0: about the whole."""
    return sum(weights.get(sign, 0.0) * value for sign, value in signs_of(taken).items())


def across(found: Sequence[Row]) -> tuple[float, float]:
    """Which share of the questions about the whole is told, and which of the others is mistaken for one, each fifth
    read by the weights of the rest."""
    told = np.zeros(len(found))
    for fold in range(FOLDS):
        weights = fitted([row for place, row in enumerate(found) if place % FOLDS != fold])
        for place in range(fold, len(found), FOLDS):
            told[place] = odds(found[place].taken, weights) >= 0
    whole = np.array([row.whole for row in found])
    return float(told[whole].mean()), float(told[~whole].mean())


def written(weights: dict[str, float], name: str) -> Iterator[str]:
    """The weights as code, heaviest first, several on a line."""
    yield f"{name}: dict[str, float] = {{"
    line = "   "
    order = {BIAS: 2, NAMED: 1}
    for sign in sorted(weights, key=lambda one: (-order.get(one, 0), " " not in one, -weights[one], one)):
        piece = f" {json.dumps(sign, ensure_ascii=False)}: {weights[sign]:g},"
        if len(line) + sum(2 if char > "\u2e80" else 1 for char in piece) > 110:
            yield line
            line = "   "
        line += piece
    yield line
    yield "}  # fmt: skip"


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, say how well, and print the weights or write them where they are read."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.auto_weights", description="Fit the scope's weights.")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the folder that holds the sets")
    parser.add_argument("--write", action="store_true", help="write them into prompts/routing/scope_weights.py")
    options = parser.parse_args(arguments)
    if not options.data.is_dir():
        print(f"There is no folder {options.data}. Name the one that holds the question sets: --data DIR.")
        return 2
    every = read(options.data)
    lines = ['"""What does each sign of `prompts.routing.scope` weigh? Fitted by benchmarks/auto_weights.py."""']
    for name, chinese in (("WEIGHTS_EN", False), ("WEIGHTS_ZH", True)):
        found = [row for row in every if row.taken.chinese == chinese]
        recall, mistaken = across(found)
        weights = fitted(found)
        whole = sum(row.whole for row in found)
        print(f"{name}: {len(found)} questions, {whole} about the whole; {len(weights)} signs")
        print(f"  across fifths: told {recall:.3f}, mistaken {mistaken:.3f}")
        lines += ["", *written(weights, name)]
    text = "\n".join(lines) + "\n"
    if options.write:
        WEIGHTS.write_text(text, encoding="utf-8")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
