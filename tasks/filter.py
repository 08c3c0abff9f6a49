"""Filter: which passages go on to the answer (ERM4's Knowledge Filter, with tiers: entailed, else
neutral, else none).

A model's labels stand: what it calls entailment is kept, what is neutral only where nothing is
entailed. What contradicts a passage that is kept goes on beside it, so that an answer can give and
cite both sides. Where no model judges, every passage goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from prompts.answer import NumberedText
from prompts.engine.helper import helped
from prompts.filter import NOT_JUDGED, Filter, FilterRequest, FilterVerdict
from storage.answer_records import Disagreement, FilterCounts, FilterTier, JudgedPassage, Passage
from tasks.answer import Note
from tasks.batches import gather_or_cancel, portions
from tasks.citations import piece_tokens
from tasks.retrying import BRIEF
from tasks.step import step

MOST_SHOWN = 12  # judged passages, in the trace


@dataclass(frozen=True)
class FilterResult:
    """The chunks kept, best first; those of them that are entailed, all where no model judged; the
    counts of labels.
    """

    chunks: tuple[str, ...] = ()
    entailed: tuple[str, ...] = ()
    counts: FilterCounts = field(default_factory=FilterCounts)

    def kept(self, passages: Sequence[Passage]) -> list[Passage]:
        """Those of the passages that are kept."""
        return [passage for passage in passages if passage.chunk in self.chunks]


def filter_request(question: str, passages: Sequence[Passage], all_read: bool) -> FilterRequest:
    """The passages as the filter judges them.

    `all_read`: an answer step reads every passage whatever its label, so that below high effort no
    model is asked.
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
    """Judge which passages help, and keep these; the request has those of `passages`, in this
    order.

    A model reads whole passages, in one call or in several side by side. A cross-encoder is trained
    for this: no profile spares it.
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
    labelled = {
        label: tuple(
            name for name, verdict in zip(chunks, verdicts, strict=True) if verdict.label == label
        )
        for label in ("entailment", "neutral", "contradiction")
    }
    tier = tier_of(labelled["entailment"], labelled["neutral"]) if judged else "all"
    tiers = {"all": chunks, "entailed": labelled["entailment"], "neutral": labelled["neutral"]}
    conflicts = disagreements(passages, verdicts)
    kept = set(tiers.get(tier, ()))
    kept |= {conflict.chunk for conflict in conflicts if conflict.against_chunk in kept}
    counts = FilterCounts(
        entailment=len(labelled["entailment"]),
        neutral=len(labelled["neutral"]),
        contradiction=len(labelled["contradiction"]),
        tier=tier,
        judged=judged_passages(chunks, verdicts),
        conflicts=conflicts,
    )
    entailed = labelled["entailment"] if judged else tuple(chunks)
    return FilterResult(tuple(chunk for chunk in chunks if chunk in kept), entailed, counts)


async def _by_model(request: FilterRequest, judge: Filter) -> list[FilterVerdict]:
    sizes = [piece_tokens(passage.title, passage.text) for passage in request.passages]
    batches = portions(sizes, judge.policy.limits.filter)
    answers = await gather_or_cancel(
        judge.run(request, [request.passages[place] for place in batch]) for batch in batches
    )
    verdicts = {number: verdict for answer in answers for number, verdict in answer.items()}
    return [verdicts.get(passage.number, NOT_JUDGED) for passage in request.passages]


def tier_of(entailed: Sequence[str], neutral: Sequence[str]) -> FilterTier:
    """What is kept of passages that a model judged: the entailed, else the neutral, else
    nothing.
    """
    return "entailed" if entailed else "neutral" if neutral else "none"


def judged_passages(
    chunks: Sequence[str], verdicts: Sequence[FilterVerdict]
) -> tuple[JudgedPassage, ...]:
    """The first passages with their labels, and why; what contradicts is among them wherever it
    stands.
    """
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


def disagreements(
    passages: Sequence[Passage], verdicts: Sequence[FilterVerdict]
) -> tuple[Disagreement, ...]:
    """The contradictions that a model found, each with the passage that it denies."""
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
    """What the filter's model found to contradict other passages."""
    lines = [
        f"{conflict.document} against {conflict.against_document}: {conflict.explanation}"
        for conflict in filtered.counts.conflicts
    ]
    return [Note("Sources that disagree", "\n".join(lines))] if lines else []
