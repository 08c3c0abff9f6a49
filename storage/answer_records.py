"""Records of answering: passages, citations, grounding, decisions, tables, the answer."""

from typing import Literal

from storage.records import Record
from storage.run_records import Usage

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
    """What the knowledge filter said of how many passages, and what it kept (`tier`).

    `judged` are the first passages with their explanations, `conflicts` the sources that disagree.
    """

    entailment: int = 0
    neutral: int = 0
    contradiction: int = 0
    tier: FilterTier = "all"
    judged: tuple[JudgedPassage, ...] = ()
    conflicts: tuple[Disagreement, ...] = ()


StructureType = Literal["table", "graph", "algorithm", "catalogue", "chunk"]
QuestionType = Literal["s**", "sp*", "s*o", "spo", "nested"]
Fallback = Literal["none", "partial", "ungrounded", "abstained"]
# As in `prompts.engine.effort`, which storage does not know.
Effort = Literal["low", "medium", "high"]
Profile = Literal["small", "large"]  # of the same module
AnsweredBy = Literal["model", "excerpts", "traversal", "table"]
Mode = str  # `auto`, or the name of a mode of `flows/modes`


class Passage(Record):
    """A retrieved chunk. Scores compare within one question; 0 where nothing was scored.

    `also` are other documents that hold the same text: it is shown once.
    """

    document: str
    title: str
    chunk: str
    score: float
    text: str
    also: tuple[str, ...] = ()


class Citation(Record):
    """The place that supports a statement.

    When `verified`, `quote` equals `text[start:end]` of the document. `bound_by` says who chose the
    source: the model that wrote its marker, or the program where the model wrote none. Then the
    marker stands in `Grounding` alone, and not in the text.
    """

    marker: str
    document: str
    title: str
    chunk: str
    start: int
    end: int
    page: int | None
    quote: str
    verified: bool
    bound_by: Literal["model", "program"] = "model"


class Grounding(Record):
    """One sentence of an answer, and whether the evidence supports it.

    It is `answer[start:end]` in code points. None: it cannot be told (a heading, code, talk about
    the answer, another language). `markers` as in `Citation`.
    """

    start: int
    end: int
    supported: bool | None
    markers: tuple[str, ...]


class RouteDecision(Record):
    """Which structure the question gets (StructRAG's router), how sure, and why.

    `margin` is how far the second choice is behind.
    """

    type: StructureType
    confidence: float
    margin: float
    reason: str


class ModeTried(Record):
    """Another mode that was tried and gave no answer, and what it said."""

    mode: Mode
    said: str


class ModeDecision(Record):
    """Which mode `auto` follows: how sure (0-1) and why.

    `mode` is the one whose answer is given: the first choice, or a fallback for those in `tried`.
    """

    mode: Mode
    confidence: float
    reason: str
    tried: tuple[ModeTried, ...] = ()


class TriggerDecision(Record):
    """ERM4's retrieval trigger for a query: `pop` counts the near sources in memory."""

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
    """What one document gave to the structure, as text of a bounded length.

    `unverified` counts the elements whose figures or names do not stand in the sentences that they
    name: told, not refused. Where `elements` is 0 the description says that nothing was found.
    """

    document: str
    title: str
    description: str
    elements: int
    unverified: int = 0
    text: str = ""


class ReportRead(Record):
    """A community report that was read for an answer.

    `points` counts what it gave, `rating` (0-1) says how useful it was, where it was rated.
    """

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


class DegradedStep(Record):
    """A helping step whose model gave no usable answer: why, and what was done instead."""

    step: str
    reason: str
    instead: str
    times: int = 1


class Reranking(Record):
    """What a reranker did: how many passages it read.

    `ranks` are those that the search had given to the passages that went on, in their new order.
    """

    model: str
    passages: int
    ranks: tuple[int, ...]


class Trace(Record):
    """The decisions behind an answer.

    `unlinked` are the names in the question that the graph does not know. `mode` is the one that
    answered; `decision` says why where the caller left it to `auto`. `answered_by` tells a model's
    words from excerpts, a walk over the graph and cells of tables. `reasoning` is what the model
    noted before it answered, `removed_markers` are those of its markers that named no evidence,
    `spared` the calls that the effort or the `profile` of the models left out, `degraded` the steps
    that went on without an answer of their model. `reranking` is None where no reranker is set.
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
    removed_markers: tuple[str, ...] = ()
    spared: tuple[SparedCall, ...] = ()
    degraded: tuple[DegradedStep, ...] = ()
    profile: Profile = "large"
    reranking: Reranking | None = None


class Answer(Record):
    """What a question gets.

    `values` are the bare answers (names, figures, dates, yes or no) without order; `citations`
    point to characters of stored documents, `passages` are what was found, best first. `fallback`
    is "none" where the answer is supported, "partial" where some of it is, and for excerpts always,
    which no model has read; "ungrounded" where nothing is; "abstained" where the documents do not
    say, or nothing was found. `grounding` flags each sentence. `trace` tells how the answer came
    about, `usage` what it took, `generation` which index it is from.
    """

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

    @property
    def is_uncompared(self) -> bool:
        """Whether it is ungrounded only because it cites sources in another language."""
        cites = self.fallback == "ungrounded" and bool(self.citations)
        return cites and all(row.supported is None for row in self.grounding)


class Retrieval(Record):
    """Ranked passages without an answer."""

    question: str
    passages: tuple[Passage, ...]
    usage: Usage
    generation: int


class TableCell(Record):
    """A cell of a document's table; `text[start:end] == raw` in the document's stored text."""

    document: str
    start: int
    end: int
    raw: str
    # What the row and the column are called there.
    row: str
    column: str


class TableResult(Record):
    """The outcome of a plan over tables.

    `table` is Markdown: the rows that the result rests on, as many as are shown. `sentence` states
    it in the question's language with the raw figures, `values` are the bare answers, `plan` says
    in words what was done. A plan that names what no table has gives a result without cells, whose
    `plan` says what does not fit.
    """

    table: str = ""
    sentence: str = ""
    values: tuple[str, ...] = ()
    cells: tuple[TableCell, ...] = ()
    plan: str = ""
