"""The graph of a generation: entities, relations, claims, communities, edits by hand, aggregation over a traversal.

Edits name things as the texts do, never by an id that another run may give: so they hold for the generations to come.
They travel with the generation, are applied in their order, and each can be undone. Aggregation counts and sorts in
SQL; what is compared travels in as columns, and nothing of a question becomes SQL text.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from storage.database import Database, Parameter, selection
from storage.errors import UsageError
from storage.graph_records import Alias, Claim, Community, Entity, Finding, Occurrence, Relation, Report, TextSpan
from storage.records import Record

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


@dataclass(frozen=True)
class GraphRows:
    """Rows of the graph. `strengths` holds each relation's sum of weights, by id; without one its weight counts."""

    entities: Sequence[Entity] = ()
    aliases: Sequence[Alias] = ()
    entity_occurrences: Sequence[Occurrence] = ()
    relations: Sequence[Relation] = ()
    relation_occurrences: Sequence[Occurrence] = ()
    claims: Sequence[Claim] = ()
    strengths: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Outdated:
    """The ids of what new rows stand in for; None where they are the whole graph."""

    entities: Collection[str]
    relations: Collection[str]
    claims: Collection[str]


class GraphStore:
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

    def relations_at(self, entities: Collection[str]) -> list[Relation]:
        """The relations that start or end at one of these entities, by id."""
        at_source, first = selection("source", entities)
        at_target, second = selection("target", entities)
        sql = f"SELECT {_RELATION_COLUMNS} FROM relations WHERE {at_source} OR {at_target} ORDER BY id"
        return self._db.records(Relation, sql, first + second)

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
        arrays = self._db.arrays(
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
            entity_index=arrays["entity_index"].astype(np.int32, copy=False),
            chunk_index=arrays["chunk_index"].astype(np.int32, copy=False),
            counts=arrays["counts"].astype(np.int32, copy=False),
        )

    def replace_graph(self, rows: GraphRows, outdated: Outdated | None = None) -> None:
        """The rows in place of what is outdated, in one transaction; communities and reports stay as they are."""
        entities, relations, claims = (
            (None, None, None) if outdated is None else (outdated.entities, outdated.relations, outdated.claims)
        )
        strengths = [rows.strengths.get(relation.id, relation.weight) for relation in rows.relations]
        with self._db.transaction():
            for table, column, ids, records in (
                ("entities", "id", entities, rows.entities),
                ("aliases", "entity", entities, rows.aliases),
                ("entity_occurrences", "item", entities, rows.entity_occurrences),
                ("edges", "id", relations, rows.relations),
                ("relation_occurrences", "item", relations, rows.relation_occurrences),
                ("claims", "id", claims, rows.claims),
            ):
                self._db.delete(table, column, ids)
                if records:
                    fields = tuple(name for name in type(records[0]).model_fields if name != "weight")
                    more = {"strength": strengths} if table == "edges" else None
                    self._db.insert_records(table, records, fields, more)

    def count_degrees(self, entities: Collection[str]) -> None:
        """Degrees of these entities as their relations are now."""
        if entities:
            self._db.execute(
                """
                UPDATE entities SET degree = counted.degree FROM (
                    SELECT one.id, count(edges.id)::INTEGER AS degree
                    FROM (SELECT unnest(?::VARCHAR[]) AS id) AS one
                    LEFT JOIN edges ON edges.source = one.id OR edges.target = one.id GROUP BY one.id
                ) AS counted WHERE entities.id = counted.id AND entities.degree <> counted.degree
                """,
                [entities],
            )


# --- communities and reports -----------------------------------------------------------------------------------------

_FINDING = "community, ordinal, summary, explanation, document, start_at, end_at"


_REPORT = "community, level, title, summary, rating, rating_reason, inputs, stale"


class _StoredFinding(Record):
    """A finding at one of its places; one with several places has a row for each."""

    community: str
    ordinal: int
    summary: str
    explanation: str
    document: str
    start: int
    end: int


