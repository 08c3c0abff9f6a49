"""Dual-level retrieval: what a question names (low) and what it asks about (high), in the graph.

Low: entities by name, their relations, and the entities one hop on. High: relations by their keys
and predicates (by vectors too, where a model made the keys), and the entities at their ends. Both
levels give tables of entities and relations for the context, each within its tokens. A row of the
relation table has the number of the source that states it, so that an answer can cite it. Source:
LightRAG (arXiv 2410.05779), sections 3.2 and 3.3.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray

from prompts.engine.embedders import Embedder
from prompts.engine.messages import first_fitting
from prompts.structures import markdown_table
from prompts.text.thesaurus import concept_terms
from prompts.text.tokens import count_tokens
from prompts.text.words import fold_name
from storage.answer_records import Passage
from storage.graph_records import Entity, Relation
from storage.records import Chunk, by_key
from tasks.answer import Note
from tasks.citations import Source, number_of, source_of
from tasks.retrieve.facts import GraphFacts
from tasks.retrieve.lexical import Scores, scaled
from tasks.retrieve.link import Link
from tasks.retrieve.search import SearchIndex
from tasks.retrying import BRIEF
from tasks.step import step

Vector = NDArray[np.float32]
Level = Literal["low", "high", "both"]
Item = TypeVar("Item", Entity, Relation)
# Returns the chunks that state a relation (id) and that the question may look into.
Stating = Callable[[str], Sequence[Chunk]]
# Whether a further source may join the sources so far.
Admits = Callable[[Sequence[Source], Source], bool]

MOST_RELATIONS = 40  # of each entity: those nearest to the question
FLOOR = 0.1  # the weight of a relation or passage that shares no word with the question
MENTIONED = 0.3  # the weight of a passage that only mentions an entity: one about it has 1
ONE_HOP = 0.6  # the weight of an entity at the other end of a relation
THEMED = 60  # relations that the high level takes
# High keys alone are in the predicates of thousands of relations: the nearness of their passages
# decides among them.
SHARPNESS = 4
MEANT = (
    0.5  # the weight of a relation that only means what the keys say: one with their words has 1
)
LEAST_ALIKE = 0.35  # the cosine from which keys and a relation have something in common
HIGH_SHARE = 0.3  # the weight of the high level: the low one has 1, since names are more certain
# The most tokens of each table, as shares of an answer's evidence.
ENTITY_SHARE, RELATION_SHARE = 0.1, 0.15


@dataclass(frozen=True)
class LevelScores:
    """The scores of all chunks, entities and relations at one level, or both; 0: not found."""

    chunks: Scores
    entities: Scores
    relations: Scores

    def with_high(self, high: "LevelScores") -> "LevelScores":
        """Join both levels, of which this is the low one."""
        return LevelScores(
            scaled(self.chunks) + HIGH_SHARE * scaled(high.chunks),
            scaled(self.entities) + HIGH_SHARE * scaled(high.entities),
            scaled(self.relations) + HIGH_SHARE * scaled(high.relations),
        )


class DualLevelIndex:
    """The graph of a generation for search at both levels; immutable, so safe to share between
    threads.
    """

    def __init__(
        self, index: SearchIndex, facts: GraphFacts, vectors: Mapping[str, Vector]
    ) -> None:
        """`vectors` maps relations (ids) to unit vectors of their `keyed_text`."""
        self._index, self.facts = index, facts
        self.relations = [
            relation for relation in facts.relations.values() if facts.places(relation.id)
        ]
        place_of = index.by_id.place
        self.entities = index.entities
        ends = [
            (place_of[relation.source], place_of[relation.target]) for relation in self.relations
        ]
        self._ends = np.array(ends, np.int64).reshape(-1, 2)
        heaviest = sorted(
            range(len(ends)), key=lambda row: (-self.relations[row].weight, self.relations[row].id)
        )
        self._touching = by_key((end, row) for row in heaviest for end in set(ends[row]))
        stated = [
            [index.position[place.chunk] for place in facts.places(relation.id)]
            for relation in self.relations
        ]
        # The chunk that states each relation first.
        self._stated = np.array([places[0] for places in stated], np.int64)
        self._stating = _incidence([sorted(set(places)) for places in stated], len(index.chunks))
        self._themes = by_key(
            (term, row)
            for row, relation in enumerate(self.relations)
            for term in {
                term
                for text in (relation.predicate, *relation.keys)
                for term in concept_terms(text)
            }
        )
        # Which chunks name an entity, and which of these are about it: their title is its name.
        self._named = (index.entity_counts > 0).astype(np.float64)
        by_title = by_key(
            (fold_name(chunk.title), place) for place, chunk in enumerate(index.chunks)
        )
        keys = [{fold_name(name) for name in names} for names in index.spellings]
        about = [sorted(place for key in own for place in by_title.get(key, ())) for own in keys]
        self._about = self._named.multiply(_incidence(about, len(index.chunks))).tocsr()
        self._spread = 1 + np.log1p(np.diff(self._named.indptr))
        self._keyed = [row for row, relation in enumerate(self.relations) if relation.id in vectors]
        self._vectors = [vectors[self.relations[row].id] for row in self._keyed]

    def near(
        self, question: str, cosines: Mapping[str, float], documents: Collection[str] | None = None
    ) -> Scores:
        """Score how near each chunk is by words and meaning, 0 to 1; -1 outside the documents."""
        lexical, meaning = self._index.lexicon.scores(question), self._index.chunk_scores(cosines)
        near: Scores = (scaled(lexical) + scaled(meaning)) / 2
        return np.where(self._index.allowed(documents), near, -1.0)

    def link(self, question: str, keys: Iterable[str]) -> list[Link]:
        links = self._index.link(question)
        linked = {fold_name(link.text) for link in links}
        more = [
            link
            for key in keys
            if fold_name(key) not in linked
            for link in self._index.names.candidates(key)
        ]
        return list({link.entity: link for link in reversed([*links, *more])}.values())[::-1]

    def low(self, links: Sequence[Link], keys: Iterable[str], near: Scores) -> LevelScores:
        """Score the linked entities, their relations, the entities one hop on, and all passages of
        these.

        Relations that are near to the question, or share its high `keys`, score higher.
        """
        entities, relations = np.zeros(len(self.entities)), np.zeros(len(self.relations))
        wanted = self._wanted(keys)
        for link in links:
            weight = link.score / self._spread[link.entity]
            entities[link.entity] += weight
            touching = np.array(self._touching.get(link.entity, []), np.int64)
            if not len(touching):
                continue
            nearest = self._stating[touching].multiply(near + 1).max(axis=1).toarray().ravel() - 1
            fits = FLOOR + wanted[touching] + nearest
            order = np.argsort(-fits, kind="stable")
            best = order[nearest[order] >= 0][:MOST_RELATIONS]
            rows = touching[best]
            relations[rows] += weight * fits[best]
            others = np.where(
                self._ends[rows, 0] == link.entity, self._ends[rows, 1], self._ends[rows, 0]
            )
            np.add.at(entities, others, ONE_HOP * weight * fits[best])
        return self._with_chunks(entities, relations, near)

    def alike(self, vectors: NDArray[np.float32]) -> Scores:
        """Score relations by their cosine to the nearest of these unit vectors of high keys.

        The nearest relation scores 1; those below LEAST_ALIKE or without a vector score 0.
        """
        scores = np.zeros(len(self.relations))
        if len(vectors) and self._vectors:
            scores[self._keyed] = np.maximum(
                (np.stack(self._vectors) @ vectors.T).max(axis=1) - LEAST_ALIKE, 0.0
            )
        return scaled(scores)

    @property
    def has_vectors(self) -> bool:
        return bool(self._keyed)

    def high(self, keys: Iterable[str], near: Scores, alike: Scores | None = None) -> LevelScores:
        """Score the relations that share the keys, the entities at their ends, and all passages of
        these.

        A relation may share terms with the keys, or their meaning (`alike`); nearness to the
        question decides between equals.
        """
        scores = self._wanted(keys) * np.maximum(near[self._stated], 0.0) ** SHARPNESS
        if alike is not None:
            # A theme may share no word with the passage that states it, so nearness does not count.
            scores = scores + MEANT * np.where(near[self._stated] >= 0, alike, 0.0)
        best = np.argsort(-scores, kind="stable")[:THEMED]
        relations = np.zeros(len(scores))
        relations[best] = scores[best]
        entities = np.zeros(len(self.entities))
        np.add.at(entities, self._ends, ONE_HOP * relations[:, None])
        return self._with_chunks(entities, relations, near)

    def best(self, scores: LevelScores, k: int) -> list[Passage]:
        return self._index.rank(scores.chunks, k)

    def _wanted(self, keys: Iterable[str]) -> Scores:
        """Return for each relation the share of the keys' terms, by rarity, that its own hold."""
        terms = dict.fromkeys(
            term for key in keys for term in concept_terms(key) if term in self._themes
        )
        rarity = {
            term: float(np.log1p(len(self.relations) / (1 + len(self._themes[term]))))
            for term in terms
        }
        shares = np.zeros(len(self.relations))
        for term in terms:
            shares[self._themes[term]] += rarity[term] / sum(rarity.values())
        return shares

    def _with_chunks(self, entities: Scores, relations: Scores, near: Scores) -> LevelScores:
        """Add the scores of chunks: full for one about an entity, by nearness for a mention."""
        shared = entities * MENTIONED / self._spread
        about = self._about.T @ (entities - shared)
        chunks = (
            about
            + (1 + near) * (self._named.T @ shared)
            + MENTIONED * (self._stating.T @ relations)
        )
        return LevelScores(np.where(near >= 0, chunks, 0.0), entities, relations)


