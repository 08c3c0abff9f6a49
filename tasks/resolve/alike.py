"""Names that look like names of one thing, by their writing alone or so that something has to decide; short names too.

Near-linear: names are compared within blocks only, those of one form and those that share a rare word.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from rapidfuzz.distance import OSA

from prompts.resolve import MOST_SAID, MOST_SHARED, Named, Pair
from prompts.text.defined import CLASS_OF
from prompts.text.likeness import PERSONAL_TITLES, SAME_WORD, ZH_TITLE, form, has_number, initials_of, opposed
from prompts.text.names import KIND_OF, TITLES, kind_of_words
from storage.graph_records import Found
from tasks.resolve.keys import Joined, Place, kinds_differ, name_key
from tasks.resolve.reading import Read, quotes

_ONE_OF_MANY = frozenset({"person", "thing"})
_ABBREVIATION = range(3, 7)  # letters
_CHINESE_NAME = range(2, 5)  # characters
_ARTICLES = ("The ", "the ", "A ", "a ", "An ", "an ")
_NO_PART_OF_A_NAME = frozenset("of and in the with for at on to".split())
_TITLES = TITLES | PERSONAL_TITLES
# They stand before first names, which many bear.
_RULERS = frozenset(
    "king queen prince princess duke earl count baron lord emperor pope cardinal bishop archbishop".split()
)


class Shortened:
    """The full names of one document, by the words that can stand for them."""

    def __init__(self, document: str, read: Read) -> None:
        self.document = document
        self.read = read
        self.kinds = read.kinds
        self.keys = read.counts[document]
        self.by_last: dict[str, list[str]] = defaultdict(list)
        self.by_first: dict[str, list[str]] = defaultdict(list)
        for key in sorted(self.keys):
            words = key.split() if " " in key else ()
            if 2 <= len(words) <= 4 and words[-1].isalpha() and _NO_PART_OF_A_NAME.isdisjoint(words):
                if len(words) == 2 and words[0] in _TITLES:
                    continue
                self.by_last[words[-1]].append(key)
                self.by_first[words[0]].append(key)
        self.title = read.titles.get(document, "").partition(" (")[0]
        self.title_last = self.title.rpartition(" ")[2] if " " in self.title else ""

    def full_name(self, key: str) -> tuple[str, str]:
        """The full name that a short one stands for here, and why; the short one itself where that is not clear."""
        if " " in key:
            found = self._of_words(key)
        elif key in self.by_last or key in self.by_first:
            found = self._of_a_word(key)
        elif not key.isascii():
            found = self._with_chinese_title(key)
        elif len(key) in _ABBREVIATION and any(name.isupper() for name in self.read.written[key]):
            found = self._abbreviated(key)
        else:
            found = None
        return found or (key, "")

    def _of_a_word(self, key: str) -> tuple[str, str] | None:
        kind = self.kinds.get(key, "thing")
        full = [name for name in self.by_last.get(key, ()) if self._may_end(key, kind, name)]
        if kind in _ONE_OF_MANY and key == self.title_last and self.title in full:
            return self.title, "the last word of the document's title"
        if len(full) == 1:
            return full[0], "the only full name in the document that ends with it"
        if kind == "person" and not full and not self._is_common(key):
            full = [name for name in self.by_first.get(key, ()) if self.kinds.get(name) == "person"]
            full = [name for name in full if not self._owns(name)]
            if len(full) == 1:
                return full[0], "the only full name in the document that begins with it"
        return None

    def _may_end(self, key: str, kind: str, name: str) -> bool:
        other = self.kinds.get(name, "thing")
        if other not in _ONE_OF_MANY:
            return key in KIND_OF and self._in_one_place(key, name) and not self._owns(name)
        # "Kestrel" beside "MV Kestrel" and "Kestrel Bridge" may be either; persons share names with what they found.
        if kind not in _ONE_OF_MANY or self._is_common(key) or (other != "person" and key in self.by_first):
            return False
        return not self._owns(name) or kind == "person"

    def _is_common(self, key: str) -> bool:
        """Whether a word is no name but says what somebody is ("the porter", "father")."""
        if key in CLASS_OF or key in _TITLES:
            return True
        return any(name.startswith(_ARTICLES) for name in self.read.written[key])

    def _owns(self, name: str) -> bool:
        """Whether a name says whose its thing is: "Caroline's Husband" is neither Caroline nor a Mr. Husband."""
        return all("'s " in written or "’s " in written for written in self.read.written[name])

    def _in_one_place(self, key: str, name: str) -> bool:
        near = self.read.near
        return (self.document, key) not in near or bool(near[self.document, key] & near[self.document, name])

    def _of_words(self, key: str) -> tuple[str, str] | None:
        """A title with a surname ("President Castellan"), or initials with it ("R. Castellan")."""
        *given, last = key.split()
        if len(given) == 1 and given[0] in PERSONAL_TITLES:
            full = self._persons(last, key)
            if not full and given[0] not in _RULERS and last in self.keys and not self._is_common(last):
                return self._of_a_word(last) or (last, "a title stands before the name")
            reason = "a title, with the last name of the only person of that name in the document"
        elif all(len(word) == 1 for word in given):
            full = [name for name in self._persons(last, key) if fits_initials(given, name.split()[:-1])]
            reason = "the initials and the last name of the only such person in the document"
        else:
            return None
        return (full[0], reason) if len(full) == 1 and self._is_person(key) else None

    def _persons(self, last: str, but: str) -> list[str]:
        return [name for name in self.by_last.get(last, ()) if name != but and self._is_person(name)]

    def _is_person(self, name: str) -> bool:
        words = [word for word in name.split() if word not in PERSONAL_TITLES]
        return self.kinds.get(name, "thing") in _ONE_OF_MANY and len(words) > 0 and not kind_of_words(words)

    def _abbreviated(self, key: str) -> tuple[str, str] | None:
        full = [name for name in self.keys if name.count(" ") >= len(key) - 1 and initials_of(name) == key]
        return (full[0], "the only name in the document that it abbreviates") if len(full) == 1 else None

    def _with_chinese_title(self, key: str) -> tuple[str, str] | None:
        title = ZH_TITLE.search(key)
        surname = key[: title.start()] if title else ""
        if len(surname) not in {1, 2}:
            return None
        full = [
            name for name in self.keys
            if name.startswith(surname) and len(name) in _CHINESE_NAME and len(name) > len(surname)
            and self.kinds.get(name) == "person" and not ZH_TITLE.search(name)
        ]  # fmt: skip
        reason = "a title, with the surname of the only person of that name in the document"
        return (full[0], reason) if len(full) == 1 else None


def fits_initials(initials: list[str], given: list[str]) -> bool:
    """Whether given names can have these initials: the first one's first, the others in their order."""
    if not given or initials[0] != given[0][0] or len(given[0]) == 1:
        return False
    left = iter(given)
    return all(any(name[0] == initial for name in left) for initial in initials)