class ReportSizes(Record):
    """How many reports the broadest level has, and on how many documents all reports rest."""

    reports: int
    documents: int


_SIZES = """
    SELECT (SELECT count(*) FROM reports WHERE level = (SELECT min(level) FROM reports)) AS reports,
           (SELECT count(DISTINCT document) FROM findings) AS documents
"""


class CommunityStore:
    """Communities and their reports."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def communities(self, level: int | None = None) -> list[Community]:
        """By level and id."""
        return self._communities("level = coalesce(?, level)", [level])

    def around(self, entities: Collection[str]) -> list[Community]:
        """The communities of every level that one of these entities is in, by level and id."""
        return self._communities("list_has_any(members, ?::VARCHAR[])", [list(entities)])

    def levels(self) -> int:
        """How many levels there are."""
        return self._db.number("SELECT coalesce(max(level) + 1, 0) FROM communities")

    def report_sizes(self) -> ReportSizes:
        """How much there is to read in reports."""
        return self._db.records(ReportSizes, _SIZES, [])[0]

    def reports(self, level: int | None = None) -> list[Report]:
        """By level and community; an unknown level has none."""
        return self._reports("level = coalesce(?, level)", [level])

    def _communities(self, where: str, parameters: Sequence[Parameter]) -> list[Community]:
        sql = f"SELECT id, level, parent, members FROM communities WHERE {where} ORDER BY level, id"
        return self._db.records(Community, sql, parameters)

    def _reports(self, where: str, parameters: Sequence[Parameter]) -> list[Report]:
        stored = self._db.mappings(f"SELECT {_REPORT} FROM reports WHERE {where} ORDER BY level, community", parameters)
        findings: dict[str, dict[int, list[_StoredFinding]]] = defaultdict(lambda: defaultdict(list))
        of_these, ids = selection("community", [str(row["community"]) for row in stored])
        # The places of a finding stand in the order in which they were written.
        sql = f"SELECT {_FINDING} FROM findings WHERE {of_these} ORDER BY community, ordinal, rowid"
        for row in self._db.records(_StoredFinding, sql, ids):
            findings[row.community][row.ordinal].append(row)
        return [
            Report.model_validate(
                {**row, "findings": [_finding(rows) for rows in findings[str(row["community"])].values()]}
            )
            for row in stored
        ]

    def replace_communities(self, communities: Sequence[Community], reports: Sequence[Report]) -> None:
        """These in place of those that there are, with their reports, in one transaction."""
        findings = [
            _StoredFinding(
                community=report.community, ordinal=ordinal, summary=finding.summary, explanation=finding.explanation,
                document=place.document, start=place.start, end=place.end
            )
            for report in reports
            for ordinal, finding in enumerate(report.findings)
            for place in finding.places
        ]  # fmt: skip
        with self._db.transaction():
            for table in ("communities", "reports", "findings"):
                self._db.delete(table, "id" if table == "communities" else "community", None)
            self._db.insert_records("communities", communities, ("id", "level", "parent", "members"))
            self._db.insert_records("reports", reports, _REPORT.split(", "))
            self._db.insert_records("findings", findings, tuple(_StoredFinding.model_fields))


def _finding(rows: Sequence[_StoredFinding]) -> Finding:
    first = rows[0]
    more = tuple(TextSpan(document=row.document, start=row.start, end=row.end) for row in rows[1:])
    return Finding(**first.model_dump(exclude={"community", "ordinal"}), more=more)


# --- edits by hand ---------------------------------------------------------------------------------------------------

Action = Literal["merge", "split", "change"]


class Subject(Record):
    """A thing by one of its names; where several things have that name, by the documents that mean this one."""

    name: str
    documents: tuple[str, ...] = ()


class Edit(Record):
    """One change. `id` and `at` (a UTC time in ISO form) are given when it is kept.

    merge: `other` is the same thing as `subject`. split: what `names`, or `documents`, say of the subject is another
    thing. change: the subject gets this kind, name or description (None: as it was).
    """

    id: int = 0
    at: str = ""
    action: Action
    subject: Subject
    other: Subject | None = None
    names: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    kind: str | None = None
    name: str | None = None
    description: str | None = None


class EditStore:
    """The edits that hold, in their order."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def edits(self) -> list[Edit]:
        return [Edit.model_validate_json(edit) for edit in self._db.strings("SELECT edit FROM edits ORDER BY id")]

    def add(self, edit: Edit, at: str) -> Edit:
        """Keeps an edit as the last one; returns it with its number, one above the highest that holds."""
        number = self._db.number("SELECT coalesce(max(id), 0) + 1 FROM edits")
        stored = edit.model_copy(update={"id": number, "at": at})
        self._db.insert_rows("edits", ("id", "edit"), [(number, stored.model_dump_json())])
        return stored

    def remove(self, number: int) -> Edit:
        """Forgets an edit. Raises UsageError, which lists those there are."""
        edits = {edit.id: edit for edit in self.edits()}
        if number not in edits:
            known = ", ".join(map(str, edits)) or "none"
            raise UsageError(f"There is no edit {number}.", f"Edits: {known} (see `trellis graph edits`).")
        self._db.execute("DELETE FROM edits WHERE id = ?", [number])
        return edits[number]


