"""The keys under which names are compared, and where each mention went."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from prompts.text.words import fold, fold_name, plain_name
from storage.provenance import DocumentName

_HONORIFICS = frozenset({"mr", "dr", "prof", "professor", "sir"})
STRONG_KINDS = frozenset({"person", "organisation", "place"})

_BEFORE_NAMES = tuple(f"{word} " for word in _HONORIFICS)
_NO_BRACKETS = str.maketrans("()（）", "[][]")


def name_key(name: str) -> str:
    """The key of a name; a bracketed qualifier counts ("mercury (planet)"), an honorific does not."""
    plain = plain_name(name)
    return _name_key(name) if plain is None or plain.startswith(_BEFORE_NAMES) else plain


@lru_cache(maxsize=1_000_000)
def _name_key(name: str) -> str:
    # A name without a letter or a figure is what is drawn, and its brackets qualify nothing.
    bare = fold_name(name) or fold(name).strip().translate(_NO_BRACKETS) or name
    words = bare.split()
    if len(words) > 1 and words[0] in _HONORIFICS:
        bare = " ".join(words[1:])
    qualifier = qualifier_of(name)
    return f"{bare} ({qualifier})" if qualifier else bare


def qualifier_of(name: str) -> str:
    """The folded content of the bracket that ends a name, or nothing."""
    if not name.endswith((")", "）")):
        return ""
    opening = max(name.rfind("("), name.rfind("（"))
    return " ".join(fold(name[opening + 1 : -1]).split()) if opening > 0 else ""


def main_kind(counts: Mapping[str, int]) -> str:
    """The most frequent specific kind; "thing" only where nothing else was seen."""
    if len(counts) == 1:
        return next(iter(counts))
    named = [(count, kind) for kind, count in counts.items() if kind != "thing"]
    return max(named)[1] if named else "thing"


def kinds_differ(one: str, other: str) -> bool:
    """Whether things of two kinds cannot be one thing."""
    return one != other and {one, other} <= STRONG_KINDS


@dataclass(frozen=True, slots=True)
class Resolved:
    """Where each mention went: (document, key) → key of the group, and why where it was not the name itself."""

    keys: Mapping[DocumentName, str]
    reasons: Mapping[DocumentName, str]


@dataclass(slots=True)
class UnionFind:
    """Union-find over keys, with the reason of every union; the least key of a group leads it."""

    leader: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def copy(self) -> "UnionFind":
        return UnionFind(dict(self.leader), dict(self.reasons))

    def find(self, key: str) -> str:
        root = key
        while self.leader.get(root, root) != root:
            root = self.leader[root]
        while self.leader.get(key, key) != root:
            self.leader[key], key = root, self.leader[key]
        return root

    def join(self, first: str, second: str, reason: str) -> None:
        low, high = sorted((self.find(first), self.find(second)))
        if low != high:
            self.leader[high] = low
        self.reasons.setdefault(first, reason)
        self.reasons.setdefault(second, reason)
