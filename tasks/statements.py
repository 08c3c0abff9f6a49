"""Can a source state what a claim states: equally negated, with the same names in the same order?

Shared words do not show this: "Voss did not build the weir" and "The weir built Voss" share every
word with "Voss built the weir".
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
# The segmenter's tags of what a Chinese name begins with: nouns, places, Latin letters.
_NOUN_TAGS = frozenset("nse")
_NAME_TAGS = _NOUN_TAGS | {"a"}  # And of what it goes on with
_BY = re.compile(r"\b(?:by|von|par|por)\b|由|被", re.IGNORECASE)


class _Clause(NamedTuple):
    """A folded clause of a source, with its terms, its sentence and the source's title."""

    text: str
    terms: frozenset[str]
    is_negated: bool
    sentence: str
    title: str


def can_state(claim: str, sources: Sequence[str]) -> bool:
    """Whether the sources can state each clause of a claim.

    A source is its title, then its text from the next line on. Of the clauses that share most
    words with a clause of the claim, one must be negated alike and have its names in the same
    order; names in the clause's sentence or the title count too.
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
    if is_han(claim):  # A Chinese noun counts as a name where the sources hold it too
        names = [name for name in names if any(name in whole for whole in wholes)]
    order, negated = _order(fold(claim), names, ""), is_negated(claim)
    return any(
        clause.is_negated == negated
        and (
            len(names) < 2
            or _row_states(claim, names, clause.sentence)
            or order == _order(clause.text, names, clause.title)
            or order == _order(clause.sentence, names, clause.title)
        )
        for clause in known
        if len(terms & clause.terms) == most
    )


def _row_states(claim: str, names: Sequence[str], row: str) -> bool:
    """Whether a row `column: value | column: value` states a claim about its first cell.

    Every other word of the claim must stand in the cells of the other names: the cell of an owner
    does not show who designed.
    """
    subject, *cells = row.split(" | ")
    others = [name for name in names if _place(name, subject) < 0]
    if not cells or len(others) == len(names):
        return False
    said = [cell for cell in cells if any(_place(name, cell) >= 0 for name in others)]
    held = frozenset(content_terms(" ".join([subject, *said])))
    return all(_place(name, " ".join(said)) >= 0 for name in others) and (
        held.issuperset(content_terms(claim))
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
    """Return the folded names of a text; in Chinese its runs of nouns."""
    if not is_han(text):
        return list(dict.fromkeys(fold(name.text) for name in names_of(text)))
    names: list[tuple[int, str]] = []
    for word, tag, start in tagged(text):
        if names and names[-1][0] == start and tag[0] in _NAME_TAGS:
            names[-1] = (start + len(word), names[-1][1] + word)
        elif tag[0] in _NOUN_TAGS:
            names.append((start + len(word), word))
    return list(dict.fromkeys(fold(name) for _, name in names if len(name) > 1))


def _order(text: str, names: Sequence[str], title: str) -> tuple[str, ...]:
    """Return the names from who acts to what is acted on.

    Empty where a name stands neither in the text nor in the title.
    """
    places = {name: _place(name, text) for name in names}
    if any(place < 0 and _place(name, title) < 0 for name, place in places.items()):
        return ()
    first, *others = sorted(names, key=places.__getitem__) or [""]
    between = text[max(places.get(first, 0), 0) : places[others[0]]] if others else ""
    return (*others[:1], first, *others[1:]) if _BY.search(between) else (first, *others)


def _place(name: str, text: str) -> int:
    """Return where a folded name stands in a folded text, as whole words; -1 where it does not."""
    if not name.isascii():
        return text.find(name)
    match = re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", text)
    return match.start() if match else -1
