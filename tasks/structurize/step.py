"""What do the kept documents say, in the structure that the question needs? (StructRAG, section 2.3)

K = {k_i} and B = {b_i}: the elements of each document, compared with their sentences, and a description of each. Rules
make what they can make without loss; a model structures the rest, large documents each in a call of their own, all of
them in parallel. Where the parts of a table are built apart, one schema says first which columns all of them have.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from prompts.engine.calls import rough_tokens
from prompts.reading.evidence import Evidence
from prompts.reading.relevance import Relevance
from prompts.reading.sure import nearest
from prompts.structures.offline import is_exact
from prompts.structures.render import rendered
from prompts.structures.schema import ReadSchema
from prompts.structurize import NOT_FOUND, Built, Structurize, structurize_offline
from storage.record import content_id
from storage.records import Chunk, DocumentStructure, Relation, RouteDecision, StructureType
from tasks.evidence import Place, Pool
from tasks.portions import portions
from tasks.retrieve.facts import GraphFacts
from tasks.step import step
from tasks.together import together

CALL_TOKENS = 900  # of sentences in one call
SHOWN_SIGNS = 2_000  # of one document's structure in the trace


class Shelf(Protocol):
    """Where structures of documents are kept, by what they were made of."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, document: str, built: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Effort:
    """How many tokens of sentences a model reads of one document, and of all."""

    document: int
    all: int


# For a question among others: what is nearest, in one call.
SHORT = Effort(CALL_TOKENS, CALL_TOKENS)
# Where the caller asks for a structure or names the documents: each of them is read.
THOROUGH = Effort(600, 24_000)


@dataclass(frozen=True)
class Structured:
    """K and B: the elements of all documents with their places, and a description of each document's part.

    `type` is the structure that was used in the end: chunk where the chosen one fitted no document. `built` holds what
    each document gave: those without elements are there too.
    """

    type: StructureType
    elements: tuple[Evidence, ...]
    descriptions: tuple[str, ...]
    pool: Pool
    built: tuple[Built, ...] = ()


@dataclass(frozen=True)
class Apart:
    """What serves where documents are structured apart: who names the columns of all, and where they are kept."""

    schemer: ReadSchema | None = None
    shelf: Shelf | None = None


@step("structurize")
async def structurize(
    route: RouteDecision, pool: Pool, relevance: Relevance, builder: Structurize, effort: Effort = SHORT,
    apart: Apart | None = None,
) -> Structured:  # fmt: skip
    """Structure each document by rules where they are exact, the others by a model (offline: by rules).

    What a model made is kept on the shelf, by the sentences, the type and what was wanted: the question, or of a table
    in several calls the columns that the schema names. Where the structure fits no document, fall back to chunks.
    """
    by_document: dict[str, list[Evidence]] = {}
    for piece in pool.evidence:
        by_document.setdefault(piece.document, []).append(piece)
    built: dict[str, Built] = {}
    inexact: list[Evidence] = []
    for document, pieces in by_document.items():
        if builder.is_offline or is_exact(route.type, pieces):
            built[document] = structurize_offline(route.type, pieces, relevance)
        else:
            inexact += pieces
    if inexact:
        shown = _shown(inexact, relevance, effort)
        wanted, schemer = relevance.ask.text, apart.schemer if apart else None
        if schemer is not None and route.type == "table" and len(packed(shown)) > 1:
            wanted = await _columns(wanted, shown, schemer)
        built |= await _by_model(route.type, shown, Wanted(wanted, builder, apart.shelf if apart else None))
        built |= {name: _unread(by_document[name]) for name in by_document if name not in built}
    ordered = tuple(built[document] for document in by_document)
    elements = tuple(element for one in ordered for element in one.elements)
    descriptions = tuple(one.description for one in ordered)
    if not elements and route.type != "chunk":
        return Structured("chunk", tuple(p for p in pool.evidence if not p.label), descriptions, pool, ordered)
    return Structured(route.type, elements, descriptions, pool, ordered)


def shown_of(structured: Structured) -> tuple[DocumentStructure, ...]:
    """What the trace tells of each document's structure: its form as text, bounded, and what the checks refused."""
    return tuple(
        DocumentStructure(
            document=one.document, title=one.title, description=one.description, elements=len(one.elements),
            unverified=one.refused, text=_bounded(rendered(structured.type, one.elements)),
        )
        for one in structured.built
        if structured.type != "chunk"
    )  # fmt: skip


