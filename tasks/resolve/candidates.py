"""Candidates: pairs of names that may mean one thing, so that something has to decide, without comparing all with all.

Names are compared within blocks only: those that share a rare word.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from rapidfuzz.distance import OSA

from prompts.resolve import MOST_SAID, MOST_SHARED, NameInContext, Pair
from prompts.text.likeness import SAME_WORD, numbers_of, opposed
from prompts.text.names import kind_of_words
from storage.graph_records import Extraction
from storage.records import by_key
from tasks.resolve.keys import UnionFind, kinds_differ, name_key
from tasks.resolve.mentions import Extractions, NamesRead

_RARE = 8  # names that share a word, at most, for it to make a block
_LEAST_WORD = 5  # letters of a word that may be misspelt
_LOOKED_AT = 20  # passages of a name whose other names are compared
_TELLING = 6  # documents, at most, that name what is to tell something


OpenPair = tuple[tuple[str, str], Pair]  # two keys that may be one thing, and what there is to decide it by


def open_pairs(
    extractions: Extractions,
    documents: Mapping[str, str],
    read: NamesRead,
    joined: UnionFind,
) -> list[OpenPair]:
    """The pairs that no rule has joined and that a decision may: similar names beside the same others."""
    titled = set(read.titles.values())
    pairs = [
        (first, second)
        for first, second in sorted(set(_candidates(read)))
        if joined.find(first) != joined.find(second) and not {first, second} <= titled
    ]
    wanted = {key for pair in pairs for key in pair}
    naming = {document for key in wanted for document in read.documents[key]}
    chunks = [chunk for chunk, document in documents.items() if document in naming]
    found = extractions.extractions(chunks) if chunks else []
    beside = _beside(found, wanted)
    descriptions = sorted(_descriptions(found, documents, wanted))
    quoted = by_key((key, description) for key, _, description in descriptions)
    named = {
        key: NameInContext(name=read.written[key][0], kind=read.kinds[key], said=tuple(quoted.get(key, [])[:MOST_SAID]))
        for key in wanted
    }
    undecided = []
    for first, second in pairs:
        shared = _shared(beside[first] & beside[second], (first, second), read)
        if shared:
            undecided.append(((first, second), Pair(first=named[first], second=named[second], shared=shared)))
    return undecided


def _candidates(read: NamesRead) -> Iterator[tuple[str, str]]:
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


def _may_be_one(first: str, second: str, read: NamesRead) -> bool:
    """Whether two names of several words may be one name: a given name left out or cut to its initial, or a slip."""
    if kinds_differ(read.kinds[first], read.kinds[second]) or first[0] != second[0]:
        return False
    words, other = first.split(), second.split()
    if len(words) == len(other):
        differ = [(a, b) for a, b in zip(words, other, strict=True) if a != b]
        if (
            len(differ) == 1
            and min(map(len, differ[0])) >= _LEAST_WORD
            and (OSA.normalized_similarity(*differ[0]) >= SAME_WORD)
        ):
            # Who writes both means two.
            return not set(read.documents[first]) & set(read.documents[second]) and not opposed(words, other)
    if "person" not in {read.kinds[first], read.kinds[second]} or bool(numbers_of(words)) != bool(numbers_of(other)):
        return False
    if words[-1] != other[-1] or kind_of_words(words) or kind_of_words(other) or opposed(words, other):
        return False
    return fits_given(words[:-1], other[:-1]) or fits_given(other[:-1], words[:-1])


def fits_given(short: Sequence[str], long: Sequence[str]) -> bool:
    """Whether given names are others in their order, some left out or cut to initials; the first stays."""
    if not short or not long or len(long[0]) == 1 or short[0] not in {long[0], long[0][0]}:
        return False
    left = iter(long)
    return all(any(word in {other, other[0]} for other in left) for word in short)


def _descriptions(
    extractions: Sequence[Extraction], documents: Mapping[str, str], wanted: set[str]
) -> set[tuple[str, str, str]]:
    """(Wanted key, document, sentence there that describes it)."""
    return {
        (key, documents[extraction.chunk], mention.description)
        for extraction in extractions
        for mention in extraction.mentions
        if mention.description and (key := name_key(mention.name)) in wanted
    }


def _beside(extractions: Sequence[Extraction], wanted: set[str]) -> dict[str, set[str]]:
    """For each wanted name the names that stand in a passage with it."""
    beside: dict[str, set[str]] = {key: set() for key in wanted}
    passages: Counter[str] = Counter()
    for extraction in extractions:
        keys = {name_key(mention.name) for mention in extraction.mentions}
        for key in keys & wanted:
            passages[key] += 1
            if passages[key] <= _LOOKED_AT:
                beside[key] |= keys
    return beside


def _shared(keys: set[str], names: tuple[str, str], read: NamesRead) -> tuple[str, ...]:
    """Of the names beside both, those that few documents name and that have no word of either; the rarest first."""
    own = {word for name in names for word in name.split()}
    telling = [key for key in keys if len(read.documents[key]) <= _TELLING and own.isdisjoint(key.split())]
    telling.sort(key=lambda key: (len(read.documents[key]), key))
    return tuple(read.written[key][0] for key in telling[:MOST_SHARED])
