"""Routing a question by its wording alone, without a model.

A linear classifier of words, word patterns and character n-grams, with a table of weights for each
task (`route.csv`: which structure, StructRAG 2.2; `choose.csv`: the whole collection or a part,
GraphRAG 1). `benchmarks/train_offline.py` writes the tables, `tasks/train/linear.py` fits them.
English and Chinese share them.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from math import exp, sqrt
from pathlib import Path
from typing import Any, get_args

from prompts.structures import StructureName
from prompts.text.languages import names_of
from prompts.text.question import ParsedQuestion
from prompts.text.words import STOPWORDS

# The reason that people read; the words that weigh most would tell them nothing.
REASON = "from its wording, without a model"
WEIGHTS = Path(__file__).parent / "weights"
UNIT = 100  # Weights are stored as whole hundredths
START, END, FIGURE, NAME, OTHER = "^", "$", "0", "N", "_"
_WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?|\d[\d.,%]*")
_NO_HAN = re.compile(r"\d[\d.,%]*|[A-Za-z]+")
_LINK = re.compile(r"\b(?:of|whose|who|that|which)\b|'s\b", re.I)
_CHARACTERS = 4  # Of an n-gram
_MOST_COUNTED = 4


@dataclass(frozen=True, slots=True)
class LabelVerdict:
    """A label with its probability."""

    label: str
    probability: float


@dataclass(frozen=True)
class LinearClassifier:
    """Labels, and the weight of each known feature for each label."""

    labels: tuple[str, ...]
    weights: Mapping[str, tuple[float, ...]]

    def classify(
        self, question: ParsedQuestion, extra: Mapping[str, float] | None = None
    ) -> list[LabelVerdict]:
        """Return all labels, the most likely first; `extra` is added to the scores of labels."""
        known = [
            self.weights[feature]
            for feature in sorted(features(question))
            if feature in self.weights
        ]
        share = 1 / sqrt(max(len(known), 1))
        sums = map(sum, zip(*known, strict=True)) if known else [0.0] * len(self.labels)
        scores = [
            share * total + (extra or {}).get(label, 0.0)
            for label, total in zip(self.labels, sums, strict=True)
        ]
        odds = [exp(score - max(scores)) for score in scores]
        verdicts = [
            LabelVerdict(label, odd / sum(odds))
            for label, odd in zip(self.labels, odds, strict=True)
        ]
        return sorted(verdicts, key=lambda verdict: (-verdict.probability, verdict.label))


@cache
def classifier(task: str) -> LinearClassifier:
    """Read the classifier of a task ("route", "choose") from its table."""
    with (WEIGHTS / f"{task}.csv").open(encoding="utf-8", newline="") as lines:
        header, *rows = csv.reader(lines)
    weights = {feature: tuple(int(weight) / UNIT for weight in values) for feature, *values in rows}
    return LinearClassifier(tuple(header[1:]), weights)


def program_of(trained: LinearClassifier, step: str, shape: str) -> dict[str, object]:
    """Write a classifier as a program, with whole hundredths."""
    weights = {
        feature: [round(weight * UNIT) for weight in row]
        for feature, row in trained.weights.items()
    }
    return {
        "step": step,
        "shape": shape,
        "demos": [],
        "labels": list(trained.labels),
        "weights": weights,
    }


def classifier_of(program: Mapping[str, Any]) -> LinearClassifier:
    """Read the classifier of a program; KeyError, TypeError or ValueError where it is none."""
    labels = tuple(program["labels"])
    weights = {
        feature: tuple(weight / UNIT for weight in row)
        for feature, row in program["weights"].items()
    }
    if set(labels) - set(STRUCTURES) or any(len(row) != len(labels) for row in weights.values()):
        raise ValueError(f"labels {labels} with weights for others")
    return LinearClassifier(labels, weights)


@lru_cache(maxsize=256)
def features(question: ParsedQuestion) -> frozenset[str]:
    """Return the features of a question.

    English: words and pairs, patterns of function words, n-grams. Chinese: one to three characters.
    Both: the form, and the number of links ("of", "whose", 的).
    """
    result = set(_chinese(question.text) if question.chinese else _english(question.text))
    language = "zh" if question.chinese else "en"
    links = question.text.count("的") if question.chinese else len(_LINK.findall(question.text))
    result |= {f"({language} links {number})" for number in range(1, min(links, _MOST_COUNTED) + 1)}
    return frozenset(result | {f"({language})", f"({language} form {question.form})"})


def _chinese(text: str) -> Iterator[str]:
    plain = _NO_HAN.sub(lambda match: FIGURE if match.group()[0].isdigit() else "a", text.strip())
    plain = START + plain.rstrip("。.？?！! ") + END
    for size in (1, 2, 3):
        for start in range(len(plain) - size + 1):
            yield plain[start : start + size]


def _english(text: str) -> Iterator[str]:
    spelled = _WORD.findall(text.replace("\u2019", "'"))
    words = [START, *(FIGURE if word[0].isdigit() else word.lower() for word in spelled), END]
    yield from words
    yield from (f"{word} {following}" for word, following in pairwise(words))
    for word in words[1:-1]:
        inside = f" {word} "
        yield from (
            f"<{inside[at : at + _CHARACTERS]}>" for at in range(len(inside) - _CHARACTERS + 1)
        )
    pattern = _pattern(spelled)
    for size in (2, 3):
        yield from (
            "~" + " ".join(pattern[at : at + size]) for at in range(len(pattern) - size + 1)
        )
    named = sum(word[0].isupper() for word in spelled[1:])
    yield from (f"(en names {number})" for number in range(1, min(named, _MOST_COUNTED) + 1))


def _pattern(spelled: Sequence[str]) -> list[str]:
    """Keep function words; reduce each run of other words to a blank, a name or a figure."""
    pattern = [START]
    for place, word in enumerate(spelled):
        if word.lower() in STOPWORDS:
            pattern.append(word.lower())
            continue
        sort = FIGURE if word[0].isdigit() else NAME if place and word[0].isupper() else OTHER
        if pattern[-1] == OTHER and sort == NAME:
            pattern[-1] = NAME
        elif pattern[-1] != sort:
            pattern.append(sort)
    return [*pattern, END]


STRUCTURES: tuple[StructureName, ...] = get_args(StructureName)
TABULAR = 0.3  # Added to the score of a table where the best passages are rows


def ranked(
    question: ParsedQuestion, tabular: bool, trained: LinearClassifier | None = None
) -> list[LabelVerdict]:
    """Return all structures, the most likely first.

    `tabular` says whether the best passages are rows; `trained` replaces our classifier.
    """
    return (trained or classifier("route")).classify(
        question, {"table": TABULAR} if tabular else None
    )


# Outside these probabilities of the whole the wording is sure. In cross-validation over the
# questions that the weights were fitted to, 3 of 410 about the whole fall below the first, and none
# of 693 about a part above the second.
SURELY_PART, SURELY_WHOLE = 0.02, 0.95
# A question counts as about the whole from the first on, and is asked of it at once from the second
# on; below that the documents are searched first.
LEAST_WHOLE, FIRST_WHOLE = 0.5, 0.9
# A question with a name counts as NAMED below LEAST_NAMED: in doubt it is searched first.
LEAST_NAMED, NAMED = 0.85, 0.45


def whole_offline(question: ParsedQuestion) -> float:
    """Return the probability that a question is about the whole collection, by its wording.

    A question with a name is about a part unless the wording is sure.
    """
    probability = {
        verdict.label: verdict.probability for verdict in classifier("choose").classify(question)
    }["whole"]
    named = not question.chinese and any(name.start for name in names_of(question.text))
    return round(min(probability, NAMED) if named and probability < LEAST_NAMED else probability, 3)
