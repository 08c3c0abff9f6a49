"""Other writings of one name: titles, legal forms, inverted names, figures, spaces, Chinese script.

`form` gives all of them one key. It is about the writing alone: whether two things of one form are one thing also
depends on their kinds.
"""

import re
from functools import cache, lru_cache

from prompts.text.kinds import KIND_OF, kind_of_words
from prompts.text.words import CJK, fold, fold_name, lines_of

# Before a full name they say what somebody is; those that may stand for a spouse ("Mrs John Smith") are left out.
PERSONAL_TITLES = frozenset(
    """mr dr prof professor sir dame rev reverend president captain capt colonel col general gen lieutenant lt major sgt
    sergeant admiral judge justice senator sen congressman minister chancellor governor mayor inspector detective
    engineer director chairman bishop archbishop cardinal pope emperor king queen prince princess duke earl baron count
    lord hon honourable honorable doctor master""".split()
)
LEGAL_FORMS = frozenset(
    """inc incorporated corp corporation co company ltd limited llc llp plc gmbh ag kg sa nv bv spa oy ab srl pty kk
    holdings group""".split()
)
_SURE_FORMS = LEGAL_FORMS - {"company", "group", "holdings", "co", "sa", "ag", "ab", "spa"}
ZH_TITLE = re.compile(r"(?:先生|女士|博士|教授|老师|总统|主席|院士|将军|经理|工程师|同志)$")
_ZH_LEGAL = re.compile(r"(?:股份有限公司|有限责任公司|有限公司|集团公司)$")
_ONE_WRITING = {
    "st": "saint", "mt": "mount", "ft": "fort", "univ": "university", "dept": "department", "intl": "international",
    "natl": "national", "assoc": "association", "bros": "brothers", "centre": "center", "theatre": "theater",
    "harbour": "harbor", "labour": "labor", "defence": "defense", "colour": "color", "organisation": "organization",
    "honour": "honor", "jr": "junior", "sr": "senior", "no": "number", "govt": "government", "inst": "institute",
    "iii": "3", "iv": "4", "vi": "6", "vii": "7", "viii": "8", "ix": "9", "xi": "11", "xii": "12", "xiii": "13",
    "xiv": "14", "xv": "15", "xvi": "16", "ii": "2", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
    "seven": "7", "eight": "8", "nine": "9", "ten": "10", "first": "1st", "second": "2nd", "third": "3rd",
    "fourth": "4th", "fifth": "5th",
}  # fmt: skip
_NO_NAME = KIND_OF.keys() | {"of", "and", "in", "at", "for", "to", "with", "elector", "bishop", "abbess"}
_FILLERS = frozenset({"and", "the"})
_LEAST_COMPACT = 6  # letters from which a name without its spaces is still that name
_HAN = re.compile(f"[{CJK}]")
_INVERTED = re.compile(r"([^,，]+),\s*([^,，]+)")
_BLANK = re.compile(r"(?<!\d) | (?!\d)")


@lru_cache(maxsize=300_000)
def form(name: str) -> tuple[str, str]:
    """The key that all writings of a name share, and in what this writing differs from the plainest one."""
    if _HAN.search(name):
        return _chinese(name)
    reason = ""
    inverted = _INVERTED.fullmatch(name) if "," in name else None
    if inverted and _may_be_given(inverted[2]):
        name, reason = f"{inverted[2]} {inverted[1]}", "the last name stands first"
    words = _joined_initials(fold_name(name.replace("&", " and ")))
    titles = _titles(words)
    if titles:
        words, reason = words[titles:], "a title stands before the name"
    if len(words) > 1 and words[-1] in _SURE_FORMS:
        while len(words) > 1 and words[-1] in LEGAL_FORMS:
            words = words[:-1]
        reason = "the legal form stands after the name"
    plain = [words[0], *(_ONE_WRITING.get(word, word) for word in words[1:] if word not in _FILLERS)] if words else []
    plain[:1] = [{"st": "saint", "mt": "mount", "ft": "fort"}.get(word, word) for word in plain[:1]]
    # Without blanks, but figures stay apart from figures.
    compact = _BLANK.sub("", " ".join(plain))
    return compact if len(compact) >= _LEAST_COMPACT else " ".join(plain) or name, reason


def simplified(text: str) -> str:
    """Traditional characters as simplified ones, as far as names commonly hold them."""
    return text.translate(_simplified())


@cache
def _simplified() -> dict[int, int]:
    return str.maketrans(*lines_of("traditional_simplified"))


def _chinese(name: str) -> tuple[str, str]:
    whole = simplified(fold_name(name)).replace(" ", "")
    plain = _ZH_LEGAL.sub("", whole)
    if len(plain) >= 2 and plain != whole:
        return plain, "the legal form stands after the name"
    plain = ZH_TITLE.sub("", whole)
    if len(plain) >= 2 and plain != whole:
        return plain, "a title stands after the name"
    return whole, ""


def _joined_initials(folded: str) -> list[str]:
    """Words, with initials that follow each other as one ("j r r tolkien" → "jrr", "tolkien")."""
    words: list[str] = []
    run = ""
    for word in folded.split():
        if len(word) == 1 and word.isalpha():
            run += word
            continue
        if run:
            words.append(run)
            run = ""
        words.append(word)
    return [*words, run] if run else words


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
    return "".join(word[0] for word in fold_name(name).split() if word not in _FILLERS | {"of", "for", "in", "de"})