def _incidence(places: Sequence[Sequence[int]], width: int) -> "scipy.sparse.csr_matrix":
    columns = [place for row in places for place in row]
    starts = np.cumsum([0, *map(len, places)])
    return scipy.sparse.csr_matrix(
        (np.ones(len(columns)), columns, starts), shape=(len(places), width)
    )


def keyed_text(relation: Relation) -> str:
    """Return the text by whose vector a relation is found: its keys and its description."""
    return f"{', '.join(relation.keys)}: {relation.description or relation.predicate}"


@step("search-graph", BRIEF, asks_model=True)
async def search_graph(
    levels: DualLevelIndex,
    level: Level,
    links: Sequence[Link],
    keys: Sequence[str],
    near: Scores,
    embedder: Embedder | None = None,
) -> LevelScores:
    """Search the low level from the links, the high one from the keys, or both.

    The high level compares the words of the keys, and with an embedder their meaning too if
    relations have vectors.
    """
    if level == "low":
        return levels.low(links, keys, near)
    alike = None
    if embedder and levels.has_vectors:
        readable = [key for key in keys if embedder.reads(key)]
        alike = levels.alike(embedder.embed(readable, query=True)) if readable else None
    high = levels.high(keys, near, alike)
    return levels.low(links, keys, near).with_high(high) if level == "both" else high


