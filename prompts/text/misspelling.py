"""Misspelt words: the term of a vocabulary that an unknown term stands for."""

from collections.abc import Collection

from rapidfuzz import process
from rapidfuzz.distance import OSA

SHORTEST = 4  # letters: a shorter word is like too many
SEARCHED = 6  # letters, from which on a word that no text has is searched for as another one
LONG = 8  # letters, from which on two slips are forgiven
STEM, ENDING = 5, 4  # letters: the least that a misspelt ending leaves of a word, and the most of such an ending


def known_spelling(term: str, known: Collection[str]) -> str:
    """The known term that a term is a misspelling of; itself where there is none.

    Terms are stems: where the slip stands in the ending ("permanantly"), the stem of the right word begins the term.
    """
    if len(term) < SHORTEST:
        return term
    slips = 2 if len(term) >= LONG else 1
    near = [other for other in known if len(other) >= SHORTEST and abs(len(other) - len(term)) <= slips]
    # Who mistypes a word seldom mistypes its first letter.
    near.sort(key=lambda other: (other[0] != term[0], other))
    best = process.extractOne(term, near, scorer=OSA.distance, score_cutoff=slips)
    if best:
        return best[0]
    begun = (other for other in known if len(other) >= STEM and term.startswith(other))
    return max((other for other in begun if len(term) - len(other) <= ENDING), key=len, default=term)
