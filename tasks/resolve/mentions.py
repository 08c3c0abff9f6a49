"""The mentions as the rules of resolution need them: read once, in an order that is always the same."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from prompts.extract import ALIAS_PREDICATE
from storage.graph_records import Extraction
from tasks.resolve.keys import main_kind, name_key


class Extractions(Protocol):
    """All extractions of a generation, of which no more is read than is needed: its `ExtractionStore`."""

    def mentioned(self) -> Iterable[tuple[str, str, str]]:
        """(chunk, name, kind) of every mention."""

    def related(self, predicate: str, names: Collection[str]) -> Iterable[tuple[str, str, str, str]]:
        """(chunk, source, predicate, target) of the statements with this predicate, or one of these names at an end."""

    def extractions(self, chunks: Collection[str] | None = None) -> Sequence[Extraction]:
        """Those of these chunks (None: of all), whole."""


@dataclass(frozen=True, slots=True)
class NamesRead:
    """What the mentions say of each key of a name; documents and keys come in sorted order.

    `keys` holds the keys that a document names and `documents` the documents that name a key, `written` the ways in
    which a key is written, `stated` (document, key, key) of names that a text calls the same, `qualified` the keys with
    a qualifier by the bare key, and `ties` for these the keys at the other ends of their relations.
    """

    keys: Mapping[str, Sequence[str]]
    documents: Mapping[str, Sequence[str]]
    kinds: Mapping[str, str]
    titles: Mapping[str, str]
    written: Mapping[str, Sequence[str]]
    stated: Sequence[tuple[str, str, str]]
    qualified: Mapping[str, Sequence[str]]
    ties: Mapping[str, set[str]]


def names_read(extractions: Extractions, documents: Mapping[str, str], titles: Mapping[str, str]) -> NamesRead:
    """`documents` maps chunks to documents, `titles` documents to titles."""
    keys: dict[str, set[str]] = defaultdict(set)
    where: dict[str, set[str]] = defaultdict(set)
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    qualified: dict[str, set[str]] = defaultdict(set)
    written: dict[str, set[str]] = defaultdict(set)
    stated: set[tuple[str, str, str]] = set()
    ties: dict[str, set[str]] = defaultdict(set)
    for chunk, name, kind in extractions.mentioned():
        document, key = documents[chunk], name_key(name)
        keys[document].add(key)
        where[key].add(document)
        kinds[key][kind] += 1
        written[key].add(name)
        if key.endswith(")"):
            qualified[key[: key.rindex(" (")]].add(key)
    named = [name for keys_of in qualified.values() for key in keys_of for name in written[key]]
    for chunk, source, predicate, target in extractions.related(ALIAS_PREDICATE, named):
        ends = name_key(source), name_key(target)
        if predicate == ALIAS_PREDICATE and ends[0] != ends[1]:
            stated.add((documents[chunk], *ends))
        for end, other in (ends, ends[::-1]):
            if end.endswith(")"):
                ties[end].add(other)
    return NamesRead(
        keys={document: sorted(keys[document]) for document in sorted(keys)},
        documents={key: sorted(names) for key, names in where.items()},
        kinds={key: main_kind(counted) for key, counted in kinds.items()},
        titles={document: name_key(title) for document, title in titles.items()},
        written={key: sorted(names) for key, names in written.items()},
        stated=sorted(stated),
        qualified={bare: sorted(names) for bare, names in qualified.items()},
        ties=ties,
    )
