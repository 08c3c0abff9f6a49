"""Does the evidence speak of what the question asks about? If not, nothing may be answered.

What a question names and no evidence names weighs most against it; then how little of its words the best sentence and
the best passage have. The weights are a logistic regression (`python -m benchmarks.reader_weights`): questions asked
over their own passages against questions asked over the passages of another set.
"""

from collections.abc import Sequence

from prompts.language.words import fold_name
from prompts.reading.evidence import Evidence
from prompts.reading.pick import names_of
from prompts.reading.relevance import Relevance
from prompts.reading.weighing import Weighed

GROUNDS = ("one", "strange", "any_strange", "nameless", "coverage", "titled", "passage", "runs", "characters")
Grounds = tuple[float, ...]


def grounds_of(ranked: Sequence[Weighed], relevance: Relevance) -> Grounds:
    """What speaks for an answer, in the order of GROUNDS; `ranked` is the evidence, likeliest first, not empty."""
    names, strange = named(ranked, relevance)
    best = ranked[0].signs
    return (
        1.0,
        strange / names if names else 0.0,
        float(strange > 0),
        float(not names),
        best["coverage"],
        best["titled"],
        max(one.signs["passage"] for one in ranked),
        best["runs"],
        best["characters"],
    )


def named(ranked: Sequence[Weighed], relevance: Relevance) -> tuple[int, int]:
    """How many things the question names by the looks of it, and how many of them no evidence names.

    A name that the graph knows may stand in the evidence as another of its names.
    """
    told = _told([one.evidence for one in ranked])
    spans = [name for span in names_of(relevance.ask.text) if (name := fold_name(span.text))]
    strange = [name for name in spans if name not in told and not _told_otherwise(name, told, relevance)]
    return len(spans), len(strange)


def _told_otherwise(name: str, told: str, relevance: Relevance) -> bool:
    return any(name in forms and any(form in told for form in forms) for forms in relevance.names)


def grounded(ranked: Sequence[Weighed], relevance: Relevance) -> float:
    """The log odds that the evidence is about what the question asks of; at 0 it is as likely as not."""
    if not ranked:
        return float("-inf")
    weights = WEIGHTS_ZH if relevance.ask.chinese else WEIGHTS_EN
    return sum(weight * ground for weight, ground in zip(weights, grounds_of(ranked, relevance), strict=True))


def _told(evidence: Sequence[Evidence]) -> str:
    """All that the evidence says, folded as names are."""
    texts = dict.fromkeys(part for piece in evidence for part in (piece.text, piece.title, piece.heading))
    return " ".join(map(fold_name, texts))


WEIGHTS_EN: Grounds = (-2.73, -4.16, -0.02, -3.42, 2.64, 2.92, 4.56, 0.00, 0.00)
WEIGHTS_ZH: Grounds = (-5.66, -1.43, -0.33, -0.88, 3.39, 4.28, 2.25, 5.11, 1.71)
