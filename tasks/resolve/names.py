"""Decide which names mean one thing, by form, by what texts state, and by a model's verdicts.

The result is a pure function of mentions, verdicts and vectors; no order and no history counts.

1. Names that differ only in their spelling have one form ("Tolkien, J. R. R.", "Hask Steel Inc.").
2. Names that a text states to mean the same are one ("A, also known as B", 中文(English)).
3. A document whose title qualifies a name ("Mercury (planet)") means that thing by the bare name;
   where nothing else bears the name, every document does.
4. Names that have near vectors and share rare neighbours are one where a model says so.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from networkx.utils import UnionFind

from prompts.engine.embedders import Embedder
from prompts.extracted import ALIAS_PREDICATE
from prompts.resolve import MOST_SAID, MOST_SHARED, Decided, NameInContext, Pair
from prompts.text.names_zh import is_generic
from storage.graph_records import Extraction
from storage.provenance import DocumentName
from storage.records import by_key
from tasks.resolve.keys import Resolved, bare_key, form, kinds_differ, main_kind, name_key

_SAME_FORM = "the same name in another form"
_STATED = "the text states that both names mean the same"
_QUALIFIED = "only one thing of this name is described"
_TITLED = "the document's title names it with a qualifier"
# A model is asked about each name and its nearest ones with at least this cosine. On 3,196 aliases
# of 268 things these are 1.4 pairs a name, .96 of them right; 5 with at least .6 would be 2.5
# (`python -m benchmarks resolution`).
NEAREST = 3
LEAST_COSINE = 0.7
_MOST_DOCUMENTS = 6  # that name a rare neighbour
_MOST_PASSAGES = 20  # of a name whose neighbours are read
_ROWS = 1024  # vectors compared at once

OpenPair = tuple[tuple[str, str], Pair]  # two keys, and what a model reads of them


class Extractions(Protocol):
    """All extractions of a generation, as `ExtractionStore` holds them."""

    def names(self) -> Iterable[tuple[str, str, int]]:
        """Return (name, kind, number of mentions), by name."""

    def naming(self) -> Iterable[tuple[str, str]]:
        """Return each (chunk, name) once."""

    def related(
        self, predicate: str, names: Collection[str]
    ) -> Iterable[tuple[str, str, str, str]]:
        """Return (chunk, source, predicate, target) of statements with this predicate or a name."""

    def extractions(self, chunks: Collection[str] | None = None) -> Sequence[Extraction]:
        """Return the extractions of these chunks, or of all."""


@dataclass(frozen=True)
class NamesRead:
    """The keys of all names, sorted, and what is joined without a model.

    `keys` are by document and `documents` by key; `written` holds the spellings of each key,
    `titles` the key of each document's title.
    """

    keys: Mapping[str, Sequence[str]]
    documents: Mapping[str, Sequence[str]]
    kinds: Mapping[str, str]
    written: Mapping[str, Sequence[str]]
    titles: Mapping[str, str]
    joined: Sequence[tuple[str, str, str]]  # two keys, and why


def names_read(
    extractions: Extractions, documents: Mapping[str, str], titles: Mapping[str, str]
) -> NamesRead:
    """Read all names; `documents` maps chunks to documents, `titles` documents to titles."""
    written: dict[str, list[str]] = defaultdict(list)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for name, kind, count in extractions.names():
        key = name_key(name)
        counts[key][kind] += count
        if name not in written[key][-1:]:
            written[key].append(name)
    keys: dict[str, set[str]] = defaultdict(set)
    for chunk, name in extractions.naming():
        keys[documents[chunk]].add(name_key(name))
    in_order = {document: sorted(keys[document]) for document in sorted(keys)}
    stated = {
        (name_key(source), name_key(target))
        for _, source, _, target in extractions.related(ALIAS_PREDICATE, ())
    }
    kinds = {key: main_kind(counted) for key, counted in counts.items()}
    title_keys = {document: name_key(title) for document, title in titles.items()}
    return NamesRead(
        keys=in_order,
        documents=by_key((key, document) for document, own in in_order.items() for key in own),
        kinds=kinds,
        written=written,
        titles=title_keys,
        joined=list(_joined(written, kinds, frozenset(title_keys.values()), sorted(stated))),
    )


def _joined(
    written: Mapping[str, Sequence[str]],
    kinds: Mapping[str, str],
    titled: Collection[str],
    stated: Sequence[tuple[str, str]],
) -> Iterator[tuple[str, str, str]]:
    """Yield the pairs of keys that mean one thing without a model's verdict, and why."""
    qualified = by_key((bare, key) for key in sorted(written) if (bare := bare_key(key)))
    shared = {bare for bare, keys in qualified.items() if len(keys) > 1}
    partners: dict[str, set[str]] = defaultdict(set)
    for one, other in stated:
        partners[one].add(other)
        partners[other].add(one)
    for one, other in stated:
        apart = kinds_differ(kinds.get(one, ""), kinds.get(other, ""))
        unclear = {one, other} & shared or any(
            _is_of_several(key, partners[key]) for key in (one, other)
        )
        if one != other and not (apart or unclear or is_generic(one) or is_generic(other)):
            yield one, other, _STATED
    for bare, keys in qualified.items():
        if len(keys) == 1 and bare in written and bare not in titled:
            yield bare, keys[0], _QUALIFIED
    alone = (key for key in sorted(written) if key not in shared and not bare_key(key))
    for same in by_key((form(name), key) for key in alone for name in written[key]).values():
        for key in same[1:]:
            # Two titles of documents are two things.
            if not kinds_differ(kinds[same[0]], kinds[key]) and not {key, same[0]} <= set(titled):
                yield same[0], key, _SAME_FORM


