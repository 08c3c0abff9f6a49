"""What a traversal found, for readers: entity and relation tables, path lists, and where each relation is stated."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from prompts.text.evidence import Evidence
from storage.graph_records import Occurrence, Relation
from storage.records import Chunk
from tasks.retrieve.facts import GraphFacts
from tasks.sources import EvidencePlace, EvidencePool
from tasks.traverse.results import Chain

MOST_ROWS = 40


@dataclass(frozen=True)
class Statement:
    """A relation where one document states it; `source` and `target` are its ends as written there."""

    relation: Relation
    evidence: Evidence
    place: EvidencePlace
    source: str
    target: str


@dataclass
class Stated:
    """The statements of relations, numbered as they are asked for; `chunk` gives a chunk by id."""

    facts: GraphFacts
    chunk: Callable[[str], Chunk]
    known: dict[str, Statement] = field(default_factory=dict)

    def of(self, relation: Relation) -> Statement:
        """The first place that states a relation."""
        if relation.id not in self.known:
            occurrence = self.facts.places[relation.id][0]
            self.known[relation.id] = self._read(relation, occurrence, self.chunk(occurrence.chunk))
        return self.known[relation.id]

    def _read(self, relation: Relation, where: Occurrence, chunk: Chunk) -> Statement:
        text = chunk.text[where.start - chunk.start : where.end - chunk.start]
        source, target = (self.facts.entities[end].name for end in (relation.source, relation.target))
        if chunk.kind == "triples":
            # Two names of a graph may have become one thing: an answer gives the one that this line has.
            left, arrow, right = text.partition(f" -[{relation.predicate}]-> ")
            source, target = (left, right) if arrow else (source, target)
        place = EvidencePlace(
            document=chunk.document, title=chunk.title, chunk=chunk.id, start=where.start, end=where.end
        )
        evidence = Evidence(
            number=len(self.known), document=chunk.document, title=chunk.title, text=text, heading=chunk.heading,
            prior=1.0, label=source, attribute=relation.predicate, value=target,
        )  # fmt: skip
        return Statement(relation, evidence, place, source, target)

    def name_at(self, entity: str, chain: Chain) -> str:
        """An entity's name as the last relation of a chain to it writes it."""
        if not chain or entity not in {chain[-1].source, chain[-1].target}:
            return self.facts.entities[entity].name
        said = self.of(chain[-1])
        return said.target if chain[-1].target == entity else said.source

    def pool(self) -> EvidencePool:
        """All statements asked for so far."""
        said = list(self.known.values())
        return EvidencePool(tuple(one.evidence for one in said), tuple(one.place for one in said))


def entity_table(facts: GraphFacts, entities: Sequence[str]) -> str:
    """The entities as a Markdown table, best connected first."""
    rows = [facts.entities[entity] for entity in dict.fromkeys(entities)]
    rows.sort(key=lambda one: (-one.degree, one.name))
    return _table(
        ("entity", "kind", "relations", "description"),
        [(one.name, one.kind, str(one.degree), one.description) for one in rows],
    )


def relation_table(stated: Stated, relations: Sequence[Relation]) -> str:
    """The relations as a Markdown table; the last column is the number of their source, from 1 on."""
    said = [stated.of(relation) for relation in relations[:MOST_ROWS]]
    return _table(
        ("source", "relation", "target", "evidence"),
        [(one.source, one.relation.predicate, one.target, f"[{one.evidence.number + 1}]") for one in said],
    )


def path_list(stated: Stated, chains: Sequence[Chain], numbered: bool = True) -> list[str]:
    """Each chain as one line, as walked: A -[r]-> B <-[q]- C; with the numbers of its sources behind."""
    return [line for chain in chains[:MOST_ROWS] if (line := _path(stated, chain, numbered))]


def _path(stated: Stated, chain: Chain, numbered: bool) -> str:
    if not chain:
        return ""
    here = _beginning(chain)
    first = stated.of(chain[0])
    line = first.source if chain[0].source == here else first.target
    for relation in chain:
        said = stated.of(relation)
        along = relation.source == here
        line += f" -[{relation.predicate}]-> {said.target}" if along else f" <-[{relation.predicate}]- {said.source}"
        here = relation.target if along else relation.source
    numbers = "".join(f"[{stated.of(relation).evidence.number + 1}]" for relation in chain) if numbered else ""
    return f"{line} {numbers}".strip()


def _beginning(chain: Chain) -> str:
    """The end of the first relation that the second one does not go on from."""
    if len(chain) > 1 and chain[0].source in {chain[1].source, chain[1].target} and chain[0].target not in {
        chain[1].source, chain[1].target,
    }:  # fmt: skip
        return chain[0].target
    return chain[0].source


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows[:MOST_ROWS]]
    cells = [[" ".join(cell.replace("|", "\\|").split()) for cell in row] for row in lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def relations_in(chains: Sequence[Chain]) -> list[Relation]:
    """The relations of chains, each once, in order."""
    found: Mapping[str, Relation] = {relation.id: relation for chain in chains for relation in chain}
    return list(found.values())
