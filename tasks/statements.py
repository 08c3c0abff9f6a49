"""Whether a sentence can state what a claim states: as much negated, with the same names, the same
way round.

Words that a claim shares with a source do not show this: "Voss did not build the weir" and "The
weir built Voss" share every word with "Voss built the weir".
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from prompts.text.languages import names_of
from prompts.text.names_zh import tagged
from prompts.text.negation import is_negated
from prompts.text.segment import sentences
from prompts.text.words import content_terms, fold, is_han

_CLAUSE_END = re.compile(
    r"[,;:()—，；：。（）]|\b(?:and|but|while|whereas|although|though|or|und|aber|et|mais|y|pero)\b|但是?|而且?|并且"
)
# The segmenter's tags of words that a Chinese name begins with (nouns, places, Latin letters), and
# goes on with.
_NOUN, _IN_NAME = frozenset("nse"), frozenset("nsea")
_BY = re.compile(r"\b(?:by|von|par|por)\b|由|被", re.IGNORECASE)


class _Clause(NamedTuple):
    """A clause of a source, folded, with its terms, the sentence that it stands in and the source's
    title.
    """

    text: str
    terms: frozenset[str]
    is_negated: bool
    sentence: str
    title: str


def can_state(claim: str, sources: Sequence[str]) -> bool:
    """Whether the sources (each a title, then its text on the next lines) can state each clause of
    a claim.

    Of the clauses that share most words with it one must be negated as it is, and have its names in
    its order, those of the sentence and the title counted in.
    """
    known = [clause for source in sources for clause in _clauses_of(source)]
    wholes = [fold(source) for source in sources]
    return all(
        _states(part, frozenset(terms), known, wholes)
        for part in _CLAUSE_END.split(claim)
        if (terms := content_terms(part))
    )


def _states(
    claim: str, terms: frozenset[str], known: Sequence[_Clause], wholes: Sequence[str]
) -> bool:
    most = max((len(terms & clause.terms) for clause in known), default=0)
    names = _names(claim)
    if is_han(claim):  # its nouns are names where the source has them too
        names = [name for name in names if any(name in whole for whole in wholes)]
    order, negated = _order(fold(claim), names, ""), is_negated(claim)
    return any(
        clause.is_negated == negated
        and (
            len(names) < 2
            or _row_states(claim, names, clause.sentence)
            or order
            in (_order(text, names, clause.title) for text in (clause.text, clause.sentence))
        )
        for clause in known
        if len(terms & clause.terms) == most
    )


def _row_states(claim: str, names: Sequence[str], row: str) -> bool:
    """Whether a row `column: value | column: value` says what a claim does of its names.

    Its first cell is what the row is about. Every other word of the claim stands in a cell beside
    one of the other names: an owner's name does not show who designed.
    """
    subject, *cells = row.split(" | ")
    others = [name for name in names if _place(name, subject) < 0]
    if not cells or len(others) == len(names):
        return False
    said = [cell for cell in cells if any(_place(name, cell) >= 0 for name in others)]
    held = frozenset(content_terms(" ".join([subject, *said])))
    return all(_place(name, " ".join(said)) >= 0 for name in others) and (
        frozenset(content_terms(claim)) <= held
    )


@lru_cache(maxsize=512)
def _clauses_of(source: str) -> tuple[_Clause, ...]:
    title, _, text = source.partition("\n") if "\n" in source else ("", "", source)
    return tuple(
        _Clause(
            fold(clause), frozenset(terms), is_negated(clause), fold(text[start:end]), fold(title)
        )
        for start, end in sentences(text)
        for clause in _CLAUSE_END.split(text[start:end])
        if (terms := content_terms(clause))
    )


def _names(text: str) -> list[str]:
    """The names in a text, folded; in Chinese its nouns, those that adjoin taken as one."""
    if not is_han(text):
        return list(dict.fromkeys(fold(name.text) for name in names_of(text)))
    names: list[tuple[int, str]] = []
    for word, tag, start in tagged(text):
        if names and names[-1][0] == start and tag[0] in _IN_NAME:
            names[-1] = (start + len(word), names[-1][1] + word)
        elif tag[0] in _NOUN:
            names.append((start + len(word), word))
    return list(dict.fromkeys(fold(name) for _, name in names if len(name) > 1))


def _order(text: str, names: Sequence[str], title: str) -> tuple[str, ...]:
    """The names from who does it to whom it is done; empty where one stands neither in text nor
    title.
    """
    places = {name: _place(name, text) for name in names}
    if any(place < 0 and _place(name, title) < 0 for name, place in places.items()):
        return ()
    first, *others = sorted(names, key=places.__getitem__) or [""]
    between = text[max(places.get(first, 0), 0) : places[others[0]]] if others else ""
    return (*others[:1], first, *others[1:]) if _BY.search(between) else (first, *others)


def _place(name: str, text: str) -> int:
    """Where a folded name stands in a folded text, in Latin script as whole words; -1 where it does
    not.
    """
    if not name.isascii():
        return text.find(name)
    match = re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", text)
    return match.start() if match else -1
