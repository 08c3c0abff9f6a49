"""Writes the tables of a generation as Parquet files."""

from pathlib import Path

from storage.database import Store

_TABLES = {
    "documents": "id",
    "parts": "document, ordinal",
    "chunks": "document, ordinal",
    "mentions": "chunk, ordinal",
    "relation_mentions": "chunk, ordinal",
    "claim_mentions": "chunk, ordinal",
    "fact_mentions": "chunk, ordinal",
    "left_out_facts": "chunk, ordinal",
    "entities": "id",
    "aliases": "entity, name, reason",
    "entity_occurrences": "item, chunk, start_at, end_at",
    "relations": "id",
    "relation_occurrences": "item, chunk, start_at, end_at",
    "claims": "id",
    "facts": "id",
    "communities": "level, id",
    "reports": "community",
    "findings": "community, ordinal, document, start_at, end_at",
}
_WINDOWS = """
    SELECT id, chunk, document, model, vector
    FROM windows JOIN vectors USING (model, text_hash) ORDER BY id
"""
_FORM = "FORMAT parquet, COMPRESSION zstd"


class ParquetFiles(Store):
    """The tables of a generation as files."""

    def write(self, folder: Path) -> dict[str, int]:
        """Write a file for each table into a folder; return their names and numbers of rows.

        `windows.parquet` holds the vector of each piece of a chunk that was embedded.
        """
        queries = {
            table: f"SELECT {self._columns(table)} FROM {table} ORDER BY {order}"
            for table, order in _TABLES.items()
        }
        return {
            f"{name}.parquet": self._db.copy(query, folder / f"{name}.parquet", _FORM)
            for name, query in {**queries, "windows": _WINDOWS}.items()
        }

    def _columns(self, table: str) -> str:
        """Return the columns of a table with the names that they have in records."""
        names = self._db.strings(f"SELECT column_name FROM (DESCRIBE {table})")
        return ", ".join(f'{name} AS "{name.removesuffix("_at")}"' for name in names)
