"""The graph of a generation: entities, relations, claims, communities, reports, edits by hand.

An edit names things as the texts do, not by ids, which another run may change, so it stays valid in
later generations. Edits travel with the generation and are applied in their order.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from storage.columns import Columns
from storage.database import (
    CHUNKS_IN_ORDER,
    Column,
    Selection,
    SparseCounts,
    Store,
    field_names,
    selection,
    sparse_counts,
)
from storage.errors import NotFound
from storage.facts import unknown_as_text
from storage.graph_records import (
    Alias,
    Claim,
    Community,
    Entity,
    Fact,
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

    `strengths` holds the sum of weights of each relation by id; the default is its weight.
    """

    entities: Sequence[Entity] = ()
    aliases: Sequence[Alias] = ()
    entity_occurrences: Sequence[Occurrence] = ()
    relations: Sequence[Relation] = ()
    relation_occurrences: Sequence[Occurrence] = ()
    claims: Sequence[Claim] = ()
    facts: Sequence[Fact] = ()
    strengths: Mapping[str, float] = field(default_factory=dict)


class GraphStore(Store):
    """Entities, aliases, relations, their occurrences, and claims.

    A method that takes ids leaves out unknown ones and returns everything for None.
    """

    def entities(self, ids: Collection[str] | None = None) -> Columns[Entity]:
        columns = self._db.columns(field_names(Entity), "entities", "id", selection("id", ids))
        return Columns(Entity, columns)

    def entity_ids(self) -> list[str]:
        return self._db.strings("SELECT id FROM entities ORDER BY id")

    def aliases(self, entities: Collection[str] | None = None) -> list[Alias]:
        where = selection("entity", entities)
        return self._db.select(Alias, "aliases", "entity, name, reason", where)

    def relations(self, ids: Collection[str] | None = None) -> Columns[Relation]:
        return self._relations(selection("id", ids))

    def relations_at(self, entities: Collection[str] | None) -> Columns[Relation]:
        """Return the relations that start or end at one of the entities, by id."""
        return self._relations(selection("source, target", entities))

    def _relations(self, where: Selection) -> Columns[Relation]:
        columns = self._db.columns(field_names(Relation), "relations", "id", where)
        columns["keys"] = [tuple(keys.tolist()) for keys in columns["keys"]]
        return Columns(Relation, columns)

    def edges(self) -> list[WeightedEdge]:
        """Return ends and weight of all relations, in the order of their ids."""
        columns = self._db.columns(field_names(WeightedEdge), "relations", "id")
        return list(Columns(WeightedEdge, columns))

    def claims(self, entities: Collection[str] | None = None) -> list[Claim]:
        """Return the claims whose subject or object is one of the entities, by id."""
        return self._db.select(Claim, "claims", "id", selection("subject, object", entities))

    def occurrences(
        self, kind: OccurrenceKind, items: Collection[str] | None = None
    ) -> Columns[Occurrence]:
        """Return the occurrences of entities or relations, by item, chunk and start."""
        table, order = f"{kind}_occurrences", "item, chunk, start_at, end_at"
        where = selection("item", items)
        return Columns(Occurrence, self._db.columns(field_names(Occurrence), table, order, where))

    def stated_outside(self, kind: OccurrenceKind, documents: Collection[str]) -> set[str]:
        """Return the entities or relations that occur in other documents than these too."""
        where, parameters = selection("document", documents)
        sql = f"""
            SELECT DISTINCT item FROM {kind}_occurrences
            JOIN chunks ON chunks.id = chunk WHERE NOT {where}
        """
        return set(self._db.strings(sql, parameters))

    def entity_chunk_pairs(self) -> SparseCounts:
        """Count how often each entity (by id) occurs in each chunk (by document and ordinal)."""
        entities = "SELECT id FROM entities ORDER BY id"
        pairs = "SELECT item, chunk, count(*) FROM entity_occurrences GROUP BY ALL"
        return sparse_counts(self._db, entities, CHUNKS_IN_ORDER, pairs)

    def entity_document_pairs(self) -> SparseCounts:
        """Count how often each entity occurs in each document, both by id."""
        entities = "SELECT id FROM entities ORDER BY id"
        documents = "SELECT id FROM documents ORDER BY id"
        pairs = """
            SELECT item, document, count(*) FROM entity_occurrences
            JOIN chunks ON chunks.id = chunk GROUP BY ALL
        """
        return sparse_counts(self._db, entities, documents, pairs)

    def replace_graph(self, rows: GraphRows, entities: Collection[str] | None = None) -> None:
        """Replace these entities and everything that touches them (None: all) by the rows.

        Communities and reports are not changed.
        """
        relations = None if entities is None else self._ids("edges", "source, target", entities)
        claims = None if entities is None else self._ids("claims", "subject, object", entities)
        facts = None if entities is None else self._ids("facts", "subject, object", entities)
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
                ("facts", "id", facts, rows.facts),
            ):
                self._db.delete(table, column, ids)
                if records:
                    more: dict[str, Column] = {"strength": strengths} if table == "edges" else {}
                    more |= unknown_as_text(rows.facts) if table == "facts" else {}
                    names = [name for name in field_names(type(records[0])) if name != "weight"]
                    self._db.insert_records(table, records, names, more)

    def _ids(self, table: str, ends: str, entities: Collection[str]) -> list[str]:
        where, parameters = selection(ends, entities)
        return self._db.strings(f"SELECT id FROM {table} WHERE {where}", parameters)

    def count_degrees(self, entities: Collection[str]) -> None:
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
# A finding with several places has a row for each, in the order in which they were written.
_FINDING = "community, ordinal, summary, explanation, document, start_at, end_at"
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


