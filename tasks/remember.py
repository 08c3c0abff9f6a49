"""What should be remembered of an answered question? (ERM4, Memory Knowledge Reservoir)

For each document whose passages were kept: the question as title, the passages as content. Entries carry the chunk
ids they
rest on, which are content hashes: what has changed in the documents is never served again.
"""

from collections.abc import Sequence

from storage.memory import MemoryEntry
from storage.records import Passage
from tasks.step import step


@step("remember")
async def remember(question: str, kept: Sequence[Passage], generation: int) -> list[MemoryEntry]:
    """One entry a document, in the order of the passages."""
    by_document: dict[str, list[Passage]] = {}
    for passage in kept:
        by_document.setdefault(passage.document, []).append(passage)
    return [
        MemoryEntry(
            source=document,
            title=question,
            content="\n\n".join(passage.text for passage in passages),
            evidence=tuple(passage.chunk for passage in passages),
            documents=(document,),
            generation=generation,
        )
        for document, passages in by_document.items()
    ]
