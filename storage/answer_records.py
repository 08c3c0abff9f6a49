"""Records of an answer: passages, citations, grounding, decisions, tables."""

from typing import Literal

from storage.records import Record
from storage.run_records import QuestionForecast, Usage

# What the filter kept: all, because nothing was judged; entailed passages; also neutral ones; none.
FilterTier = Literal["all", "entailed", "neutral", "none"]
FilterLabel = Literal["entailment", "neutral", "contradiction"]


class JudgedPassage(Record):
    """A passage's label and the reason for it."""

    chunk: str
    label: FilterLabel
    explanation: str


class Disagreement(Record):
    """A passage that contradicts another one on the question's subject, and how."""

    chunk: str
    document: str
    against_chunk: str
    against_document: str
    explanation: str


class FilterCounts(Record):
    """How many passages the knowledge filter gave each label, and what it kept (`tier`).

    `judged` holds the first passages with explanations, `conflicts` the sources that disagree.
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
# The same as in `prompts.engine.effort`, which storage may not import.
Effort = Literal["low", "medium", "high"]
Profile = Literal["small", "large"]
AnsweredBy = Literal["model", "excerpts", "traversal", "table"]
Mode = str  # `auto`, or the name of a mode of `flows/modes`


class Passage(Record):
    """A retrieved chunk. Scores compare within one question and are 0 where nothing was scored.

    `also` lists other documents with the same text, which is shown once.
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
    source: the model that wrote its marker, or the program where the model wrote none. A marker of
    the program is only in `Grounding`, not in the text.
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
    """Whether the evidence supports a sentence, `answer[start:end]` in code points.

    None: this cannot be decided (a heading, code, talk about the answer, another language).
    """

    start: int
    end: int
    supported: bool | None
    markers: tuple[str, ...]


class RouteDecision(Record):
    """The structure that a question gets (StructRAG's router); `margin` is its lead."""

    type: StructureType
    confidence: float
    margin: float
    reason: str


class ModeTried(Record):
    """A mode that was tried and gave no answer, and what it said."""

    mode: Mode
    said: str


class ModeDecision(Record):
    """The mode that `auto` chose, with its confidence (0-1).

    `mode` gave the answer: it is the first choice, or a fallback for those in `tried`.
    """

    mode: Mode
    confidence: float
    reason: str
    tried: tuple[ModeTried, ...] = ()


class TriggerDecision(Record):
    """ERM4's retrieval trigger for a query; `pop` counts similar sources in memory."""

    query: str
    pop: int
    threshold: int
    tau: float
    use_memory: bool


class SubQuestion(Record):
    """A step of the decomposition and its answer."""

    question: str
    answer: str
    evidence: tuple[str, ...] = ()


class DocumentStructure(Record):
    """What one document gave to the structure, as text of a bounded length.

    `unverified` counts elements whose figures or names are not in the sentences that they cite;
    they are kept. Where `elements` is 0, the description says that nothing was found.
    """

    document: str
    title: str
    description: str
    elements: int
    unverified: int = 0
    text: str = ""


class ReportRead(Record):
    """A community report that was read for an answer.

    `points` counts what it gave, `rating` (0-1) says how useful it was if it was rated.
    """

    community: str
    level: int
    title: str
    rating: float | None = None
    points: int = 0


class Ambiguity(Record):
    """Words of a question with several readings, and the reading that was taken.

    Without readings, the words refer to something that neither question nor history names.
    """

    text: str
    readings: tuple[str, ...] = ()
    taken: str = ""


class SparedCall(Record):
    """A step that asked no model although its role has one, and why that is harmless."""

    step: str
    reason: str


class DegradedStep(Record):
    """A step whose model gave no usable answer, and what was done instead."""

    step: str
    reason: str
    instead: str
    times: int = 1


class Reranking(Record):
    """How many passages a reranker read, and the earlier ranks of those kept, in new order."""

    model: str
    passages: int
    ranks: tuple[int, ...]


class TestedPart(Record):
    """A question that mode `lazy` made of a wide one, and what the tests of its passages found.

    `search` are the words that were searched for beside its own, `relevant` the number of passages
    of which a sentence helps, `communities` the number of those that were looked into.
    """

    question: str
    search: str
    tests: int
    relevant: int
    communities: int


class RelevanceTests(Record):
    """The relevance tests of a question in mode `lazy`: how many were allowed (`budget`) and made.

    Of the relevant `sentences` with their neighbours, `read` were read for claims. `forecast` is
    what the question was said to take before it was asked; `Answer.usage` says what it took.
    """

    budget: int
    tests: int
    relevant: int
    sentences: int
    read: int
    parts: tuple[TestedPart, ...]
    forecast: QuestionForecast


class RecognizedStatement(Record):
    """A statement of the graph that a model kept: `text` is `[start:end]` of the document."""

    document: str
    chunk: str
    start: int
    end: int
    text: str


class Recognition(Record):
    """How many statements of the graph a model was shown before the search, and those it kept."""

    shown: int
    kept: tuple[RecognizedStatement, ...]


class Trace(Record):
    """The decisions behind an answer.

    `unlinked` lists the names in the question that the graph does not know. `decision` says why
    `mode` was chosen where the caller left that to `auto`. `removed_markers` are markers of the
    model that named no evidence, `spared` the calls that the effort or the models' `profile` saved,
    `degraded` the steps that went on without their model's answer. `reranking` is None where no
    reranker is set, `relevance` in all modes but `lazy`, `recognition` where no model read
    statements of the graph.
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
    relevance: RelevanceTests | None = None
    recognition: Recognition | None = None


class Answer(Record):
    """The answer to a question.

    `values` are the bare answers (names, figures, dates, yes or no) in no order; `citations` point
    to characters of stored documents; `passages` are what was found, best first. `fallback` is
    "none" where the answer is supported, "partial" where some of it is (and always for excerpts,
    which no model has read), "ungrounded" where nothing is, and "abstained" where the documents do
    not say or nothing was found. `generation` is the number of the index.
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
        """Whether it is ungrounded only because its sources are in another language."""
        cites = self.fallback == "ungrounded" and bool(self.citations)
        return cites and all(row.supported is None for row in self.grounding)


class Retrieval(Record):
    """Ranked passages without an answer."""

    question: str
    passages: tuple[Passage, ...]
    usage: Usage
    generation: int


class TableCell(Record):
    """A cell of a table; `text[start:end] == raw` in the document's stored text."""

    document: str
    start: int
    end: int
    raw: str
    row: str
    column: str


class TableResult(Record):
    """The result of a plan over tables.

    `table` shows rows that the result rests on, in Markdown. `sentence` states the result in the
    question's language with the raw figures, `values` are the bare answers, `plan` says in words
    what was done. A plan that names what no table has gives no cells; `plan` says what is missing.
    """

    table: str = ""
    sentence: str = ""
    values: tuple[str, ...] = ()
    cells: tuple[TableCell, ...] = ()
    plan: str = ""
