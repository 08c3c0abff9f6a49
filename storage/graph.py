"""The graph of a generation: entities, relations, claims, communities, edits by hand, aggregation over a traversal.

Edits name things as the texts do, never by an id that another run may give: so they hold for the generations to come.
They travel with the generation, are applied in their order, and each can be undone. Aggregation counts and sorts in
SQL; what is compared travels in as columns, and nothing of a question becomes SQL text.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from storage.columns import Columns
from storage.database import CHUNKS_IN_ORDER, Selection, SparseCounts, Store, names_of, selection, sparse_counts
from storage.errors import NotFound
from storage.graph_records import (
    Alias,
    Claim,
    Community,
    Entity,
    Finding,
    Occurrence,
    Relation,
    Report,
    TextSpan,
    WeightedEdge,
)
from storage.records import Record

OccurrenceKind = Literal["entity", "relation"]


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


class GraphStore(Store):
    """Entities, aliases, relations, their occurrences, and claims."""

    def entities(self, ids: Collection[str] | None = None) -> Columns[Entity]:
        """By id; ids that are not there are left out."""
        return Columns(Entity, self._db.columns(names_of(Entity), "entities", "id", selection("id", ids)))

    def entity_ids(self) -> list[str]:
        """Of all entities, sorted."""
        return self._db.strings("SELECT id FROM entities ORDER BY id")

    def aliases(self, entities: Collection[str] | None = None) -> list[Alias]:
        """By entity and name."""
        return self._db.select(Alias, "aliases", "entity, name, reason", selection("entity", entities))

    def relations(self, ids: Collection[str] | None = None) -> Columns[Relation]:
        """By id; ids that are not there are left out."""
        return self._relations(selection("id", ids))

    def relations_at(self, entities: Collection[str] | None) -> Columns[Relation]:
        """The relations that start or end at one of these entities (None: all), by id."""
        return self._relations(selection("source, target", entities))

    def _relations(self, where: Selection) -> Columns[Relation]:
        # Most have no keys, and DuckDB takes its time to make an empty list.
        names = ["CASE WHEN len(keys) > 0 THEN keys END" if name == "keys" else name for name in names_of(Relation)]
        columns = self._db.columns(names, "relations", "id", where)
        keys = [() if own is None else tuple(own.tolist()) for own in columns.pop(names[-1])]
        return Columns(Relation, columns | {"keys": keys})

    def edges(self) -> list[WeightedEdge]:
        """Ends and weight of all relations, in the order of their ids."""
        return list(Columns(WeightedEdge, self._db.columns(WeightedEdge._fields, "relations", "id")))

    def claims(self, entities: Collection[str] | None = None) -> list[Claim]:
        """By id; those whose subject or object is one of the entities (None: all)."""
        return self._db.select(Claim, "claims", "id", selection("subject, object", entities))

    def occurrences(self, kind: OccurrenceKind, items: Collection[str] | None = None) -> Columns[Occurrence]:
        """By item, chunk and start."""
        order = "item, chunk, start_at, end_at"
        where = selection("item", items)
        return Columns(Occurrence, self._db.columns(Occurrence._fields, f"{kind}_occurrences", order, where))

    def entity_chunk_pairs(self) -> SparseCounts:
        """How often each entity (by id) stands in each chunk (by document and ordinal)."""
        places = "SELECT item, chunk, count(*) FROM entity_occurrences GROUP BY ALL"
        return sparse_counts(self._db, "SELECT id FROM entities ORDER BY id", CHUNKS_IN_ORDER, places)

    def replace_graph(self, rows: GraphRows, entities: Collection[str] | None = None) -> None:
        """The rows in place of these entities and all that touches them (None: of the whole graph), in one transaction;
        communities and reports stay as they are."""
        relations = None if entities is None else self._ids("edges", "source, target", entities)
        claims = None if entities is None else self._ids("claims", "subject, object", entities)
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
                    more = {"strength": strengths} if table == "edges" else None
                    names = [name for name in names_of(type(records[0])) if name != "weight"]
                    self._db.insert_records(table, records, names, more)

    def _ids(self, table: str, ends: str, entities: Collection[str]) -> list[str]:
        condition, parameters = selection(ends, entities)
        return self._db.strings(f"SELECT id FROM {table} WHERE {condition}", parameters)

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
    """What there is to read: the reports of the broadest level, the documents, and how many of these all reports rest
    on."""

    reports: int
    documents: int
    reported: int


_SIZES = """
    SELECT (SELECT count(*) FROM reports WHERE level = (SELECT min(level) FROM reports)) AS reports,
           (SELECT count(*) FROM documents) AS documents, (SELECT count(DISTINCT document) FROM findings) AS reported
"""


_OF_LEVEL = """
    (level = ? OR level < ? AND id NOT IN (SELECT parent FROM communities WHERE parent IS NOT NULL))
    AND ? <= (SELECT max(level) FROM communities)
