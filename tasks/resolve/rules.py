"""The rules that say which thing a name means in a document: they join aliases and keep homonyms apart.

A pure function of the mentions, of the decisions on pairs that the rules leave open, and of what people edited; no
order and no history counts. In this order:

1. A document whose title adds a qualifier to a name ("Mercury (planet)") means that thing by the bare name, and by its
   last word where that is a surname. Documents that define a name as different things mean different things.
2. Names that a text states to mean the same are one ("A, also known as B", 中文(English)). A short form that stands for
   several things, and a name that several things bear, mean their partner only in the document that says so.
3. Names that differ in writing alone are one: titles, legal forms, inverted names, figures, Chinese script.
4. Where one qualified thing bears a name and nothing is titled with the bare one, the bare name is that thing.
5. Similar names beside the same rare others are one where the decision on that pair says so.
6. Where several things bear a name, a document's bare name is the one whose neighbours the document names.
7. A surname, a first name, initials, an abbreviation, or a head noun ("the Authority") is the only full name in its
   document that it can shorten.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from prompts.resolve import Decided, Pair, decide
from prompts.text.names_zh import is_generic
from prompts.text.words import fold
from storage.graph_records import Found
from tasks.resolve.alike import OpenPair, Shortened, join_forms, open_pairs
from tasks.resolve.keys import Joined, Place, Resolved, kinds_differ
from tasks.resolve.reading import Read, read

_NEAR = 0.3  # how much being named by the document about a thing counts beside a relation to it
_CLEAR = 1.25  # how much better the best of several homonyms must fit


class Homonyms:
    """Names that several qualified things bear ("Mercury (planet)", "Mercury (element)"), and what tells them apart."""

    def __init__(self, read: Read, joined: Joined) -> None:
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
        if (document, key) in self.read.assigned:
            return self.read.assigned[document, key], "the document defines which thing of the name it means"
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
            for document in (*self.by_title.get(key, ()), *self.read.about.get(key, ())):
                found |= dict.fromkeys(map(self.joined.find, self.read.counts.get(document, ())), _NEAR)
            found |= dict.fromkeys((self.joined.find(other) for _, other in self.read.ties.get(key, ())), 1.0)
            for own in (self.joined.find(key), key[: key.rindex(" (")]):
                found.pop(own, None)
            self.neighbours[key] = found
        return self.neighbours[key]


_ABBREVIATION = 5  # letters at most


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the rules have joined, and the pairs that they leave to a decision."""

    documents: Mapping[str, str]
    read: Read
    joined: Joined
    local: Mapping[Place, str]
    open: Sequence[OpenPair]
    exact: Collection[str] = ()


def prepare(
    extractions: Sequence[Found],
    documents: Mapping[str, str],
    titles: Mapping[str, str],
    near: Sequence[tuple[str, str]] = (),
    exact: Collection[str] = (),
) -> Prepared:
    """Apply the rules that need no decision; `documents` maps chunks to documents, `titles` documents to titles.

    `near` are pairs of names to be decided on because their vectors are alike; `exact` are documents of nothing but
    triples, which write each name in full.
    """
    known = read(extractions, documents, titles)
    joined, local = _join(known)
    return Prepared(documents, known, joined, local, open_pairs(extractions, documents, known, joined, near), exact)


def resolve(prepared: Prepared, decided: Mapping[Pair, Decided]) -> Resolved:
    """The group of every (document, key); a pair without a decision is decided by the offline rule."""
    known, joined = prepared.read, prepared.joined.copy()
    for one in prepared.open:
        verdict = decided.get(one.pair) or decide(one.pair)
        if verdict.same:
            joined.join(*one.keys, verdict.reason)
    chooser = Homonyms(known, joined)
    keys: dict[Place, str] = {}
    reasons: dict[Place, str] = {}
    for document, counted in known.counts.items():
        shortened = Shortened(document, known)
        for key in counted:
            full, reason = (key, "") if document in prepared.exact else shortened.full_name(key)
            if (document, full) in prepared.local:
                full, reason = prepared.local[document, full], "the document states that both names mean the same"
            target, why = chooser.target(document, full)
            if target != key:
                reasons[document, key] = why or reason
            elif key in joined.reasons:
                reasons[document, key] = joined.reasons[key]
            keys[document, key] = joined.find(target)
    return Resolved(keys, reasons)


def _join(known: Read) -> tuple[Joined, dict[Place, str]]:
    """The unions that hold everywhere, and (document, short name) → name for those that hold in one document."""
    joined, local = Joined(), dict[Place, str]()
    titled = set(known.titles.values())
    many = {bare for bare, keys in known.qualified.items() if len(keys) > 1}
    partners: dict[str, set[str]] = defaultdict(set)
    for _, source, target in known.stated:
        partners[source].add(target)
        partners[target].add(source)
    for document, source, target in known.stated:
        one, two = known.kinds.get(source, "thing"), known.kinds.get(target, "thing")
        if kinds_differ(one, two) or is_generic(source) or is_generic(target):
            continue
        for name, other in ((source, target), (target, source)):
            if name in many or _stands_for_several(other, partners[other]):
                local[document, other] = name
                break
        else:
            joined.join(source, target, "the text states that both names mean the same")
    for bare, keys in sorted(known.qualified.items()):
        if len(keys) == 1 and bare not in titled:
            joined.join(bare, keys[0], "only one thing of this name is described")
    join_forms(known, joined)
    return joined, local


def _stands_for_several(key: str, partners: Iterable[str]) -> bool:
    """Whether a short form abbreviates different full names in different texts."""
    if len(key) > _ABBREVIATION or " " in key:
        return False
    return sum(" " in partner and partner.isascii() for partner in partners) > 1
