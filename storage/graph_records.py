"""Records of the graph: extractions, entities, relations, claims, communities, reports."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from storage.records import Record

ClaimStatus = Literal["true", "false", "suspected"]


# Extractions are named tuples, because resolution reads those of a whole generation at once.


class Mention(NamedTuple):
    """An entity named at one place.

    `text[start:end]` is the name, apart from white space and capitals. The span is empty where the
    chunk does not hold the name: the title does, or a model wrote another form.
    """

    chunk: str
    name: str
    kind: str
    start: int
    end: int
    description: str = ""


class RelationMention(NamedTuple):
    """A directed, typed statement between two names; the span is its sentence or triple line."""

    chunk: str
    source: str
    target: str
    predicate: str
    start: int
    end: int
    description: str = ""
    weight: float = 1.0
    keys: tuple[str, ...] = ()


class ClaimMention(NamedTuple):
    """A claim about a name at one place (GraphRAG, section 2.2: covariates).

    `status` says whether the claim is true. `since` and `until` are the first and last day that the
    text gives, as 2024-05-31, 2024-05 or 2024 (or in a model's words). The span is the quoted
    source text; it is empty where the chunk does not hold it.
    """

    chunk: str
    subject: str
    kind: str
    status: ClaimStatus
    start: int
    end: int
    object: str | None = None
    since: str | None = None
    until: str | None = None
    description: str = ""


class FactMention(NamedTuple):
    """A fact of a type of the schema at one place; the span is its value's.

    `object` is the other end of a relation, None for an attribute, whose value is the `number` in
    `unit`, the `day` (an ISO date, its month or its year), `yes` (or no), or the text `value`
    itself. `kind` and `object_kind` are those of its ends. The sentence, row or line that states it
    begins `before` characters before the value and ends `after` characters after it. `valid_from`
    and `valid_to` are the first and the last day (ISO) on which it holds, None where the text does
    not say. At one time a `single` fact has one value.
    """

    chunk: str
    subject: str
    type: str
    start: int
    end: int
    before: int
    after: int
    kind: str
    single: bool
    value: str
    object: str | None = None
    object_kind: str = ""
    number: float | None = None
    unit: str = ""
    day: str = ""
    yes: bool | None = None
    valid_from: str | None = None
    valid_to: str | None = None

    @property
    def statement(self) -> tuple[int, int]:
        """The span of what states it."""
        return self.start - self.before, self.end + self.after


class LeftOutFact(NamedTuple):
    """A fact that a model or a triple gave and that is not kept, and why."""

    chunk: str
    subject: str
    type: str
    value: str
    reason: str


class Extraction(NamedTuple):
    """What was extracted from one chunk (GraphRAG, section 2.2; LightRAG, `Recog`)."""

    chunk: str
    mentions: tuple[Mention, ...] = ()
    relations: tuple[RelationMention, ...] = ()
    claims: tuple[ClaimMention, ...] = ()
    facts: tuple[FactMention, ...] = ()
    left_out: tuple[LeftOutFact, ...] = ()


class Alias(Record):
    """Another name of an entity, and why it was merged into it."""

    entity: str
    name: str
    reason: str


# A graph may be large, and a pydantic record takes ten times the memory of a dataclass.


@dataclass(frozen=True, slots=True)
class Entity:
    """A node of the graph: one thing under all its names."""

    id: str
    name: str
    kind: str
    description: str = ""
    mentions: int = 0
    degree: int = 0


@dataclass(frozen=True, slots=True)
class Relation:
    """An edge; `weight` is the normalised count of its statements (GraphRAG, section 2.3)."""

    id: str
    source: str
    target: str
    predicate: str
    description: str = ""
    weight: float = 1.0
    count: int = 1
    keys: tuple[str, ...] = ()


class WeightedEdge(NamedTuple):
    """What community detection needs of a relation."""

    source: str
    target: str
    weight: float


class Claim(Record):
    """A claim about entities (`subject`, `object`); see `ClaimMention` for the other fields."""

    id: str
    subject: str
    object: str | None
    kind: str
    status: ClaimStatus
    since: str | None
    until: str | None
    description: str
    chunk: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact about an entity (`subject`) at one place; see `FactMention` for the other fields.

    `said` is the same for facts that say the same of their subject, however they are worded.
    """

    id: str
    subject: str
    type: str
    said: str
    chunk: str
    start: int
    end: int
    before: int
    after: int
    kind: str
    single: bool
    value: str
    object: str | None
    object_kind: str
    number: float | None
    unit: str
    day: str
    yes: bool | None
    valid_from: str | None
    valid_to: str | None


class Occurrence(NamedTuple):
    """A place of an entity or a relation (`item`) in the text."""

    item: str
    chunk: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Community:
    """A group of entities; `parent` is the community above, None at the root level 0."""

    id: str
    level: int
    parent: str | None
    members: tuple[str, ...]


class TextSpan(Record):
    """A span of a document's text."""

    document: str
    start: int
    end: int


class Finding(Record):
    """One insight of a report, the place that shows it best, and `more` places."""

    summary: str
    explanation: str
    document: str
    start: int
    end: int
    more: tuple[TextSpan, ...] = ()

    @property
    def places(self) -> tuple[TextSpan, ...]:
        """All its places, the best one first."""
        return (TextSpan(document=self.document, start=self.start, end=self.end), *self.more)


class Report(Record):
    """A community's report (GraphRAG, section 2.5).

    `inputs` is the hash of what it was written from, `stale` the share of the community's members
    that have changed since.
    """

    community: str
    level: int
    title: str
    summary: str
    rating: float
    rating_reason: str
    findings: tuple[Finding, ...]
    inputs: str
    stale: float = 0.0
