"""What a mode brings: the context that an answer is written from, and what the trace tells of how it was found."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from prompts.answer import AnswerStep
from storage.records import (
    DocumentStructure,
    Passage,
    QuestionType,
    ReportRead,
    RouteDecision,
    SubQuestion,
)
from tasks.answer import AnswerContext, StatedAnswer
from tasks.filter import FilterResult


@dataclass(frozen=True)
class ModeResult:
    """Passages, best first, and the context made of them. What a mode does not decide stays as it is here.

    `stated` is the answer where no model writes one. `writer` writes it where a model does.
    """

    context: AnswerContext
    passages: Sequence[Passage] = ()
    stated: StatedAnswer | None = None
    writer: type[AnswerStep] = AnswerStep
    route: RouteDecision | None = None
    filtered: FilterResult = field(default_factory=FilterResult)
    question_type: QuestionType | None = None
    subquestions: tuple[SubQuestion, ...] = ()
    structure: str = "chunk"
    structures: tuple[DocumentStructure, ...] = ()
    reports: tuple[ReportRead, ...] = ()
