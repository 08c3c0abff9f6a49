"""The trigger check: whether memory knows enough, or the documents must be searched (ERM4, Retrieval Trigger).

Pop(q) counts the distinct sources whose remembered title is close to the query; at θ or more memory is used. A
remembered title counts only if it asks the same of the same things (`tasks.question_similarity`): questions that differ
in one name, year or relation are close in meaning and need different evidence.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prompts.engine.embedders import Embedder
from storage.answer_records import Fallback, TriggerDecision
from storage.memory import Memory, MemoryEntry
from storage.records import Record
from tasks.question_similarity import QuestionFeatures, alike, differs, keys
from tasks.retrieve.search import SearchIndex
from tasks.step import step

# The better supported comes first.
_SUPPORT: tuple[Fallback, ...] = ("none", "partial", "ungrounded", "abstained")


@dataclass(frozen=True)
class QuestionMemory:
    """Memory as one question uses it: the reservoir, and how questions are compared in a generation (τ, θ). Where
    memory has no part in the question it is not `open`: it offers nothing, and nothing is kept."""

    reservoir: Memory
    features: QuestionFeatures
    index: SearchIndex
    embedder: Embedder
    tau: float
    theta: int
    generation: int
    open: bool

    def offered(self, queries: Sequence[str]) -> list[MemoryEntry]:
        """The entries for the queries that hold in this generation.

        After a rollback later ones are still there: they were chosen among documents that this one lacks.
        """
        asked = [self.features.asked(query) for query in queries if self.open]
        entries = [entry for query in asked for entry in self.reservoir.found_by(keys(query))]
        return [
            entry
            for entry in {(entry.source, entry.title): entry for entry in entries}.values()
            if entry.generation <= self.generation
            and all(chunk in self.index.position for chunk in entry.evidence)
            and entry.surroundings in {"", self.features.surroundings(entry.title)}
        ]

    def near(self, query: str, titles: Iterable[str]) -> dict[str, float]:
        """How close (-1 to 1) a query is to each title that asks the same: by words, and where that is less than τ, by
        cosines if the embedder reads both. The parts first: they leave few to be embedded."""
        asked = self.features.asked(query)
        close = {
            title: 1.0 if title == query else alike(asked, compared)
            for title in titles
            if not differs(asked, compared := self.features.asked(title))
        }
        unlike = [title for title in close if close[title] < self.tau and self.embedder.reads(title)]
        if unlike and self.embedder.reads(query):
            vectors = self.embedder.embed([query, *unlike], query=True)
            for title, cosine in zip(unlike, (vectors[1:] @ vectors[0]).tolist(), strict=True):
                close[title] = max(close[title], cosine)
        return close


class Recall(Record):
    """The decision for each query, the chunk ids that memory offers where it is used, and how well the answers were
    supported that they come from."""

    decisions: tuple[TriggerDecision, ...]
    chunks: tuple[str, ...]
    support: Fallback = "none"

    @property
    def used(self) -> bool:
        """Whether memory serves the question, the first of the queries, or all its other queries: nothing need be
        searched."""
        if not self.chunks:
            return False
        first, *others = (decision.use_memory for decision in self.decisions)
        return first or (bool(others) and all(others))

    def does(self, support: Fallback) -> bool:
        """Whether an answer from memory is supported as well as the answer that memory was made from."""
        return _SUPPORT.index(support) <= _SUPPORT.index(self.support)

    def passed_over(self) -> "Recall":
        """Nothing used after all: what memory had did not do."""
        decisions = tuple(decision.model_copy(update={"use_memory": False}) for decision in self.decisions)
        return Recall(decisions=decisions, chunks=())


@step("trigger-check")
async def check_trigger(queries: Sequence[str], memory: QuestionMemory) -> Recall:
    """Whether what earlier questions have brought answers each query."""
    entries = memory.offered(queries)
    titles = dict.fromkeys(entry.title for entry in entries)
    decisions, close = [], dict[tuple[str, str], MemoryEntry]()
    for query in queries:
        near = memory.near(query, titles) if titles else {}
        matches = [entry for entry in entries if near.get(entry.title, -1.0) >= memory.tau]
        pop = len({entry.source for entry in matches})
        use = pop >= memory.theta
        decisions.append(TriggerDecision(query=query, pop=pop, threshold=memory.theta, tau=memory.tau, use_memory=use))
        if use:
            matches.sort(key=lambda entry: (-near[entry.title], entry.source, entry.title))
            close |= {(entry.source, entry.title): entry for entry in matches}
    return Recall(
        decisions=tuple(decisions),
        chunks=tuple(dict.fromkeys(chunk for entry in close.values() for chunk in entry.ranked or entry.evidence)),
        support=min((entry.support for entry in close.values()), key=_SUPPORT.index, default="none"),
    )
