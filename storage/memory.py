"""Memory of answered questions and the evidence of their answers (ERM4: titles and their contents).

An entry is looked up by keys (`tasks.question_similarity.keys`), never by reading all of them: a
question's cost does not grow with what is remembered.
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Sequence

from pydantic import ConfigDict

from storage.answer_records import Fallback
from storage.records import Record
from storage.sqlite import SqliteFile

_TRIMMED_EACH = 64  # entries: counting thousands of them is too much for every one
# By the three rarest of the given keys: a common one would find most entries.
_FOUND = """
    SELECT entry FROM memory_entries WHERE (source, title) IN (
        SELECT source, title FROM memory_index WHERE kind = 'key' AND value IN (
            SELECT value FROM memory_index
            WHERE kind = 'key' AND value IN (SELECT value FROM json_each(?))
            GROUP BY value ORDER BY count(*), value LIMIT 3))
    ORDER BY generation DESC, source, title LIMIT ?
"""
_OLDEST = (
    "SELECT source, title FROM memory_entries ORDER BY generation DESC, random() LIMIT -1 OFFSET ?"
)


class MemoryEntry(Record):
    """A title and its content.

    `evidence` are the hashes of what it was made from, `documents` where that stands; both are sets
    and come back sorted; `ranked` is the evidence in the order in which it was read. `support` is
    how well the answer was supported that it comes from. What an earlier version kept besides is
    passed over.

    `surroundings` stands for all passages about what the title names when it was stored: where they
    are others, newer ones may say more. Empty: not told.
    """

    model_config = ConfigDict(extra="ignore")

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
    """The titles and contents, about `limit` at most; those of the oldest generation go first."""

    def __init__(self, file: SqliteFile, limit: int = 10_000) -> None:
        self._file = file
        self._limit = limit
        self._added = 0

    def put(self, entries: Sequence[MemoryEntry], keys: Collection[str] = ()) -> None:
        """Stores entries in one transaction, to be found by `keys`.

        The same title of the same source replaces. One of another source goes also where its
        surroundings are others: it would not be served again.
        """
        with self._file.transaction() as connection:
            _put(connection, entries, keys)
            self._added += len(entries)
            if self._added >= min(_TRIMMED_EACH, self._limit):
                self._added = 0
                _delete(connection, connection.execute(_OLDEST, (self._limit,)).fetchall())

    def entries(self) -> list[MemoryEntry]:
        """By source and title."""
        sql = "SELECT entry FROM memory_entries ORDER BY source, title"
        return self._file.read(sql, MemoryEntry.model_validate_json)

    def found_by(self, keys: Sequence[str], limit: int = 64) -> list[MemoryEntry]:
        """The entries with one of the rarest keys of these, the newest first."""
        return self._file.read(
            _FOUND, MemoryEntry.model_validate_json, (json.dumps(list(keys)), limit)
        )

    def expire(self, alive: Collection[str]) -> int:
        """Removes the entries with evidence that is no longer alive; returns how many.

        Without evidence they stay.
        """
        living = set(alive)
        return self._remove_where("evidence", lambda evidence: not living.issuperset(evidence))

    def remove_documents(self, documents: Collection[str]) -> int:
        """Removes the entries made from any of these documents; returns how many."""
        removed = set(documents)
        return self._remove_where("documents", lambda documents: not removed.isdisjoint(documents))

    def _remove_where(self, field: str, test: Callable[[list[str]], bool]) -> int:
        """Reads all entries, when documents have changed: every question would pay for an index."""
        sql = f"SELECT source, title, json_extract(entry, '$.{field}') FROM memory_entries"
        rows = self._file.rows(sql)
        names = [
            (str(source), str(title))
            for source, title, value in rows
            if test(json.loads(str(value)))
        ]
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
    connection.executemany(
        "INSERT INTO memory_index (source, title, kind, value) VALUES (?, ?, 'key', ?)", indexed
    )


def _delete(connection: sqlite3.Connection, names: Collection[tuple[str, str]]) -> None:
    for table in ("memory_entries", "memory_index"):
        connection.executemany(f"DELETE FROM {table} WHERE source = ? AND title = ?", names)