# --- aggregation over a traversal ------------------------------------------------------------------------------------

Direction = Literal["max", "min"]

# A value is a date where it reads as one, else the first figure in it ("1,308,463 km" is 1308463). Dates count in
# years, so that a bare year and a full date compare.
_MEASURED = """
    WITH given AS (
        SELECT unnest(?::VARCHAR[]) AS item, unnest(?::VARCHAR[]) AS value
    ), dated AS (
        SELECT item, value,
            try_strptime(
                replace(trim(value), '_', ' '),
                ['%Y-%m-%d', '%Y/%m/%d', '%d %B %Y', '%d %b %Y', '%B %d, %Y', '%B %d %Y', '%Y-%m']
            ) AS moment,
            try_cast(replace(regexp_extract(value, '-?[0-9][0-9,]*(?:[.][0-9]+)?'), ',', '') AS DOUBLE) AS figure
        FROM given
    )
    SELECT item, value, coalesce(year(moment) + (dayofyear(moment) - 1) / 366.0, figure) AS number FROM dated
"""


class Measured(Record):
    """A thing with the number that it was ranked by: that of its `value`, or of how many values it has."""

    item: str
    value: str
    number: float


class TraversalReader:
    """Aggregation over what a traversal found (PolyG: operators over the result)."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def ranked(self, pairs: Sequence[tuple[str, str]], direction: Direction) -> list[Measured]:
        """The items of (item, value) pairs by the number or date of their values, best first; equals by item.

        Of an item with several values the best counts; what no number can be read from is left out.
        """
        order, best = _order(direction)
        sql = f"""
            SELECT item, {best}(value, number) AS value, {direction}(number)::DOUBLE AS number
            FROM ({_MEASURED}) WHERE number IS NOT NULL GROUP BY item ORDER BY number {order}, item
        """
        return self._db.records(Measured, sql, _columns(pairs))

    def counted(self, pairs: Sequence[tuple[str, str]], direction: Direction) -> list[Measured]:
        """The items of (item, value) pairs by how many different values they have; equals by item."""
        sql = f"""
            SELECT item, count(DISTINCT value)::VARCHAR AS value, count(DISTINCT value)::DOUBLE AS number
            FROM (SELECT unnest(?::VARCHAR[]) AS item, unnest(?::VARCHAR[]) AS value)
            GROUP BY item ORDER BY number {_order(direction)[0]}, item
        """
        return self._db.records(Measured, sql, _columns(pairs))


def _order(direction: Direction) -> tuple[str, str]:
    return ("DESC", "arg_max") if direction == "max" else ("ASC", "arg_min")


def _columns(pairs: Sequence[tuple[str, str]]) -> list[list[str]]:
    return [[item for item, _ in pairs], [value for _, value in pairs]]
