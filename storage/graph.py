"""The graph of a generation: entities, relations, claims, communities, edits by hand, aggregation.

Edits name things as the texts do, never by an id that another run may give: so they hold for the
generations to come. They travel with the generation, are applied in their order, and each can be
undone. Aggregation over a traversal counts and sorts in SQL; no question becomes SQL text.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from storage.columns import Columns
from storage.database import (
    CHUNKS_IN_ORDER,
    Selection,
    SparseCounts,
    Store,
    names_of,
    selection,
    sparse_counts,
)
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
from storage.records import Record, by_key

OccurrenceKind = Literal["entity", "relation"]


@dataclass(frozen=True)
class GraphRows:
    """Rows of the graph.

    `strengths` holds each relation's sum of weights, by id; without one its weight counts.
    """

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
        columns = self._db.columns(names_of(Entity), "entities", "id", selection("id", ids))
        return Columns(Entity, columns)

    def entity_ids(self) -> list[str]:
        """Of all entities, sorted."""
        return self._db.strings("SELECT id FROM entities ORDER BY id")

    def aliases(self, entities: Collection[str] | None = None) -> list[Alias]:
        """By entity and name."""
        where = selection("entity", entities)
        return self._db.select(Alias, "aliases", "entity, name, reason", where)

    def relations(self, ids: Collection[str] | None = None) -> Columns[Relation]:
        """By id; ids that are not there are left out."""
        return self._relations(selection("id", ids))

    def relations_at(self, entities: Collection[str] | None) -> Columns[Relation]:
        """The relations that start or end at one of these entities (None: all), by id."""
        return self._relations(selection("source, target", entities))

    def _relations(self, where: Selection) -> Columns[Relation]:
        columns = self._db.columns(names_of(Relation), "relations", "id", where)
        columns["keys"] = [tuple(keys.tolist()) for keys in columns["keys"]]
        return Columns(Relation, columns)

    def edges(self) -> list[WeightedEdge]:
        """Ends and weight of all relations, in the order of their ids."""
        columns = self._db.columns(names_of(WeightedEdge), "relations", "id")
        return list(Columns(WeightedEdge, columns))

    def claims(self, entities: Collection[str] | None = None) -> list[Claim]:
        """By id; those whose subject or object is one of the entities (None: all)."""
        return self._db.select(Claim, "claims", "id", selection("subject, object", entities))

    def occurrences(
        self, kind: OccurrenceKind, items: Collection[str] | None = None
    ) -> Columns[Occurrence]:
        """By item, chunk and start."""
        table, order = f"{kind}_occurrences", "item, chunk, start_at, end_at"
        columns = self._db.columns(names_of(Occurrence), table, order, selection("item", items))
        return Columns(Occurrence, columns)

    def entity_chunk_pairs(self) -> SparseCounts:
        """How often each entity (by id) stands in each chunk (by document and ordinal)."""
        entities = "SELECT id FROM entities ORDER BY id"
        places = "SELECT item, chunk, count(*) FROM entity_occurrences GROUP BY ALL"
        return sparse_counts(self._db, entities, CHUNKS_IN_ORDER, places)

    def replace_graph(self, rows: GraphRows, entities: Collection[str] | None = None) -> None:
        """Puts the rows in place of these entities and all that touches them (None: of all).

        One transaction; communities and reports stay as they are.
        """
        relations = None if entities is None else self._ids("edges", "source, target", entities)
        claims = None if entities is None else self._ids("claims", "subject, object", entities)
        strengths = [
            rows.strengths.get(relation.id, relation.weight) for relation in rows.relations
        ]
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
                    fields = [name for name in names_of(type(records[0])) if name != "weight"]
                    self._db.insert_records(table, records, fields, more)

    def _ids(self, table: str, ends: str, entities: Collection[str]) -> list[str]:
        condition, parameters = selection(ends, entities)
        return self._db.strings(f"SELECT id FROM {table} WHERE {condition}", parameters)

    def count_degrees(self, entities: Collection[str]) -> None:
        """Counts the degrees of these entities as their relations are now."""
        if entities:
            self._db.execute(
                """
                UPDATE entities SET degree = counted.degree FROM (
                    SELECT one.id, count(edges.id)::INTEGER AS degree
                    FROM (SELECT unnest(?::VARCHAR[]) AS id) AS one
                    LEFT JOIN edges ON edges.source = one.id OR edges.target = one.id
                    GROUP BY one.id
                ) AS counted WHERE entities.id = counted.id AND entities.degree <> counted.degree
                """,
                [entities],
            )


# --- communities and reports ---

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
    """What there is to read: the reports of the broadest level, and the documents.

    `reported` are how many documents all reports rest on.
    """

    reports: int
    documents: int
    reported: int


_SIZES = """
    SELECT (SELECT count(*) FROM reports WHERE level = (SELECT min(level) FROM reports)) AS reports,
           (SELECT count(*) FROM documents) AS documents,
           (SELECT count(DISTINCT document) FROM findings) AS reported
