"""How does a generation leave as Parquet? DuckDB copies its own tables; no row passes through Python."""

from pathlib import Path

from storage.database import Database

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
