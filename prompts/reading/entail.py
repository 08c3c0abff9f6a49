"""How likely is it that a passage answers a question, or helps to answer it? (ERM4, Knowledge Filter, without a model)

A logistic regression over a few signs: how the passage stands in the graph beside the others that were found, its rank,
the question's words in its best sentence, a value of the kind asked for, and how many other passages hold that value.
Where the graph does not say (Chinese, pages from outside, a search without it), the words and the values alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from prompts.language.concepts import concept_terms
from prompts.language.words import WORD, fold, fold_name
from prompts.reading.differ import has_value
from prompts.reading.evidence import Evidence
from prompts.reading.pick import options_in
from prompts.reading.relevance import Relevance, Scored

Hypothesis = Literal["strong", "weak"]

# The log-odds of each hypothesis, fitted by `python -m benchmarks.filter_weights`, which says to which questions.
WEIGHTS: dict[Hypothesis, dict[str, float]] = {
    "strong": {"together": 0.56, "rank": -0.37, "cues": 1.34, "value": 0.58, "agreeing": 2.08, "bias": -0.72},
    "weak": {"together": 1.08, "rank": -0.99, "bias": 2.85},
}
# Where a passage begins to count as entailing. Of what needs several passages each must stay: .97 of the evidence of
# the questions that the weights were fitted to does.
FLOORS: dict[Hypothesis, float] = {"strong": -3.25, "weak": -4.0}
# Without the graph: the best coverage that one unit has of the question's words and names, and what that weighs.
SUPPORT_FLOORS: dict[Hypothesis, float] = {"strong": 0.45, "weak": 0.15}
# Passages of which none shares more with the question are not about it, however they stand beside each other.
NOTHING_SHARED = 0.1
_SUPPORT = 5.0
_AGREEING = 3.0
_LEAST_SHARE = 1e-6
# Of a long passage so many sentences are looked through for values.
VALUED = 4
_SHOWN = 4  # words and names in an explanation
_NEAR = math.log(0.02)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage to judge: its units, its whole text and its title.

    `together`: its share of being evidence with others that were found, all of them 1; None where the graph does not
    say.
    """

    units: Sequence[Evidence]
    text: str
    title: str = ""
    together: float | None = None


@dataclass(frozen=True, slots=True)
class Signs:
    """What is known of a passage: 0 to 1, but for the logarithms of its share `together` (None: not known) and `rank`.

    `support` is the best coverage that one unit has of the question's words and names, `best` the unit nearest to the
    question, `values` those of the kind asked for, the one that most others hold first.
    """

    together: float | None
    rank: float
    support: float
    cues: float
    value: float
    agreeing: float
    best: Scored | None
    values: tuple[str, ...]


def signs_of(hypothesis: Hypothesis, passages: Sequence[Candidate], relevance: Relevance) -> list[Signs]:
    """The signs of each passage, in the order of the passages, best first.

    Values are looked for under the strong hypothesis alone: what helps with a chain need not hold what it ends in.
    """
    judged = [[relevance.judge(unit) for unit in passage.units] for passage in passages]
    # Telling Chinese names apart takes milliseconds a passage.
    valued = hypothesis == "strong" and relevance.ask.expects not in {"text", "yesno"} and not relevance.ask.chinese
    values = [_values(scored, relevance) if valued else () for scored in judged]
    voices = _voices(passages, values)
    return [
        Signs(
            together=None if passage.together is None else math.log(max(passage.together, _LEAST_SHARE)),
            rank=math.log(place + 1),
            support=max((one.coverage * (0.4 + 0.6 * one.names) for one in scored), default=0.0),
            cues=max((one.cues for one in scored), default=0.0),
            value=float(bool(values[place])),
            agreeing=max((voices[value] for value in values[place]), default=0.0),
            best=max(scored, key=lambda one: one.score, default=None),
            values=tuple(sorted(values[place], key=lambda value: -voices[value])),
        )
        for place, (passage, scored) in enumerate(zip(passages, judged, strict=True))
    ]


def _values(scored: Sequence[Scored], relevance: Relevance) -> tuple[str, ...]:
    """The values of the kind asked for in the sentences of a passage that are nearest to the question."""
    nearest = sorted(scored, key=lambda one: (-one.score, one.evidence.number))[:VALUED]
    found = (options_in(relevance.ask, one.evidence, relevance.cues, relevance.names) for one in nearest)
    return tuple(dict.fromkeys(value for options in found for _, value in options))


def _voices(passages: Sequence[Candidate], values: Sequence[Sequence[str]]) -> dict[str, float]:
    """How much the other passages that hold a value weigh beside the best passage, at most 1."""
    weights = [1.0 if passage.together is None else passage.together for passage in passages]
    most = max(weights, default=0.0) or 1.0
    found = {}
    for value in {value for group in values for value in group}:
        held = [
            weight for passage, weight in zip(passages, weights, strict=True) if has_value(passage.text, value)
        ]  # the best of them is no voice for itself
        found[value] = min(1.0, (sum(held) - max(held, default=0.0)) / most)
    return found


def strength(hypothesis: Hypothesis, signs: Signs) -> float:
    """How far a passage is above the floor of the hypothesis, in log-odds where the graph says how it stands."""
    if signs.together is None:
        return _SUPPORT * (signs.support - SUPPORT_FLOORS[hypothesis]) + _AGREEING * signs.agreeing
    weights = WEIGHTS[hypothesis]
    odds = weights["bias"] + sum(weight * getattr(signs, name) for name, weight in weights.items() if name != "bias")
    return float(odds - FLOORS[hypothesis])


def probability(hypothesis: Hypothesis, signs: Signs) -> float | None:
    """That a passage is evidence (0 to 1); None where the graph does not say, since words show no probability."""
    if signs.together is None:
        return None
    return 1 / (1 + math.exp(-(strength(hypothesis, signs) + FLOORS[hypothesis])))


def explained(signs: Signs, relevance: Relevance) -> str:
    """What speaks for a passage, in a few words: the question's names and words that it has, the value it gives."""
    if signs.best is None:
        return "has no sentence"
    told, text = [], signs.best.evidence.text
    here = f" {fold_name(signs.best.evidence.title)} {fold_name(text)} "
    names = [name for name, others in relevance.aliases.items() if _is_named(here, (name, *others))]
    if names:
        told.append(f"names {', '.join(names[:_SHOWN])}")
    asked = set(relevance.cues)
    words = [word for word in dict.fromkeys(map(fold, WORD.findall(text))) if asked.intersection(concept_terms(word))]
    if words and not relevance.ask.chinese:
        told.append(f"has {', '.join(repr(word) for word in words[:_SHOWN])}")
    if relevance.ask.chinese and (shared := [term for term in relevance.cues if term in text]):
        told.append(f"has {', '.join(repr(term) for term in shared[:_SHOWN])}")
    if signs.values:
        told.append(f"says {signs.values[0]}" + (", as others do" if signs.agreeing > 0 else ""))
    if not told and signs.together is not None and signs.together > _NEAR:
        told.append("hangs together with what else was found")
    return "; ".join(told) or "shares nothing with the question"


def _is_named(text: str, forms: Sequence[str]) -> bool:
    return any(form in text for form in map(fold_name, forms) if form)
