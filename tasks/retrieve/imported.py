"""Which text do imported triples speak for? A document may have a text, and what a model or a table says of it."""

from collections import defaultdict
from collections.abc import Sequence

from storage.records import Chunk


def texts_of_triples(chunks: Sequence[Chunk]) -> dict[int, int]:
    """For each chunk of triples the chunk that holds the text of its document, by place; where a document has no text,
    or its text is in several chunks, its triples stand for themselves."""
    texts: dict[str, list[int]] = defaultdict(list)
    for place, chunk in enumerate(chunks):
        if chunk.kind == "text":
            texts[chunk.document].append(place)
    return {
        place: texts[chunk.document][0]
        for place, chunk in enumerate(chunks)
        if chunk.kind == "triples" and len(texts[chunk.document]) == 1
    }