class ReportSizes(Record):
    """How many reports the broadest level has, how many documents there are, and how many of these
    the findings of all reports cite.
    """

    reports: int
    documents: int
    reported: int


class CommunityStore(Store):
    """Communities and their reports."""

    def communities(self, level: int | None = None) -> list[Community]:
        """Return the communities by level and id.

        Those of a level partition all entities: they include communities that are not split
        further above it.
        """
        return self._communities(("true", []) if level is None else (_OF_LEVEL, [level] * 3))

    def with_reports(self) -> list[Community]:
        """Return the communities that have a report, and those above them."""
        return self._communities((_REPORTED, []))

    def around(self, entities: Collection[str]) -> list[Community]:
        """Return the communities of every level that hold one of these entities."""
        where = "list_has_any(members, ?::VARCHAR[])"
        return self._communities((where, [list(entities)]))

    def ratings(self) -> dict[str, float]:
        """Return the rating of each report, 0-10, by community."""
        sql = "SELECT community, rating FROM reports ORDER BY level, community"
        return dict(self._db.rows(sql))

    def report_sizes(self) -> ReportSizes:
        return self._db.records(ReportSizes, _SIZES)[0]

    def unfit_reports(self, drift: float) -> list[str]:
        """Return the communities whose reports no model wrote, or that changed by more than this
        share since.
        """
        sql = "SELECT community FROM reports WHERE inputs = '' OR stale > ?"
        return self._db.strings(sql, [drift])

    def reports(self, level: int | None = None, of: Collection[str] | None = None) -> list[Report]:
        chosen, communities = selection("community", of)
        where = f"level = coalesce(?, level) AND {chosen}"
        sql = f"SELECT {_REPORT} FROM reports WHERE {where} ORDER BY level, community"
        stored = self._db.mappings(sql, [level, *communities])
        findings = self._findings([row["community"] for row in stored])
        return [
            Report.model_validate({**row, "findings": findings.get(row["community"], ())})
            for row in stored
        ]

    def _findings(self, communities: Collection[str]) -> dict[str, list[Finding]]:
        where, parameters = selection("community", communities)
        order = "community, ordinal, rowid"
        sql = f"SELECT {_FINDING} FROM findings WHERE {where} ORDER BY {order}"
        places = by_key(
            (tuple(finding), TextSpan(document=document, start=start, end=end))
            for *finding, document, start, end in self._db.rows(sql, parameters)
        )
        return by_key(
            (
                community,
                Finding(
                    summary=summary,
                    explanation=explanation,
                    document=first.document,
                    start=first.start,
                    end=first.end,
                    more=tuple(others),
                ),
            )
            for (community, _, summary, explanation), (first, *others) in places.items()
        )

    def _communities(self, where: Selection) -> list[Community]:
        # DuckDB makes a Python list of strings ten times slower than one text.
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
        findings = [
            (
                report.community,
                ordinal,
                finding.summary,
                finding.explanation,
                place.document,
                place.start,
                place.end,
            )
            for report in reports
            for ordinal, finding in enumerate(report.findings)
            for place in finding.places
        ]
        with self._db.transaction():
            self._db.delete("communities", "id", earlier)
            self._db.delete("reports", "community", earlier)
            self._db.delete("findings", "community", earlier)
            self._db.insert_records("communities", communities, field_names(Community))
            self._db.insert_records("reports", reports, _REPORT.split(", "))
            self._db.insert_rows("findings", _FINDING.split(", "), findings)


