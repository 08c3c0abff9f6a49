"""What travels through Trellis: the frozen records that steps take and return, and that storage keeps.

Offsets (`start`, `end`) count code points in the stored text of a document, end exclusive, so that
`document.text[start:end]` is the quoted string. Ids are content hashes with a prefix (`chk_`, `ent_`, `rel_`, `clm_`,
`com_`).
"""

import hashlib
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Scalar = str | int | float | bool | None

StructureType = Literal["table", "graph", "algorithm", "catalogue", "chunk"]
QuestionType = Literal["s**", "sp*", "s*o", "spo", "nested"]
ClaimStatus = Literal["true", "false", "suspected"]
Fallback = Literal["none", "partial", "ungrounded", "abstained"]
Mode = Literal[
    "auto", "direct", "naive", "hyde", "rq", "local", "global", "drift", "low", "high", "hybrid", "mix", "traverse",
    "struct",
]  # fmt: skip


def content_id(prefix: str, *parts: str) -> str:
    """A stable id: `prefix_` and 16 hexadecimal digits of SHA-256 over the parts (kept apart by a separator)."""
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{prefix}_{digest[:16]}"


class Record(BaseModel):
    """Base of all records: immutable, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# --- documents -------------------------------------------------------------------------------------------------


class Triple(Record):
    """One imported fact; `weight` counts how often it was asserted."""

    s: str
    p: str
    o: str
    weight: float = 1.0

    def rendered(self) -> str:
        return f"{self.s} -[{self.p}]-> {self.o}"


class Part(Record):
    """What one source says about one document: a text, or triples (one rendered triple a line in `text`).

    `pages` holds the offset in `text` at which each page starts (empty where the format has no pages).
    """

    document: str
    source: str
    path: str
    kind: Literal["text", "triples"]
    title: str
    text: str
    triples: tuple[Triple, ...] = ()
    metadata: dict[str, Scalar] = Field(default_factory=dict)
    pages: tuple[int, ...] = ()

    @property
    def hash(self) -> str:
        """Changes when, and only when, what readers of the document see changes (the place does not count)."""
        extra = repr(sorted(self.metadata.items())) + repr(self.pages) + repr([t.weight for t in self.triples])
        return content_id("prt", self.kind, self.title, self.text, extra)


class Skipped(Record):
    """Something in a source that is not a document: where, and why it was left out."""

    path: str
    reason: str


class DeadLetter(Record):
    """Work that failed and is kept: the item (a chunk id or a `file:line`), the step, the error and its remedy."""

    item: str
    step: str
    error: str
    remedy: str = ""


class Document(Record):
    """A stored document: all its parts, text parts first, joined by a blank line."""

    id: str
    title: str
    text: str
    language: str
    parts: tuple[Part, ...]
    metadata: dict[str, Scalar] = Field(default_factory=dict)
    pages: tuple[int, ...] = ()

    @property
    def hash(self) -> str:
        return content_id("doc", *(part.hash for part in self.parts))

    def page_of(self, offset: int) -> int | None:
        """The page (from 1) that holds an offset, or None where the document has no pages."""
        return sum(1 for start in self.pages if start <= offset) or None if self.pages else None


class Chunk(Record):
    """A passage of a document. `heading` is the path of headings above it ("Guide > Setup"), or empty."""

    id: str
    document: str
    ordinal: int
    start: int
    end: int
    text: str
    tokens: int
    language: str
    title: str
    heading: str = ""
    kind: Literal["text", "triples"] = "text"


# --- the graph -------------------------------------------------------------------------------------------------


class Mention(Record):
    """An entity named at one place; `text[start:end]` names it, apart from white space and capitals.

    An empty span says that the chunk does not hold the name: the title does, or a model wrote another form of it.
    """

    chunk: str
    name: str
    kind: str
    start: int
    end: int
    description: str = ""


class RelationMention(Record):
    """A directed, typed statement between two names at one place; the span is its sentence or triple line."""

    chunk: str
    source: str
    target: str
    predicate: str
    start: int
    end: int
    description: str = ""
    weight: float = 1.0
    keys: tuple[str, ...] = ()


class ClaimMention(Record):
    """What one place asserts of a name, with the text's own word on it: a claim (GraphRAG, section 2.2: covariates).

    `status` is that of the matter. `since` and `until` are its first and last day as far as the text tells, as
    2024-05-31, 2024-05 or 2024 (another wording only from a model). The span is the quoted source text; an empty one
    says that the chunk does not hold it.
    """

    chunk: str
    subject: str
    object: str | None = None
    kind: str
    status: ClaimStatus
    since: str | None = None
    until: str | None = None
    start: int
    end: int
    description: str = ""


class Extraction(Record):
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


class Entity(Record):
    """A node: one thing, however many names it has."""

    id: str
    name: str
    kind: str
    description: str = ""
    mentions: int = 0
    degree: int = 0


class Relation(Record):
    """An edge between two entities; `weight` is the normalised count of its statements (GraphRAG, section 2.3)."""

    id: str
    source: str
    target: str
    predicate: str
    description: str = ""
    weight: float = 1.0
    count: int = 1
    keys: tuple[str, ...] = ()


class Claim(Record):
    """A claim about an entity; `subject` and `object` are entities, all else is as its `ClaimMention` has it."""

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


class Occurrence(Record):
    """Where an entity or a relation (`item`) stands in the text."""

    item: str
    chunk: str
    start: int
    end: int


class Community(Record):
    """A group of entities at one level (0 is the root level); `parent` is the community above, None at level 0."""

    id: str
    level: int
    parent: str | None
    members: tuple[str, ...]


class Finding(Record):
    """One statement of a report with the place that shows it."""

    summary: str
    explanation: str
    document: str
    start: int
    end: int


class Report(Record):
    """A community's report (GraphRAG, section 2.5). `inputs` is the hash of what it was written from."""

    community: str
    level: int
    title: str
    summary: str
    rating: float
    rating_reason: str
    findings: tuple[Finding, ...]
    inputs: str