_RARE = 8  # names that share a word, at most, for it to make a block
_LEAST_WORD = 5  # letters of a word that may be misspelt
_LOOKED_AT = 20  # passages of a name whose other names are compared
_TELLING = 6  # documents, at most, that name what is to tell something
_SAME_FORM = "the same name in another form"


def join_forms(read: Read, joined: Joined) -> None:
    """Join the names that differ in their writing alone, where their kinds allow it."""
    forms: dict[str, dict[str, str]] = defaultdict(dict)
    for key, names in read.written.items():
        if key.endswith(")"):
            continue
        for name in names:
            shape, reason = form(name)
            forms[shape][key] = max(reason, forms[shape].get(key, ""))
    many = {bare for bare, keys in read.qualified.items() if len(keys) > 1}
    titled = set(read.titles.values())
    for keys in forms.values():
        if len(keys) > 1:
            _join_those_of_one_form(keys, many, titled, read, joined)


def _join_those_of_one_form(
    keys: Mapping[str, str], many: set[str], titled: set[str], read: Read, joined: Joined
) -> None:
    kept = sorted((key for key in keys if key not in many), key=lambda key: (bool(keys[key]), key))
    for key in kept[1:]:
        # Two documents with a title each are about two things.
        if not kinds_differ(read.kinds[kept[0]], read.kinds[key]) and not {key, kept[0]} <= titled:
            reason = keys[key] or keys[kept[0]]
            joined.join(kept[0], key, f"{_SAME_FORM}: {reason}" if reason else _SAME_FORM)


@dataclass(frozen=True, slots=True)
class OpenPair:
    """Two keys that may be one thing, and what there is to decide it by."""

    keys: tuple[str, str]
    pair: Pair


def open_pairs(
    extractions: Sequence[Found],
    documents: Mapping[str, str],
    read: Read,
    joined: Joined,
    near: Sequence[tuple[str, str]] = (),
) -> list[OpenPair]:
    """The pairs that no rule has joined and that a decision may: similar names beside the same others.

    `near` are pairs of names whose vectors lie near each other.
    """
    titled = set(read.titles.values())
    pairs = [
        (first, second)
        for first, second in sorted({*_candidates(read), *_of_keys(near, read)})
        if joined.find(first) != joined.find(second) and not {first, second} <= titled
    ]
    wanted = {key for pair in pairs for key in pair}
    beside = _beside(extractions, wanted)
    said = _said(quotes(extractions, documents, wanted))
    found = []
    for first, second in pairs:
        shared = _shared(beside[first] & beside[second], (first, second), read)
        if shared:
            pair = Pair(first=_named(first, read, said), second=_named(second, read, said), shared=shared)
            found.append(OpenPair((first, second), pair))
    return found


