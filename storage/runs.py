"""Which runs have there been, and how did they end?"""

from storage.records import Record
from storage.sqlite import SideDatabase, Value


class RunRow(Record):
    """A run that ended; times are UTC in ISO form, `summary` is JSON text."""

    kind: str
    started: str
    finished: str
    state: str
    summary: str = "{}"


class RunHistory:
    """The last `limit` runs."""

    def __init__(self, database: SideDatabase, limit: int) -> None:
        self._db = database
        self._limit = limit

    def append(self, run: RunRow) -> None:
        with self._db.transaction() as connection:
            connection.execute(
                "INSERT INTO runs (kind, started, finished, state, summary) VALUES (?, ?, ?, ?, ?)",
                (run.kind, run.started, run.finished, run.state, run.summary),
            )
            connection.execute("DELETE FROM runs WHERE id <= (SELECT max(id) FROM runs) - ?", (self._limit,))

    def list(self, limit: int = 50, kind: str | None = None) -> list[RunRow]:
        """The newest first, of one kind (None: of any)."""
        parameters: list[Value] = [kind, kind, limit]
        rows = self._db.rows(
            "SELECT kind, started, finished, state, summary FROM runs "
            "WHERE ? IS NULL OR kind = ? ORDER BY id DESC LIMIT ?",
            parameters,
        )
        return [RunRow.model_validate(dict(zip(RunRow.model_fields, row, strict=True))) for row in rows]
