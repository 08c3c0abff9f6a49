"""The keys under which names are compared, and the form that all writings of a name share."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from prompts.text.names import KIND_OF, kind_of_words
from prompts.text.words import CJK, fold, fold_name, groups_in, plain_name, simplified, words_in
from storage.provenance import DocumentName

STRONG_KINDS = frozenset({"person", "organisation", "place"})
_HONORIFICS = ("mr ", "dr ", "prof ", "professor ", "sir ")
_NO_BRACKETS = str.maketrans("()（）", "[][]")


def name_key(name: str) -> str:
    """The key of a name; a bracketed qualifier counts in it, an honorific does not."""
    plain = plain_name(name)
    return _name_key(name) if plain is None or plain.startswith(_HONORIFICS) else plain


@lru_cache(maxsize=1_000_000)
def _name_key(name: str) -> str:
    # A name without a letter or a figure is what is drawn, and its brackets qualify nothing.
    bare = fold_name(name) or fold(name).strip().translate(_NO_BRACKETS) or name
    honorific = next((word for word in _HONORIFICS if bare.startswith(word)), "")
    qualifier = qualifier_of(name)
    bare = bare.removeprefix(honorific) or bare
    return f"{bare} ({qualifier})" if qualifier else bare


def qualifier_of(name: str) -> str:
    """The folded content of the bracket that ends a name, or nothing."""
    if not name.endswith((")", "）")):
        return ""
    opening = max(name.rfind("("), name.rfind("（"))
    return " ".join(fold(name[opening + 1 : -1]).split()) if opening > 0 else ""


def bare_key(key: str) -> str:
    """The key without its qualifier, or nothing where it has none."""
    return key[: key.rindex(" (")] if key.endswith(")") and " (" in key else ""


def main_kind(counts: Mapping[str, int]) -> str:
    """The most frequent specific kind; "thing" only where nothing else was seen."""
    named = [(count, kind) for kind, count in counts.items() if kind != "thing"]
    return max(named)[1] if named else "thing"


def kinds_differ(one: str, other: str) -> bool:
    """Whether things of two kinds cannot be one thing."""
    return one != other and {one, other} <= STRONG_KINDS


@dataclass(frozen=True, slots=True)
class Resolved:
    """Where each mention went: (document, key) → key of the group, and why if to another name."""

    keys: Mapping[DocumentName, str]
    reasons: Mapping[DocumentName, str]


# --- forms ---------------------------------------------------------------------------------------

# Those that may stand for a spouse ("Mrs John Smith") are left out.
_TITLES = words_in("english", "personal_titles")
_LEGAL_FORMS = words_in("english", "legal_forms")
_SURE_FORMS = _LEGAL_FORMS - {"company", "group", "holdings", "co", "sa", "ag", "ab", "spa"}
_ZH_ADDED = re.compile(
    r"(?:(?:股份|责任)?有限(?:责任)?公司|集团公司|先生|女士|博士|教授|老师|总统|主席|院士|将军|经理|工程师|同志)$"
)
_ONE_WRITING = {word: "".join(words) for word, words in groups_in("english", "one_writing").items()}
_SHORT_FIRST = {"st": "saint", "mt": "mount", "ft": "fort"}
_NO_NAME = KIND_OF.keys() | {"of", "and", "in", "at", "for", "to", "with"}
_NOT_GIVEN = _LEGAL_FORMS | {"jr", "sr", "junior", "senior", "the", "of"}
_LEAST_COMPACT = 6  # letters from which a name without its blanks is still that name
_HAN = re.compile(f"[{CJK}]")
_INVERTED = re.compile(r"([^,，]+),\s*([^,，]+)")
_AND = re.compile(r"&|(?<=[^\W\d_]{2}) ?\+ ?(?=[^\W\d_]{2})")
_BLANK = re.compile(r"(?<!\d) | (?!\d)")


@lru_cache(maxsize=300_000)
def form(name: str) -> str:
    """What all writings of a name share: order, titles, legal forms, numerals and script aside."""
    if _HAN.search(name):
        whole = simplified(fold_name(name)).replace(" ", "")
        added = _ZH_ADDED.search(whole)
        return whole[: added.start()] if added and added.start() > 1 else whole
    inverted = _INVERTED.fullmatch(name)
    if (
        inverted
        and 0 < len(given := fold(inverted[2]).replace(".", " ").split()) < 5
        and _NOT_GIVEN.isdisjoint(given)
    ):
        name = f"{inverted[2]} {inverted[1]}"
    words = fold_name(_AND.sub(" and ", name)).split()
    untitled = next((words[place:] for place, word in enumerate(words) if word not in _TITLES), [])
    if len(untitled) > 1 and not kind_of_words(untitled) and untitled[0] not in _NO_NAME:
        words = untitled
    if len(words) > 1 and words[-1] in _SURE_FORMS:
        while len(words) > 1 and words[-1] in _LEGAL_FORMS:
            words = words[:-1]
    first, rest = words[:1], [_ONE_WRITING.get(word, word) for word in words[1:] if word != "and"]
    whole = " ".join([*(_SHORT_FIRST.get(word, word) for word in first), *rest])
    compact = _BLANK.sub("", whole)  # figures stay apart from figures
    return (compact if len(compact) >= _LEAST_COMPACT else whole) or name
