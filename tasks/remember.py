"""Remember: what memory keeps of an answered question (ERM4, Memory Knowledge Reservoir).

For each document whose passages are kept: the question as title, the passages as content. Entries carry the chunk ids
that the whole answer rests on, which are content hashes: what has changed in the documents is never served again, and
half of an answer's evidence never stands for all of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from storage.answer_records import Passage, SubQuestion
from storage.memory import MemoryEntry
from tasks.answer import Answered
from tasks.question_similarity import keys
from tasks.step import step
from tasks.trigger import QuestionMemory


@dataclass(frozen=True)
class Lesson:
    """An answered question: the passages that were read, those of them that are entailed, and its parts."""

    question: str
    answered: Answered
    read: Sequence[Passage]
    entailed: Sequence[str]
    parts: Sequence[SubQuestion]


@step("remember")
async def remember(lesson: Lesson, memory: QuestionMemory, passage_of: Callable[[str], Passage]) -> None:
    """Keep the knowledge that an answer rests on, one entry a document; `passage_of` gives what is cited unread.

    A supported answer rests on what it cites. Where it is less, the knowledge is there and nobody can say which part of
    it matters: all that was read is kept, to be filtered again for each question. Excerpts are chosen by words: what
    they leave out may be what the answer rests on. Nothing entailed, nothing kept.
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
    by_document: dict[str, list[Passage]] = {}
    for passage in (read.get(chunk) or passage_of(chunk) for chunk in chosen):
        by_document.setdefault(passage.document, []).append(passage)
    title = memory.features.asked(lesson.question)
    surroundings = memory.features.surroundings(lesson.question)
    entries = [
        MemoryEntry(
            source=source,
            title=lesson.question,
            content="\n\n".join(passage.text for passage in passages),
            evidence=tuple(chosen),
            documents=tuple(sorted(by_document)),
            generation=memory.generation,
            support=answered.fallback,
            surroundings=surroundings,
            ranked=tuple(chosen),
        )
        for source, passages in by_document.items()
    ]
    memory.reservoir.put(entries, keys(title))
