"""Does memory already know enough, or must the documents be searched? (ERM4, Retrieval Trigger)

Pop(q) counts the distinct sources whose remembered title is close to the query; at θ or more memory is used. A remembered
title counts only if it names the same things as the query: questions that differ in one name are close in meaning and need
different evidence.
"""

from collections.abc import Callable, Sequence

from prompts.language.concepts import concept_terms
from storage.memory import MemoryEntry
from storage.records import Record, TriggerDecision
from tasks.step import step

Similarity = Callable[[str, Sequence[str]], list[float]]
NamedThings = Callable[[str], frozenset[int]]


class Recall(Record):
    """The decision for each query and the chunk ids that memory offers where it is used."""

    decisions: tuple[TriggerDecision, ...]
    chunks: tuple[str, ...]


def overlap(query: str, titles: Sequence[str]) -> list[float]:
    """Likeness of texts by their words (Jaccard, 0-1): for scripts that the embedder cannot read."""
    wanted = set(concept_terms(query))
    found = []
    for title in titles:
        terms = set(concept_terms(title))
        found.append(len(wanted & terms) / len(wanted | terms) if wanted | terms else 0.0)
    return found


@step("trigger-check")
async def check_trigger(
    queries: Sequence[str], entries: Sequence[MemoryEntry], tau: float, theta: int, similarity: Similarity, named: NamedThings
) -> Recall:
    """Decide for each query; `entries` are alive (their evidence is in the generation)."""
    titles = list(dict.fromkeys(entry.title for entry in entries))
    things = {title: named(title) for title in titles}
    decisions, chunks = [], dict[str, None]()
    for query in queries:
        likeness = dict(zip(titles, similarity(query, titles), strict=True)) if titles else {}
        mine = named(query)
        close = [entry for entry in entries if likeness[entry.title] >= tau and things[entry.title] == mine]
        pop = len({entry.source for entry in close})
        use = pop >= theta
        decisions.append(TriggerDecision(query=query, pop=pop, threshold=theta, tau=tau, use_memory=use))
        if use:
            close.sort(key=lambda entry: (-likeness[entry.title], entry.source))
            chunks |= {chunk: None for entry in close for chunk in entry.evidence}
    return Recall(decisions=tuple(decisions), chunks=tuple(chunks))
