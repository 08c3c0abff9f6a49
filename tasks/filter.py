"""Filter: which passages go on to the answer (ERM4's Knowledge Filter).

A model labels the passages. Those with entailment are kept, neutral ones only if there is no
entailment. What contradicts a kept passage is kept too, so that an answer can cite both sides.
Without a model every passage goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from prompts.answer import NumberedText
from prompts.engine.helper import helped
from prompts.engine.messages import portions
from prompts.filter import NOT_JUDGED, Filter, FilterRequest, FilterVerdict
from storage.answer_records import Disagreement, FilterCounts, FilterTier, JudgedPassage, Passage
from storage.records import by_key
from tasks.answer import Note
from tasks.batches import gather_or_cancel
from tasks.citations import piece_tokens
from tasks.retrying import BRIEF
from tasks.step import step

MOST_SHOWN = 12  # judged passages, in the trace


@dataclass(frozen=True)
class FilterResult:
    """The chunks kept, best first, which of them are entailed (all without a model), and counts."""

    chunks: tuple[str, ...] = ()
    entailed: tuple[str, ...] = ()
    counts: FilterCounts = field(default_factory=FilterCounts)

    def kept(self, passages: Sequence[Passage]) -> list[Passage]:
        return [passage for passage in passages if passage.chunk in self.chunks]


def filter_request(question: str, passages: Sequence[Passage], all_read: bool) -> FilterRequest:
    """Number passages for the filter.

    `all_read`: the answer's model reads every passage anyway, so only high effort asks the filter's
    model.
    """
    texts = [
        NumberedText(number, passage.title, passage.text)
        for number, passage in enumerate(passages, 1)
    ]
    return FilterRequest(question, texts, all_read=all_read)


@step("filter", BRIEF, asks_model=True)
async def filter_passages(
    request: FilterRequest, passages: Sequence[Passage], judge: Filter
) -> FilterResult:
    """Judge which passages help, and keep these; the request holds the same passages in order.

    A model reads whole passages, in one call or several side by side. A cross-encoder is trained
    for this, so no profile spares it.
    """
    return await helped(
        judge,
        lambda step: _filtered(request, passages, step),
        "every passage goes on",
        wanted=judge.models.encoder(judge.role) is not None,
    )


async def _filtered(
    request: FilterRequest, passages: Sequence[Passage], judge: Filter
) -> FilterResult:
    judged = judge.judges(request)
    verdicts = await _by_model(request, judge) if judged else [NOT_JUDGED] * len(passages)
    chunks = [passage.chunk for passage in passages]
    labelled = by_key(
        (verdict.label, chunk) for chunk, verdict in zip(chunks, verdicts, strict=True)
    )
    entailed, neutral = labelled.get("entailment", []), labelled.get("neutral", [])
    tier: FilterTier = tier_of(entailed, neutral) if judged else "all"
    kept = set({"all": chunks, "entailed": entailed, "neutral": neutral}.get(tier, []))
    conflicts = _disagreements(passages, verdicts)
    kept |= {conflict.chunk for conflict in conflicts if conflict.against_chunk in kept}
    counts = FilterCounts(
        entailment=len(entailed),
        neutral=len(neutral),
        contradiction=len(labelled.get("contradiction", [])),
        tier=tier,
        judged=_judged_passages(chunks, verdicts),
        conflicts=conflicts,
    )
    return FilterResult(
        tuple(chunk for chunk in chunks if chunk in kept),
        tuple(entailed if judged else chunks),
        counts,
    )


async def _by_model(request: FilterRequest, judge: Filter) -> list[FilterVerdict]:
    sizes = (piece_tokens(passage.title, passage.text) for passage in request.passages)
    batches = portions(request.passages, sizes, judge.policy.limits.filter)
    answers = await gather_or_cancel(judge.run(request, batch) for batch in batches)
    verdicts = {number: verdict for answer in answers for number, verdict in answer.items()}
    return [verdicts.get(passage.number, NOT_JUDGED) for passage in request.passages]


def tier_of(entailed: Sequence[str], neutral: Sequence[str]) -> FilterTier:
    """Return which passages are kept: the entailed, or else the neutral, or else none."""
    return "entailed" if entailed else "neutral" if neutral else "none"


def _judged_passages(
    chunks: Sequence[str], verdicts: Sequence[FilterVerdict]
) -> tuple[JudgedPassage, ...]:
    """Return labels and explanations of MOST_SHOWN passages, contradictions before others."""
    places = sorted(
        range(len(chunks)), key=lambda place: (verdicts[place].label != "contradiction", place)
    )
    return tuple(
        JudgedPassage(
            chunk=chunks[place],
            label=verdicts[place].label,
            explanation=verdicts[place].explanation,
        )
        for place in sorted(places[:MOST_SHOWN])
    )


def _disagreements(
    passages: Sequence[Passage], verdicts: Sequence[FilterVerdict]
) -> tuple[Disagreement, ...]:
    """Return the contradictions, each with the passage that it denies."""
    return tuple(
        Disagreement(
            chunk=passage.chunk,
            document=passage.document,
            against_chunk=passages[verdict.against - 1].chunk,
            against_document=passages[verdict.against - 1].document,
            explanation=verdict.explanation,
        )
        for passage, verdict in zip(passages, verdicts, strict=True)
        if verdict.label == "contradiction" and verdict.against is not None
    )


def disagreement_notes(filtered: FilterResult) -> list[Note]:
    """Return a note on the passages that contradict others, if there are any."""
    lines = [
        f"{conflict.document} against {conflict.against_document}: {conflict.explanation}"
        for conflict in filtered.counts.conflicts
    ]
    return [Note("Sources that disagree", "\n".join(lines))] if lines else []
