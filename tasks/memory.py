"""Memory: whether it knows enough or the documents must be searched, and what it keeps of an answer
(ERM4).

The trigger check (Retrieval Trigger): Pop(q) counts the distinct sources whose remembered title is
close to the query; at θ or more memory is used. A remembered title counts only if it asks the same
of the same things (`tasks.question_similarity`): questions that differ in one name, year or
relation are close in meaning and need different evidence.

To remember (Memory Knowledge Reservoir): for each document whose passages are kept the question as
title, the passages as content. Entries carry the chunk ids that the whole answer rests on, which
are content hashes: what has changed in the documents is never served again, and half of an answer's
evidence never stands for all of it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from prompts.engine.embedders import Embedder
from storage.answer_records import Fallback, Passage, SubQuestion, TriggerDecision
from storage.memory import Memory, MemoryEntry
from storage.records import Record, by_key
from tasks.answer import Answered
from tasks.question_similarity import QuestionFeatures, keys, may_ask_the_same, same_words
from tasks.retrieve.search import SearchIndex
from tasks.step import step

# The better supported comes first.
_SUPPORT: tuple[Fallback, ...] = ("none", "partial", "ungrounded", "abstained")


@dataclass(frozen=True)
class QuestionMemory:
    """Memory as one question uses it: the reservoir, and how questions are compared in a generation
    (τ, θ). Where memory has no part in the question it is not `open`: it offers nothing, and
    nothing is kept.
    """

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

        After a rollback later ones are still there: they were chosen among documents that this one
        lacks.
        """
        asked = [self.features.asked(query) for query in queries if self.open]
        entries = [entry for query in asked for entry in self.reservoir.found_by(keys(query))]
        return [
            entry
            for entry in {(entry.source, entry.title): entry for entry in entries}.values()
            if entry.generation <= self.generation
            and all(chunk in self.index.position for chunk in (*entry.evidence, *entry.ranked))
            and entry.surroundings in {"", self.features.surroundings(entry.title)}
        ]

    def near(self, query: str, titles: Iterable[str]) -> dict[str, float]:
        """How close (-1 to 1) a query is to each title that may ask the same: their cosine.

        Where the embedder cannot read one of the two, 1 for the same words, else 0.
        """
        asked = self.features.asked(query)
        others = {title: self.features.asked(title) for title in titles}
        others = {title: other for title, other in others.items() if may_ask_the_same(asked, other)}
        close = {title: float(same_words(asked, other)) for title, other in others.items()}
        read = [title for title in close if self.embedder.reads(title)]
        if read and self.embedder.reads(query):
            vectors = self.embedder.embed([query, *read], query=True)
            close |= zip(read, (vectors[1:] @ vectors[0]).tolist(), strict=True)
        return close


class Recall(Record):
    """The decision for each query, the chunk ids that memory offers where it is used, and how well
    the answers were supported that they come from.
    """

    decisions: tuple[TriggerDecision, ...]
    chunks: tuple[str, ...]
    support: Fallback = "none"

    @property
    def used(self) -> bool:
        """Whether memory serves the question, the first of the queries, or all its other queries:
        nothing need be searched.
        """
        if not self.chunks:
            return False
        first, *others = (decision.use_memory for decision in self.decisions)
        return first or (bool(others) and all(others))

    def suffices(self, support: Fallback) -> bool:
        """Whether an answer from memory is supported as well as the answer that memory was made
        from.
        """
        return _SUPPORT.index(support) <= _SUPPORT.index(self.support)

    def passed_over(self) -> "Recall":
        """Nothing used after all: what memory had did not do."""
        decisions = tuple(
            decision.model_copy(update={"use_memory": False}) for decision in self.decisions
        )
        return Recall(decisions=decisions, chunks=())


@step("trigger-check")
async def check_trigger(queries: Sequence[str], memory: QuestionMemory) -> Recall:
    """Look whether what earlier questions have brought answers each query."""
    entries = memory.offered(queries)
    titles = dict.fromkeys(entry.title for entry in entries)
    decisions, close = [], dict[tuple[str, str], MemoryEntry]()
    for query in queries:
        near = memory.near(query, titles) if titles else {}
        matches = [entry for entry in entries if near.get(entry.title, -1.0) >= memory.tau]
        pop = len({entry.source for entry in matches})
        use = pop >= memory.theta
        decisions.append(
            TriggerDecision(
                query=query, pop=pop, threshold=memory.theta, tau=memory.tau, use_memory=use
            )
        )
        if use:
            matches.sort(key=lambda entry: (-near[entry.title], entry.source, entry.title))
            close |= {(entry.source, entry.title): entry for entry in matches}
    return Recall(
        decisions=tuple(decisions),
        chunks=tuple(
            dict.fromkeys(
                chunk for entry in close.values() for chunk in entry.ranked or entry.evidence
            )
        ),
        support=min(
            (entry.support for entry in close.values()), key=_SUPPORT.index, default="none"
        ),
    )


# --- remember -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lesson:
    """An answered question: the passages that were read, those of them that are entailed, and its
    parts.
    """

    question: str
    answered: Answered
    read: Sequence[Passage]
    entailed: Sequence[str]
    parts: Sequence[SubQuestion]


@step("remember")
async def remember(
    lesson: Lesson, memory: QuestionMemory, passage_of: Callable[[str], Passage]
) -> None:
    """Keep the knowledge that an answer rests on, one entry a document; `passage_of` gives what is
    cited unread.

    A supported answer rests on what it cites. Where it is less, the knowledge is there and nobody
    can say which part of it matters: all that was read is kept, to be filtered again for each
    question. Excerpts are chosen by words: what they leave out may be what the answer rests on.
    Nothing entailed, nothing kept.
    """
    answered = lesson.answered
    used = [chunk for part in lesson.parts for chunk in part.evidence]
    used += [citation.chunk for citation in answered.citations]
    read = {passage.chunk: passage for passage in lesson.read}
    chosen = list(read) if lesson.entailed else []
    if answered.fallback == "none" and answered.answered_by != "excerpts":
        wanted = set(used or lesson.entailed)
        chosen = list(dict.fromkeys([*(chunk for chunk in read if chunk in wanted), *used]))
    if not chosen or not memory.open:
        return
    passages = (read.get(chunk) or passage_of(chunk) for chunk in chosen)
    by_document = by_key((passage.document, passage) for passage in passages)
    title = memory.features.asked(lesson.question)
    surroundings = memory.features.surroundings(lesson.question)
    entries = [
        MemoryEntry(
            source=source,
            title=lesson.question,
            content="\n\n".join(passage.text for passage in own),
            evidence=tuple(chosen),
            documents=tuple(sorted(by_document)),
            generation=memory.generation,
            # Nobody has judged excerpts: whatever a model answers from the same passages does as
            # well.
            support="ungrounded" if answered.answered_by == "excerpts" else answered.fallback,
            surroundings=surroundings,
            ranked=tuple(chosen),
        )
        for source, own in by_document.items()
    ]
    memory.reservoir.put(entries, keys(title))
