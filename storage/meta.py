"""With which settings, models and costs was a generation made, and how much does it hold?"""

import json
from collections.abc import Sequence

from pydantic import JsonValue

from storage.database import Database
from storage.errors import StorageError
from storage.records import StepUsage

_COUNTED = (
    "documents", "chunks", "mentions", "entities", "aliases", "relations", "claims", "communities", "reports",
    "windows", "dead_letters",
)  # fmt: skip
_OURS = "schema_version"


class UsageRow(StepUsage):
    """Model use of one step with one model."""

    step: str
    model: str


class MetaReader:
    """Settings used, model use and counts."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def get_meta(self, key: str) -> JsonValue:
        """What `put_meta` stored under the key, or None."""
        found = self._db.strings("SELECT value FROM meta WHERE key = ?", [key])
        value: JsonValue = json.loads(found[0]) if found else None
        return value

    def usage(self) -> list[UsageRow]:
        """By step and model."""
        return self._db.records(UsageRow, f"SELECT {', '.join(UsageRow.model_fields)} FROM usage ORDER BY step, model")

    def counts(self) -> dict[str, int]:
        """How many records of each kind there are; of communities the different groups of two entities or more."""
        groups = self._db.number("SELECT count(DISTINCT members) FROM communities WHERE len(members) > 1")
        return {table: self._db.number(f"SELECT count(*) FROM {table}") for table in _COUNTED} | {"communities": groups}


class MetaWriter(MetaReader):
    """Adds writing."""

    def put_meta(self, key: str, value: JsonValue) -> None:
        if key == _OURS:
            raise StorageError("meta", f"the key {_OURS!r} is reserved", "Choose another key.")
        with self._db.transaction():
            self._db.delete("meta", "key", [key])
            self._db.insert("meta", {"key": [key], "value": [json.dumps(value, ensure_ascii=False)]})

    def replace_usage(self, rows: Sequence[UsageRow]) -> None:
        with self._db.transaction():
            self._db.delete("usage", "", None)
            # One row at a time: a cost may be unknown (None), and there are few.
            columns = tuple(UsageRow.model_fields)
            for row in rows:
                marks = ", ".join("?" for _ in columns)
                values = [getattr(row, column) for column in columns]
                self._db.execute(f"INSERT INTO usage ({', '.join(columns)}) VALUES ({marks})", values)
