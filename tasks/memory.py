"""Memory (ERM4): decide whether it suffices for a question, and keep what an answer rests on.

Retrieval trigger: Pop(q) counts the distinct sources whose remembered title is close to the query;
from θ on memory is used. A remembered title counts only if it asks the same of the same things
(`tasks.question_similarity`): questions that differ in one name, year or relation are close in
meaning and need different evidence.

Memory knowledge reservoir: for each document of an answer, the question is kept as the title and
the passages as the content. Entries carry the ids of all chunks that the answer rests on. These
are content hashes: an entry is not served after any of its evidence has changed.
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

# From the best support to none.
_SUPPORT: tuple[Fallback, ...] = ("none", "partial", "ungrounded", "abstained")


@dataclass(frozen=True)
class QuestionMemory:
    """Memory as one question uses it: the reservoir, and how questions are compared (τ, θ).

    A question that memory has no part in has `open` False: nothing is offered or kept.
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
        """Return the entries for the queries that hold in this generation.

        After a rollback, entries of later generations rest on documents that this one lacks.
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
        """Return the cosine (-1 to 1) of a query with each title that may ask the same.

        Where the embedder cannot read one of the two: 1 for the same words, else 0.
        """
        asked = self.features.asked(query)
        close = {
            title: float(same_words(asked, other))
            for title in titles
            if may_ask_the_same(asked, other := self.features.asked(title))
        }
        read = [title for title in close if self.embedder.reads(title)]
        if read and self.embedder.reads(query):
            vectors = self.embedder.embed([query, *read], query=True)
            close |= zip(read, (vectors[1:] @ vectors[0]).tolist(), strict=True)
        return close


class Recall(Record):
    """The decision for each query, and the chunk ids that memory offers where it is used.

    `support` says how well the remembered answers were supported.
    """

    decisions: tuple[TriggerDecision, ...]
    chunks: tuple[str, ...]
    support: Fallback = "none"

    @property
    def used(self) -> bool:
        """Whether memory serves the first query, the question itself, or all other queries."""
        if not self.chunks:
            return False
        first, *others = (decision.use_memory for decision in self.decisions)
        return first or (bool(others) and all(others))

    def suffices(self, support: Fallback) -> bool:
        """Whether an answer is supported at least as well as the remembered ones were."""
        return _SUPPORT.index(support) <= _SUPPORT.index(self.support)

    def passed_over(self) -> "Recall":
        """Return the recall of a question that memory did not answer after all."""
        decisions = tuple(
            decision.model_copy(update={"use_memory": False}) for decision in self.decisions
        )
        return Recall(decisions=decisions, chunks=())


@step("trigger-check")
async def check_trigger(queries: Sequence[str], memory: QuestionMemory) -> Recall:
    """Decide for each query whether memory answers it."""
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
    """An answered question: the passages read, the chunks of those entailed, and its parts."""

    question: str
    answered: Answered
    read: Sequence[Passage]
    entailed: Sequence[str]
    parts: Sequence[SubQuestion]


@step("remember")
async def remember(
    lesson: Lesson, memory: QuestionMemory, passage_of: Callable[[str], Passage]
) -> None:
    """Keep the passages that an answer rests on, one entry for each document.

    A supported answer rests on what it cites; `passage_of` reads what is cited but was not read.
    Of any other answer all passages read are kept, to be filtered again for each question, and
    none where no passage was entailed.
    """
    if not memory.open:
        return
    answered = lesson.answered
    read = {passage.chunk: passage for passage in lesson.read}
    chosen = list(read) if lesson.entailed else []
    # Excerpts are chosen by words: what they leave out may be what the answer rests on.
    if answered.fallback == "none" and answered.answered_by != "excerpts":
        used = [chunk for part in lesson.parts for chunk in part.evidence]
        used += [citation.chunk for citation in answered.citations]
        wanted = set(used or lesson.entailed)
        chosen = list(dict.fromkeys([*(chunk for chunk in read if chunk in wanted), *used]))
    if not chosen:
        return
    passages = (read.get(chunk) or passage_of(chunk) for chunk in chosen)
    by_document = by_key((passage.document, passage) for passage in passages)
    surroundings = memory.features.surroundings(lesson.question)
    entries = [
        MemoryEntry(
            source=source,
            title=lesson.question,
            content="\n\n".join(passage.text for passage in own),
            evidence=tuple(chosen),
            documents=tuple(sorted(by_document)),
            generation=memory.generation,
            # Nobody has judged excerpts: a model's answer from them is always good enough.
            support="ungrounded" if answered.answered_by == "excerpts" else answered.fallback,
            surroundings=surroundings,
            ranked=tuple(chosen),
        )
        for source, own in by_document.items()
    ]
    memory.reservoir.put(entries, keys(memory.features.asked(lesson.question)))
