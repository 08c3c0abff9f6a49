"""The mentions as the rules of resolution need them: read once, in an order that is always the same."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prompts.extract import ALIAS_PREDICATE
from storage.graph_records import Extraction
from tasks.resolve.keys import main_kind, name_key


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


def names_read(extractions: Sequence[Extraction], documents: Mapping[str, str], titles: Mapping[str, str]) -> NamesRead:
    """`documents` maps chunks to documents, `titles` documents to titles."""
    keys: dict[str, set[str]] = defaultdict(set)
    where: dict[str, set[str]] = defaultdict(set)
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    qualified: dict[str, set[str]] = defaultdict(set)
    written: dict[str, set[str]] = defaultdict(set)
    stated: set[tuple[str, str, str]] = set()
    ties: dict[str, set[str]] = defaultdict(set)
    for extraction in extractions:
        document = documents[extraction.chunk]
        for mention in extraction.mentions:
            key = name_key(mention.name)
            keys[document].add(key)
            where[key].add(document)
            kinds[key][mention.kind] += 1
            written[key].add(mention.name)
            if key.endswith(")"):
                qualified[key[: key.rindex(" (")]].add(key)
        for relation in extraction.relations:
            ends = name_key(relation.source), name_key(relation.target)
            if relation.predicate == ALIAS_PREDICATE and ends[0] != ends[1]:
                stated.add((document, *ends))
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
