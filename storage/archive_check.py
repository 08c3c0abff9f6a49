"""Is a database whole, and just data? A view, a default or a trigger could run what its maker likes."""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from storage.database import Database
from storage.errors import Damaged, DiskFailed, DiskFull, InUse, NotPermitted, StorageError
from storage.faults import faults_told
from storage.layout import DATABASE, read_manifest
from storage.sqlite import SideDatabase

_MADE = """
    SELECT sql FROM duckdb_tables() WHERE NOT internal UNION ALL SELECT sql FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT function_name FROM duckdb_functions() WHERE NOT internal ORDER BY 1
"""
_ADDED = "TABLE descriptions("  # which generations of earlier versions lack
_PARTS = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name"


class Unfit(Exception):
    """What is wrong, as the end of a sentence."""


def check_generation(folder: Path, number: int) -> None:
    """Raises Unfit unless the folder holds the whole generation of this number, with our tables and nothing else."""
    try:
        if read_manifest(folder).number != number:
            raise Unfit(f"generation {number} says that it is another one")
        with closing(Database.open(folder / DATABASE)) as database:
            made, known = set(database.strings(_MADE)), set(_ours())  # before anything of it is read
            if not {one for one in known if _ADDED not in one} <= made <= known:
                raise Unfit(f"the database of generation {number} holds other things than ours do")
            database.read_everything()
    except (DiskFull, DiskFailed, NotPermitted, InUse):
        raise
    except StorageError as error:
        raise Unfit(f"generation {number} is damaged ({error.message.rstrip('.')})") from error


def check_side(path: Path) -> None:
    """Raises Unfit unless the file is a whole side store with our tables and nothing else."""
    with tempfile.TemporaryDirectory() as aside, closing(SideDatabase(Path(aside) / path.name)) as ours:
        try:
            with faults_told(path), closing(sqlite3.connect(path)) as connection:
                whole = connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
                parts = connection.execute(_PARTS).fetchall()
        except Damaged as error:
            raise Unfit(f"the side store is damaged ({error.message.rstrip('.')})") from error
        with ours.transaction() as made:
            expected = made.execute(_PARTS).fetchall()
        if not whole:
            raise Unfit("the side store is damaged")
        if parts != expected:
            raise Unfit("the side store holds other things than ours do")


def _ours() -> list[str]:
    with tempfile.TemporaryDirectory() as folder, closing(Database.create(Path(folder) / DATABASE)) as database:
        return database.strings(_MADE)
