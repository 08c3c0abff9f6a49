"""What travels through Trellis: the frozen records that steps take and return, and that storage keeps.

Offsets (`start`, `end`) count code points in the stored text of a document, end exclusive, so that
`document.text[start:end]` is the quoted string. Ids are content hashes with a prefix (`chk_`, `ent_`, `rel_`, `clm_`,
`com_`).
"""

import hashlib
from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field


def content_id(prefix: str, *parts: str) -> str:
    """A stable id: `prefix_` and 16 hexadecimal digits of SHA-256 over the parts (kept apart by a separator)."""
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{prefix}_{digest[:16]}"


class Record(BaseModel):
    """Base of all records: immutable, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


ClaimStatus = Literal["true", "false", "suspected"]


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


class MentionRow(NamedTuple):
    """A stored `Mention`, without the cost of a record: resolution reads all of a generation at once."""

    chunk: str
    name: str
    kind: str
    start: int
    end: int
    description: str


class RelationRow(NamedTuple):
    """A stored `RelationMention`, likewise."""

    chunk: str
    source: str
    target: str
    predicate: str
    start: int
    end: int
    description: str
    weight: float
    keys: Sequence[str]


class ExtractionRow(NamedTuple):
    """A stored `Extraction`, likewise."""

    chunk: str
    mentions: Sequence[MentionRow]
    relations: Sequence[RelationRow]
    claims: Sequence[ClaimMention]


# What the graph is made of.
Found = Extraction | ExtractionRow


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


class TextSpan(Record):
    """A span of a document's text."""

    document: str
    start: int
    end: int


class Finding(Record):
    """One insight of a report with the place that shows it best, and the other places that it rests on (`more`)."""

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
    """A community's report (GraphRAG, section 2.5). `inputs` is the hash of what it was written from.

    `stale` is the share of the community's members that something was added to since; 0 where nothing was.
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


# What was kept: all, because nothing was judged; the entailed alone; the neutral too; nothing.
FilterTier = Literal["all", "entailed", "neutral", "none"]
FilterLabel = Literal["entailment", "neutral", "contradiction"]


class JudgedPassage(Record):
    """A passage's label and why it has it."""

    chunk: str
    label: FilterLabel
    explanation: str


class Disagreement(Record):
    """A passage that denies what another one says on the question's matter, and how."""

    chunk: str
    document: str
    against_chunk: str
    against_document: str
    explanation: str


class FilterCounts(Record):
    """How many passages the knowledge filter labelled as entailing, as neutral and as contradicting, and what it kept
    (`tier`); the first judged passages with their explanations, and the sources that disagree."""

    entailment: int = 0
    neutral: int = 0
    contradiction: int = 0
    hypothesis: Literal["strong", "weak"] = "strong"
    tier: FilterTier = "all"
    judged: tuple[JudgedPassage, ...] = ()
    conflicts: tuple[Disagreement, ...] = ()


StructureType = Literal["table", "graph", "algorithm", "catalogue", "chunk"]
QuestionType = Literal["s**", "sp*", "s*o", "spo", "nested"]
Fallback = Literal["none", "partial", "ungrounded", "abstained"]
Effort = Literal["low", "medium", "high"]
AnsweredBy = Literal["model", "excerpts", "traversal", "table"]
Mode = str  # `auto`, or the name of a mode of `flows/modes`


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


class Grounding(Record):
    """One sentence of an answer, `answer[start:end]` in code points, and whether the evidence supports it.

    None: it cannot be told (a heading, code, talk about the answer, another language). `markers` as in `Citation`.
    """

    start: int
    end: int
    supported: bool | None
    markers: tuple[str, ...]


class RouteDecision(Record):
    """Which structure the question gets (StructRAG's router), how sure, how far from the second choice, and why."""

    type: StructureType
    confidence: float
    margin: float
    reason: str


class ModeForecast(Record):
    """What a mode would take with a model behind every role: an estimate from sizes alone, before anything is asked."""

    mode: Mode
    calls: int
    tokens: int


class ModeTried(Record):
    """Another mode that was tried and gave no answer, and what it said."""

    mode: Mode
    said: str


class ModeDecision(Record):
    """Which mode `auto` follows: how sure (0-1) and why, and what it and the others would take.

    `mode` is the one whose answer is given: the first choice, or a fallback for those in `tried`.
    """

    mode: Mode
    confidence: float
    reason: str
    forecasts: tuple[ModeForecast, ...] = ()
    tried: tuple[ModeTried, ...] = ()


class TriggerDecision(Record):
    """ERM4's retrieval trigger for one query: `pop` counts the distinct sources in memory that are close enough."""

    query: str
    pop: int
    threshold: int
    tau: float
    use_memory: bool


class SubQuestion(Record):
    """A step of the decomposition and what was found for it."""

    question: str
    answer: str
    evidence: tuple[str, ...] = ()


class DocumentStructure(Record):
    """What one document gave to the structure: its form as text (markdown, triples, steps, numbered lines), bounded.

    `unverified` counts the elements whose figures or names do not stand in the sentences that they name: told, not
    refused. Where `elements` is 0 the description says that nothing was found.
    """

    document: str
    title: str
    description: str
    elements: int
    unverified: int = 0
    text: str = ""


