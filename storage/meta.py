"""How a generation was made: settings, model use, counts, what each name meant, and what was described from what.

Resolutions and descriptions are kept so that the next run can tell what a change touches, and pays for nothing twice.
"""

import json
from collections.abc import Collection, Mapping, Sequence

from pydantic import JsonValue

from storage.database import Column, Database
from storage.errors import StorageError
from storage.run_records import StepUsage

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


Place = tuple[str, str]  # a document and the key of a name in it
Went = tuple[str, str]  # the key of the thing that is meant there, and why it is meant
Verdict = tuple[bool, str]  # whether a pair is one thing, and why


class ResolutionReader:
    """The resolution of a generation."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def places(self) -> dict[Place, Went]:
        """Where each name went; empty for a generation that was never resolved."""
        rows = self._db.rows("SELECT document, name_key, thing, why FROM resolutions")
        return {(str(document), str(key)): (str(thing), str(why)) for document, key, thing, why in rows}

    def decisions(self) -> dict[str, Verdict]:
        """A model's decisions, by the hash of the pair."""
        rows = self._db.rows("SELECT pair, same, reason FROM decisions")
        return {str(pair): (bool(same), str(reason)) for pair, same, reason in rows}


class ResolutionWriter(ResolutionReader):
    """Adds writing."""

    def replace_places(self, documents: Collection[str] | None, places: Mapping[Place, Went]) -> None:
        """The places of these documents (None: all) in place of those they had."""
        with self._db.transaction():
            self._db.delete("resolutions", "document", documents)
            went = list(places.values())
            columns: dict[str, Column] = {
                "document": [document for document, _ in places],
                "name_key": [key for _, key in places],
                "thing": [thing for thing, _ in went],
                "why": [why for _, why in went],
            }
            self._db.insert("resolutions", columns)

    def replace_decisions(self, decisions: Mapping[str, Verdict]) -> None:
        """All decisions in place of the earlier ones."""
        with self._db.transaction():
            self._db.delete("decisions", "", None)
            said = list(decisions.values())
            columns: dict[str, Column] = {
                "pair": list(decisions),
                "same": [same for same, _ in said],
                "reason": [why for _, why in said],
            }
            self._db.insert("decisions", columns)


# Generations of earlier versions have no such table; a run that starts from one makes it.
TABLE = "CREATE TABLE IF NOT EXISTS descriptions (item VARCHAR NOT NULL, inputs VARCHAR NOT NULL)"


class DescriptionWriter:
    """The descriptions of a staging, so that no run pays for one again that still holds."""

    def __init__(self, database: Database) -> None:
        self._db = database
        database.execute(TABLE)

    def inputs(self) -> dict[str, str]:
        """By entity or relation."""
        return {str(item): str(inputs) for item, inputs in self._db.rows("SELECT item, inputs FROM descriptions")}

    def replace(self, items: Collection[str] | None, inputs: Mapping[str, str]) -> None:
        """These in place of what the items had (None: of all)."""
        with self._db.transaction():
            self._db.delete("descriptions", "item", items)
            self._db.insert("descriptions", {"item": list(inputs), "inputs": list(inputs.values())})
