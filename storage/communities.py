"""Which communities does the graph fall into, and what do their reports say?"""

from collections import defaultdict
from collections.abc import Sequence

from storage.database import Database, Parameter
from storage.errors import StorageError
from storage.records import Community, Finding, Record, Report

_FINDING = "community, summary, explanation, document, start_at, end_at"


class _StoredReport(Record):
    community: str
    level: int
    title: str
    summary: str
    rating: float
    rating_reason: str
    inputs: str


class _StoredFinding(Finding):
    community: str


class CommunityReader:
    """Communities and their reports."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def communities(self, level: int | None = None) -> list[Community]:
        """By level and id."""
        where, parameters = _at(level, None)
        sql = f"SELECT id, level, parent, members FROM communities WHERE {where} ORDER BY level, id"
        return self._db.records(Community, sql, parameters)

    def reports(self, level: int | None = None, community: str | None = None) -> list[Report]:
        """By level and community; an unknown level or community has none."""
        where, parameters = _at(level, community)
        columns = ", ".join(_StoredReport.model_fields)
        sql = f"SELECT {columns} FROM reports WHERE {where} ORDER BY level, community"
        stored = self._db.records(_StoredReport, sql, parameters)
        findings: dict[str, list[Finding]] = defaultdict(list)
        for row in self._db.records(_StoredFinding, f"SELECT {_FINDING} FROM findings ORDER BY community, ordinal"):
            findings[row.community].append(Finding(**row.model_dump(exclude={"community"})))
        return [Report(**row.model_dump(), findings=tuple(findings[row.community])) for row in stored]


class CommunityWriter(CommunityReader):
    """Adds writing: a detection gives all communities anew, so they are replaced whole."""

    def replace_communities(self, communities: Sequence[Community], reports: Sequence[Report]) -> None:
        """Replaces all communities and reports, in one transaction. A report of no community is refused."""
        strays = {r.community for r in reports} - {c.id for c in communities}
        if strays:
            raise StorageError(
                "reports", f"{min(strays)} is no community of this call", "Pass the communities with their reports."
            )
        findings = [(r.community, ordinal, f) for r in reports for ordinal, f in enumerate(r.findings)]
        with self._db.transaction():
            for table in ("communities", "reports", "findings"):
                self._db.delete(table, "", None)
            self._db.insert_records("communities", communities, ("id", "level", "parent", "members"))
            self._db.insert_records("reports", reports, tuple(_StoredReport.model_fields))
            self._db.insert_records(
                "findings",
                [finding for _, _, finding in findings],
                tuple(Finding.model_fields),
                {
                    "community": [community for community, _, _ in findings],
                    "ordinal": [ordinal for _, ordinal, _ in findings],
                },
            )


def _at(level: int | None, community: str | None) -> tuple[str, list[Parameter]]:
    conditions, parameters = ["true"], list[Parameter]()
    if level is not None:
        conditions.append("level = ?")
        parameters.append(level)
    if community is not None:
        conditions.append("community = ?")
        parameters.append(community)
    return " AND ".join(conditions), parameters
