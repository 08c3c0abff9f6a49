"""Likeness of two names, other writings of one name, and what tells two names apart, by letters and words alone."""

from collections.abc import Sequence
from functools import lru_cache

from prompts.text.amounts import MONTHS, WEEKDAYS
from prompts.text.names import KIND_OF, kind_of_words
from prompts.text.regex import regex
from prompts.text.words import (
    CJK,
    fold,
    fold_name,
    groups_in,
    is_han,
    plain_name,
    simplified,
    words_in,
)

SAME_WORD = 0.8  # likeness of letters from which two words may be one word, misspelt
_ORDINAL = regex(r"(?<=\d)(?:st|nd|rd|th)$")
# Of each group a name has one member at most; two names with different ones are two things.
_OPPOSED = (
    *(frozenset(words) for words in groups_in("english", "opposed").values()),
    frozenset(WEEKDAYS),
    frozenset(MONTHS),
)
_HAN_OPPOSED = ("东西南北", "上下中", "新旧老", "大小", "前后", "男女", "一二三四五六七八九十")


def opposed(first: Sequence[str], second: Sequence[str]) -> str:
    """What makes two similar names two things ("11 and 12", "north and south"), or nothing."""
    first_numbers, second_numbers = numbers_of(first), numbers_of(second)
    if first_numbers != second_numbers and (first_numbers and second_numbers):
        return f"{' '.join(sorted(first_numbers))} and {' '.join(sorted(second_numbers))}"
    a, b = set(first), set(second)
    for group in _OPPOSED:
        mine, other = group & (a - b), group & (b - a)
        if mine and other:
            return f"{min(mine)} and {min(other)}"
    return _han_opposed("".join(first), "".join(second))


def _han_opposed(first: str, second: str) -> str:
    if len(first) != len(second) or not is_han(first):
        return ""
    differ = [(sign, other) for sign, other in zip(first, second, strict=True) if sign != other]
    if len(differ) == 1 and any(differ[0][0] in group and differ[0][1] in group for group in _HAN_OPPOSED):
        return f"{differ[0][0]} and {differ[0][1]}"
    return ""


def numbers_of(words: Sequence[str]) -> frozenset[str]:
    """The figures of a name, and after its first word ordinals, number words and Roman numerals as figures."""
    plain = [*words[:1], *(_ONE_WRITING.get(word, word) for word in words[1:])]
    return frozenset(_ORDINAL.sub("", word) for word in plain if any(sign.isdigit() for sign in word))


# Before a full name they say what somebody is; those that may stand for a spouse ("Mrs John Smith") are left out.
PERSONAL_TITLES = words_in("english", "personal_titles")
LEGAL_FORMS = words_in("english", "legal_forms")
_SURE_FORMS = LEGAL_FORMS - {"company", "group", "holdings", "co", "sa", "ag", "ab", "spa"}
ZH_TITLE = regex(r"(?:先生|女士|博士|教授|老师|总统|主席|院士|将军|经理|工程师|同志)$")
_ZH_ADDED = regex(rf"(?:(?P<legal>(?:股份|责任)?有限(?:责任)?公司|集团公司)|{ZH_TITLE.pattern[:-1]})$")
_ONE_WRITING = {word: "".join(words) for word, words in groups_in("english", "one_writing").items()}
_NO_NAME = KIND_OF.keys() | {"of", "and", "in", "at", "for", "to", "with", "elector", "bishop", "abbess"}
_SHORT_FIRST = {"st": "saint", "mt": "mount", "ft": "fort"}
_CHANGED = frozenset({"and", *_SHORT_FIRST, *_ONE_WRITING, *PERSONAL_TITLES, *_SURE_FORMS})
_LEAST_COMPACT = 6  # letters from which a name without its spaces is still that name
_HAN = regex(f"[{CJK}]")
_INVERTED = regex(r"([^,，]+),\s*([^,，]+)")
_AND = regex(r"&|(?<=[^\W\d_]{2}) ?\+ ?(?=[^\W\d_]{2})")
_BLANK = regex(r"(?<!\d) | (?!\d)")


def form(name: str) -> tuple[str, str]:
    """The key that all writings of a name share, and in what this writing differs from the plainest one."""
    plain = plain_name(name)  # as most are: the same in a tenth of the time
    return (_compact(plain), "") if plain and _CHANGED.isdisjoint(plain.split()) else _form(name)


@lru_cache(maxsize=300_000)
def _form(name: str) -> tuple[str, str]:
    if _HAN.search(name):
        return _chinese(name)
    reason = ""
    inverted = _INVERTED.fullmatch(name) if "," in name else None
    if inverted and _may_be_given(inverted[2]):
        name, reason = f"{inverted[2]} {inverted[1]}", "the last name stands first"
    words = fold_name(_AND.sub(" and ", name)).split()
    titles = _titles(words)
    if titles:
        words, reason = words[titles:], "a title stands before the name"
    if len(words) > 1 and words[-1] in _SURE_FORMS:
        while len(words) > 1 and words[-1] in LEGAL_FORMS:
            words = words[:-1]
        reason = "the legal form stands after the name"
    plain = [words[0], *(_ONE_WRITING.get(word, word) for word in words[1:] if word != "and")] if words else []
    plain[:1] = [_SHORT_FIRST.get(word, word) for word in plain[:1]]
    return _compact(" ".join(plain)) or name, reason


def _compact(name: str) -> str:
    """A name without blanks where it is long enough, but figures stay apart from figures."""
    compact = _BLANK.sub("", name)
    return compact if len(compact) >= _LEAST_COMPACT else name


def _chinese(name: str) -> tuple[str, str]:
    whole = simplified(fold_name(name)).replace(" ", "")
    added = _ZH_ADDED.search(whole)
    if added is None or added.start() < 2:
        return whole, ""
    return whole[: added.start()], f"{'the legal form' if added['legal'] else 'a title'} stands after the name"


def _titles(words: list[str]) -> int:
    """How many titles stand before a full name; none before what is no person's ("Duke of Hask", "General Motors")."""
    count = next((place for place, word in enumerate(words) if word not in PERSONAL_TITLES), 0)
    if not count or len(words) - count < 2 or kind_of_words(words) or words[count] in _NO_NAME:
        return 0
    return count


def _may_be_given(text: str) -> bool:
    """Whether what stands behind a comma may be given names or initials: no suffix, and short."""
    words = fold(text).replace(".", " ").split()
    return 0 < len(words) <= 4 and not {*words} & (LEGAL_FORMS | {"jr", "sr", "junior", "senior", "the", "of"})


def initials_of(name: str) -> str:
    """The first letters of a name's words, as an abbreviation writes them ("orla bridge company" → "obc")."""
    return "".join(word[0] for word in fold_name(name).split() if word not in {"and", "the", "of", "for", "in", "de"})
