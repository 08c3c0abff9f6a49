"""What of the graph goes into a question's context? A table of entities and one of relations, each within its tokens.

Every row quotes the place that shows it, so that an answer can cite it. Source: LightRAG (arXiv 2410.05779), 3.3.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from prompts.language.tokens import count_tokens
from prompts.language.words import fold
from prompts.reading.evidence import Evidence
from storage.records import Chunk, Entity, Occurrence, Relation
from tasks.evidence import Place, Pool
from tasks.retrieve.facts import GraphFacts
from tasks.retrieve.levels import Found
from tasks.structurize.step import Structured

_Row = TypeVar("_Row", Entity, Relation)
# The chunks that state a relation and that the question may look into.
Stating = Callable[[str], Sequence[Chunk]]


@dataclass(frozen=True)
class Shares:
    """The most tokens of each table."""

    entities: int = 400
    relations: int = 600


def entity_row(entity: Entity) -> str:
    """One line of the entity table."""
    return f"{entity.name} | {entity.kind} | {entity.description}"


def relation_row(relation: Relation, facts: GraphFacts) -> str:
    """One line of the relation table."""
    source, target = facts.entities[relation.source].name, facts.entities[relation.target].name
    return f"{source} | {relation.predicate} | {target} | {relation.description}"


def best_rows(
    found: Found, entities: Sequence[Entity], facts: GraphFacts, shares: Shares
) -> tuple[list[Entity], list[Relation]]:
    """The entities and relations that scored best, as many as their shares hold."""
    by_score = sorted(found.entities, key=lambda place: (-found.entities[place], place))
    relations = sorted(found.relations, key=lambda name: (-found.relations[name], name))
    return (
        within((entities[place] for place in by_score), entity_row, shares.entities),
        within((facts.relations[name] for name in relations), lambda one: relation_row(one, facts), shares.relations),
    )


def within(rows: Iterable[_Row], shown: Callable[[_Row], str], most: int) -> list[_Row]:
    """The first rows that fit into so many tokens together."""
    kept: list[_Row] = []
    for row in rows:
        most -= count_tokens([shown(row)])[0]
        if most < 0:
            break
        kept.append(row)
    return kept


def with_tables(
    pool: Pool, entities: Sequence[Entity], relations: Sequence[Relation], facts: GraphFacts, stating: Stating
) -> Structured:
    """The pool with both tables as its structure: an element for each row, with the sentence that shows it.

    An entity that no sentence of the pool names, and a relation that no chunk states, has no row. Without any row the
    structure is chunks.
    """
    elements = [row for entity in entities for row in _entity_element(entity, pool)]
    for relation in relations:
        pool, found = _relation_element(relation, pool, facts, stating)
        elements += found
    described = f"{len(elements)} rows on {len(entities)} entities and {len(relations)} relations"
    if not elements:
        return Structured("chunk", tuple(piece for piece in pool.evidence if not piece.label), (described,), pool)
    return Structured("graph", tuple(elements), (described,), pool)


def _entity_element(entity: Entity, pool: Pool) -> list[Evidence]:
    name = fold(entity.name)
    shown = next((piece for piece in pool.evidence if not piece.label and name in fold(piece.text)), None)
    return [replace(shown, label=entity.name, attribute=entity.kind, value=entity.description)] if shown else []


def _relation_element(
    relation: Relation, pool: Pool, facts: GraphFacts, stating: Stating
) -> tuple[Pool, list[Evidence]]:
    """The row, and the pool with its place, which is a new one where no piece of the pool stands there."""
    chunks = {chunk.id: chunk for chunk in stating(relation.id)}
    place = next((place for place in facts.places[relation.id] if place.chunk in chunks), None)
    if place is None:
        return pool, []
    shown = next((piece for piece in pool.evidence if _holds(piece, place, pool)), None)
    if shown is None:
        pool, shown = _with_place(pool, place, chunks[place.chunk])
    source, target = facts.entities[relation.source].name, facts.entities[relation.target].name
    return pool, [replace(shown, label=source, attribute=relation.predicate, value=target)]


def _holds(piece: Evidence, place: Occurrence, pool: Pool) -> bool:
    """Whether a sentence or row of the pool stands where the place begins."""
    known = pool.places[piece.number]
    return known.chunk == place.chunk and known.start <= place.start < known.end and not piece.label


def _with_place(pool: Pool, place: Occurrence, chunk: Chunk) -> tuple[Pool, Evidence]:
    """The pool with one more place, and what stands there."""
    where = Place(document=chunk.document, title=chunk.title, chunk=chunk.id, start=place.start, end=place.end)
    text = chunk.text[place.start - chunk.start : place.end - chunk.start]
    shown = Evidence(len(pool.places), chunk.document, chunk.title, text, chunk.heading, prior=1.0)
    return replace(pool, places=(*pool.places, where)), shown
