"""Does memory already know enough, or must the documents be searched? (ERM4, Retrieval Trigger)

Pop(q) counts the distinct sources whose remembered title is close to the query; at θ or more memory is used. A
remembered title counts only if it names the same things as the query: questions that differ in one name are close in
meaning and need different evidence.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prompts.language.concepts import concept_terms
from storage.memory import MemoryEntry
from storage.records import Record, TriggerDecision
from tasks.step import step


@dataclass(frozen=True)
class Likeness:
    """When two questions are alike: τ and θ, the things that a text names, and how close a query is to titles
    (-1..1)."""

    tau: float
    theta: int
    named: Callable[[str], frozenset[int]]
    similarity: Callable[[str, Sequence[str]], list[float]]


class Recall(Record):
    """The decision for each query and the chunk ids that memory offers where it is used."""

    decisions: tuple[TriggerDecision, ...]
    chunks: tuple[str, ...]

    @property
    def used(self) -> bool:
        """Whether memory serves every query, so that nothing need be searched."""
        return bool(self.chunks) and all(decision.use_memory for decision in self.decisions)


def overlap(query: str, titles: Sequence[str]) -> list[float]:
    """Likeness of texts by their words (Jaccard, 0-1): for scripts that the embedder cannot read."""
    wanted = set(concept_terms(query))
    found = []
    for title in titles:
        terms = set(concept_terms(title))
        found.append(len(wanted & terms) / len(wanted | terms) if wanted | terms else 0.0)
    return found


@step("trigger-check")
async def check_trigger(queries: Sequence[str], entries: Sequence[MemoryEntry], likeness: Likeness) -> Recall:
    """Decide for each query; `entries` are alive (their evidence is in the generation)."""
    things = {title: likeness.named(title) for title in {entry.title for entry in entries}}
    decisions, chunks = [], dict[str, None]()
    for query in queries:
        mine = likeness.named(query)
        # Names first: they are cheap to compare, and leave few titles to be embedded.
        titles = list(dict.fromkeys(entry.title for entry in entries if things[entry.title] == mine))
        near = dict(zip(titles, likeness.similarity(query, titles), strict=True)) if titles else {}
        close = [entry for entry in entries if near.get(entry.title, -1.0) >= likeness.tau]
        pop = len({entry.source for entry in close})
        use = pop >= likeness.theta
        decisions.append(
            TriggerDecision(query=query, pop=pop, threshold=likeness.theta, tau=likeness.tau, use_memory=use)
        )
        if use:
            close.sort(key=lambda entry: (-near[entry.title], entry.source, entry.title))
            chunks |= {chunk: None for entry in close for chunk in entry.evidence}
    return Recall(decisions=tuple(decisions), chunks=tuple(chunks))