"""


_OF_LEVEL = """
    (level = ? OR level < ? AND id NOT IN (SELECT parent FROM communities WHERE parent IS NOT NULL))
    AND ? <= (SELECT max(level) FROM communities)
"""
_REPORTED = """
    id IN (WITH RECURSIVE reported(id) AS (
        SELECT community FROM reports UNION
        SELECT parent FROM communities JOIN reported USING (id) WHERE parent IS NOT NULL)
        SELECT id FROM reported)
"""


class CommunityStore(Store):
    """Communities and their reports."""

    def communities(self, level: int | None = None) -> list[Community]:
        """By level and id.

        Those of a level are a partition of all entities: what is not split further belongs to it.
        """
        return self._communities(("true", []) if level is None else (_OF_LEVEL, [level] * 3))

    def with_reports(self) -> list[Community]:
        """Those that have a report, and those above them."""
        return self._communities((_REPORTED, []))

    def around(self, entities: Collection[str]) -> list[Community]:
        """The communities of every level that one of these entities is in, by level and id."""
        where = "list_has_any(members, ?::VARCHAR[])"
        return self._communities((where, [list(entities)]))

    def ratings(self) -> dict[str, float]:
        """How much each report counts, 0-10, by its community."""
        sql = "SELECT community, rating FROM reports ORDER BY level, community"
        rows = self._db.rows(sql)
        return {str(name): float(cast("float", rating)) for name, rating in rows}

    def report_sizes(self) -> ReportSizes:
        """How much there is to read in reports."""
        return self._db.records(ReportSizes, _SIZES)[0]

    def unfit_reports(self, drift: float) -> list[str]:
        """The communities whose reports no model wrote, or that changed by more than this share."""
        sql = "SELECT community FROM reports WHERE inputs = '' OR stale > ?"
        return self._db.strings(sql, [drift])

    def reports(self, level: int | None = None, of: Collection[str] | None = None) -> list[Report]:
        """Those of a level and of these communities (None: of all), by level and community."""
        chosen, communities = selection("community", of)
        where = f"level = coalesce(?, level) AND {chosen}"
        sql = f"SELECT {_REPORT} FROM reports WHERE {where} ORDER BY level, community"
        stored = self._db.mappings(sql, [level, *communities])
        # The places of a finding stand in the order in which they were written.
        order = "community, ordinal, rowid"
        of_these = selection("community", [str(row["community"]) for row in stored])
        places = self._db.select(_StoredFinding, "findings", order, of_these)
        findings = by_key((row.community, row) for row in places)
        return [
            Report.model_validate(
                {**row, "findings": _findings(findings.get(str(row["community"]), []))}
            )
            for row in stored
        ]

    def _communities(self, where: Selection) -> list[Community]:
        # As one text: DuckDB makes a Python list of strings ten times slower.
        fields = ("id", "level", "parent", "array_to_string(members, ' ')")
        columns = self._db.columns(fields, "communities", "level, id", where)
        ids, levels, parents, members = columns.values()
        split = (tuple(own.split(" ")) for own in members)
        return list(map(Community, ids, levels, parents, split))

    def replace_communities(
        self,
        communities: Sequence[Community],
        reports: Sequence[Report],
        earlier: Collection[str] | None = None,
    ) -> None:
        """Puts these and their reports in place of the `earlier` ones (None: of all)."""
        findings = [
            _StoredFinding(
                community=report.community,
                ordinal=ordinal,
                summary=finding.summary,
                explanation=finding.explanation,
                document=place.document,
                start=place.start,
                end=place.end,
            )
            for report in reports
            for ordinal, finding in enumerate(report.findings)
            for place in finding.places
        ]
        with self._db.transaction():
            for table in ("communities", "reports", "findings"):
                column = "id" if table == "communities" else "community"
                self._db.delete(table, column, earlier)
            fields = ("id", "level", "parent", "members")
            self._db.insert_records("communities", communities, fields)
            self._db.insert_records("reports", reports, _REPORT.split(", "))
            self._db.insert_records("findings", findings, tuple(_StoredFinding.model_fields))


def _findings(rows: Sequence[_StoredFinding]) -> list[Finding]:
    """The findings of one report, from a row for each of their places."""
    return [
        Finding(
            summary=first.summary,
            explanation=first.explanation,
            document=first.document,
            start=first.start,
            end=first.end,
            more=tuple(
                TextSpan(document=row.document, start=row.start, end=row.end) for row in others
            ),
        )
        for first, *others in by_key((row.ordinal, row) for row in rows).values()
    ]


# --- edits by hand ---

Action = Literal["merge", "split", "change"]


class Subject(Record):
    """A thing by one of its names; where several have it, by the documents that mean this one."""

    name: str
    documents: tuple[str, ...] = ()


class Edit(Record):
    """One change. `id` and `at` (a UTC time in ISO form) are given when it is kept.

    merge: `other` is the same thing as `subject`. split: what `names`, or `documents`, say of the
    subject is another thing. change: the subject gets this kind, name or description (None: as it
    was).
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
        rows = self._db.strings("SELECT edit FROM edits ORDER BY id")
        return [Edit.model_validate_json(row) for row in rows]

    def add(self, edit: Edit, at: str) -> Edit:
        """Keeps an edit as the last one; returns it with its number, one above the highest."""
        number = self._db.number("SELECT coalesce(max(id), 0) + 1 FROM edits")
        stored = edit.model_copy(update={"id": number, "at": at})
        self._db.insert_rows("edits", ("id", "edit"), [(number, stored.model_dump_json())])
        return stored

    def remove(self, number: int) -> Edit:
        """Forgets an edit. Raises NotFound, which lists those there are."""
        edits = {edit.id: edit for edit in self.edits()}
        if number not in edits:
            known = ", ".join(map(str, edits)) or "none"
            remedy = f"Edits: {known} (see `trellis graph edits`)."
            raise NotFound(f"There is no edit {number}.", remedy)
        self._db.execute("DELETE FROM edits WHERE id = ?", [number])
        return edits[number]


