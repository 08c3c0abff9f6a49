"""Recognize: statements of the graph near to a question, those of them that a model keeps, and what
the search starts from then (HippoRAG 2, arXiv 2502.14802: query to triple, recognition memory).

A statement is a sentence or a triple that states one or more relations. Near are those whose
relation has a vector near to the question's, anywhere, and those in the first passages that share
most words with it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prompts.engine.helper import helped
from prompts.recognize import Recognize
from prompts.text.evidence import Evidence
from prompts.text.relevance import Relevance
from storage.answer_records import Recognition, RecognizedStatement
from storage.graph_records import Occurrence
from storage.records import by_key
from tasks.retrieve.dual_levels import DualLevelIndex
from tasks.retrieve.facts import GraphFacts
from tasks.retrieve.passage_sets import best_places
from tasks.retrieve.search import SearchIndex, Seeds
from tasks.retrying import BRIEF
from tasks.step import step

Vectors = NDArray[np.float32]

INSTEAD = "the search starts from the names of the question alone"
SEARCHED = 60  # passages whose statements may be shown
ALIKE = 30  # relations by their vectors; HippoRAG 2 shows five triples
SHOWN = 40  # statements
OF_A_PASSAGE = 3  # of its statements, so that one long passage does not take all the room


@dataclass(frozen=True, slots=True)
class GraphStatement:
    """What states relations: `text` is `[start:end]` of the document, `entities` are its ends."""

    chunk: str
    document: str
    title: str
    text: str
    start: int
    end: int
    entities: tuple[str, ...]

    @property
    def line(self) -> str:
        """The statement as a model reads it."""
        return f"{self.title or self.document}: {self.text}"


@step("recognize", BRIEF, asks_model=True)
async def recognize(
    question: str, statements: Sequence[GraphStatement], judge: Recognize, *, wanted: bool = False
) -> list[GraphStatement]:
    """Keep the statements that bear on a question, the most telling first.

    Without a usable answer of the model none is kept. `wanted`: the user asked for it, so that no
    profile spares the call.
    """
    kept = await helped(
        judge,
        lambda one: one.run(question, [statement.line for statement in statements]),
        INSTEAD,
        otherwise=list[int],
        wanted=wanted,
    )
    return [statements[place] for place in kept]


def statements_near(
    relevance: Relevance,
    passages: Sequence[str],
    index: SearchIndex,
    facts: GraphFacts,
    alike: Iterable[Occurrence] = (),
) -> list[GraphStatement]:
    """Return the statements to show, nearest first.

    `passages` are chunks (ids), best first; `alike` are places of relations whose vectors are near
    to the question's.
    """
    near = statements_at(alike, index, facts)
    shown = {(one.chunk, one.start, one.end): one for one in near}
    ranked: list[tuple[float, int, GraphStatement]] = []
    for rank, chunk in enumerate(passages):
        own = statements_at(facts.stated_by(chunk), index, facts)
        worth = [(-relevance.coverage(_evidence(one)), place) for place, one in enumerate(own)]
        ranked += [(share, rank, own[place]) for share, place in sorted(worth)[:OF_A_PASSAGE]]
    ranked.sort(key=lambda row: row[:2])
    for _, _, one in ranked:
        shown.setdefault((one.chunk, one.start, one.end), one)
    return list(shown.values())[:SHOWN]


def statements_at(
    places: Iterable[Occurrence], index: SearchIndex, facts: GraphFacts
) -> list[GraphStatement]:
    """Return what stands at places of relations; relations of the same stretch are one
    statement.
    """
    grouped = by_key(((row.chunk, row.start, row.end), row.item) for row in places)
    statements = []
    for (name, start, end), relations in grouped.items():
        chunk = index.chunk(name)
        ends = [
            entity
            for relation in relations
            for entity in (facts.relations[relation].source, facts.relations[relation].target)
        ]
        text = chunk.text[start - chunk.start : end - chunk.start]
        statements.append(
            GraphStatement(
                name, chunk.document, chunk.title, text, start, end, tuple(dict.fromkeys(ends))
            )
        )
    return [one for one in statements if one.text.strip()]


def places_alike(
    levels: DualLevelIndex, vectors: Vectors, index: SearchIndex, only: Collection[str] | None
) -> list[Occurrence]:
    """Return where the relations nearest to these unit vectors of a question are first stated, in
    the documents `only` (None: all).
    """
    places = []
    for row in best_places(levels.alike(vectors), ALIKE):
        stated = levels.facts.places(levels.relations[row].id)
        allowed = (at for at in stated if only is None or index.chunk(at.chunk).document in only)
        if (first := next(allowed, None)) is not None:
            places.append(first)
    return places


def _evidence(statement: GraphStatement) -> Evidence:
    return Evidence(0, statement.document, statement.title, statement.text)


def seeds_of(kept: Sequence[GraphStatement], index: SearchIndex) -> Seeds:
    """Return what the search starts from: the passages of the statements kept, in the order of the
    model, and the entities that they name.
    """
    entities: dict[int, float] = {}
    chunks: dict[int, float] = {}
    for statement in kept:
        chunks[index.position[statement.chunk]] = 1.0
        for name in statement.entities:
            entity = index.by_id.place[name]
            entities[entity] = entities.get(entity, 0.0) + 1 / len(statement.entities)
    return Seeds(entities, chunks)


def recognition_of(shown: Sequence[GraphStatement], kept: Sequence[GraphStatement]) -> Recognition:
    """Return for the trace how many statements were shown, and which were kept."""
    return Recognition(
        shown=len(shown),
        kept=tuple(
            RecognizedStatement(
                chunk=one.chunk,
                document=one.document,
                start=one.start,
                end=one.end,
                text=one.text,
            )
            for one in kept
        ),
    )
