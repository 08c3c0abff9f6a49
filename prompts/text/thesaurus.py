"""A small thesaurus: words of one concept count as one term in a search."""

import re
from functools import cache, lru_cache

from prompts.text.words import (
    HAN_RUN,
    STOPWORDS,
    WORD,
    fold,
    lines_of,
    simplified,
    stem,
    word_terms,
)


@cache
def _concept_of() -> dict[str, str]:
    """Return the concept of each English stem, the first of several ("found": established)."""
    concepts: dict[str, str] = {}
    for line in lines_of("concepts_en"):
        for word in line.split():
            concepts.setdefault(stem(word), f"~{line.split()[0]}")
    return concepts


@cache
def _concept_of_han() -> dict[str, str]:
    """Return the concept of each Chinese word.

    A line may begin with the English word of its concept: then Chinese questions find English
    evidence.
    """
    concepts: dict[str, str] = {}
    for line in lines_of("concepts_zh"):
        first, *rest = line.split()
        concept = _concept_of().get(stem(first), f"~{first}")
        concepts |= dict.fromkeys(rest if first.isascii() else [first, *rest], concept)
    return concepts


@cache
def _han_words() -> re.Pattern[str]:
    return re.compile("|".join(sorted(map(re.escape, _concept_of_han()), key=len, reverse=True)))


@lru_cache(maxsize=20_000)
def concept_terms(text: str) -> tuple[str, ...]:
    """Return the distinct terms of a text in order, with concepts ("~cost") for their words."""
    terms: dict[str, None] = {}
    rest = simplified(fold(text))
    if HAN_RUN.search(rest):
        for match in _han_words().finditer(rest):
            terms.setdefault(_concept_of_han()[match.group()])
        rest = _han_words().sub(" ", rest)
    for word in WORD.findall(rest):
        if word in STOPWORDS:
            continue
        for term in word_terms(word):
            terms.setdefault(_concept_of().get(term, term))
    return tuple(terms)


@cache
def _members() -> dict[str, tuple[str, ...]]:
    stems: dict[str, list[str]] = {}
    for word, concept in _concept_of().items():
        stems.setdefault(concept, []).append(word)
    return {concept: tuple(words) for concept, words in stems.items()}


def members(concept: str) -> tuple[str, ...]:
    """Return the stems of a concept's words, none for any other term."""
    return _members().get(concept, ())
