"""Which passages support an answer? (ERM4, Knowledge Filter, with tiers: entailed, else neutral, else none)"""

from collections.abc import Sequence

from prompts.filter import Filter, Hypothesis, Judged
from prompts.reading.relevance import Relevance
from storage.records import FilterCounts, Passage, Record
from tasks.evidence import Pool
from tasks.step import step


class Kept(Record):
    """The chunks kept, best first, those of them that are entailed, and the counts of the labels."""

    chunks: tuple[str, ...]
    entailed: tuple[str, ...]
    counts: FilterCounts


@step("filter")
async def filter_passages(
    hypothesis: Hypothesis, passages: Sequence[Passage], pool: Pool, relevance: Relevance, judge: Filter
) -> Kept:
    """Judge the passages for the question of `relevance`; `pool` holds their units.

    What is entailed is kept; what is neutral too where nothing is entailed, or where the weak hypothesis lets it help.
    What contradicts is not kept, but counted.
    """
    units = pool.by_chunk()
    judged = [Judged(units.get(passage.chunk, ()), passage.text) for passage in passages]
    labels = await judge.run(hypothesis, judged, relevance)
    labelled = list(zip(passages, labels, strict=True))
    entailed = [passage.chunk for passage, label in labelled if label == "entailment"]
    neutral = [passage.chunk for passage, label in labelled if label == "neutral"]
    counts = FilterCounts(
        entailment=len(entailed),
        neutral=len(neutral),
        contradiction=labels.count("contradiction"),
        hypothesis=hypothesis,
    )
    kept = entailed if entailed and hypothesis == "strong" else [*entailed, *neutral]
    return Kept(chunks=tuple(kept), entailed=tuple(entailed), counts=counts)
