"""What does a mode lay before the answer that brings its own context? `flows.modes` lists these modes."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from flows.asking_view import View
from prompts.engine.models import Models
from prompts.reading.claims import Reading
from storage.records import (
    DocumentStructure,
    FilterCounts,
    Passage,
    QuestionType,
    ReportRead,
    RouteDecision,
    SubQuestion,
)
from tasks.filter import Kept
from tasks.structurize.step import Structured

ALL_KEPT = Kept(chunks=(), entailed=(), counts=FilterCounts())


@dataclass(frozen=True)
class Context:
    """What a question is answered from: passages, best first, and their structure with its pool of evidence.

    `reading` is set where the mode has the answer already, or the reason why there is none: then no answer is written.
    `question_type` and `subquestions` replace those that the rules find; `structure` and `structures` what the trace
    tells of the structure, where its parts have several.
    """

    passages: Sequence[Passage]
    structured: Structured
    route: RouteDecision
    kept: Kept = ALL_KEPT
    reading: Reading | None = None
    question_type: QuestionType | None = None
    subquestions: tuple[SubQuestion, ...] = ()
    reports: tuple[ReportRead, ...] = ()
    structure: str = ""
    structures: tuple[DocumentStructure, ...] = ()


# The queries are those of the rewriting, the question first; the models have the question's ledger.
Bring = Callable[[View, Sequence[str], Models], Awaitable[Context]]
