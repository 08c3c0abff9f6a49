"""Records of the graph: what extraction finds, entities, relations, claims, reports."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from storage.records import Record

ClaimStatus = Literal["true", "false", "suspected"]


# What extraction finds are tuples, not records of pydantic: resolution reads those of a whole
# generation at once.


class Mention(NamedTuple):
    """An entity named at one place.

    `text[start:end]` names it, apart from white space and capitals. An empty span says that the
    chunk does not hold the name: the title does, or a model wrote another form of it.
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
    """What one place asserts of a name: a claim (GraphRAG, section 2.2: covariates).

    `status` is that of the matter. `since` and `until` are its first and last day as far as the
    text tells, as 2024-05-31, 2024-05 or 2024 (another wording only from a model). The span is the
    quoted source text; an empty one says that the chunk does not hold it.
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


class Extraction(NamedTuple):
    """All that one chunk yields (GraphRAG, section 2.2; LightRAG, `Recog`)."""

    chunk: str
    mentions: tuple[Mention, ...] = ()
    relations: tuple[RelationMention, ...] = ()
    claims: tuple[ClaimMention, ...] = ()


class Alias(Record):
    """A name that stands for an entity, and why it was merged into it."""

    entity: str
    name: str
    reason: str


# Records of a graph that may be large are plain: one of pydantic's takes ten times the memory.


@dataclass(frozen=True, slots=True)
class Entity:
    """A node: one thing, however many names it has."""

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
    """What communities need of a relation."""

    source: str
    target: str
    weight: float


class Claim(Record):
    """A claim about entities (`subject`, `object`); all else is as its `ClaimMention` has it."""

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


class Occurrence(NamedTuple):
    """Where an entity or a relation (`item`) stands in the text."""

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
    """One insight of a report: the place that shows it best, and `more` that it rests on."""

    summary: str
    explanation: str
    document: str
    start: int
    end: int
    more: tuple[TextSpan, ...] = ()

    @property
    def places(self) -> tuple[TextSpan, ...]:
        """All places that it rests on, the telling one first."""
        return (TextSpan(document=self.document, start=self.start, end=self.end), *self.more)


class Report(Record):
    """A community's report (GraphRAG, section 2.5).

    `inputs` is the hash of what it was written from.

    `stale` is the share of the community's members that something was added to since; 0 where
    nothing was.
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
