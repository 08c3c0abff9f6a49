"""Remember: what memory keeps of an answered question (ERM4, Memory Knowledge Reservoir).

For each document whose passages are kept: the question as title, the passages as content. Entries carry the chunk ids
that the whole answer rests on, which are content hashes: what has changed in the documents is never served again, and
half of an answer's evidence never stands for all of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.answer_records import Fallback, Passage
from storage.memory import MemoryEntry
from tasks.step import step


@dataclass(frozen=True)
class Lesson:
    """An answered question: how well it was supported, the passages to keep, and all there is about it by a digest."""

    question: str
    support: Fallback
    kept: Sequence[Passage]
    surroundings: str
    generation: int


def worth_keeping(
    support: Fallback, passages: Sequence[Passage], entailed: Sequence[str], cited: Sequence[str]
) -> list[str]:
    """The chunks to keep, in the order of the passages, then of the citations.

    A supported answer rests on what it cites. Where the answer is less, the knowledge is there and nobody can say which
    part of it matters: all that was read is kept, to be filtered again for each question. Nothing entailed, nothing
    kept.
    """
    if support == "none":
        wanted = set(cited or entailed)
        read = [passage.chunk for passage in passages if passage.chunk in wanted]
        return list(dict.fromkeys([*read, *cited]))
    return [passage.chunk for passage in passages] if entailed else []


@step("remember")
async def remember(lesson: Lesson) -> list[MemoryEntry]:
    """One entry a document, in the order of the passages."""
    by_document: dict[str, list[Passage]] = {}
    for passage in lesson.kept:
        by_document.setdefault(passage.document, []).append(passage)
    return [
        MemoryEntry(
            source=source,
            title=lesson.question,
            content="\n\n".join(passage.text for passage in passages),
            evidence=tuple(passage.chunk for passage in lesson.kept),
            documents=tuple(sorted({passage.document for passage in lesson.kept})),
            generation=lesson.generation,
            support=lesson.support,
            surroundings=lesson.surroundings,
            ranked=tuple(passage.chunk for passage in lesson.kept),
        )
        for source, passages in by_document.items()
    ]
