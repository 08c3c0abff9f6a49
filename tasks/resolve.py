"""Which thing does a name mean in a document? The rules that join aliases and keep homonyms apart.

A pure function of the mentions; no order and no history counts. In this order:

1. A document whose title adds a qualifier to a name ("Mercury (planet)") means that thing by the bare name, and by its
   last word where that is a surname.
2. Names that a text states to mean the same are one ("A, also known as B", 中文(English)). A short form that stands for
   several things, and a name that several things bear, mean their partner only in the document that says so.
3. Where one qualified thing bears a name and nothing is titled with the bare one, the bare name is that thing.
4. Where several do, a document's bare name is the one whose neighbours the document names (one that few documents name
   counts more), or whose qualifier stands in a sentence with it. Without a clear best it stays a thing of its own.
5. A surname, a first name, or a head noun ("the Authority") is the only full name in its document that it can shorten.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import sqrt

from prompts.extract import ALIAS_PREDICATE
from prompts.language.kinds import KIND_OF
from prompts.language.names_zh import is_generic
from prompts.language.words import fold, fold_name
from storage.records import Extraction

_HONORIFICS = frozenset({"mr", "dr", "prof", "professor", "sir"})
_STRONG_KINDS = frozenset({"person", "organisation", "place"})
_ONE_OF_MANY = frozenset({"person", "thing"})
_ABBREVIATION = 5  # letters at most
_NEAR = 0.3  # how much being named by the document about a thing counts beside a relation to it
_CLEAR = 1.25  # how much better the best of several homonyms must fit


@lru_cache(maxsize=300_000)
def name_key(name: str) -> str:
    """The key of a name; a bracketed qualifier counts ("mercury (planet)"), an honorific does not."""
    bare = fold_name(name)
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
    named = [(count, kind) for kind, count in counts.items() if kind != "thing"]
    return max(named)[1] if named else "thing"


@dataclass(frozen=True, slots=True)
class Resolved:
    """Where each mention went: (document, key) → key of the group, and why where it was not the name itself."""

    keys: Mapping[tuple[str, str], str]
    reasons: Mapping[tuple[str, str], str]


@dataclass(slots=True)
class _Joined:
    """Union-find over keys, with the reason of every union; the least key of a group leads it."""

    leader: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

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


@dataclass(frozen=True, slots=True)
class _Read:
    """The mentions as the rules need them; documents and keys come in sorted order."""

    counts: Mapping[str, Counter[str]]
    kinds: Mapping[str, str]
    titles: Mapping[str, str]
    stated: Sequence[tuple[str, str, str]]
    ties: Mapping[str, frozenset[tuple[str, str]]]
    quotes: Mapping[tuple[str, str], Sequence[str]]
    qualified: Mapping[str, Sequence[str]]


def _read(extractions: Iterable[Extraction], documents: Mapping[str, str], titles: Mapping[str, str]) -> _Read:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    qualified: dict[str, set[str]] = defaultdict(set)
    stated: set[tuple[str, str, str]] = set()
    for extraction in extractions:
        document = documents[extraction.chunk]
        counted = counts[document]
        for mention in extraction.mentions:
            key = name_key(mention.name)
            counted[key] += 1
            kinds[key][mention.kind] += 1
            if key.endswith(")"):
                qualified[key[: key.rindex(" (")]].add(key)
        for relation in extraction.relations:
            if relation.predicate == ALIAS_PREDICATE:
                stated.add((document, name_key(relation.source), name_key(relation.target)))
    several = {bare: keys for bare, keys in qualified.items() if len(keys) > 1}
    return _Read(
        counts={document: counts[document] for document in sorted(counts)},
        kinds={key: main_kind(counted) for key, counted in kinds.items()},
        titles=titles,
        stated=sorted(pair for pair in stated if pair[1] != pair[2]),
        ties=_ties(extractions, documents, {*several, *(key for keys in several.values() for key in keys)}),
        quotes=_quotes(extractions, documents, set(several)),
        qualified={bare: sorted(keys) for bare, keys in qualified.items()},
    )


def _ties(
    extractions: Iterable[Extraction], documents: Mapping[str, str], wanted: set[str]
) -> dict[str, frozenset[tuple[str, str]]]:
    """Wanted key → (document, key at the other end) of its relations."""
    ties: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for extraction in extractions if wanted else ():
        for relation in extraction.relations:
            source, target = name_key(relation.source), name_key(relation.target)
            for one, other in ((source, target), (target, source)):
                if one in wanted:
                    ties[one].add((documents[extraction.chunk], other))
    return {key: frozenset(pairs) for key, pairs in ties.items()}


def _quotes(
    extractions: Iterable[Extraction], documents: Mapping[str, str], wanted: set[str]
) -> dict[tuple[str, str], list[str]]:
    """(Document, wanted key) → the sentences there that name it."""
    quotes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for extraction in extractions if wanted else ():
        for mention in extraction.mentions:
            if mention.description and (key := name_key(mention.name)) in wanted:
                quotes[documents[extraction.chunk], key].add(mention.description)
    return {place: sorted(texts) for place, texts in quotes.items()}


def resolve(extractions: Sequence[Extraction], documents: Mapping[str, str], titles: Mapping[str, str]) -> Resolved:
    """Decide the group of every (document, key); `documents` maps chunks to documents, `titles` documents to titles."""
    read = _read(extractions, documents, {document: name_key(title) for document, title in titles.items()})
    joined, local = _join(read)
    chooser = _Homonyms(read, joined)
    keys: dict[tuple[str, str], str] = {}
    reasons: dict[tuple[str, str], str] = {}
    for document, counted in read.counts.items():
        shortened = _Shortened(counted, read.kinds, read.titles.get(document, ""))
        for key in counted:
            full, reason = shortened.full_name(key)
            if (document, full) in local:
                full, reason = local[document, full], "the document states that both names mean the same"
            target, why = chooser.target(document, full)
            if target != key:
                reasons[document, key] = why or reason
            elif key in joined.reasons:
                reasons[document, key] = joined.reasons[key]
            keys[document, key] = joined.find(target)
    return Resolved(keys, reasons)


def _join(read: _Read) -> tuple[_Joined, dict[tuple[str, str], str]]:
    """The unions that hold everywhere, and (document, short name) → name for those that hold in one document."""
    joined, local = _Joined(), dict[tuple[str, str], str]()
    titled = set(read.titles.values())
    many = {bare for bare, keys in read.qualified.items() if len(keys) > 1}
    partners: dict[str, set[str]] = defaultdict(set)
    for _, source, target in read.stated:
        partners[source].add(target)
        partners[target].add(source)
    for document, source, target in read.stated:
        one, two = read.kinds.get(source, "thing"), read.kinds.get(target, "thing")
        if (one != two and {one, two} <= _STRONG_KINDS) or is_generic(source) or is_generic(target):
            continue
        for name, other in ((source, target), (target, source)):
            if name in many or _stands_for_several(other, partners[other]):
                local[document, other] = name
                break
        else:
            joined.join(source, target, "the text states that both names mean the same")
    for bare, keys in sorted(read.qualified.items()):
        if len(keys) == 1 and bare not in titled:
            joined.join(bare, keys[0], "only one thing of this name is described")
    return joined, local


def _stands_for_several(key: str, partners: Iterable[str]) -> bool:
    """Whether a short form abbreviates different full names in different texts."""
    if len(key) > _ABBREVIATION or " " in key:
        return False
    return sum(" " in partner and partner.isascii() for partner in partners) > 1


class _Shortened:
    """The full names of one document, by the words that can stand for them."""

    def __init__(self, counted: Iterable[str], kinds: Mapping[str, str], title: str) -> None:
        self.kinds = kinds
        self.by_last: dict[str, list[str]] = defaultdict(list)
        self.by_first: dict[str, list[str]] = defaultdict(list)
        for key in counted:
            words = key.split() if " " in key else ()
            if 2 <= len(words) <= 4 and words[-1].isalpha():
                self.by_last[words[-1]].append(key)
                self.by_first[words[0]].append(key)
        self.title = title.partition(" (")[0]
        self.title_last = self.title.rpartition(" ")[2] if " " in self.title else ""

    def full_name(self, key: str) -> tuple[str, str]:
        """The full name that a single word stands for here, and why; the word itself where that is not clear."""
        if " " in key:
            return key, ""
        kind = self.kinds.get(key, "thing")
        full = [name for name in self.by_last.get(key, ()) if self._may_be(key, kind, name)]
        if kind in _ONE_OF_MANY and key == self.title_last and self.title in full:
            return self.title, "the last word of the document's title"
        if len(full) == 1:
            return full[0], "the only full name in the document that ends with it"
        if kind == "person" and not full:
            full = [name for name in self.by_first.get(key, ()) if self.kinds.get(name) == "person"]
            if len(full) == 1:
                return full[0], "the only full name in the document that begins with it"
        return key, ""

    def _may_be(self, key: str, kind: str, name: str) -> bool:
        other = self.kinds.get(name, "thing")
        if other not in _ONE_OF_MANY:
            return key in KIND_OF
        # "Kestrel" beside "MV Kestrel" and "Kestrel Bridge" may be either; persons share names with what they found.
        return kind in _ONE_OF_MANY and (other == "person" or key not in self.by_first)


class _Homonyms:
    """Names that several qualified things bear ("Mercury (planet)", "Mercury (element)"), and what tells them apart."""

    def __init__(self, read: _Read, joined: _Joined) -> None:
        self.read = read
        self.joined = joined
        self.by_title: dict[str, list[str]] = defaultdict(list)
        for document, title in sorted(read.titles.items()):
            self.by_title[title].append(document)
        self.neighbours: dict[str, Mapping[str, float]] = {}
        self.spread: Counter[str] = Counter()
        if any(len(keys) > 1 for keys in read.qualified.values()):
            for counted in read.counts.values():
                self.spread.update({joined.find(key) for key in counted})

    def target(self, document: str, key: str) -> tuple[str, str]:
        """The key that a key stands for in a document, and why."""
        candidates = self.read.qualified.get(key, ())
        title = self.read.titles.get(document, "")
        if title in candidates:
            return title, "the document's title names it with a qualifier"
        if len(candidates) < 2 or title == key:
            return key, ""
        fits = sorted(((self._fit(document, key, candidate), candidate) for candidate in candidates), reverse=True)
        if fits[0][0] > _CLEAR * fits[1][0]:
            return fits[0][1], "the document names what belongs to this one of the name"
        return key, ""

    def _fit(self, document: str, bare: str, candidate: str) -> float:
        own = self._neighbours(candidate)
        others = [self._neighbours(other) for other in self.read.qualified[bare] if other != candidate]
        here = {self.joined.find(key) for key in self.read.counts[document] if key != bare}
        tied = {self.joined.find(key) for place, key in self.read.ties.get(bare, ()) if place == document}
        shared = total = 0.0
        for key in sorted(own):
            # The more documents name a neighbour, the less it tells; so does one that another of the name has too.
            weight = 1 / max(1, self.spread[key])
            telling = own[key] - max(other.get(key, 0.0) for other in others)
            shared += weight * max(0.0, telling) * ((key in here) + (key in tied))
            total += weight * own[key]
        words = candidate[len(bare) + 2 : -1].split()
        said = any(word in fold(quote) for quote in self.read.quotes.get((document, bare), ()) for word in words)
        return shared / sqrt(total or 1.0) + said

    def _neighbours(self, key: str) -> Mapping[str, float]:
        """The groups that belong to a qualified thing: tied to it by a relation, or named by the document about it."""
        if key not in self.neighbours:
            found: dict[str, float] = {}
            for document in self.by_title.get(key, ()):
                found |= dict.fromkeys(map(self.joined.find, self.read.counts.get(document, ())), _NEAR)
            found |= dict.fromkeys((self.joined.find(other) for _, other in self.read.ties.get(key, ())), 1.0)
            for own in (self.joined.find(key), key[: key.rindex(" (")]):
                found.pop(own, None)
            self.neighbours[key] = found
        return self.neighbours[key]
