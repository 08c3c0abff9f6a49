"""Is a database that came from elsewhere just data? A view, a default or a trigger could run what its maker likes."""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from storage.database import Database
from storage.errors import ArchiveError, StorageError
from storage.layout import DATABASE, read_manifest
from storage.sqlite import SideDatabase

_MADE = """
    SELECT sql FROM duckdb_tables() WHERE NOT internal UNION ALL SELECT sql FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT function_name FROM duckdb_functions() WHERE NOT internal ORDER BY 1
"""
_ADDED = "TABLE descriptions("  # which generations of earlier versions lack
_PARTS = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name"


def check_generation(folder: Path, number: int, archive: Path) -> None:
    """Raises ArchiveError unless the folder holds the generation of this number with our tables and nothing else."""
    try:
        if read_manifest(folder).number != number:
            raise ArchiveError(archive, f"generation {number} says that it is another one")
        database = Database.open(folder / DATABASE)
    except StorageError as error:
        raise ArchiveError(archive, f"generation {number} is damaged ({error.message})") from error
    with closing(database), tempfile.TemporaryDirectory() as aside, closing(_new_database(aside)) as ours:
        made, known = set(database.strings(_MADE)), set(ours.strings(_MADE))
        if not {one for one in known if _ADDED not in one} <= made <= known:
            raise ArchiveError(archive, f"the database of generation {number} holds other things than ours do")


def check_side(path: Path, archive: Path) -> None:
    """Raises ArchiveError unless the file is a whole side store with our tables and nothing else."""
    with tempfile.TemporaryDirectory() as aside, closing(SideDatabase(Path(aside) / path.name)) as ours:
        try:
            with closing(sqlite3.connect(path)) as connection:
                whole = connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
                parts = connection.execute(_PARTS).fetchall()
        except sqlite3.DatabaseError as error:
            raise ArchiveError(archive, f"its side store is damaged ({error})") from error
        with ours.transaction() as made:
            expected = made.execute(_PARTS).fetchall()
        if not whole or parts != expected:
            raise ArchiveError(archive, "its side store is damaged, or holds other things than ours do")


def _new_database(folder: str) -> Database:
    return Database.create(Path(folder) / DATABASE)
