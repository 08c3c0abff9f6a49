"""What do the kept documents say, in the structure that the question needs? (StructRAG, section 2.3)"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance
from prompts.structurize import Structurize, is_exact, structurize_offline
from storage.records import Chunk, Relation, RouteDecision, StructureType
from tasks.evidence import Place, Pool
from tasks.retrieve.facts import GraphFacts
from tasks.step import step


@dataclass(frozen=True)
class Structured:
    """K and B: the elements of all documents with their places, and a description of each document's part.

    `type` is the structure that was used in the end: chunk where the chosen one fitted no document.
    """

    type: StructureType
    elements: tuple[Evidence, ...]
    descriptions: tuple[str, ...]
    pool: Pool


@step("structurize")
async def structurize(route: RouteDecision, pool: Pool, relevance: Relevance, builder: Structurize) -> Structured:
    """Structure each document by rules where they are exact, the others by one call to a model (offline: by rules).

    Where the structure fits no document, fall back to chunks.
    """
    by_document: dict[str, list[Evidence]] = {}
    for piece in pool.evidence:
        by_document.setdefault(piece.document, []).append(piece)
    built: list[tuple[str, list[Evidence]]] = []
    inexact: list[Evidence] = []
    for pieces in by_document.values():
        if builder.is_offline or is_exact(route.type, pieces):
            built.append(structurize_offline(route.type, pieces, relevance))
        else:
            inexact += pieces
    if inexact:
        built.append(await builder.run(route.type, inexact, relevance))
    elements = tuple(element for _, found in built for element in found)
    descriptions = tuple(description for description, _ in built)
    if not elements and route.type != "chunk":
        return Structured("chunk", tuple(p for p in pool.evidence if not p.label), descriptions, pool)
    return Structured(route.type, elements, descriptions, pool)


def with_paths(
    structured: Structured, paths: Sequence[Sequence[Relation]], facts: GraphFacts, chunks: Sequence[Chunk]
) -> Structured:
    """A graph structure made of the chains between two entities, each link with the sentence that states it.

    `chunks` hold at least one place of each relation. Where there is no chain the structure has no elements.
    """
    by_id = {chunk.id: chunk for chunk in chunks}
    pool, elements = structured.pool, list[Evidence]()
    for path in paths:
        for relation in path:
            stated = next(place for place in facts.places[relation.id] if place.chunk in by_id)
            chunk, number = by_id[stated.chunk], len(pool.places)
            where = Place(
                document=chunk.document, title=chunk.title, chunk=chunk.id, start=stated.start, end=stated.end
            )
            pool = replace(pool, places=(*pool.places, where))
            elements.append(
                Evidence(
                    number=number,
                    document=chunk.document,
                    title=chunk.title,
                    text=chunk.text[stated.start - chunk.start : stated.end - chunk.start],
                    heading=chunk.heading,
                    prior=1.0,
                    label=facts.entities[relation.source].name,
                    attribute=relation.predicate,
                    value=facts.entities[relation.target].name,
                )
            )
    descriptions = (f"{len(paths)} chains of relations",) if paths else ("no chain of relations",)
    return Structured("graph", tuple(elements), descriptions, pool)
