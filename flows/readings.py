"""What did a question leave open, and how was it read? The names that several things bear, with where they stand."""

from collections.abc import Sequence

from flows.asking_view import View
from prompts.rewrite import Ambiguous
from storage.records import Ambiguity, Citation, Passage
from tasks.ambiguity import Places, ambiguities, several_meant

CITED = 10.0  # what a cited chunk counts beside the best passage


def readings(
    view: View, told: Sequence[Ambiguous], passages: Sequence[Passage], citations: Sequence[Citation]
) -> tuple[Ambiguity, ...]:
    """What is ambiguous in the question, as `tasks.ambiguity` tells; the store is read only where a name is."""
    index = view.session.index
    meant = several_meant(view.links, index.entities)
    if not meant:
        return ambiguities(told, [], index.entities, Places({}, {}, {}))
    ids = [index.entities[place].id for one in meant for place in one.entities]
    chunks: dict[str, list[str]] = {}
    for place in view.session.generation.graph.occurrences("entity", ids):
        chunks.setdefault(place.item, []).append(place.chunk)
    titles = {chunk: index.chunk(chunk).title for found in chunks.values() for chunk in found}
    weights = {passage.chunk: 1 / rank for rank, passage in enumerate(passages, 1)}
    for citation in citations:
        weights[citation.chunk] = CITED
    return ambiguities(told, meant, index.entities, Places(chunks, titles, weights))
