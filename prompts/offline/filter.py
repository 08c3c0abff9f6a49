"""Filter without a model: a passage helps if it is among the first that were found and has words of the question."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from prompts.text.languages import Language, language_among

Label = Literal["entailment", "neutral", "contradiction"]
# So many of the first passages count: .98 of the evidence of two public sets is among them (benchmarks/filter_hint.py).
FIRST = 5
_MOST_WORDS = 4


@dataclass(frozen=True, slots=True)
class FilterVerdict:
    """The label of one passage and why; `against` is the number of the passage that a contradiction denies."""

    label: Label
    explanation: str
    against: int | None = None


LATER = FilterVerdict("neutral", f"is not among the first {FIRST}")


def judge(
    question: str, passages: Sequence[str], rarity: Callable[[str], float], languages: frozenset[str]
) -> list[FilterVerdict]:
    """A verdict for each passage (title and text, best first), which are in these languages; no contradiction is told
    without a model."""
    first = passages[:FIRST]
    language = language_among(question, languages)
    wanted = sorted(set(language.content_terms(question)), key=lambda term: (-rarity(term), term))
    verdicts = []
    for text in first:
        terms = _terms(text, language)
        shared = [term for term in wanted if term in terms]
        label: Label = "entailment" if shared else "neutral"
        verdicts.append(FilterVerdict(label, f"has {', '.join(shared[:_MOST_WORDS])}" if shared else "shares nothing"))
    return verdicts + [LATER] * (len(passages) - len(first))


@lru_cache(maxsize=4_096)
def _terms(text: str, language: Language) -> frozenset[str]:
    """Kept, since the same passages are found for many questions."""
    return frozenset(language.content_terms(text))
