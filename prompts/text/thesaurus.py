"""A small thesaurus: words of one concept, and words that name one relation ("kid" and `children`)."""

import re
from collections import defaultdict
from functools import cache, lru_cache

from prompts.text.regex import regex
from prompts.text.words import HAN_RUN, STOPWORDS, WORD, fold, is_han, lines_of, simplified, stem, word_terms


@cache
def _concept_of() -> dict[str, str]:
    """The concept of each English stem; of a stem with two ("founded" is established, "found" discovered) the first."""
    concepts: dict[str, str] = {}
    for line in lines_of("concepts_en"):
        for word in line.split():
            concepts.setdefault(stem(word), f"~{line.split()[0]}")
    return concepts


@cache
def _concept_of_han() -> dict[str, str]:
    """The concept of each Chinese word. A line begins with the English word of its concept where there is one, so that
    a Chinese question finds English evidence."""
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
    """The distinct terms of a text, in order, with words of one concept as that concept ("~cost")."""
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


@lru_cache(maxsize=1)
def _members() -> dict[str, tuple[str, ...]]:
    stems: dict[str, list[str]] = {}
    for word, concept in _concept_of().items():
        stems.setdefault(concept, []).append(word)
    return {concept: tuple(words) for concept, words in stems.items()}


def members(concept: str) -> tuple[str, ...]:
    """The stems of a concept's words; nothing for a term that is no concept."""
    return _members().get(concept, ())


SAME, SYNONYM, DERIVED = 1.0, 0.9, 0.8
_LEAST_SHARED = 5  # letters that two words of one family begin with
_AGENT = regex(r"(?:ations?|ions?|ors?|ers?|ress|ments?|ship|ing|ist|ity|al|ed|ic)$")

# A meaning, and the words and short phrases that may stand for it. A word may have several meanings.
_FEMALE = "mother mom mum mama mommy daughter wife sister bride heiress niece aunt 母亲 妈妈 女儿 妻子 姐姐 妹妹"
_MALE = "father dad daddy papa son husband brother groom nephew uncle 父亲 爸爸 儿子 丈夫 哥哥 弟弟"
_SEX_OF = dict.fromkeys(_FEMALE.split(), "female") | dict.fromkeys(_MALE.split(), "male")


@lru_cache(maxsize=1)
def _lexicon() -> dict[str, frozenset[str]]:
    """Meanings by stem or phrase (stems joined by underscores)."""
    lexicon: dict[str, set[str]] = defaultdict(set)
    for line in lines_of("relation_meanings"):
        meaning, words = line.split(": ", 1)
        for word in words.split():
            lexicon["_".join(map(stem, word.split("_")))].add(meaning)
    return {word: frozenset(meanings) for word, meanings in lexicon.items()}


@lru_cache(maxsize=1)
def phrases() -> tuple[str, ...]:
    """The phrases of the lexicon, as stems joined by underscores, longest first."""
    return tuple(sorted((word for word in _lexicon() if "_" in word), key=lambda word: (-word.count("_"), word)))


@lru_cache(maxsize=1)
def han_words() -> tuple[str, ...]:
    """The Chinese words of the lexicon, longest first."""
    return tuple(sorted((word for word in _lexicon() if HAN_RUN.match(word)), key=lambda word: (-len(word), word)))


def meanings(word: str) -> frozenset[str]:
    """What a stem or phrase may mean; nothing where the lexicon does not know it."""
    return _lexicon().get(word, frozenset())


@lru_cache(maxsize=200_000)
def likeness(word: str, other: str) -> float:
    """From 0 to 1, of two stems or phrases: equal, of one meaning, or of one family ("author" and "authored")."""
    if word == other:
        return SAME
    if meanings(word) & meanings(other):
        return SYNONYM
    if is_han(word) and is_han(other):
        return DERIVED if word in other or other in word else 0.0
    return DERIVED if _root(word) == _root(other) or _family(word, other) else 0.0


@lru_cache(maxsize=50_000)
def _root(word: str) -> str:
    bare = _AGENT.sub("", word)
    return bare if len(bare) > 2 else word


def _family(word: str, other: str) -> bool:
    short, long = sorted((word, other), key=len)
    shared = next((n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    return shared >= _LEAST_SHARED and shared >= len(short) - 1 and len(long) - shared <= _LEAST_SHARED


def sex_of(word: str) -> str:
    """Whom a word for a relative names: "female", "male", or "" for either."""
    return _SEX_OF.get(word, "")
