"""A generation as plain sorted rows, to compare two runs by, and as Parquet files."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from storage.database import Database

if TYPE_CHECKING:
    from storage.workspace import OpenGeneration

JsonRow = dict[str, JsonValue]
Export = dict[str, list[JsonRow]]


def export(generation: "OpenGeneration") -> Export:
    """One list of rows for each kind of record, sorted."""
    graph, communities = generation.graph, generation.communities
    extractions = generation.extractions.extractions()
    found = {
        "documents": [d.model_dump(mode="json") for d in generation.documents.documents()],
        "chunks": [c.model_dump(mode="json") for c in generation.documents.chunks()],
        "mentions": [m.model_dump(mode="json") for e in extractions for m in e.mentions],
        "relation_mentions": [r.model_dump(mode="json") for e in extractions for r in e.relations],
        "claim_mentions": [c.model_dump(mode="json") for e in extractions for c in e.claims],
        "entities": [e.model_dump(mode="json") for e in graph.entities()],
        "aliases": [a.model_dump(mode="json") for a in graph.aliases()],
        "entity_occurrences": [o.model_dump(mode="json") for o in graph.occurrences("entity")],
        "relations": [r.model_dump(mode="json") for r in graph.relations()],
        "relation_occurrences": [o.model_dump(mode="json") for o in graph.occurrences("relation")],
        "claims": [c.model_dump(mode="json") for c in graph.claims()],
        "communities": [c.model_dump(mode="json") for c in communities.communities()],
        "reports": [r.model_dump(mode="json") for r in communities.reports()],
    }
    return {kind: sorted(rows, key=_text) for kind, rows in found.items()}


def _text(row: JsonRow) -> str:
    return json.dumps(row, sort_keys=True, ensure_ascii=False)


PARQUET_TABLES = (
    "documents", "parts", "chunks", "mentions", "relation_mentions", "claim_mentions", "entities", "aliases",
    "entity_occurrences", "relations", "relation_occurrences", "claims", "communities", "reports", "findings",
    "dead_letters",
)  # fmt: skip
# Files use the words of the records.
_WORDS = {"start_at": "start", "end_at": "end"}


class TableReader:
    """The tables of a generation as files."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def write_parquet(self, folder: Path) -> dict[str, int]:
        """One file `<table>.parquet` for each table; how many rows each has. Equal tables give equal bytes."""
        return {f"{table}.parquet": self._copy(table, folder / f"{table}.parquet") for table in PARQUET_TABLES}

    def _copy(self, table: str, path: Path) -> int:
        sql = "SELECT column_name FROM information_schema.columns WHERE table_name = ? ORDER BY ordinal_position"
        names = self._db.strings(sql, [table])
        columns = ", ".join(f'{name} AS "{_WORDS.get(name, name)}"' for name in names)
        target = str(path).replace("'", "''")
        self._db.execute(
            f"COPY (SELECT {columns} FROM {table} ORDER BY ALL) TO '{target}' (FORMAT parquet, COMPRESSION zstd)",
            place=path,
        )
        return self._db.number(f"SELECT count(*) FROM {table}")
