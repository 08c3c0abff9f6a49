"""Memory of answered questions and the evidence of their answers (ERM4: titles and their contents).

An entry is found by its keys (`tasks.question_similarity.keys`), so the cost of a question does not
grow with what is remembered.
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Sequence

from storage.answer_records import Fallback
from storage.records import Record
from storage.sqlite import SqliteFile

_LIMIT = 10_000  # entries
_TRIM_AFTER = 64  # entries: counting thousands of them for each new one would take too long
_MOST_FOUND = 64
# Searches by the three rarest of the keys: a common one would find most entries.
_FOUND = f"""
    SELECT entry FROM memory_entries WHERE (source, title) IN (
        SELECT source, title FROM memory_index WHERE kind = 'key' AND value IN (
            SELECT value FROM memory_index
            WHERE kind = 'key' AND value IN (SELECT value FROM json_each(?))
            GROUP BY value ORDER BY count(*), value LIMIT 3))
    ORDER BY generation DESC, source, title LIMIT {_MOST_FOUND}
"""
_OLDEST = (
    "SELECT source, title FROM memory_entries ORDER BY generation DESC, random() LIMIT -1 OFFSET ?"
)


class MemoryEntry(Record, extra="ignore"):  # earlier versions had more fields
    """A title and its content.

    `evidence` holds the hashes of what it was made from, `documents` where that stands (both are
    sets and come back sorted), `ranked` the evidence in the order in which it was read. `support`
    is how well its answer was supported. `surroundings` is a digest of all passages about what the
    title names: when it has changed, newer passages may say more (empty: unknown).
    """

    source: str
    title: str
    content: str
    evidence: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    generation: int
    support: Fallback = "none"
    surroundings: str = ""
    ranked: tuple[str, ...] = ()


class Memory:
    """About 10,000 entries at most; those of the oldest generation are removed first."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._added = 0

    def put(self, entries: Sequence[MemoryEntry], keys: Collection[str] = ()) -> None:
        """Store entries in one transaction, to be found by `keys`.

        They replace those with the same source and title, and those of other sources with the same
        title and other surroundings, which would not be served again.
        """
        with self._file.transaction() as connection:
            _put(connection, entries, keys)
            self._added += len(entries)
            if self._added >= _TRIM_AFTER:
                self._added = 0
                _delete(connection, connection.execute(_OLDEST, (_LIMIT,)).fetchall())

    def entries(self) -> list[MemoryEntry]:
        sql = "SELECT entry FROM memory_entries ORDER BY source, title"
        return self._file.read(sql, MemoryEntry.model_validate_json)

    def found_by(self, keys: Sequence[str]) -> list[MemoryEntry]:
        """Return entries with one of the rarest of these keys, the newest first."""
        return self._file.read(_FOUND, MemoryEntry.model_validate_json, [json.dumps(list(keys))])

    def expire(self, alive: Collection[str]) -> int:
        """Remove the entries with evidence that is not alive any more; return how many."""
        living = set(alive)
        return self._remove_where("evidence", lambda evidence: not living.issuperset(evidence))

    def remove_documents(self, documents: Collection[str]) -> int:
        """Remove the entries made from any of these documents; return how many."""
        removed = set(documents)
        return self._remove_where("documents", lambda documents: not removed.isdisjoint(documents))

    def _remove_where(self, field: str, test: Callable[[list[str]], bool]) -> int:
        # Reads all entries, since an index would cost every question and serve rare changes.
        sql = f"SELECT source, title, json_extract(entry, '$.{field}') FROM memory_entries"
        # A missing field counts as damage too: what to forget might stay.
        rows = self._file.read(sql, lambda *row: (*row[:2], json.loads(row[2] or "")))
        names = [(source, title) for source, title, value in rows if test(value)]
        if names:
            with self._file.transaction() as connection:
                _delete(connection, names)
        return len(names)


def _put(
    connection: sqlite3.Connection, entries: Sequence[MemoryEntry], keys: Collection[str]
) -> None:
    rows = {}
    for entry in entries:
        sets = {
            name: tuple(sorted(set(getattr(entry, name)))) for name in ("evidence", "documents")
        }
        stored = entry.model_copy(update=sets).model_dump_json()
        rows[entry.source, entry.title] = (entry.source, entry.title, entry.generation, stored)
    same_title = """
        SELECT source, title FROM memory_entries
        WHERE title = ? AND json_extract(entry, '$.surroundings') <> ?
    """
    asked = {(entry.title, entry.surroundings) for entry in entries}
    outdated = [row for names in asked for row in connection.execute(same_title, names).fetchall()]
    _delete(connection, [*rows, *outdated])
    sql = "INSERT INTO memory_entries (source, title, generation, entry) VALUES (?, ?, ?, ?)"
    connection.executemany(sql, rows.values())
    indexed = [(*names, key) for names in rows for key in set(keys)]
    sql = "INSERT INTO memory_index (source, title, kind, value) VALUES (?, ?, 'key', ?)"
    connection.executemany(sql, indexed)


def _delete(connection: sqlite3.Connection, names: Collection[tuple[str, str]]) -> None:
    for table in ("memory_entries", "memory_index"):
        connection.executemany(f"DELETE FROM {table} WHERE source = ? AND title = ?", names)
