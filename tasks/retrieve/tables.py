"""Tables of the graph for a question's context: entities and relations, each within its tokens (LightRAG 3.3).

A row of the relation table has the number of the source that states it, so that an answer can cite it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from prompts.text.tokens import count_tokens
from storage.graph_records import Entity, Relation
from storage.records import Chunk
from tasks.answer import Note
from tasks.retrieve.facts import GraphFacts
from tasks.retrieve.levels import Found
from tasks.sources import Source, number_of, span_of

_Row = TypeVar("_Row", Entity, Relation)
# The chunks that state a relation and that the question may look into.
Stating = Callable[[str], Sequence[Chunk]]


@dataclass(frozen=True)
class Shares:
    """The most tokens of each table, as shares of an answer's evidence."""

    entities: float = 0.1
    relations: float = 0.15

    def of(self, tokens: int) -> tuple[int, int]:
        """Tokens of the entity table and of the relation table."""
        return round(self.entities * tokens), round(self.relations * tokens)


def entity_row(entity: Entity) -> str:
    """One line of the entity table."""
    return f"| {_cell(entity.name)} | {_cell(entity.kind)} | {_cell(entity.description)} |"


def relation_row(relation: Relation, facts: GraphFacts) -> str:
    """One line of the relation table, without its source."""
    source, target = facts.entities[relation.source].name, facts.entities[relation.target].name
    return f"| {_cell(source)} | {_cell(relation.predicate)} | {_cell(target)} | {_cell(relation.description)} |"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def best_rows(
    found: Found, entities: Sequence[Entity], facts: GraphFacts, most: tuple[int, int]
) -> tuple[list[Entity], list[Relation]]:
    """The entities and relations that scored best, as many as fit into so many tokens of each."""
    by_score = sorted(found.entities, key=lambda place: (-found.entities[place], place))
    relations = sorted(found.relations, key=lambda name: (-found.relations[name], name))
    return (
        within((entities[place] for place in by_score), entity_row, most[0]),
        within((facts.relations[name] for name in relations), lambda one: relation_row(one, facts), most[1]),
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


def stating_sources(
    relations: Sequence[Relation], facts: GraphFacts, stating: Stating, sources: Sequence[Source]
) -> tuple[list[Source], Mapping[str, int]]:
    """The sources with one more for each relation that none of them states, and the number of each relation's source.

    A relation that the question may not look up has no number.
    """
    found, numbers = list(sources), dict[str, int]()
    for relation in relations:
        chunks = {chunk.id: chunk for chunk in stating(relation.id)}
        place = next((place for place in facts.places[relation.id] if place.chunk in chunks), None)
        if place is None:
            continue
        chunk = chunks[place.chunk]
        number = number_of(found, chunk.document, place.start, place.end)
        if number is None:
            found.append(span_of(chunk, place.start, place.end))
            number = len(found)
        numbers[relation.id] = number
    return found, numbers


def graph_notes(
    entities: Sequence[Entity], relations: Sequence[Relation], facts: GraphFacts, numbers: Mapping[str, int]
) -> list[Note]:
    """Both tables in Markdown; relations without a source are left out."""
    notes = []
    if entities:
        rows = ["| entity | kind | description |", "| --- | --- | --- |", *map(entity_row, entities)]
        notes.append(Note("Entities", "\n".join(rows)))
    stated = [f"{relation_row(one, facts)} [{numbers[one.id]}] |" for one in relations if one.id in numbers]
    if stated:
        head = ["| source | relation | target | description | stated in |", "| --- | --- | --- | --- | --- |"]
        notes.append(Note("Relations", "\n".join([*head, *stated])))
    return notes
