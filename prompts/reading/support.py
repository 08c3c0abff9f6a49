"""Does a piece of evidence support what is said of it? Its figures must stand there as written, and its names and words
must be shared.

A deterministic check of each sentence that a model cites evidence for (after ALCE, arXiv 2305.14627: citation recall
and precision, without a second model).
"""

import re
from collections.abc import Iterable

from prompts.language.concepts import concept_terms
from prompts.language.names import name_spans
from prompts.language.words import fold, fold_name, is_han
from prompts.reading.evidence import Evidence

# So much of a sentence's words must stand in the evidence that it cites, and in evidence that is found for it.
SHARED, MOSTLY = 0.3, 0.7
_FIGURE = re.compile(r"\d+(?:[.,:/]\d+)*")
_BARE = re.compile(r"[,\s]")


def supports(said: str, pieces: Iterable[Evidence], question: str, least: float = SHARED) -> bool:
    """Whether the evidence shows what is said: each figure and Latin name of it stands there or in the question, and
    at least so much of its words do, where both are of one language."""
    shown = list(pieces)
    if not shown:
        return False
    texts = [f"{piece.title}\n{piece.heading}\n{piece.before}\n{piece.text}" for piece in shown]
    texts += [f"{piece.label} {piece.attribute} {piece.value}" for piece in shown]
    evidence = "\n".join(texts)
    if unshown_figures(said, f"{evidence}\n{question}"):
        return False
    held = set(concept_terms(evidence))
    if is_han(said) != is_han(evidence):
        return _names_shown(said, evidence, question)
    own = set(concept_terms(said))
    new = own - set(concept_terms(question))
    # What only repeats the question says no more than that the evidence is about it.
    share = len(own & held) / len(own) if own else 0.0
    return share >= least and (not new or bool(new & held))


def unshown_figures(said: str, evidence: str) -> list[str]:
    """The figures of a text that the evidence does not have, digit by digit, whatever separates thousands."""
    shown = {_BARE.sub("", figure) for figure in _FIGURE.findall(evidence)} | set(_FIGURE.findall(evidence))
    return [figure for figure in _FIGURE.findall(said) if figure not in shown]


def as_written(said: str, evidence: str) -> str:
    """A text with its figures as the evidence writes them: "1308463" as "1,308,463"."""
    written = {_BARE.sub("", figure): figure for figure in _FIGURE.findall(evidence)}
    shown = set(_FIGURE.findall(evidence))
    return _FIGURE.sub(
        lambda match: match[0] if match[0] in shown else written.get(_BARE.sub("", match[0]), match[0]), said
    )


def adds(said: str, piece: Evidence, question: str) -> bool:
    """Whether a piece of evidence has something of what is said beyond the words of the question."""
    new = set(concept_terms(said)) - set(concept_terms(question))
    return bool(new & set(concept_terms(f"{piece.text} {piece.value}")))


def value_shown(value: str, evidence: str, question: str) -> bool:
    """Whether a bare value may be given: its figures stand in the evidence as written, and so does a name in the
    evidence's own script; yes, no and what the question offers need not."""
    if fold(value) in {"yes", "no", "是", "否"} or fold_name(value) in fold_name(question):
        return True
    if unshown_figures(value, evidence):
        return False
    if is_han(value) and not is_han(evidence):
        return True
    terms = set(concept_terms(value))
    return not terms or len(terms & set(concept_terms(evidence))) >= len(terms) / 2


def _names_shown(said: str, evidence: str, question: str) -> bool:
    """Across languages: whether the names written in Latin letters stand in the evidence."""
    told = f"{fold(evidence)}\n{fold(question)}"
    return all(fold(name.text) in told for name in name_spans(said, [(0, len(said))]))
