"""The communities of the graph and their reports."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from storage.database import Database, Parameter, selection
from storage.errors import StorageError
from storage.graph_records import Community, Finding, Report, TextSpan
from storage.records import Record

_FINDING = "community, ordinal, summary, explanation, document, start_at, end_at"


class _StoredReport(Record):
    community: str
    level: int
    title: str
    summary: str
    rating: float
    rating_reason: str
    inputs: str
    stale: float


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
    """What there is to read without reading it: reports of the broadest level, their mean length in signs, and on how
    many documents all reports rest."""

    reports: int
    signs: float
    documents: int


_SIZES = """
    WITH roots AS (SELECT community, length(title) + length(summary) AS signs FROM reports
                   WHERE level = (SELECT min(level) FROM reports)),
         said AS (SELECT community, sum(length(summary)) AS signs
                  FROM (SELECT DISTINCT community, ordinal, summary FROM findings) GROUP BY community)
    SELECT count(*) AS reports, coalesce(avg(roots.signs + coalesce(said.signs, 0)), 0) AS signs,
           (SELECT count(DISTINCT document) FROM findings) AS documents
    FROM roots LEFT JOIN said USING (community)
"""


class CommunityReader:
    """Communities and their reports."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def communities(self, level: int | None = None) -> list[Community]:
        """By level and id."""
        where, parameters = _at(level, None)
        sql = f"SELECT id, level, parent, members FROM communities WHERE {where} ORDER BY level, id"
        return self._db.records(Community, sql, parameters)

    def around(self, entities: Collection[str]) -> list[Community]:
        """The communities of every level that one of these entities is in, by level and id."""
        sql = (
            "SELECT id, level, parent, members FROM communities "
            "WHERE list_has_any(members, ?::VARCHAR[]) ORDER BY level, id"
        )
        return self._db.records(Community, sql, [list(entities)])

    def below(self, communities: Collection[str]) -> list[Community]:
        """The communities with one of these as parent, by level and id."""
        where, parameters = selection("parent", communities)
        sql = f"SELECT id, level, parent, members FROM communities WHERE {where} ORDER BY level, id"
        return self._db.records(Community, sql, parameters)

    def named(self, ids: Collection[str]) -> list[Community]:
        """The communities with these ids, by level and id."""
        where, parameters = selection("id", ids)
        sql = f"SELECT id, level, parent, members FROM communities WHERE {where} ORDER BY level, id"
        return self._db.records(Community, sql, parameters)

    def levels(self) -> int:
        """How many levels there are."""
        return self._db.number("SELECT coalesce(max(level) + 1, 0) FROM communities")

    def report_sizes(self) -> ReportSizes:
        """How much there is to read in reports."""
        return self._db.records(ReportSizes, _SIZES, [])[0]

    def reports_of(self, communities: Collection[str]) -> list[Report]:
        """The reports of these communities, by level and community."""
        return self._reports(*selection("community", communities))

    def reports(self, level: int | None = None, community: str | None = None) -> list[Report]:
        """By level and community; an unknown level or community has none."""
        return self._reports(*_at(level, community))

    def _reports(self, where: str, parameters: Sequence[Parameter]) -> list[Report]:
        columns = ", ".join(_StoredReport.model_fields)
        sql = f"SELECT {columns} FROM reports WHERE {where} ORDER BY level, community"
        stored = self._db.records(_StoredReport, sql, parameters)
        findings: dict[str, dict[int, list[_StoredFinding]]] = defaultdict(lambda: defaultdict(list))
        of_these, ids = selection("community", [row.community for row in stored])
        # The places of a finding stand in the order in which they were written.
        sql = f"SELECT {_FINDING} FROM findings WHERE {of_these} ORDER BY community, ordinal, rowid"
        for row in self._db.records(_StoredFinding, sql, ids):
            findings[row.community][row.ordinal].append(row)
        return [
            Report(**row.model_dump(), findings=tuple(map(_finding, findings[row.community].values())))
            for row in stored
        ]


class CommunityWriter(CommunityReader):
    """Adds writing."""

    def replace_communities(
        self, communities: Sequence[Community], reports: Sequence[Report], outdated: Collection[str] | None = None
    ) -> None:
        """These in place of the outdated ones (ids; None: of all) and of their reports, in one transaction.

        A report of no community is refused.
        """
        findings = [
            _StoredFinding(
                community=report.community, ordinal=ordinal, summary=finding.summary, explanation=finding.explanation,
                document=place.document, start=place.start, end=place.end,
            )
            for report in reports
            for ordinal, finding in enumerate(report.findings)
            for place in finding.places
        ]  # fmt: skip
        with self._db.transaction():
            for table in ("communities", "reports", "findings"):
                self._db.delete(table, "id" if table == "communities" else "community", outdated)
            self._db.insert_records("communities", communities, ("id", "level", "parent", "members"))
            self._db.insert_records("reports", reports, tuple(_StoredReport.model_fields))
            self._db.insert_records("findings", findings, tuple(_StoredFinding.model_fields))
            strays = self._db.strings(
                "SELECT community FROM reports WHERE community NOT IN (SELECT id FROM communities)"
            )
            if strays:
                problem = f"{min(strays)} is no community of this generation"
                raise StorageError("reports", problem, "Pass the communities with their reports.")

    def rename_parents(self, parents: Mapping[str, str]) -> None:
        """Parents that are communities under other ids now, by the earlier id."""
        if parents:
            ids = list(parents)
            self._db.execute(
                "UPDATE communities SET parent = new.parent FROM (SELECT unnest(?::VARCHAR[]) AS id, "
                "unnest(?::VARCHAR[]) AS parent) AS new WHERE communities.parent = new.id",
                [ids, [parents[one] for one in ids]],
            )


def _finding(rows: Sequence[_StoredFinding]) -> Finding:
    first = rows[0]
    more = tuple(TextSpan(document=row.document, start=row.start, end=row.end) for row in rows[1:])
    return Finding(**first.model_dump(exclude={"community", "ordinal"}), more=more)


def _at(level: int | None, community: str | None) -> tuple[str, list[Parameter]]:
    conditions, parameters = ["true"], list[Parameter]()
    if level is not None:
        conditions.append("level = ?")
        parameters.append(level)
    if community is not None:
        conditions.append("community = ?")
        parameters.append(community)
    return " AND ".join(conditions), parameters
