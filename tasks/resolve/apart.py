"""Which documents mean different things by one name, because they define it differently?"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prompts.language.defined import Defined, apart_in_place, contradict
from prompts.language.words import fold, fold_name
from tasks.resolve.keys import Place


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
