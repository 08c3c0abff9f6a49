"""Which passages support an answer? (ERM4, Knowledge Filter, with tiers: entailed, else neutral, else none)"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from prompts.filter import Filter, Verdicts, against
from prompts.language.asked import Ask
from prompts.reading.conflict import Conflict
from prompts.reading.entail import Candidate, Hypothesis
from prompts.reading.relevance import Relevance
from storage.records import Disagreement, FilterCounts, FilterTier, JudgedPassage, Passage, Record
from tasks.evidence import Pool
from tasks.step import step

# Questions that are answered from few passages; others read widely, and what is neutral may belong to them.
_NARROW = frozenset({"fact", "yesno"})
MOST_SHOWN = 12
MOST_CONFLICTS = 4


class Kept(Record):
    """The chunks kept, best first, those of them that are entailed, and the counts of the labels."""

    chunks: tuple[str, ...]
    entailed: tuple[str, ...]
    counts: FilterCounts


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of chunks before they are judged: the share of each in the graph's evidence
    (`tasks.filter_signs`), which of them are known to hold, and whether the question reads widely whatever its form."""

    together: Mapping[str, float] = field(default_factory=dict)
    trusted: Collection[str] = ()
    wide: bool = False


UNKNOWN = Standing()


@step("filter")
async def filter_passages(
    hypothesis: Hypothesis,
    passages: Sequence[Passage],
    pool: Pool,
    relevance: Relevance,
    judge: Filter,
    standing: Standing = UNKNOWN,
) -> Kept:
    """Judge the passages for the question of `relevance`; `pool` holds their units.

    What contradicts is not kept; what is neutral only where nothing is entailed, or where the question
    reads widely. Where two passages exclude each other and neither is better supported, both stay and both are told.
    """
    units = pool.by_chunk()
    # Of passages that were found in other ways too, none is judged by the graph: it does not compare them.
    shares = standing.together if all(one.chunk in standing.together for one in passages) else {}
    candidates = [Candidate(units.get(one.chunk, ()), one.text, one.title, shares.get(one.chunk)) for one in passages]
    known = [place for place, one in enumerate(passages) if one.chunk in standing.trusted]
    verdicts = await judge.run(hypothesis, candidates, relevance, known)
    chunks = {label: [one.chunk for one, verdict in zip(passages, verdicts.each, strict=True) if verdict.label == label]
              for label in ("entailment", "neutral", "contradiction")}  # fmt: skip
    tier = tier_of(relevance.ask, len(chunks["entailment"]), len(chunks["neutral"]), standing.wide)
    kept = {"entailed": chunks["entailment"], "none": list[str]()}.get(
        tier, [*chunks["entailment"], *chunks["neutral"]]
    )
    counts = FilterCounts(
        entailment=len(chunks["entailment"]),
        neutral=len(chunks["neutral"]),
        contradiction=len(chunks["contradiction"]),
        hypothesis=hypothesis,
        tier=tier,
        judged=shown(passages, verdicts),
        conflicts=tuple(disagreement(one, passages) for one in verdicts.conflicts[:MOST_CONFLICTS]),
    )
    return Kept(chunks=tuple(kept), entailed=tuple(chunks["entailment"]), counts=counts)


def tier_of(ask: Ask, entailed: int, neutral: int, wide: bool = False) -> FilterTier:
    """What is kept: the entailed alone; the neutral too where nothing is entailed, or where the question reads widely;
    nothing where there is neither."""
    if not entailed and not neutral:
        return "none"
    narrow = ask.form in _NARROW or (ask.form == "compare" and bool(ask.options))
    return "entailed" if entailed and narrow and not wide else "neutral"


def shown(passages: Sequence[Passage], verdicts: Verdicts) -> tuple[JudgedPassage, ...]:
    """The first passages with their labels, and why; what contradicts is among them wherever it stands."""
    pairs = list(zip(passages, verdicts.each, strict=True))
    ranked = sorted(range(len(pairs)), key=lambda place: (pairs[place][1].label != "contradiction", place))
    return tuple(
        JudgedPassage(chunk=pairs[place][0].chunk, label=pairs[place][1].label, explanation=pairs[place][1].explanation)
        for place in sorted(ranked[:MOST_SHOWN])
    )


def disagreement(conflict: Conflict, passages: Sequence[Passage]) -> Disagreement:
    """A conflict with its chunks and documents; the worse supported side comes first where one is."""
    first = (passages[conflict.one], conflict.says)
    second = (passages[conflict.other], conflict.other_says)
    if conflict.contradicted == conflict.other:
        first, second = second, first
    settled = conflict.contradicted is not None
    return Disagreement(
        chunk=first[0].chunk, document=first[0].document, says=first[1],
        against_chunk=second[0].chunk, against_document=second[0].document, against_says=second[1],
        settled=settled,
        explanation=against(conflict) if settled else "the sources disagree, and neither is better supported",
    )  # fmt: skip


def disagreements(counts: FilterCounts, chinese: bool = False) -> list[str]:
    """What is said of sources that disagree, a sentence each: what either says, and whether one is better supported."""
    tell = _told_zh if chinese else _told
    return list(dict.fromkeys(map(tell, counts.conflicts)))


def with_disagreements(text: str, counts: FilterCounts, cited: Collection[str], chinese: bool = False) -> str:
    """An answer that says where its sources disagree: those conflicts of which one side is among the `cited` chunks."""
    touched = tuple(one for one in counts.conflicts if one.chunk in cited or one.against_chunk in cited)
    return "\n".join([text, *disagreements(counts.model_copy(update={"conflicts": touched}), chinese)])


def _told(one: Disagreement) -> str:
    verdict = ", which is better supported." if one.settled else "; nothing in them tells which is right."
    return (
        f"The sources disagree: {one.document} says {_line(one.says)!r}, "
        f"{one.against_document} says {_line(one.against_says)!r}{verdict}"
    )


def _told_zh(one: Disagreement) -> str:
    verdict = "，后者有更多依据。" if one.settled else "，无法判断哪个正确。"
    says, other = _line(one.says), _line(one.against_says)
    return f"来源不一致：{one.document} 说“{says}”，{one.against_document} 说“{other}”{verdict}"


def _line(text: str) -> str:
    return " ".join(text.split())
