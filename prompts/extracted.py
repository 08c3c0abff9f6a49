"""What extraction yields of a passage: entities, the relations between them, and claims."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema

from prompts.text.words import fold

# The predicate between two names of one thing, which entity resolution joins.
ALIAS_PREDICATE = "also known as"

Status = Literal["true", "false", "suspected"]

_ANY_WORD = re.compile(r"\w+")
# How models write that there is nothing to write.
_NOTHING = frozenset({"none", "null", "n/a", "-", "–", "—"})


class EntityFound(BaseModel):
    """An entity that the passage names."""

    name: str
    kind: str
    description: str = ""


class RelationFound(BaseModel):
    """A directed statement between two of the entities."""

    source: str
    target: str
    predicate: str
    description: str = ""
    strength: float = Field(default=1.0, ge=0)
    keys: tuple[str, ...] = ()


def _lowered(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _or_nothing(value: object) -> object:
    return "" if _lowered(value) in _NOTHING else value


OrNothing = Annotated[str, BeforeValidator(_or_nothing)]


class ClaimFound(BaseModel):
    """What the passage asserts of an entity, with what it says of its truth and time (GraphRAG's
    covariates).
    """

    subject: str = Field(min_length=1)
    object: OrNothing = ""
    kind: str = Field(min_length=1)
    status: Annotated[Status, BeforeValidator(_lowered)]
    since: OrNothing = ""
    until: OrNothing = ""
    description: str = Field(min_length=1)
    quote: str = ""


class FactFound(BaseModel):
    """A fact of a type of the schema: the value of an attribute, or the other end of a relation."""

    subject: str = Field(min_length=1)
    type: str = Field(min_length=1)
    value: str = Field(min_length=1)
    since: OrNothing = ""
    until: OrNothing = ""
    quote: str = ""


class Extracted(BaseModel):
    """All that a passage yields. Facts are asked for where there is a schema alone, so the form of
    the other prompts does not name them.
    """

    entities: list[EntityFound] = Field(default_factory=list)
    relations: list[RelationFound] = Field(default_factory=list)
    claims: list[ClaimFound] = Field(default_factory=list)
    facts: SkipJsonSchema[list[FactFound]] = Field(default_factory=list)


Found = EntityFound | RelationFound | ClaimFound


def merge(first: Extracted, more: Extracted) -> Extracted:
    """The first, with the records of `more` that are new.

    A record about the same is new where its description is not part of an earlier one.
    """
    descriptions: dict[tuple[str, ...], list[str]] = {}
    records: list[Found] = [*first.entities, *first.relations, *first.claims]
    for record in records:
        descriptions.setdefault(_about(record), []).append(_words(record.description))

    def is_new(record: Found) -> bool:
        words, before = _words(record.description), descriptions.setdefault(_about(record), [])
        if before and (not words.strip() or any(words in other for other in before)):
            return False
        before.append(words)
        return True

    return Extracted(
        entities=[*first.entities, *filter(is_new, more.entities)],
        relations=[*first.relations, *filter(is_new, more.relations)],
        claims=[*first.claims, *filter(is_new, more.claims)],
        facts=_different([*first.facts, *more.facts]),
    )


def known(extracted: Extracted) -> list[str]:
    """Distinct names, statements, claims and facts, as a further round reads them."""
    names = [entity.name for entity in extracted.entities]
    stated = [
        f"{relation.source} -[{relation.predicate}]-> {relation.target}"
        for relation in extracted.relations
    ]
    claimed = [f"{claim.subject}: {claim.description}" for claim in extracted.claims]
    facts = [f"{fact.subject}: {fact.type} = {fact.value}" for fact in extracted.facts]
    return list(dict.fromkeys([*names, *stated, *claimed, *facts]))


def _different(facts: Sequence[FactFound]) -> list[FactFound]:
    """Each fact once: the first that says it, whatever its quote."""
    kept: dict[tuple[str, ...], FactFound] = {}
    for fact in facts:
        parts = (fact.subject, fact.type, fact.value, fact.since, fact.until)
        kept.setdefault(tuple(" ".join(fold(part).split()) for part in parts), fact)
    return list(kept.values())


def _about(record: Found) -> tuple[str, ...]:
    """What a record is about, regardless of capitals and spaces."""
    match record:
        case EntityFound():
            parts: tuple[str, ...] = (record.name,)
        case RelationFound():
            parts = (record.source, record.target, record.predicate)
        case ClaimFound():
            when = (record.since, record.until)
            parts = (record.subject, record.object, record.kind, record.status, *when)
    return tuple(" ".join(fold(part).split()) for part in parts)


def _words(text: str) -> str:
    """Folded words between blanks, so that parts are found whatever punctuation there is."""
    return f" {' '.join(_ANY_WORD.findall(fold(text)))} "
