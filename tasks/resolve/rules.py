"""The rules that say which thing a name means in a document: they join aliases and keep homonyms apart.

A pure function of the mentions, of the decisions on pairs that the rules leave open, and of what people edited; no
order and no history counts. In this order:

1. A document whose title adds a qualifier to a name ("Mercury (planet)", "Paris, Texas") means that
   thing by the bare name, and by its last word where that is a surname.
2. Names that a text states to mean the same are one ("A, also known as B", 中文(English)). A short form that stands for
   several things, and a name that several things bear, mean their partner only in the document that says so.
3. Names that differ in writing alone are one: titles, legal forms, inverted names, figures, Chinese script.
4. Where one qualified thing bears a name and nothing is titled with the bare one, the bare name is that thing.
5. Similar names beside the same rare others are one where the decision on that pair says so.
6. Where several things bear a name, a document's bare name is the one whose neighbours the document names.
7. A surname, a first name, initials, or an abbreviation is the only full name in its document that it can shorten.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from prompts.resolve import UNDECIDED, Decided, Pair
from prompts.text.likeness import PERSONAL_TITLES, ZH_TITLE, form, initials_of
from prompts.text.names import CLASSES, TITLES, kind_of_words
from prompts.text.names_zh import is_generic
from storage.provenance import DocumentName
from tasks.resolve.candidates import OpenPair, fits_given, open_pairs
from tasks.resolve.keys import Resolved, UnionFind, kinds_differ
from tasks.resolve.mentions import Extractions, NamesRead, names_read

_CLEAR = 1.25  # how much better the best of several homonyms must fit
_ABBREVIATION = range(3, 7)  # letters
_CHINESE_NAME = range(2, 5)  # characters
_ARTICLES = ("The ", "the ", "A ", "a ", "An ", "an ")
_NO_PART_OF_A_NAME = frozenset("of and in the with for at on to".split())
_ONE_OF_MANY = frozenset({"person", "thing"})
_TITLES = TITLES | PERSONAL_TITLES
# They stand before first names, which many bear.
_RULERS = frozenset(
    "king queen prince princess duke earl count baron lord emperor pope cardinal bishop archbishop".split()
)
_SAME_FORM = "the same name in another form"


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the rules have joined, and the pairs that they leave to a decision."""

    documents: Mapping[str, str]
    read: NamesRead
    joined: UnionFind
    local: Mapping[DocumentName, str]
    open: Sequence[OpenPair]
    exact: Collection[str] = ()


def prepare(
    extractions: Extractions,
    documents: Mapping[str, str],
    titles: Mapping[str, str],
    exact: Collection[str] = (),
) -> Prepared:
    """Apply the rules that need no decision; `documents` maps chunks to documents, `titles` documents to titles.

    `exact` are documents of nothing but triples, which write each name in full.
    """
    known = names_read(extractions, documents, titles)
    joined, local = _join(known)
    return Prepared(documents, known, joined, local, open_pairs(extractions, documents, known, joined), exact)


def resolve(prepared: Prepared, decided: Mapping[Pair, Decided]) -> Resolved:
    """The group of every (document, key); a pair without a decision is not joined."""
    known, joined = prepared.read, prepared.joined.copy()
    for keys_of_pair, pair in prepared.open:
        verdict = decided.get(pair, UNDECIDED)
        if verdict.same:
            joined.join(*keys_of_pair, verdict.reason)
    homonyms = Homonyms(known, joined)
    keys: dict[DocumentName, str] = {}
    reasons: dict[DocumentName, str] = {}
    for document, names in known.keys.items():
        shortened = DocumentNames(document, known)
        for key in names:
            full, reason = (key, "") if document in prepared.exact else shortened.full_name(key)
            if (document, full) in prepared.local:
                full, reason = prepared.local[document, full], "the document states that both names mean the same"
            target, why = homonyms.target(document, full)
            if target != key:
                reasons[document, key] = why or reason
            elif key in joined.reasons:
                reasons[document, key] = joined.reasons[key]
            keys[document, key] = joined.find(target)
    return Resolved(keys, reasons)


