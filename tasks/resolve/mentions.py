"""The mentions as the rules of resolution need them: read once, in an order that is always the same."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from prompts.extract import ALIAS_PREDICATE
from prompts.text.defined import Defined, apart_in_place, contradict, defined_as, opening
from prompts.text.words import fold, fold_name
from storage.graph_records import Found
from tasks.resolve.keys import Place, main_kind, name_key


@dataclass(slots=True)
class _Thing:
    """One of the things of a name: what defines it, and the documents that do."""

    defined: list[Defined] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)


def told_apart(
    definitions: Mapping[str, Mapping[str, Defined]], counts: Mapping[str, Counter[str]]
) -> tuple[dict[Place, str], dict[str, list[str]]]:
    """(Document, key) → the key with a qualifier of the thing that is meant, and by that key its documents.

    Only for names that documents define as different things; a document whose definition fits several is left out.
    """
    assigned: dict[Place, str] = {}
    about: dict[str, list[str]] = defaultdict(list)
    for key, by_document in definitions.items():
        things = _things(by_document, counts)
        if len(things) < 2 or key.endswith(")"):
            continue
        for thing, label in zip(things, _labels(things), strict=True):
            qualified = f"{key} ({label})"
            for document in thing.documents:
                assigned[document, key] = qualified
                about[qualified].append(document)
    return assigned, dict(about)


def _things(by_document: Mapping[str, Defined], counts: Mapping[str, Counter[str]]) -> list[_Thing]:
    """What says most decides first: a definition that fits two things is of neither."""
    things: list[_Thing] = []
    for document in sorted(by_document, key=lambda document: (-by_document[document].fullness, document)):
        defined = by_document[document]
        fitting = [thing for thing in things if not _apart(document, defined, thing, counts)]
        if not fitting:
            fitting = [_Thing()]
            things += fitting
        if len(fitting) == 1:
            fitting[0].documents.append(document)
            if defined not in fitting[0].defined:
                fitting[0].defined.append(defined)
    return things


def _apart(document: str, defined: Defined, thing: _Thing, counts: Mapping[str, Counter[str]]) -> bool:
    if any(contradict(defined, other) for other in thing.defined):
        return True
    if not all(apart_in_place(defined, other) for other in thing.defined):
        return False
    # "A town in Bavaria" and "a town in Germany" are one where a text on the one names the other's place.
    within = {fold_name(place) for other in thing.defined for place in other.within}
    own = {fold_name(place) for place in defined.within}
    return not (within & counts[document].keys() or any(own & counts[other].keys() for other in thing.documents))


def _labels(things: Sequence[_Thing]) -> list[str]:
    """What tells each from the others, in a word: what it is called, its first year, or where it lies."""
    heads = [thing.defined[0].head or thing.defined[0].kind for thing in things]
    labels = []
    for thing, head in zip(things, heads, strict=True):
        first = thing.defined[0]
        more = [str(first.years[0])] if first.years else [fold(first.within[0])] if first.within else []
        labels.append(head if heads.count(head) == 1 else " ".join([head, *more]))
    counted = Counter(labels)
    return [label if counted[label] == 1 else f"{label} {place}" for place, label in enumerate(labels, 1)]


@dataclass(frozen=True, slots=True)
class NamesRead:
    """What the mentions say of each key of a name; documents and keys come in sorted order.

    `written` holds the ways in which a key is written, `qualified` the keys with a qualifier by the bare key, `ties`
    for these the keys at the other ends of their relations. `assigned` says which of several things of one name a
    document defines, by a key with a qualifier made for it; `about` holds the documents that define each.
    """

    counts: Mapping[str, Counter[str]]
    kinds: Mapping[str, str]
    titles: Mapping[str, str]
    written: Mapping[str, Sequence[str]]
    documents: Mapping[str, Sequence[str]]
    stated: Sequence[tuple[str, str, str]]
    ties: Mapping[str, frozenset[Place]]
    quotes: Mapping[Place, Sequence[str]]
    qualified: Mapping[str, Sequence[str]]
    assigned: Mapping[Place, str]
    about: Mapping[str, Sequence[str]]


def names_read(extractions: Sequence[Found], documents: Mapping[str, str], titles: Mapping[str, str]) -> NamesRead:
    """`documents` maps chunks to documents, `titles` documents to titles."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    qualified: dict[str, set[str]] = defaultdict(set)
    written: dict[str, set[str]] = defaultdict(set)
    stated: set[tuple[str, str, str]] = set()
    for extraction in extractions:
        document = documents[extraction.chunk]
        counted = counts[document]
        for mention in extraction.mentions:
            key = name_key(mention.name)
            counted[key] += 1
            kinds[key][mention.kind] += 1
            written[key].add(mention.name)
            if key.endswith(")"):
                qualified[key[: key.rindex(" (")]].add(key)
        for relation in extraction.relations:
            if relation.predicate == ALIAS_PREDICATE:
                stated.add((document, name_key(relation.source), name_key(relation.target)))
    where: dict[str, list[str]] = defaultdict(list)
    for document in sorted(counts):
        for key in counts[document]:
            where[key].append(document)
    assigned, about = told_apart(_definitions(extractions, documents, where), counts)
    for (_, bare), key in assigned.items():
        qualified[bare].add(key)
    several = {bare for bare, keys in qualified.items() if len(keys) > 1}
    return NamesRead(
        counts={document: counts[document] for document in sorted(counts)},
        kinds={key: main_kind(counted) for key, counted in kinds.items()},
        titles={document: name_key(title) for document, title in titles.items()},
        written={key: sorted(names) for key, names in written.items()},
        documents=where,
        stated=sorted(pair for pair in stated if pair[1] != pair[2]),
        ties=_ties(extractions, documents, several | {key for bare in several for key in qualified[bare]}),
        quotes=quotes(extractions, documents, several),
        qualified={bare: sorted(keys) for bare, keys in qualified.items()},
        assigned=assigned,
        about=about,
    )