def _bounded(text: str) -> str:
    if len(text) <= SHOWN_SIGNS:
        return text
    cut = text[:SHOWN_SIGNS].rpartition("\n")[0] or text[:SHOWN_SIGNS]
    return f"{cut}\n…"


async def _columns(question: str, documents: Sequence[Sequence[Evidence]], schemer: ReadSchema) -> str:
    """What is wanted of every document, so that all have the same columns; the question where none is named."""
    found = await schemer.run(question, [pieces[0].title for pieces in documents])
    if not found.attributes:
        return question
    rows = f" Rows: {'; '.join(found.things)}." if found.things else ""
    periods = f" Periods: {'; '.join(found.periods)}." if found.periods else ""
    return f"Columns: {'; '.join(found.attributes)}.{rows}{periods}"


def _shown(evidence: Sequence[Evidence], relevance: Relevance, effort: Effort) -> list[list[Evidence]]:
    """The sentences that a model reads, by document: of each the nearest, of all the nearest."""
    kept = set(nearest(evidence, relevance, effort.all))
    by_document: dict[str, list[Evidence]] = {}
    for piece in evidence:
        if piece in kept:
            by_document.setdefault(piece.document, []).append(piece)
    return [nearest(pieces, relevance, effort.document) for pieces in by_document.values()]


def _unread(pieces: Sequence[Evidence]) -> Built:
    """A document that the budget left out: said, not passed over."""
    return Built(
        pieces[0].document, pieces[0].title, f"{pieces[0].title}: {NOT_FOUND} (its sentences share little)", ()
    )


def packed(documents: Sequence[Sequence[Evidence]]) -> list[list[Evidence]]:
    """Documents put together, in order, into calls of at most CALL_TOKENS; a larger one has a call of its own."""
    sizes = [sum(rough_tokens(piece.text) + rough_tokens(piece.title) + 3 for piece in pieces) for pieces in documents]
    return [[piece for place in portion for piece in documents[place]] for portion in portions(sizes, CALL_TOKENS)]


@dataclass(frozen=True)
class Wanted:
    """What is wanted of all documents, who builds it, and where it is kept."""

    wanted: str
    builder: Structurize
    shelf: Shelf | None

    def key(self, structure: StructureType, pieces: Sequence[Evidence]) -> str:
        """All that a document's structure depends on but the model: the type, what is wanted, the sentences."""
        return content_id("str", structure, self.wanted, *(f"{piece.title}\n{piece.text}" for piece in pieces))


async def _by_model(
    structure: StructureType, documents: Sequence[Sequence[Evidence]], kept: Wanted
) -> dict[str, Built]:
    """The structures of documents by id: from the shelf, the others in as few calls as they fit in, in parallel."""
    keys = {pieces[0].document: kept.key(structure, pieces) for pieces in documents}
    found = {
        pieces[0].document: known
        for pieces in documents
        if (known := _known(kept.shelf, keys[pieces[0].document], pieces)) is not None
    }
    new = [pieces for pieces in documents if pieces[0].document not in found]
    calls = (kept.builder.run(structure, pieces, kept.wanted) for pieces in packed(new))
    for built in await together(calls):
        for one in built:
            found[one.document] = one
            if kept.shelf is not None:
                kept.shelf.put(keys[one.document], one.document, _written(one, documents))
    return found


def _written(built: Built, documents: Sequence[Sequence[Evidence]]) -> str:
    """A structure as text, its sentences by their place among those that were read."""
    pieces = next(pieces for pieces in documents if pieces[0].document == built.document)
    places = {piece.number: place for place, piece in enumerate(pieces)}
    elements = [[places[one.number], one.label, one.attribute, one.value] for one in built.elements]
    return json.dumps([built.description, built.refused, elements], ensure_ascii=False)


def _known(shelf: Shelf | None, key: str, pieces: Sequence[Evidence]) -> Built | None:
    said = shelf.get(key) if shelf else None
    if said is None:
        return None
    description, refused, elements = json.loads(said)
    made = tuple(
        replace(pieces[place], label=label, attribute=attribute, value=value)
        for place, label, attribute, value in elements
    )
    return Built(pieces[0].document, pieces[0].title, description, made, refused)


def with_paths(
    pool: Pool, paths: Sequence[Sequence[Relation]], facts: GraphFacts, chunks: Sequence[Chunk]
) -> Structured:
    """A graph structure made of the chains between two entities, each link with the sentence that states it.

    `chunks` hold at least one place of each relation. Where there is no chain the structure has no elements.
    """
    by_id = {chunk.id: chunk for chunk in chunks}
    elements = list[Evidence]()
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
