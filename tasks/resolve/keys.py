"""The keys by which names are compared, and the form that all spellings of a name share."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from prompts.text.names import KIND_OF, kind_of_words
from prompts.text.words import CJK, fold, fold_name, groups_in, plain_name, simplified, words_in
from storage.provenance import DocumentName

_STRONG_KINDS = frozenset({"person", "organisation", "place"})
_HONORIFICS = ("mr ", "dr ", "prof ", "professor ", "sir ")
_NO_BRACKETS = str.maketrans("()（）", "[][]")


def name_key(name: str) -> str:
    """Return the key of a name: it keeps a qualifier in brackets and drops an honorific."""
    plain = plain_name(name)
    return _name_key(name) if plain is None or plain.startswith(_HONORIFICS) else plain


@lru_cache(maxsize=1_000_000)
def _name_key(name: str) -> str:
    # A name without letters and figures is its signs, and its brackets qualify nothing.
    bare = fold_name(name) or fold(name).strip().translate(_NO_BRACKETS) or name
    honorific = next((word for word in _HONORIFICS if bare.startswith(word)), "")
    qualifier = qualifier_of(name)
    bare = bare.removeprefix(honorific) or bare
    return f"{bare} ({qualifier})" if qualifier else bare


def qualifier_of(name: str) -> str:
    """Return the folded content of the bracket that ends a name, if any."""
    if not name.endswith((")", "）")):
        return ""
    opening = max(name.rfind("("), name.rfind("（"))
    return " ".join(fold(name[opening + 1 : -1]).split()) if opening > 0 else ""


def bare_key(key: str) -> str:
    """Return a key without its qualifier, or an empty text where it has none."""
    return key[: key.rindex(" (")] if key.endswith(")") and " (" in key else ""


def main_kind(counts: Mapping[str, int]) -> str:
    """Return the most frequent kind; "thing" only where there is no other."""
    named = [(count, kind) for kind, count in counts.items() if kind != "thing"]
    return max(named)[1] if named else "thing"


def kinds_differ(one: str, other: str) -> bool:
    """Say whether things of two kinds cannot be the same thing."""
    return one != other and {one, other} <= _STRONG_KINDS


@dataclass(frozen=True, slots=True)
class Resolved:
    """The group of each (document, key), and the reason where the name joined another one."""

    keys: Mapping[DocumentName, str]
    reasons: Mapping[DocumentName, str]


# --- forms ---

# Without those that may stand for a spouse ("Mrs John Smith").
_TITLES = words_in("english", "personal_titles")
_LEGAL_FORMS = words_in("english", "legal_forms")
_SURE_FORMS = _LEGAL_FORMS - {"company", "group", "holdings", "co", "sa", "ag", "ab", "spa"}
_ZH_TITLE_OR_FORM = re.compile(
    r"(?:(?:股份|责任)?有限(?:责任)?公司|集团公司|先生|女士|博士|教授|老师|总统|主席|院士|将军|经理|工程师|同志)$"
)
_ONE_WRITING = {word: "".join(words) for word, words in groups_in("english", "one_writing").items()}
_FIRST_WORDS = {"st": "saint", "mt": "mount", "ft": "fort"}
_NO_NAME = KIND_OF.keys() | {"of", "and", "in", "at", "for", "to", "with"}
_NOT_GIVEN = _LEGAL_FORMS | {"jr", "sr", "junior", "senior", "the", "of"}
_LEAST_COMPACT = 6  # letters from which a name without its spaces is still that name
_HAN = re.compile(f"[{CJK}]")
_INVERTED = re.compile(r"([^,，]+),\s*([^,，]+)")
_AND = re.compile(r"&|(?<=[^\W\d_]{2}) ?\+ ?(?=[^\W\d_]{2})")
_SPACE = re.compile(r"(?<!\d) | (?!\d)")  # but none between figures


def form(name: str) -> str:
    """Return what all spellings of a name share.

    Order, titles, legal forms, numerals, spaces and traditional or simplified script do not count.
    """
    if _HAN.search(name):
        whole = simplified(fold_name(name)).replace(" ", "")
        ending = _ZH_TITLE_OR_FORM.search(whole)
        return whole[: ending.start()] if ending and ending.start() > 1 else whole
    if inverted := _INVERTED.fullmatch(name):
        given = fold(inverted[2]).replace(".", " ").split()
        if 0 < len(given) < 5 and _NOT_GIVEN.isdisjoint(given):
            name = f"{inverted[2]} {inverted[1]}"
    words = fold_name(_AND.sub(" and ", name)).split()
    untitled = next((words[place:] for place, word in enumerate(words) if word not in _TITLES), [])
    if len(untitled) > 1 and not kind_of_words(untitled) and untitled[0] not in _NO_NAME:
        words = untitled
    if words and words[-1] in _SURE_FORMS:
        while len(words) > 1 and words[-1] in _LEGAL_FORMS:
            words = words[:-1]
    first, rest = words[:1], [_ONE_WRITING.get(word, word) for word in words[1:] if word != "and"]
    whole = " ".join([*(_FIRST_WORDS.get(word, word) for word in first), *rest])
    compact = _SPACE.sub("", whole)
    return (compact if len(compact) >= _LEAST_COMPACT else whole) or name
