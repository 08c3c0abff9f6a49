"""Which entities does a generation know, how are they related, what is claimed of them, and where in the text?"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from storage.database import Database, selection
from storage.records import Alias, Claim, Entity, Occurrence, Relation

OccurrenceKind = Literal["entity", "relation"]

_TABLE_OF: dict[OccurrenceKind, str] = {"entity": "entity_occurrences", "relation": "relation_occurrences"}
_ENTITY_COLUMNS = "id, name, kind, description, mentions, degree"
_CLAIM_COLUMNS = "id, subject, object, kind, status, since, until, description, chunk, start_at, end_at"
_RELATION_COLUMNS = "id, source, target, predicate, description, weight, count, keys"


@dataclass(frozen=True)
class EntityChunkPairs:
    """The entity-chunk matrix in coordinate form: entity `entities[entity_index[i]]` stands `counts[i]` times in chunk
    `chunks[chunk_index[i]]`. Both lists hold all of the generation: entities by id, chunks by document and ordinal."""

    entities: list[str]
    chunks: list[str]
    entity_index: NDArray[np.int32]
    chunk_index: NDArray[np.int32]
    counts: NDArray[np.int32]


class GraphReader:
    """Entities, aliases, relations, their occurrences, and claims."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def entities(self, ids: Collection[str] | None = None) -> list[Entity]:
        """By id; ids that are not there are left out."""
        where, parameters = selection("id", ids)
        return self._db.records(Entity, f"SELECT {_ENTITY_COLUMNS} FROM entities WHERE {where} ORDER BY id", parameters)

    def aliases(self, entities: Collection[str] | None = None) -> list[Alias]:
        """By entity and name."""
        where, parameters = selection("entity", entities)
        sql = f"SELECT entity, name, reason FROM aliases WHERE {where} ORDER BY entity, name, reason"
        return self._db.records(Alias, sql, parameters)

    def relations(self, ids: Collection[str] | None = None) -> list[Relation]:
        """By id; ids that are not there are left out."""
        where, parameters = selection("id", ids)
        sql = f"SELECT {_RELATION_COLUMNS} FROM relations WHERE {where} ORDER BY id"
        return self._db.records(Relation, sql, parameters)

    def neighbours(self, entity: str) -> list[Relation]:
        """The relations that start or end at this entity, by id."""
        sql = f"SELECT {_RELATION_COLUMNS} FROM relations WHERE source = ? OR target = ? ORDER BY id"
        return self._db.records(Relation, sql, [entity, entity])

    def claims(self, entities: Collection[str] | None = None) -> list[Claim]:
        """By id; those whose subject or object is one of the entities (None: all)."""
        by_subject, first = selection("subject", entities)
        by_object, second = selection("object", entities)
        sql = f"SELECT {_CLAIM_COLUMNS} FROM claims WHERE {by_subject} OR {by_object} ORDER BY id"
        return self._db.records(Claim, sql, first + second)

    def occurrences(self, kind: OccurrenceKind, items: Collection[str] | None = None) -> list[Occurrence]:
        """By item, chunk and start."""
        where, parameters = selection("item", items)
        columns = "item, chunk, start_at, end_at"
        sql = f"SELECT {columns} FROM {_TABLE_OF[kind]} WHERE {where} ORDER BY {columns}"
        return self._db.records(Occurrence, sql, parameters)

    def entity_chunk_pairs(self) -> EntityChunkPairs:
        found = self._db.arrays(
            """
            WITH nodes AS (SELECT id, row_number() OVER (ORDER BY id) - 1 AS place FROM entities),
                 places AS (SELECT id, row_number() OVER (ORDER BY document, ordinal) - 1 AS place FROM chunks)
            SELECT nodes.place::INTEGER AS entity_index, places.place::INTEGER AS chunk_index,
                   count(*)::INTEGER AS counts
            FROM entity_occurrences AS o JOIN nodes ON nodes.id = o.item JOIN places ON places.id = o.chunk
            GROUP BY ALL ORDER BY entity_index, chunk_index
            """
        )
        return EntityChunkPairs(
            entities=self._db.strings("SELECT id FROM entities ORDER BY id"),
            chunks=self._db.strings("SELECT id FROM chunks ORDER BY document, ordinal"),
            entity_index=found["entity_index"].astype(np.int32, copy=False),
            chunk_index=found["chunk_index"].astype(np.int32, copy=False),
            counts=found["counts"].astype(np.int32, copy=False),
        )


class GraphWriter(GraphReader):
    """Adds writing: the graph is a function of the surviving mentions, so it is replaced whole."""

    def replace_graph(
        self,
        entities: Sequence[Entity],
        aliases: Sequence[Alias],
        entity_occurrences: Sequence[Occurrence],
        relations: Sequence[Relation],
        relation_occurrences: Sequence[Occurrence],
        claims: Sequence[Claim] = (),
    ) -> None:
        """Replaces all of the graph but communities and reports, in one transaction."""
        with self._db.transaction():
            for table, records, kind in (
                ("entities", entities, Entity),
                ("aliases", aliases, Alias),
                ("relations", relations, Relation),
                ("claims", claims, Claim),
                ("entity_occurrences", entity_occurrences, Occurrence),
                ("relation_occurrences", relation_occurrences, Occurrence),
            ):
                self._db.delete(table, "", None)
                self._db.insert_records(table, records, tuple(kind.model_fields))
