"""The check of facts against the schema: a fact that breaks it is left out, with the reason."""

from collections.abc import Callable
from dataclasses import dataclass

from prompts.extracted import FactFound
from prompts.schema import Schema
from prompts.tailoring import OTHER_KIND
from prompts.text.words import fold
from tasks.facts.typed_values import UNTYPED, TypedValue, Unfitting, typed_value

# Returns the kind of a name as the passage lists it; "thing" where it does not say.
KindOf = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class CheckedFact:
    """A fact of the schema; `object` is the other end of a relation, None for an attribute.

    `kind` and `object_kind` are those of its ends. The value of a `single` one ends the one before.
    """

    subject: str
    type: str
    kind: str
    value: str
    single: bool
    object: str | None = None
    object_kind: str = ""
    typed: TypedValue = UNTYPED


def checked(fact: FactFound, schema: Schema, kind_of: KindOf) -> CheckedFact:
    """Check a fact, read its value, and turn the inverse of a relation round.

    A name of unknown kind gets the one that the type asks for; if there are several, it stays a
    "thing" here, and other passages show its kind. Raises Unfitting.
    """
    word = _folded(fact.type)
    for name, relation in schema.relations.items():
        inverted = word == _folded(schema.inverse(name))
        if inverted or word == _folded(name):
            ends = (fact.value, fact.subject) if inverted else (fact.subject, fact.value)
            if _folded(ends[0]) == _folded(ends[1]):
                raise Unfitting(f"{name} would lead from {ends[0]!r} to itself")
            kinds = [
                _fitting(end, kind_of(end), allowed, f"{name} leads {way}")
                for end, allowed, way in zip(
                    ends, (relation.source, relation.target), ("from", "to"), strict=True
                )
            ]
            return CheckedFact(
                ends[0], name, kinds[0], fact.value, relation.single, ends[1], kinds[1]
            )
    names = {_folded(name): name for kind in schema.kinds.values() for name in kind.attributes}
    if word not in names:
        raise Unfitting(f"{fact.type!r} is no type of the schema")
    name = names[word]
    owners = schema.owners(name)
    kind = _fitting(fact.subject, kind_of(fact.subject), owners, f"{name} is of")
    meant = [schema.kinds[each].attributes[name] for each in owners if kind in {each, OTHER_KIND}]
    attribute = meant[0]
    if any(other != attribute for other in meant):
        raise Unfitting(
            f"{fact.subject!r} may be a {' or a '.join(owners)}, which differ in {name}"
        )
    typed = typed_value(fact.value, attribute)
    return CheckedFact(fact.subject, name, kind, fact.value, not attribute.several, typed=typed)


def is_typed(word: str, schema: Schema) -> bool:
    """Say whether a word names a type of the schema."""
    attributes = (name for kind in schema.kinds.values() for name in kind.attributes)
    names = (*schema.relations, *map(schema.inverse, schema.relations), *attributes)
    return _folded(word) in map(_folded, names)


def _fitting(name: str, kind: str, allowed: tuple[str, ...], rule: str) -> str:
    """Return the kind of a name that the rule allows. Raises Unfitting."""
    if kind == OTHER_KIND:
        return allowed[0] if len(allowed) == 1 else kind
    if kind not in allowed:
        raise Unfitting(f"{rule} a {' or '.join(allowed)}, and {name!r} is a {kind}")
    return kind


def _folded(word: str) -> str:
    return " ".join(fold(word).replace("_", " ").split())