# --- edits by hand ---

Action = Literal["merge", "split", "change"]


class Subject(Record):
    """A thing by one of its names, and by documents where several things have that name."""

    name: str
    documents: tuple[str, ...] = ()


class Edit(Record):
    """One change of the graph; storage sets `id` and `at` (a UTC time in ISO form).

    merge: `other` is the same thing as `subject`. split: what `names`, or `documents`, say of the
    subject is another thing. change: the subject gets this kind, name or description (None: no
    change).
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
    """The edits in force, in their order."""

    def edits(self) -> list[Edit]:
        rows = self._db.strings("SELECT edit FROM edits ORDER BY id")
        return [Edit.model_validate_json(row) for row in rows]

    def add(self, edit: Edit, at: str) -> Edit:
        """Append an edit; return it with its id, one above the highest."""
        number = self._db.number("SELECT coalesce(max(id), 0) + 1 FROM edits")
        stored = edit.model_copy(update={"id": number, "at": at})
        self._db.insert_rows("edits", ("id", "edit"), [(number, stored.model_dump_json())])
        return stored

    def remove(self, number: int) -> Edit:
        """Remove an edit and return it. Raises NotFound, which lists the known ones."""
        edits = {edit.id: edit for edit in self.edits()}
        if number not in edits:
            known = ", ".join(map(str, edits)) or "none"
            remedy = f"Edits: {known} (see `trellis graph edits`)."
            raise NotFound(f"There is no edit {number}.", remedy)
        self._db.execute("DELETE FROM edits WHERE id = ?", [number])
        return edits[number]


# --- aggregation over a traversal ---

Direction = Literal["max", "min"]

_PAIRS = "SELECT unnest(?::VARCHAR[]) AS item, unnest(?::VARCHAR[]) AS value"
# A value is a date where it reads as one, else the first figure in it ("1,308,463 km" is 1308463).
# Dates count in years, so that a bare year and a full date compare.
_MEASURED = f"""
    WITH dated AS (
        SELECT item, value,
            try_strptime(
                replace(trim(value), '_', ' '),
                ['%Y-%m-%d', '%Y/%m/%d', '%d %B %Y', '%d %b %Y', '%B %d, %Y', '%B %d %Y', '%Y-%m']
            ) AS moment,
            regexp_extract(value, '-?[0-9][0-9,]*(?:[.][0-9]+)?') AS figure
        FROM ({_PAIRS})
    )
    SELECT item, value, coalesce(
        year(moment) + (dayofyear(moment) - 1) / 366.0,
        try_cast(replace(figure, ',', '') AS DOUBLE)
    ) AS number FROM dated
"""


class Measured(Record):
    """A thing and the number that ranks it: that of its `value`, or the count of its values."""

    item: str
    value: str
    number: float


class TraversalReader(Store):
    """Aggregates what a traversal found (PolyG: operators over the result)."""

    def ranked(self, pairs: Sequence[tuple[str, str]], direction: Direction) -> list[Measured]:
        """Rank the items of (item, value) pairs by the number or date of their best value.

        Values without a number are left out; equal items come by name.
        """
        sql = f"""
            SELECT item, arg_{direction}(value, number) AS value,
                   {direction}(number)::DOUBLE AS number
            FROM ({_MEASURED}) WHERE number IS NOT NULL GROUP BY item
        """
        return self._ordered(sql, pairs, direction)

    def counted(self, pairs: Sequence[tuple[str, str]], direction: Direction) -> list[Measured]:
        """Rank the items of (item, value) pairs by how many different values they have."""
        sql = f"""
            SELECT item, count(DISTINCT value)::VARCHAR AS value,
                   count(DISTINCT value)::DOUBLE AS number FROM ({_PAIRS}) GROUP BY item
        """
        return self._ordered(sql, pairs, direction)

    def _ordered(
        self, sql: str, pairs: Sequence[tuple[str, str]], direction: Direction
    ) -> list[Measured]:
        order = "DESC" if direction == "max" else "ASC"
        parameters = [[item for item, _ in pairs], [value for _, value in pairs]]
        return self._db.records(Measured, f"{sql} ORDER BY number {order}, item", parameters)