"""
_REPORTED = """
    id IN (WITH RECURSIVE reported(id) AS (
        SELECT community FROM reports UNION
        SELECT parent FROM communities JOIN reported USING (id) WHERE parent IS NOT NULL) SELECT id FROM reported)
"""


class CommunityStore(Store):
    """Communities and their reports."""

    def communities(self, level: int | None = None) -> list[Community]:
        """By level and id. Those of a level are a partition of all entities: what is not split above belongs to it."""
        return self._communities(("true", []) if level is None else (_OF_LEVEL, [level] * 3))

    def with_reports(self) -> list[Community]:
        """Those that have a report, and those above them."""
        return self._communities((_REPORTED, []))

    def around(self, entities: Collection[str]) -> list[Community]:
        """The communities of every level that one of these entities is in, by level and id."""
        return self._communities(("list_has_any(members, ?::VARCHAR[])", [list(entities)]))

    def ratings(self) -> dict[str, float]:
        """How much each report counts, 0-10, by its community."""
        rows = self._db.rows("SELECT community, rating FROM reports ORDER BY level, community")
        return {str(name): float(cast("float", rating)) for name, rating in rows}

    def report_sizes(self) -> ReportSizes:
        """How much there is to read in reports."""
        return self._db.records(ReportSizes, _SIZES)[0]

    def unfit_reports(self, drift: float) -> list[str]:
        """The communities whose reports a model could not write, or of which more than this share has changed since."""
        return self._db.strings("SELECT community FROM reports WHERE inputs = '' OR stale > ?", [drift])

    def reports(self, level: int | None = None, of: Collection[str] | None = None) -> list[Report]:
        """Those of a level and of these communities (None: of all), by level and community; an unknown level has
        none."""
        chosen, communities = selection("community", of)
        sql = f"SELECT {_REPORT} FROM reports WHERE level = coalesce(?, level) AND {chosen} ORDER BY level, community"
        stored = self._db.mappings(sql, [level, *communities])
        findings: dict[str, dict[int, list[_StoredFinding]]] = defaultdict(lambda: defaultdict(list))
        of_these = selection("community", [str(row["community"]) for row in stored])
        # The places of a finding stand in the order in which they were written.
        for row in self._db.select(_StoredFinding, "findings", "community, ordinal, rowid", of_these):
            findings[row.community][row.ordinal].append(row)
        return [
            Report.model_validate(
                {**row, "findings": [_finding(rows) for rows in findings[str(row["community"])].values()]}
            )
            for row in stored
        ]

    def _communities(self, where: Selection) -> list[Community]:
        # As one text: DuckDB makes a Python list of strings ten times slower.
        columns = self._db.columns(
            ("id", "level", "parent", "array_to_string(members, ' ')"), "communities", "level, id", where
        )
        ids, levels, parents, members = columns.values()
        return list(map(Community, ids, levels, parents, (tuple(own.split(" ")) for own in members)))

    def replace_communities(
        self, communities: Sequence[Community], reports: Sequence[Report], earlier: Collection[str] | None = None
    ) -> None:
        """These with their reports in place of the communities with the ids of `earlier` (None: of all), in one
        transaction."""
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
                self._db.delete(table, "id" if table == "communities" else "community", earlier)
            self._db.insert_records("communities", communities, ("id", "level", "parent", "members"))
            self._db.insert_records("reports", reports, _REPORT.split(", "))
            self._db.insert_records("findings", findings, tuple(_StoredFinding.model_fields))


def _finding(rows: Sequence[_StoredFinding]) -> Finding:
    first = rows[0]
    more = tuple(TextSpan(document=row.document, start=row.start, end=row.end) for row in rows[1:])
    return Finding(
        summary=first.summary, explanation=first.explanation, document=first.document, start=first.start,
        end=first.end, more=more,
    )  # fmt: skip


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


class EditStore(Store):
    """The edits that hold, in their order."""

    def edits(self) -> list[Edit]:
        return [Edit.model_validate_json(edit) for edit in self._db.strings("SELECT edit FROM edits ORDER BY id")]

    def add(self, edit: Edit, at: str) -> Edit:
        """Keeps an edit as the last one; returns it with its number, one above the highest that holds."""
        number = self._db.number("SELECT coalesce(max(id), 0) + 1 FROM edits")
        stored = edit.model_copy(update={"id": number, "at": at})
        self._db.insert_rows("edits", ("id", "edit"), [(number, stored.model_dump_json())])
        return stored

    def remove(self, number: int) -> Edit:
        """Forgets an edit. Raises NotFound, which lists those there are."""
        edits = {edit.id: edit for edit in self.edits()}
        if number not in edits:
            known = ", ".join(map(str, edits)) or "none"
            raise NotFound(f"There is no edit {number}.", f"Edits: {known} (see `trellis graph edits`).")
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


class TraversalReader(Store):
    """Aggregation over what a traversal found (PolyG: operators over the result)."""

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