class ReportRead(Record):
    """A community report that was read for an answer; `points` counts what it gave, `rating` (0-1) where it was
    rated."""

    community: str
    level: int
    title: str
    rating: float | None = None
    points: int = 0


class Ambiguity(Record):
    """Words of a question that mean several things: how they may be read, and how they were.

    No reading: they stand for something that neither question nor history names.
    """

    text: str
    readings: tuple[str, ...] = ()
    taken: str = ""


class SparedCall(Record):
    """A model that was not asked though its role has one, and why that is harmless."""

    step: str
    reason: str


class Trace(Record):
    """The decisions behind an answer; `unlinked` are the names in the question that the graph does not know.

    `mode` is the one that answered; `decision` says why where the caller left it to `auto`. `answered_by` tells a
    model's words from excerpts, a walk over the graph and cells of tables. `reasoning` is what the model noted before
    it answered, `removed_markers` are those of its markers that named no evidence, `spared` the calls that the effort
    left out.
    """

    mode: Mode
    rewritten: str
    queries: tuple[str, ...]
    trigger: tuple[TriggerDecision, ...]
    filter: FilterCounts
    question_type: QuestionType
    route: RouteDecision
    structure: str
    subquestions: tuple[SubQuestion, ...]
    structures: tuple[DocumentStructure, ...] = ()
    reports: tuple[ReportRead, ...] = ()
    unlinked: tuple[str, ...] = ()
    ambiguity: tuple[Ambiguity, ...] = ()
    decision: ModeDecision | None = None
    effort: Effort = "medium"
    answered_by: AnsweredBy = "excerpts"
    reasoning: str = ""
    removed_markers: tuple[str, ...] = ()
    spared: tuple[SparedCall, ...] = ()


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
    grounding: tuple[Grounding, ...] = ()


class Retrieval(Record):
    """Ranked passages without an answer."""

    question: str
    passages: tuple[Passage, ...]
    usage: Usage
    generation: int


class TableCell(Record):
    """A cell of a document's table; `text[start:end] == raw`, where `text` is the stored text of the document."""

    document: str
    start: int
    end: int
    raw: str
    # What the row and the column are called there.
    row: str
    column: str


class TableResult(Record):
    """The outcome of a plan over tables.

    `table` is Markdown: the rows that the result rests on, as many as are shown. `sentence` states it in the question's
    language with the raw figures, `values` are the bare answers, `plan` says in words what was done. A plan that names
    what no table has gives a result without cells, whose `plan` says what does not fit.
    """

    table: str = ""
    sentence: str = ""
    values: tuple[str, ...] = ()
    cells: tuple[TableCell, ...] = ()
    plan: str = ""


__all__ = [
    "Alias",
    "Ambiguity",
    "Answer",
    "AnsweredBy",
    "Chunk",
    "Citation",
    "Claim",
    "ClaimMention",
    "ClaimStatus",
    "Community",
    "DeadLetter",
    "Disagreement",
    "Document",
    "DocumentCounts",
    "DocumentStructure",
    "Effort",
    "Entity",
    "Extraction",
    "ExtractionRow",
    "Fallback",
    "FilterCounts",
    "FilterTier",
    "Finding",
    "Found",
    "Grounding",
    "IndexReport",
    "JudgedPassage",
    "KeptPrompts",
    "Mention",
    "MentionRow",
    "Mode",
    "ModeDecision",
    "ModeForecast",
    "ModeTried",
    "Occurrence",
    "Part",
    "Passage",
    "QuestionType",
    "Record",
    "Relation",
    "RelationMention",
    "RelationRow",
    "Report",
    "ReportRead",
    "Retrieval",
    "RouteDecision",
    "Scalar",
    "Skipped",
    "SparedCall",
    "StepUsage",
    "StructureType",
    "SubQuestion",
    "TextSpan",
    "Trace",
    "TriggerDecision",
    "Triple",
    "Usage",
    "content_id",
]

Scalar = str | int | float | bool | None

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

    @property
    def text_hash(self) -> str:
        """Of the text alone, whatever it is called."""
        return content_id("txt", self.text)

    @property
    def by_line(self) -> bool:
        """Whether the document is a row without an id: called by its line, which another row may have tomorrow."""
        return self.document.endswith(f"#{self.path.rpartition(':')[2]}")


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


# --- an index run ----------------------------------------------------------------------------------------------


class DocumentCounts(Record):
    """What a sync found, in documents."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    renamed: int = 0
    unchanged: int = 0


class KeptPrompts(Record):
    """Steps whose prompts this version of the program words otherwise than the one that made the index, which stays as
    it was made: how much of what models made that is (`share`), and about how many calls it takes to make it anew."""

    steps: tuple[str, ...]
    share: float
    calls: int


class IndexReport(Record):
    """What an index run did. `kept_prompts`: what `--remake` would make anew; None where there is nothing."""

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
    kept_prompts: KeptPrompts | None = None
