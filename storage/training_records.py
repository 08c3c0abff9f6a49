"""Records of training: rows to train on, the card of what was trained, its scores."""

from typing import Literal

from pydantic import Field

from storage.answer_records import StructureType
from storage.evaluation_records import EvaluationQuestion
from storage.records import Record
from storage.run_records import Usage

TrainedStep = Literal["router", "rewriter", "filter", "answer"]
Method = Literal["linear", "dpo", "sft", "cross-encoder", "bootstrap", "mipro", "gepa"]


class PreferenceRow(Record):
    """A task, and which structure serves it better than which other (StructRAG, section 4).

    `documents` are the titles of its core content. Without `rejected`, the chosen structure is
    better than all others.
    """

    id: str
    question: str
    documents: tuple[str, ...] = ()
    language: str = ""
    chosen: StructureType
    rejected: StructureType | None = None
    source: str = ""


class RewriteRow(Record):
    """A question, its rewriting, and the mean reciprocal rank of the gold by each."""

    id: str
    question: str
    history: tuple[str, ...] = ()
    rewritten: str
    queries: tuple[str, ...] = ()
    before: float = 0.0
    after: float = 1.0
    source: str = ""


class FilterRow(Record):
    """A passage judged for a question (ERM4: explanation and class)."""

    id: str
    question: str
    title: str = ""
    passage: str
    hypothesis: Literal["strong", "weak"] = "weak"
    label: Literal["entailment", "neutral", "contradiction"]
    explanation: str = ""
    source: str = ""


Row = PreferenceRow | RewriteRow | FilterRow | EvaluationQuestion


class RowSource(Record):
    """Where rows came from: a file with its SHA-256, or a model."""

    name: str
    sha256: str = ""
    rows: int
    licence: str = ""


class TrainingCurve(Record):
    """The loss of the first and the last steps, DPO's margin, the loss on held-out rows."""

    steps: int
    loss: tuple[float, float]
    margin: tuple[float, float] | None = None
    held_out_loss: float | None = None


class DataCard(Record):
    """What something was trained on.

    `sha256` is that of the training rows, `left_out` counts unused rows by reason, `options` are
    those of the training.
    """

    step: TrainedStep
    by: Method
    base: str = ""
    sources: tuple[RowSource, ...]
    rows: int
    held_out: int
    left_out: dict[str, int] = Field(default_factory=dict)
    counts: dict[str, int] = Field(default_factory=dict)
    sha256: str
    options: dict[str, str] = Field(default_factory=dict)
    curve: TrainingCurve | None = None


class TrainingReport(Record):
    """What was trained, on how many rows, its scores and those of other ways, and its use."""

    step: TrainedStep
    by: Method
    folder: str
    rows: int
    held_out: int
    left_out: dict[str, int] = Field(default_factory=dict)
    curve: TrainingCurve | None = None
    scores: dict[str, dict[str, float]] = Field(default_factory=dict)
    use: str
    usage: Usage = Usage()
