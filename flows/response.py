"""What a question gets: what a mode has found, the answer written from it, and the trace of how."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from flows.question import QuestionContext
from flows.runtime import usage_of
from prompts.answer import AnswerStep
from prompts.rewrite import Ambiguous
from storage.answer_records import (
    Ambiguity,
    Answer,
    Citation,
    DocumentStructure,
    Mode,
    ModeDecision,
    Passage,
    QuestionType,
    ReportRead,
    RouteDecision,
    SparedCall,
    SubQuestion,
    Trace,
)
from tasks.answer import AnswerContext, Answered, StatedAnswer
from tasks.filter import FilterResult
from tasks.rewrite import EntityPlaces, ambiguities, shared_names
from tasks.route import hop_count, question_type
from tasks.trigger import Recall

CITED = 10.0  # what a cited chunk counts beside the best passage, where a name is read by what was found
NOT_RECALLED = Recall(decisions=(), chunks=())


@dataclass(frozen=True)
class ModeResult:
    """What a mode brings: passages, best first, and the context made of them. What it does not decide stays as here.

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


@dataclass(frozen=True)
class Response:
    """What a mode brought and what was answered from it; `decision` says why this mode, where `auto` chose it."""

    mode: Mode
    result: ModeResult
    answered: Answered
    recall: Recall = NOT_RECALLED
    decision: ModeDecision | None = None


def answer_of(
    question: str, asked: QuestionContext, ambiguous: Sequence[Ambiguous], response: Response, seconds: float
) -> Answer:
    """The answer with its trace; `question` as it was put, `ambiguous` what its rewriting left open."""
    result, answered, meter = response.result, response.answered, asked.models.meter
    no_route = RouteDecision(
        type="chunk", confidence=1.0, margin=1.0, reason=f"the mode {response.mode} does not choose a structure"
    )
    trace = Trace(
        mode=response.mode, decision=response.decision, effort=asked.models.policy.effort,
        rewritten=asked.text, queries=tuple(asked.queries), trigger=response.recall.decisions,
        filter=result.filtered.counts,
        question_type=result.question_type or question_type(asked.parsed, hop_count(asked.parsed)),
        route=result.route or no_route, structure=result.structure, subquestions=result.subquestions,
        structures=result.structures, reports=result.reports, unlinked=asked.unlinked,
        ambiguity=_ambiguities(asked, ambiguous, result.passages, answered.citations),
        answered_by=answered.answered_by, reasoning=answered.reasoning, removed_markers=answered.removed_markers,
        spared=tuple(SparedCall(step=step, reason=reason) for step, reason in meter.spared()),
    )  # fmt: skip
    return Answer(
        question=question, answer=answered.text, values=answered.values, citations=answered.citations,
        passages=tuple(result.passages[: asked.options.k]), fallback=answered.fallback, grounding=answered.grounding,
        trace=trace, usage=usage_of(meter, seconds), generation=asked.session.number,
    )  # fmt: skip


def _ambiguities(
    asked: QuestionContext, ambiguous: Sequence[Ambiguous], passages: Sequence[Passage], citations: Sequence[Citation]
) -> tuple[Ambiguity, ...]:
    """What the question leaves open, and how it was read; the store is asked only where a name means several things."""
    index = asked.session.index
    meant = shared_names(asked.links, index.entities)
    if not meant:
        return ambiguities(ambiguous, [], index.entities, EntityPlaces({}, {}, {}))
    ids = [index.entities[place].id for one in meant for place in one.entities]
    chunks: dict[str, list[str]] = {}
    for place in asked.session.generation.graph.occurrences("entity", ids):
        chunks.setdefault(place.item, []).append(place.chunk)
    titles = {chunk: index.chunk(chunk).title for found in chunks.values() for chunk in found}
    weights = {passage.chunk: 1 / rank for rank, passage in enumerate(passages, 1)}
    weights |= {citation.chunk: CITED for citation in citations}
    return ambiguities(ambiguous, meant, index.entities, EntityPlaces(chunks, titles, weights))