def _join(known: NamesRead) -> tuple[UnionFind, dict[DocumentName, str]]:
    """The unions that hold everywhere, and (document, short name) → name for those that hold in one document."""
    joined, local = UnionFind(), dict[DocumentName, str]()
    titled = set(known.titles.values())
    many = {bare for bare, keys in known.qualified.items() if len(keys) > 1}
    partners: dict[str, set[str]] = defaultdict(set)
    for _, source, target in known.stated:
        partners[source].add(target)
        partners[target].add(source)
    for document, source, target in known.stated:
        first, second = known.kinds.get(source, "thing"), known.kinds.get(target, "thing")
        if kinds_differ(first, second) or is_generic(source) or is_generic(target):
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
    _join_forms(known, joined, many, titled)
    return joined, local


def _stands_for_several(key: str, partners: Iterable[str]) -> bool:
    """Whether a short form abbreviates different full names in different texts."""
    return len(key) in _ABBREVIATION and sum(" " in partner and partner.isascii() for partner in partners) > 1


def _join_forms(known: NamesRead, joined: UnionFind, many: Collection[str], titled: Set[str]) -> None:
    """Join the names that differ in their writing alone, where their kinds allow it; `many` are names of several."""
    forms: dict[str, dict[str, str]] = defaultdict(dict)
    for key, names in known.written.items():
        for name in names if key not in many and not key.endswith(")") else ():
            shape, reason = form(name)
            forms[shape][key] = max(reason, forms[shape].get(key, ""))
    for reasons in forms.values():
        first, *others = sorted(reasons, key=lambda key: (bool(reasons[key]), key))
        for key in others:
            # Two documents with a title each are about two things.
            if not kinds_differ(known.kinds[first], known.kinds[key]) and not {key, first} <= titled:
                reason = reasons[key] or reasons[first]
                joined.join(first, key, f"{_SAME_FORM}: {reason}" if reason else _SAME_FORM)


class Homonyms:
    """Names that several qualified things bear ("Mercury (planet)", "Mercury (element)"), and what tells them apart."""

    def __init__(self, read: NamesRead, joined: UnionFind) -> None:
        self.read = read
        self.several = {bare: keys for bare, keys in read.qualified.items() if len(keys) > 1}
        documents = [*read.keys] if self.several else []
        self.named = {document: {joined.find(key) for key in read.keys[document]} for document in documents}
        self.spread = Counter(key for keys in self.named.values() for key in keys)
        self.belonging: dict[str, set[str]] = defaultdict(set)
        for document, title in read.titles.items():
            self.belonging[title] |= self.named.get(document, set())
        for key, tied in read.ties.items():
            self.belonging[key] |= {joined.find(other) for other in tied}
        for bare, keys in self.several.items():
            for key in keys:
                self.belonging[key] -= {joined.find(key), bare}

    def target(self, document: str, key: str) -> tuple[str, str]:
        """The key that a key stands for in a document, and why."""
        title = self.read.titles.get(document, "")
        if title in self.read.qualified.get(key, ()):
            return title, "the document's title names it with a qualifier"
        candidates = self.several.get(key, ())
        if not candidates or title == key:
            return key, ""
        fits = sorted(
            ((self._fit(document, candidate, candidates), candidate) for candidate in candidates), reverse=True
        )
        if fits[0][0] > _CLEAR * fits[1][0]:
            return fits[0][1], "the document names what belongs to this one of the name"
        return key, ""

    def _fit(self, document: str, candidate: str, candidates: Sequence[str]) -> float:
        """How much of what belongs to this candidate alone the document names; the rarer, the more it tells."""
        others = (self.belonging[other] for other in candidates if other != candidate)
        telling = (self.belonging[candidate] & self.named[document]).difference(*others)
        return sum(1 / self.spread[key] for key in sorted(telling))