# --- aggregation over a traversal ---

Direction = Literal["max", "min"]

# A value is a date where it reads as one, else the first figure in it ("1,308,463 km" is 1308463).
# Dates count in years, so that a bare year and a full date compare.
_MEASURED = """
    WITH given AS (
        SELECT unnest(?::VARCHAR[]) AS item, unnest(?::VARCHAR[]) AS value
    ), dated AS (
        SELECT item, value,
            try_strptime(
                replace(trim(value), '_', ' '),
                ['%Y-%m-%d', '%Y/%m/%d', '%d %B %Y', '%d %b %Y', '%B %d, %Y', '%B %d %Y', '%Y-%m']
            ) AS moment,
            regexp_extract(value, '-?[0-9][0-9,]*(?:[.][0-9]+)?') AS figure
        FROM given
    )
    SELECT item, value, coalesce(
        year(moment) + (dayofyear(moment) - 1) / 366.0,
        try_cast(replace(figure, ',', '') AS DOUBLE)
    ) AS number FROM dated
"""


class Measured(Record):
    """A thing and the number that it was ranked by: that of its `value`, or of its values."""

    item: str
    value: str
    number: float


class TraversalReader(Store):
    """Aggregation over what a traversal found (PolyG: operators over the result)."""

    def ranked(self, pairs: Sequence[tuple[str, str]], direction: Direction) -> list[Measured]:
        """The items of (item, value) pairs by the number or date of their values, best first.

        Of an item with several values the best counts; what no number can be read from is left
        out. Equals come by item.
        """
        order, best = _order(direction)
        sql = f"""
            SELECT item, {best}(value, number) AS value, {direction}(number)::DOUBLE AS number
            FROM ({_MEASURED}) WHERE number IS NOT NULL
            GROUP BY item ORDER BY number {order}, item
        """
        return self._db.records(Measured, sql, _columns(pairs))

    def counted(self, pairs: Sequence[tuple[str, str]], direction: Direction) -> list[Measured]:
        """The items of (item, value) pairs by how many different values they have."""
        sql = f"""
            SELECT item, count(DISTINCT value)::VARCHAR AS value,
                   count(DISTINCT value)::DOUBLE AS number
            FROM (SELECT unnest(?::VARCHAR[]) AS item, unnest(?::VARCHAR[]) AS value)
            GROUP BY item ORDER BY number {_order(direction)[0]}, item
        """
        return self._db.records(Measured, sql, _columns(pairs))


def _order(direction: Direction) -> tuple[str, str]:
    return ("DESC", "arg_max") if direction == "max" else ("ASC", "arg_min")


def _columns(pairs: Sequence[tuple[str, str]]) -> list[list[str]]:
    return [[item for item, _ in pairs], [value for _, value in pairs]]
