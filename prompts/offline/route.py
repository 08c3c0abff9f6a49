"""Routing and the choice between the whole collection and a part of it without a model: a
question's wording alone.

A linear classifier of words, word patterns and character n-grams, weighed by a table per task
(`route.csv`: which structure, StructRAG 2.2; `choose.csv`: the whole or a part, GraphRAG 1) that
`benchmarks/train_offline.py` writes and `tasks/train/linear.py` fits. English and Chinese share the
tables.
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
from prompts.text.languages import ENGLISH
from prompts.text.question import ParsedQuestion
from prompts.text.words import STOPWORDS

# Why a label was chosen, for people: the words that weigh most say nothing to them.
REASON = "from its wording, without a model"
WEIGHTS = Path(__file__).parent / "weights"
# Weights are kept as whole hundredths.
UNIT = 100
START, END, FIGURE, NAME, OTHER = "^", "$", "0", "N", "_"
_WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?|\d[\d.,%]*")
_NO_HAN = re.compile(r"\d[\d.,%]*|[A-Za-z]+")
_LINK = re.compile(r"\b(?:of|whose|who|that|which)\b|'s\b", re.I)
_CHARACTERS = 4
_MOST_COUNTED = 4


@dataclass(frozen=True, slots=True)
class LabelVerdict:
    """A label with its probability."""

    label: str
    probability: float


@dataclass(frozen=True)
class LinearClassifier:
    """Labels, and for each known feature its weight for each label."""

    labels: tuple[str, ...]
    weights: Mapping[str, tuple[float, ...]]

    def classify(
        self, question: ParsedQuestion, extra: Mapping[str, float] | None = None
    ) -> list[LabelVerdict]:
        """All labels, the likeliest first; equal ones by name. `extra` is added to the scores of
        labels.
        """
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
    """The classifier of a task ("route", "choose"), read from its table once."""
    with (WEIGHTS / f"{task}.csv").open(encoding="utf-8", newline="") as lines:
        header, *rows = csv.reader(lines)
    weights = {feature: tuple(int(weight) / UNIT for weight in values) for feature, *values in rows}
    return LinearClassifier(tuple(header[1:]), weights)


def program_of(trained: LinearClassifier, step: str, shape: str) -> dict[str, object]:
    """A classifier as it stands in a folder of programs: whole hundredths, as in our tables."""
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
    """The classifier of such a program; KeyError, TypeError or ValueError where it is none."""
    labels = tuple(program["labels"])
    weights = {
        feature: tuple(weight / UNIT for weight in row)
        for feature, row in program["weights"].items()
    }
    if set(labels) - set(STRUCTURES) or any(len(row) != len(labels) for row in weights.values()):
        raise ValueError(f"labels {labels} with weights for others")
    return LinearClassifier(labels, weights)


@lru_cache(256)
def features(question: ParsedQuestion) -> frozenset[str]:
    """What a question shows; kept, since two steps ask. English: words and pairs, patterns of
    function words, pieces of words; Chinese: one to three characters; both: its form, and how many
    links ("of", "whose", 的) it holds.
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
    """Function words as they stand; a run of other words is one blank, a name or a figure."""
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
# What rows among the best passages add for a table; the classifier sees the question alone.
TABULAR = 0.3


def ranked(
    question: ParsedQuestion, tabular: bool, trained: LinearClassifier | None = None
) -> list[LabelVerdict]:
    """All structures, the likeliest first; `tabular` says whether the best passages are rows,
    `trained` stands in place of our classifier.
    """
    return (trained or classifier("route")).classify(
        question, {"table": TABULAR} if tabular else None
    )


# Between these probabilities the wording does not tell. Across fifths of the questions that the
# weights were fitted to 3 of 410 about the whole are below the first, none of 693 about a part
# above the second.
SURELY_PART, SURELY_WHOLE = 0.02, 0.95
# A passage that is not searched for is missed; a question that is searched first may still be asked
# of the whole.
LEAST_WHOLE = 0.5
FIRST_WHOLE = 0.9  # from here on it is asked of the whole first
# Where a name stands in the question, a probability below the first counts as the second: in doubt,
# and searched first.
LEAST_NAMED, NAMED = 0.85, 0.45


def whole_offline(question: ParsedQuestion) -> float:
    """How likely a question is about the whole collection, 0-1, by its wording; what names a thing
    is about a part of it unless the wording is sure.
    """
    probability = {
        verdict.label: verdict.probability for verdict in classifier("choose").classify(question)
    }["whole"]
    names = (
        [name for name in ENGLISH.names(question.text) if name.start]
        if not question.chinese
        else []
    )
    return round(min(probability, NAMED) if names and probability < LEAST_NAMED else probability, 3)
