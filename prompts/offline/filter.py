"""Filter without a model: a passage helps as far as the graph ties it to what else was found, or as it has the words.

Two rules: log-odds from the passage's share in the graph's evidence and its rank, where the graph compares the
passages; the coverage of the question's rare words where it does not (Chinese, pages from outside, a search without the
graph)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from prompts.text.languages import language_among, language_of

Label = Literal["entailment", "neutral", "contradiction"]
# Log-odds that a passage is evidence, fitted to questions of two public sets (see benchmarks/filter.py).
TOGETHER, RANK, BIAS = 1.08, -0.99, 2.85
# From this on it counts as evidence: .97 of the evidence that the weights were fitted to does.
FLOOR = -4.0
# Without the graph: the coverage of the question's words from which a passage counts.
LEAST_COVERED = 0.25
_LEAST_SHARE = 1e-6
_MOST_WORDS = 4


@dataclass(frozen=True, slots=True)
class FilterVerdict:
    """The label of one passage and why; `against` is the number of the passage that a contradiction denies."""

    label: Label
    explanation: str
    against: int | None = None


def odds_of(share: float, rank: int) -> float:
    """The log-odds that a passage is evidence; `rank` is from 1 on."""
    return BIAS + TOGETHER * math.log(max(share, _LEAST_SHARE)) + RANK * math.log(rank)


def judge(
    question: str, passages: Sequence[str], shares: Sequence[float | None], rarity: Callable[[str], float]
) -> list[FilterVerdict]:
    """A verdict for each passage (title and text, best first); no contradiction is told without a model.

    `shares`: of each passage of being evidence with others, all of them 1; None where the graph does not say.
    """
    language = language_among(question, frozenset(map(language_of, passages)))
    wanted = {term: rarity(term) for term in language.content_terms(question)}
    total = sum(wanted.values()) or 1.0
    verdicts = []
    for rank, (text, share) in enumerate(zip(passages, shares, strict=True), 1):
        here = set(language.content_terms(text))
        shared = sorted((term for term in wanted if term in here), key=lambda term: (-wanted[term], term))
        if share is None:
            helps = sum(wanted[term] for term in shared) / total >= LEAST_COVERED
        else:
            helps = odds_of(share, rank) >= FLOOR
        words = ", ".join(shared[:_MOST_WORDS])
        told = f"has {words}" if shared else "hangs together with what else was found" if helps else "shares nothing"
        verdicts.append(FilterVerdict("entailment" if helps else "neutral", told))
    return verdicts