# --- tables for the context -----------------------------------------------------------------------


def best_rows(
    scores: LevelScores, levels: DualLevelIndex, tokens: int
) -> tuple[list[Entity], list[Relation]]:
    """Return the best entities and relations, at least one of each, that fit into their shares of
    an answer's tokens.
    """
    return (
        _best(scores.entities, levels.entities, _entity_cells, round(ENTITY_SHARE * tokens)),
        _best(
            scores.relations,
            levels.relations,
            lambda relation: _relation_cells(relation, levels.facts),
            round(RELATION_SHARE * tokens),
        ),
    )


def _best(
    scores: Scores, items: Sequence[Item], cells: Callable[[Item], tuple[str, ...]], most: int
) -> list[Item]:
    best = (items[place] for place in np.argsort(-scores, kind="stable") if scores[place] > 0)
    return first_fitting(best, lambda item: count_tokens([" | ".join(cells(item))])[0], most)


def _entity_cells(entity: Entity) -> tuple[str, ...]:
    return entity.name, entity.kind, entity.description


def _relation_cells(relation: Relation, facts: GraphFacts) -> tuple[str, ...]:
    source, target = facts.entities[relation.source].name, facts.entities[relation.target].name
    return source, relation.predicate, target, relation.description


def stating_sources(
    relations: Sequence[Relation],
    facts: GraphFacts,
    stating: Stating,
    sources: Sequence[Source],
    admits: Admits,
) -> tuple[list[Source], Mapping[str, int | None]]:
    """Add a source for each relation that none of the sources states, and number all relations.

    The number of a relation is None if its source is not admitted. A relation that no chunk of
    `stating` states is left out.
    """
    all_sources, numbers = list(sources), dict[str, int | None]()
    for relation in relations:
        chunks = {chunk.id: chunk for chunk in stating(relation.id)}
        place = next((place for place in facts.places(relation.id) if place.chunk in chunks), None)
        if place is None:
            continue
        chunk = chunks[place.chunk]
        number = number_of(all_sources, chunk.document, place.start, place.end)
        if number is None:
            further = source_of(chunk, place.start, place.end)
            if admits(all_sources, further):
                all_sources.append(further)
                number = len(all_sources)
        numbers[relation.id] = number
    return all_sources, numbers


def graph_notes(
    entities: Sequence[Entity],
    relations: Sequence[Relation],
    facts: GraphFacts,
    numbers: Mapping[str, int | None],
) -> list[Note]:
    """Write both tables in Markdown; relations without a number in `numbers` are left out."""
    stated = [
        (*_relation_cells(relation, facts), f"[{number}]" if number else "")
        for relation in relations
        if relation.id in numbers
        for number in [numbers[relation.id]]
    ]
    tables = (
        ("Entities", ("entity", "kind", "description"), list(map(_entity_cells, entities))),
        ("Relations", ("source", "relation", "target", "description", "stated in"), stated),
    )
    return [Note(label, markdown_table(head, rows)) for label, head, rows in tables if rows]
