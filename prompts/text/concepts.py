"""A small thesaurus of everyday relations: different words that mean much the same, in questions and in texts.

Words of one line count as one concept when a question is matched against a sentence. Nothing here is about a domain.
"""

import re
from functools import cache, lru_cache

from prompts.text.words import HAN_RUN, STOPWORDS, WORD, fold, lines_of, stem, word_terms


@cache
def _concept_of() -> dict[str, str]:
    """The concept of each English stem; of a stem with two ("founded" is established, "found" discovered) the first."""
    found: dict[str, str] = {}
    for line in lines_of("concepts_en"):
        for word in line.split():
            found.setdefault(stem(word), f"~{line.split()[0]}")
    return found


@cache
def _concept_of_han() -> dict[str, str]:
    """The concept of each Chinese word. A line begins with the English word of its concept where there is one, so that
    a Chinese question finds English evidence."""
    found: dict[str, str] = {}
    for line in lines_of("concepts_zh"):
        first, *rest = line.split()
        concept = _concept_of().get(stem(first), f"~{first}")
        found |= dict.fromkeys(rest if first.isascii() else [first, *rest], concept)
    return found


@cache
def _han_words() -> re.Pattern[str]:
    return re.compile("|".join(sorted(map(re.escape, _concept_of_han()), key=len, reverse=True)))


@lru_cache(maxsize=20_000)
def concept_terms(text: str) -> tuple[str, ...]:
    """The distinct terms of a text, in order, with words of one concept as that concept ("~cost")."""
    found: dict[str, None] = {}
    rest = fold(text)
    if HAN_RUN.search(rest):
        for match in _han_words().finditer(rest):
            found.setdefault(_concept_of_han()[match.group()])
        rest = _han_words().sub(" ", rest)
    for word in WORD.findall(rest):
        if word in STOPWORDS:
            continue
        for term in word_terms(word):
            found.setdefault(_concept_of().get(term, term))
    return tuple(found)


@lru_cache(maxsize=1)
def _members() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for word, concept in _concept_of().items():
        found.setdefault(concept, []).append(word)
    return {concept: tuple(words) for concept, words in found.items()}


def members(concept: str) -> tuple[str, ...]:
    """The stems of a concept's words; nothing for a term that is no concept."""
    return _members().get(concept, ())
