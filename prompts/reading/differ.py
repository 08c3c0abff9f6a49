"""Where do two texts that say almost the same say something else? One value put for another, or a negation.

Words are compared, not meanings: what is worded otherwise is not seen, and nothing is called different that only reads
differently.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from prompts.language.common import usually_lower
from prompts.language.concepts import concept_terms
from prompts.language.values import amount, values_in
from prompts.language.words import CJK, STOPWORDS, fold, is_han
from prompts.reading.pick import names_of

# So many words must be the same in two copies, and such a share of the longer one.
SAME_WORDS = 4
SAME_SHARE = 0.55
# A value put for another has at most so many words.
LONGEST_VALUE = 8
# Texts with more words are compared sentence by sentence only.
LONGEST_TEXT = 90
# A negation denies another sentence that has such a share of its words (both ways).
DENIED_SHARE = 0.9
DENIED_WORDS = 3

_WORD = re.compile(rf"[{CJK}]|[^\W_{CJK}]+(?:[.'’,-][^\W_{CJK}]+)*")
_NEGATION = re.compile(
    r"\b(?:not|never|no longer|no|none|nobody|no one|nothing|neither|without)\b|n['’]t\b|"
    r"没有|不是|并非|未曾|尚未|不再|从未|不会|不能|未能",
    re.I,
)
_EMPTY = STOPWORDS | {"there", "someone", "somebody", "nobody", "none", "one"}
_POSSESSIVE = re.compile(r"(?<=\w)['’]s?$")
_RUN = re.compile(r"\w+")
_HAN = "\u3400"
_DIGITS = re.compile(r"\d+")
_MONTH = re.compile(r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?", re.I)


@dataclass(frozen=True, slots=True)
class Put:
    """One value in a text and the value that stands for it in the other, both as written."""

    one: str
    other: str


@lru_cache(maxsize=8_192)
def _words(text: str) -> tuple[tuple[str, int, int], ...]:
    """The folded words with their places; a date is one word, however it is written."""
    if _MONTH.search(text) is None:
        return tuple(_plain_words(text, 0, len(text)))
    found: list[tuple[str, int, int]] = []
    at = 0
    for date in (value for value in values_in(text) if value.kind == "date" and " " in value.text):
        found += _plain_words(text, at, date.start)
        found.append((" ".join(sorted(_date_parts(date.text))), date.start, date.end))
        at = date.end
    return (*found, *_plain_words(text, at, len(text)))


def _plain_words(text: str, start: int, end: int) -> list[tuple[str, int, int]]:
    found = []
    for match in _WORD.finditer(text, start, end):
        bare = _POSSESSIVE.sub("", match.group())
        found.append((bare if bare >= _HAN else fold(bare), match.start(), match.start() + len(bare)))
    return found


@lru_cache(maxsize=8_192)
def words_of(text: str) -> frozenset[str]:
    """The distinct folded words of a text; a date of several words is one."""
    return frozenset(word for word, _, _ in _words(text))


def has_value(text: str, value: str) -> bool:
    """Whether a text has all words of a value in a row."""
    if not _may_have(text, value) or not words_of(value) <= words_of(text):
        return False
    wanted, words = [word for word, _, _ in _words(value)], [word for word, _, _ in _words(text)]
    starts = [place for place, word in enumerate(words) if word == wanted[0]] if wanted else []
    return any(words[place : place + len(wanted)] == wanted for place in starts)


def _may_have(text: str, value: str) -> bool:
    """A quick no where the longest figure of a value, or its longest word, is nowhere in a text."""
    telling = max(_DIGITS.findall(value) or _RUN.findall(value), key=len, default="")
    return telling in text or telling.casefold() in text.casefold()


def put_for(one: str, other: str) -> Put | None:
    """The one value that another stands for where two texts are copies but for it; None where they are not.

    The same value may be replaced more than once. A copy in which more than one value differs tells of something else
    (another year, another prize), so it differs in nothing.
    """
    first, second = _words(one), _words(other)
    longest = max(len(first), len(second))
    if min(len(first), len(second)) <= SAME_WORDS or longest > LONGEST_TEXT or one == other:
        return None
    if len(words_of(one) & words_of(other)) < SAME_SHARE * max(len(words_of(one)), len(words_of(other))):
        return None
    a, b = [word for word, _, _ in first], [word for word, _, _ in second]
    found: dict[tuple[str, str], Put] = {}
    same = 0
    for kind, i, j, k, m in _blocks(a, b):
        if kind == "equal":
            same += j - i
        elif kind != "replace" or max(j - i, m - k) > LONGEST_VALUE:
            return None
        else:
            key = " ".join(a[i:j]), " ".join(b[k:m])
            found.setdefault(key, Put(one[first[i][1] : first[j - 1][2]], other[second[k][1] : second[m - 1][2]]))
    if len(found) != 1 or same < max(SAME_WORDS, SAME_SHARE * longest):
        return None
    put = next(iter(found.values()))
    return put if _is_value(put.one, one) and _is_value(put.other, other) and not agree(put.one, put.other) else None


def _blocks(a: Sequence[str], b: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    """What is equal and what is replaced, a function word between two replaced stretches counted as replaced."""
    blocks: list[tuple[str, int, int, int, int]] = []
    for kind, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        joins = kind == "equal" and j - i == 1 and blocks and i > 0 and j < len(a) and a[i] in STOPWORDS
        if blocks and blocks[-1][0] != "equal" and (kind != "equal" or joins):
            _, start, _, other, _ = blocks[-1]
            blocks[-1] = ("replace", start, j, other, m)
        else:
            blocks.append((kind, i, j, k, m))
    return blocks


def _is_value(part: str, text: str) -> bool:
    """Whether a part of a text is a name, a date or a figure; a capital at the start of a text is owed to the place."""
    if _DIGITS.search(part):
        return True
    if is_han(part):
        return any(part in name.text or name.text in part for name in names_of(text))
    opens = text.lstrip(" \"“‘'(").startswith(part)
    words = [word for word in part.split() if fold(word) not in STOPWORDS]
    return any(word[:1].isupper() and not (opens and word is words[0] and usually_lower(fold(word))) for word in words)


def agree(one: str, other: str) -> bool:
    """Whether two values can be the same: one is part of the other, or they amount to the same.

    "May 2012" agrees with "15 May 2012", "Murray" with "Andy Murray", "1,000" with "1000".
    """
    first, second = words_of(one), words_of(other)
    if not first or not second or first <= second or second <= first:
        return True
    if _MONTH.search(one) and _MONTH.search(other):
        return _date_parts(one) <= _date_parts(other) or _date_parts(other) <= _date_parts(one)
    if _initials(one) == _initials(other):
        return True
    terms = set(concept_terms(one)), set(concept_terms(other))
    if terms[0] and terms[0] == terms[1]:
        return True
    numbers = amount(one), amount(other)
    return numbers[0] is not None and numbers[0] == numbers[1] and not _MONTH.search(one + other)


def _initials(text: str) -> str:
    """ "us" for "U.S." and for "United States"; another text for each single word."""
    words = text.split()
    spelled = len(words) > 1 and all(word[0].isalpha() for word in words)
    return "".join(word[0] for word in words).lower() if spelled else text.replace(".", "").lower()


def _date_parts(text: str) -> set[str]:
    return {part.lstrip("0") for part in _DIGITS.findall(text)} | {match[1].lower() for match in _MONTH.finditer(text)}


def denies(one: str, other: str) -> bool:
    """Whether one of two sentences says of the same that it is not so."""
    if _is_negated(one) == _is_negated(other):
        return False
    first, second = _plain(one), _plain(other)
    if min(len(first), len(second)) < DENIED_WORDS:
        return False
    return len(first & second) >= DENIED_SHARE * max(len(first), len(second))


@lru_cache(maxsize=8_192)
def _is_negated(text: str) -> bool:
    return len(_NEGATION.findall(text)) % 2 == 1


@lru_cache(maxsize=8_192)
def _plain(text: str) -> frozenset[str]:
    """The concepts of a sentence without its negation."""
    bare = _NEGATION.sub(" ", text)
    return frozenset(term for term in concept_terms(bare) if term not in _EMPTY)