class DocumentNames:
    """The full names of one document, by the words that can stand for them."""

    def __init__(self, document: str, read: NamesRead) -> None:
        self.read = read
        self.keys = read.keys[document]
        self.title = read.titles.get(document, "").partition(" (")[0]

    @cached_property
    def _by_end(self) -> tuple[Mapping[str, list[str]], Mapping[str, list[str]]]:
        """Those of two to four words by their last word, and by their first."""
        by_last, by_first = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        for key in self.keys:
            words = key.split()
            titled = len(words) == 2 and words[0] in _TITLES
            if 2 <= len(words) <= 4 and words[-1].isalpha() and _NO_PART_OF_A_NAME.isdisjoint(words) and not titled:
                by_last[words[-1]].append(key)
                by_first[words[0]].append(key)
        return by_last, by_first

    def full_name(self, key: str) -> tuple[str, str]:
        """The full name that a short one stands for here, and why; the short one itself where that is not clear."""
        if not key.isascii():
            names, reason = self._with_chinese_title(key), "a title, with the surname of the only such person"
        elif len(key) in _ABBREVIATION and any(name.isupper() for name in self.read.written[key]):
            names = [name for name in self.keys if name.count(" ") >= len(key) - 1 and initials_of(name) == key]
            reason = "the only name in the document that it abbreviates"
        else:
            names, reason = self._of_words(key)
        return (names[0], reason) if len(names) == 1 else (key, "")

    def _of_words(self, key: str) -> tuple[list[str], str]:
        """The names with this last name, with a title ("President Castellan") or initials ("R. Castellan") or neither;
        of a person else those with this first name."""
        words = key.split()
        titled = len(words) == 2 and words[0] in PERSONAL_TITLES
        *given, last = words[titled:]
        if any(len(word) > 1 for word in given):
            return [], ""
        kind = self.read.kinds[key]
        if kind not in _ONE_OF_MANY or self._is_common(last):
            return [], ""
        by_last, by_first = self._by_end
        names = [
            name
            for name in by_last.get(last, ())
            if name != key and self._may_be(name, last) and (not given or fits_given(given, name.split()[:-1]))
        ]
        if not given and self.title in names:
            return [self.title], "the last word of the document's title"
        if titled and not names and words[0] not in _RULERS and last in self.keys:
            return [last], "a title stands before the name"
        if kind == "person" and not names and len(words) == 1:
            names = [name for name in by_first.get(key, ()) if self._may_be(name)]
            return names, "the only full name in the document that begins with it"
        return names, "the only full name in the document that ends with it"

    def _may_be(self, name: str, last: str = "") -> bool:
        """Whether a full name is a person's, or a thing's by whose first word nothing is called: "Kestrel" beside
        "MV Kestrel" and "Kestrel Bridge" may be either. "Caroline's Husband" is neither Caroline nor a Mr. Husband."""
        kind = self.read.kinds[name]
        owned = all("'s " in written or "’s " in written for written in self.read.written[name])
        if owned or kind_of_words([word for word in name.split() if word not in PERSONAL_TITLES]):
            return False
        return kind == "person" or (kind == "thing" and bool(last) and last not in self._by_end[1])

    def _is_common(self, word: str) -> bool:
        """Whether a word is no name but says what somebody is ("the porter", "father")."""
        written = self.read.written.get(word, ())
        return word in CLASSES or word in _TITLES or any(name.startswith(_ARTICLES) for name in written)

    def _with_chinese_title(self, key: str) -> list[str]:
        title = ZH_TITLE.search(key)
        surname = key[: title.start()] if title else ""
        if len(surname) not in {1, 2}:
            return []
        return [
            name for name in self.keys
            if name.startswith(surname) and len(name) in _CHINESE_NAME and len(name) > len(surname)
            and self.read.kinds[name] == "person" and not ZH_TITLE.search(name)
        ]  # fmt: skip