def _definitions(
    extractions: Iterable[Found], documents: Mapping[str, str], where: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, Defined]]:
    """Key → document → what that document defines it to be, for the keys that several documents name."""
    found: dict[str, dict[str, set[Defined]]] = defaultdict(lambda: defaultdict(set))
    for extraction in extractions:
        document = documents[extraction.chunk]
        for mention in extraction.mentions:
            said = mention.description
            if said and opening(mention.name, said) >= 0 and len(where[key := name_key(mention.name)]) > 1:
                defined = defined_as(mention.name, said)
                if defined is not None:
                    found[key][document].add(defined)
    # What says most comes first; a document that defines a name twice is taken at its fuller word.
    return {
        key: {document: max(said, key=lambda one: (one.fullness, repr(one))) for document, said in sorted(by.items())}
        for key, by in sorted(found.items())
        if len(by) > 1
    }


def _ties(extractions: Iterable[Found], documents: Mapping[str, str], wanted: set[str]) -> dict[str, frozenset[Place]]:
    """Wanted key → (document, key at the other end) of its relations."""
    ties: dict[str, set[Place]] = defaultdict(set)
    for extraction in extractions if wanted else ():
        for relation in extraction.relations:
            source, target = name_key(relation.source), name_key(relation.target)
            for one, other in ((source, target), (target, source)):
                if one in wanted:
                    ties[one].add((documents[extraction.chunk], other))
    return {key: frozenset(pairs) for key, pairs in ties.items()}


def quotes(extractions: Iterable[Found], documents: Mapping[str, str], wanted: set[str]) -> dict[Place, list[str]]:
    """(Document, wanted key) → the sentences there that name it."""
    found: dict[Place, set[str]] = defaultdict(set)
    for extraction in extractions if wanted else ():
        for mention in extraction.mentions:
            if mention.description and (key := name_key(mention.name)) in wanted:
                found[documents[extraction.chunk], key].add(mention.description)
    return {place: sorted(texts) for place, texts in found.items()}