# --- answers ---------------------------------------------------------------------------------------------------


class Passage(Record):
    """A retrieved chunk; scores compare within one question only."""

    document: str
    title: str
    chunk: str
    score: float
    text: str


class Citation(Record):
    """The place that supports a statement: `quote` equals `text[start:end]` of the document when `verified`."""

    marker: str
    document: str
    title: str
    chunk: str
    start: int
    end: int
    page: int | None
    quote: str
    verified: bool


class RouteDecision(Record):
    """Which structure the question gets (StructRAG's router), how sure, how far from the second choice, and why."""

    type: StructureType
    confidence: float
    margin: float
    reason: str


class TriggerDecision(Record):
    """ERM4's retrieval trigger for one query: `pop` counts the distinct sources in memory that are close enough."""

    query: str
    pop: int
    threshold: int
    tau: float
    use_memory: bool


class SubQuestion(Record):
    """A step of the decomposition and what was extracted for it."""

    question: str
    answer: str
    evidence: tuple[str, ...] = ()


class FilterCounts(Record):
    """How many passages the knowledge filter kept as entailing, left as neutral, or dropped as contradicting."""

    entailment: int = 0
    neutral: int = 0
    contradiction: int = 0
    hypothesis: Literal["strong", "weak"] = "strong"


class Trace(Record):
    """The decisions behind an answer."""

    mode: Mode
    rewritten: str
    queries: tuple[str, ...]
    trigger: tuple[TriggerDecision, ...]
    filter: FilterCounts
    question_type: QuestionType
    route: RouteDecision
    structure: str
    subquestions: tuple[SubQuestion, ...]


class StepUsage(Record):
    """Model use of one step."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_calls: int = 0
    cost_usd: float | None = 0.0
    seconds: float = 0.0


class Usage(StepUsage):
    """Model use of a whole run, and by step."""

    by_step: dict[str, StepUsage] = Field(default_factory=dict)


class Answer(Record):
    """What a question gets; see the README for each field."""

    question: str
    answer: str
    values: tuple[str, ...]
    citations: tuple[Citation, ...]
    passages: tuple[Passage, ...]
    fallback: Fallback
    trace: Trace
    usage: Usage
    generation: int


class Retrieval(Record):
    """Ranked passages without an answer."""

    question: str
    passages: tuple[Passage, ...]
    usage: Usage
    generation: int


class DocumentCounts(Record):
    """What a sync found, in documents."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    renamed: int = 0
    unchanged: int = 0


class IndexReport(Record):
    """What an index run did."""

    generation: int
    published: bool
    documents: DocumentCounts
    skipped: tuple[Skipped, ...]
    chunks: int
    entities: int
    relations: int
    claims: int
    communities: int
    reports: int
    dead_letters: int
    usage: Usage
    seconds: float