def _of_keys(near: Sequence[tuple[str, str]], read: Read) -> Iterator[tuple[str, str]]:
    """Pairs of names as pairs of keys that may be one thing by their kinds."""
    for names in near:
        first, second = sorted(map(name_key, names))
        told_apart = {first, second} & {key for key in (first, second) if key.endswith(")") or key in read.qualified}
        if first != second and not told_apart and not kinds_differ(read.kinds[first], read.kinds[second]):
            yield first, second


def _candidates(read: Read) -> Iterator[tuple[str, str]]:
    blocks: dict[str, list[str]] = defaultdict(list)
    for key in sorted(read.written):
        # What several things are called is told apart by documents, not by likeness.
        if " " in key and not key.endswith(")") and len(read.qualified.get(key, ())) < 2:
            for word in set(key.split()):
                if len(word) > 2:
                    blocks[word].append(key)
    for keys in blocks.values():
        if 1 < len(keys) <= _RARE:
            for first, second in combinations(keys, 2):
                if _may_be_one(first, second, read):
                    yield first, second


def _may_be_one(first: str, second: str, read: Read) -> bool:
    """Whether two names of several words may be one name: a given name left out or cut to its initial, or a slip."""
    if kinds_differ(read.kinds[first], read.kinds[second]) or first[0] != second[0]:
        return False
    if any("'s " in name or "’s " in name for key in (first, second) for name in read.written[key]):
        return False
    one, other = first.split(), second.split()
    if len(one) == len(other):
        differ = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
        if len(differ) == 1 and _misspelt(*differ[0]):
            # Who writes both means two.
            return not set(read.documents[first]) & set(read.documents[second]) and not opposed(one, other)
    if "person" not in {read.kinds[first], read.kinds[second]} or has_number(one) != has_number(other):
        return False
    if one[-1] != other[-1] or kind_of_words(one) or kind_of_words(other) or opposed(one, other):
        return False
    return _given_fit(one[:-1], other[:-1]) or _given_fit(other[:-1], one[:-1])


def _misspelt(one: str, other: str) -> bool:
    return min(len(one), len(other)) >= _LEAST_WORD and OSA.normalized_similarity(one, other) >= SAME_WORD


def _given_fit(short: Sequence[str], long: Sequence[str]) -> bool:
    """Whether the shorter given names are the longer ones with some left out or cut to initials; the first stays."""
    if all(len(word) == 1 for word in short):
        return fits_initials(list(short), list(long))
    left = iter(long)
    kept = short[0] == long[0] and all(any(word in {other, other[0]} for other in left) for word in short)
    return kept and len(short) < len(long)


def _beside(extractions: Sequence[Found], wanted: set[str]) -> dict[str, set[str]]:
    """For each wanted name the names that stand in a passage with it."""
    beside: dict[str, set[str]] = {key: set() for key in wanted}
    passages: Counter[str] = Counter()
    for extraction in extractions if wanted else ():
        keys = {name_key(mention.name) for mention in extraction.mentions}
        for key in keys & wanted:
            passages[key] += 1
            if passages[key] <= _LOOKED_AT:
                beside[key] |= keys
    return beside


def _shared(keys: set[str], names: tuple[str, str], read: Read) -> tuple[str, ...]:
    """Of the names beside both, those that few documents name and that have no word of either; the rarest first."""
    own = {word for name in names for word in name.split()}
    telling = [key for key in keys if len(read.documents[key]) <= _TELLING and own.isdisjoint(key.split())]
    telling.sort(key=lambda key: (len(read.documents[key]), key))
    return tuple(read.written[key][0] for key in telling[:MOST_SHARED])


def _said(found: Mapping[Place, Sequence[str]]) -> dict[str, list[str]]:
    said: dict[str, list[str]] = defaultdict(list)
    for (_, key), texts in sorted(found.items()):
        said[key] += [text for text in texts if len(said[key]) < MOST_SAID]
    return said


def _named(key: str, read: Read, said: Mapping[str, Sequence[str]]) -> Named:
    return Named(name=read.written[key][0], kind=read.kinds[key], said=tuple(said.get(key, ())[:MOST_SAID]))
