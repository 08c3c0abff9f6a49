"""The mentions as the rules of resolution need them: read once, in an order that is always the same."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from prompts.extract import ALIAS_PREDICATE
from prompts.text.regex import regex
from storage.graph_records import Extraction
from storage.records import by_key
from tasks.resolve.keys import main_kind, name_key


class Extractions(Protocol):
    """All extractions of a generation, of which no more is read than is needed: its `ExtractionStore`."""

    def names(self) -> Iterable[tuple[str, str, int]]:
        """(name, kind, how often it is mentioned as that), by name."""

    def naming(self) -> Iterable[tuple[str, str]]:
        """(chunk, name), each once."""

    def related(self, predicate: str, names: Collection[str]) -> Iterable[tuple[str, str, str, str]]:
        """(chunk, source, predicate, target) of the statements with this predicate, or one of these names at an end."""

    def extractions(self, chunks: Collection[str] | None = None) -> Sequence[Extraction]:
        """Those of these chunks (None: of all), whole."""


@dataclass(frozen=True, slots=True)
class NamesRead:
    """What the mentions say of each key of a name; documents and keys come in sorted order.

    `keys` holds the keys that a document names and `documents` the documents that name a key, `written` the ways in
    which a key is written, `stated` (document, key, key) of names that a text calls the same, `qualified` the keys with
    a qualifier, in brackets or after the comma of a title, by the bare key, and `ties` for these the
    keys at the other ends of their relations.
    """

    keys: Mapping[str, Sequence[str]]
    documents: Mapping[str, Sequence[str]]
    kinds: Mapping[str, str]
    titles: Mapping[str, str]
    written: Mapping[str, Sequence[str]]
    stated: Sequence[tuple[str, str, str]]
    qualified: Mapping[str, Sequence[str]]
    ties: Mapping[str, set[str]]


_BY_COMMA = regex(r"([^,，]+), ([A-Z]\w*(?: [A-Z]\w*){0,2})")


def _without_comma(title: str, named: Collection[str]) -> str:
    """The key of the name that a title qualifies after a comma ("Paris, Texas"), or nothing; `named`
    are the keys of its document, one of which shows that a name is inverted ("Korb, Ada")."""
    match = _BY_COMMA.fullmatch(title)
    if match is None or name_key(f"{match[2]} {match[1]}") in named:
        return ""
    return name_key(match[1])


def _qualified(
    keys: Iterable[str], titles: Mapping[str, str], named_in: Mapping[str, Collection[str]]
) -> Mapping[str, set[str]]:
    """The keys with a qualifier by the bare key."""
    qualified: dict[str, set[str]] = defaultdict(set)
    for key in keys:
        if key.endswith(")"):
            qualified[key[: key.rindex(" (")]].add(key)
    for document, title in titles.items():
        if bare := _without_comma(title, named_in.get(document, ())):
            qualified[bare].add(name_key(title))
    return qualified


def names_read(extractions: Extractions, documents: Mapping[str, str], titles: Mapping[str, str]) -> NamesRead:
    """`documents` maps chunks to documents, `titles` documents to titles."""
    key_of: dict[str, str] = {}
    kinds: dict[str, dict[str, int]] = {}
    written: dict[str, list[str]] = {}
    for name, kind, count in extractions.names():
        key = key_of.get(name)
        if key is None:
            key = key_of[name] = name_key(name)
            written.setdefault(key, []).append(name)
        counted = kinds.setdefault(key, {})
        counted[kind] = counted.get(kind, 0) + count
    named_in: dict[str, set[str]] = defaultdict(set)
    for chunk, name in extractions.naming():
        named_in[documents[chunk]].add(key_of[name])
    keys = {document: sorted(named_in[document]) for document in sorted(named_in)}
    where = by_key((key, document) for document, own in keys.items() for key in own)
    qualified = _qualified(written, titles, named_in)
    with_qualifier = {key for names in qualified.values() for key in names}
    stated: set[tuple[str, str, str]] = set()
    ties: dict[str, set[str]] = defaultdict(set)
    named = [name for key in sorted(with_qualifier) for name in written.get(key, ())]
    for chunk, source, predicate, target in extractions.related(ALIAS_PREDICATE, named):
        ends = name_key(source), name_key(target)
        if predicate == ALIAS_PREDICATE and ends[0] != ends[1]:
            stated.add((documents[chunk], *ends))
        for end, other in (ends, ends[::-1]):
            if end in with_qualifier:
                ties[end].add(other)
    return NamesRead(
        keys=keys,
        documents=where,
        kinds={key: main_kind(counted) for key, counted in kinds.items()},
        titles={document: name_key(title) for document, title in titles.items()},
        written=written,
        stated=sorted(stated),
        qualified={bare: sorted(names) for bare, names in qualified.items()},
        ties=ties,
    )