def _is_of_several(key: str, partners: Collection[str]) -> bool:
    return " " not in key and sum(" " in partner for partner in partners) > 1


def resolve(read: NamesRead, verdicts: Iterable[tuple[tuple[str, str], Decided]]) -> Resolved:
    """Return the group of every (document, key), called by its least key."""
    same = [(*keys, decided.reason) for keys, decided in verdicts if decided.same]
    joined, reasons = [*read.joined, *same], dict[str, str]()
    for one, other, reason in joined:
        reasons.setdefault(one, reason)
        reasons.setdefault(other, reason)
    union = _union(read.written, joined)
    group_of = {key: min(group) for group in union.to_sets() for key in group}
    keys: dict[DocumentName, str] = {}
    why: dict[DocumentName, str] = {}
    for document, names in read.keys.items():
        title = read.titles.get(document, "")
        for key in names:
            meant = title if title and key == bare_key(title) else key
            keys[document, key] = group_of.get(meant, meant)
            if reason := _TITLED if meant != key else reasons.get(key, ""):
                why[document, key] = reason
    return Resolved(keys, why)


def _union(keys: Iterable[str], joined: Iterable[tuple[str, str, str]]) -> UnionFind:
    union = UnionFind(sorted(keys))
    for one, other, _ in joined:
        union.union(one, other)
    return union


# --- what a model is asked ---


def open_pairs(
    read: NamesRead, extractions: Extractions, documents: Mapping[str, str], embedder: Embedder
) -> list[OpenPair]:
    """Return the near names that nothing has joined, with statements and shared neighbours."""
    union = _union(read.written, read.joined)
    titled = set(read.titles.values())
    readable = [key for key in sorted(read.written) if embedder.reads(read.written[key][0])]
    pairs = near_names([read.written[key][0] for key in readable], embedder)
    near = [
        (one, other)
        for one, other in ((readable[first], readable[second]) for first, second in pairs)
        if union[one] != union[other]
        and not kinds_differ(read.kinds[one], read.kinds[other])
        and not {one, other} <= titled
    ]
    wanted = {key for pair in near for key in pair}
    naming = {document for key in wanted for document in read.documents[key]}
    chunks = [chunk for chunk, document in documents.items() if document in naming]
    neighbours: dict[str, set[str]] = defaultdict(set)
    passages: Counter[str] = Counter()
    said: set[tuple[str, str, str]] = set()
    for extraction in extractions.extractions(chunks) if chunks else []:
        keys = {name_key(mention.name) for mention in extraction.mentions}
        for key in keys & wanted:
            passages[key] += 1
            if passages[key] <= _MOST_PASSAGES:
                neighbours[key] |= keys
        for mention in extraction.mentions:
            if mention.description and (key := name_key(mention.name)) in wanted:
                said.add((key, documents[extraction.chunk], mention.description))
    quoted = by_key((key, description) for key, _, description in sorted(said))

    def named(key: str) -> NameInContext:
        statements = tuple(quoted.get(key, [])[:MOST_SAID])
        return NameInContext(name=read.written[key][0], kind=read.kinds[key], said=statements)

    return [
        ((one, other), Pair(first=named(one), second=named(other), shared=shared))
        for one, other in near
        if (shared := _rarest(neighbours[one] & neighbours[other], (one, other), read))
    ]


def near_names(names: Sequence[str], embedder: Embedder) -> list[tuple[int, int]]:
    """Return the sorted pairs of indices where one name is among the nearest of the other."""
    if len(names) < 2:
        return []
    vectors = embedder.embed(names)
    pairs = set[tuple[int, int]]()
    for at in range(0, len(names), _ROWS):
        cosines = vectors[at : at + _ROWS] @ vectors.T
        cosines[np.arange(len(cosines)), np.arange(at, at + len(cosines))] = -1.0
        most = min(NEAREST, len(names) - 1)
        nearest = np.argpartition(-cosines, most - 1, axis=1)[:, :most]
        like = np.take_along_axis(cosines, nearest, 1) >= LEAST_COSINE
        for row, column in zip(*np.nonzero(like), strict=True):
            one, other = sorted((at + int(row), int(nearest[row, column])))
            pairs.add((one, other))
    return sorted(pairs)


def _rarest(keys: Collection[str], names: tuple[str, str], read: NamesRead) -> tuple[str, ...]:
    """Return the neighbours that few documents name, the rarest first, without the names' words."""
    own = {word for name in names for word in name.split()}

    def count(key: str) -> int:
        return len(read.documents[key])

    rare = [key for key in keys if count(key) <= _MOST_DOCUMENTS and own.isdisjoint(key.split())]
    rare.sort(key=lambda key: (count(key), key))
    return tuple(read.written[key][0] for key in rare[:MOST_SHARED])
