"""What has been answered before, from which evidence (ERM4's memory: titles and their contents).

An entry is looked up by keys (`tasks.question_similarity.keys`), never by reading all of them: a question's cost does
not grow with what is remembered.
"""

import sqlite3
from collections.abc import Collection, Sequence

from pydantic import ConfigDict

from storage.answer_records import Fallback
from storage.records import Record
from storage.sqlite import Row, SqliteFile

_TRIMMED_EACH = 64  # entries: counting thousands of them is too much for every one
_RAREST = 3  # keys that entries are looked up by
_COMMON = 500  # entries: a key of more is not looked up by where there is another
_OLDEST = "SELECT source, title FROM memory_entries ORDER BY generation DESC, random() LIMIT -1 OFFSET ?"


class MemoryEntry(Record):
    """A title and its content. `evidence` are the hashes of what it was made from, `documents` where that stands;
    both are sets and come back sorted; `ranked` is the evidence in the order in which it was read. `support` is how
    well the answer was supported that it comes from. What an earlier version kept besides is passed over.

    `surroundings` stands for all passages about what the title names when it was stored: where they are others, newer
    ones may say more. Empty: not told.
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
    """The reservoir of titles and contents, at most about `limit` entries: any of the oldest generation go first."""

    def __init__(self, file: SqliteFile, limit: int = 10_000) -> None:
        self._file = file
        self._limit = limit
        self._added = 0

    def put(self, entries: Sequence[MemoryEntry], keys: Collection[str] = ()) -> None:
        """Stores entries in one transaction, to be found by `keys`; the same title of the same source replaces.

        One of another source goes also where its surroundings are others: it would not be served again.
        """
        with self._file.transaction() as connection:
            for entry in entries:
                _put(connection, entry, keys)
            self._added += len(entries)
            if self._added >= min(_TRIMMED_EACH, self._limit):
                self._added = 0
                _delete(connection, connection.execute(_OLDEST, (self._limit,)).fetchall())

    def entries(self) -> list[MemoryEntry]:
        """By source and title."""
        return _entries(self._file.rows("SELECT entry FROM memory_entries ORDER BY source, title"))

    def found_by(self, keys: Sequence[str], limit: int = 64) -> list[MemoryEntry]:
        """The entries with one of the rarest keys of these, the newest first, at most `limit`."""
        counted = []
        for key in keys:
            sql = "SELECT count(*) FROM (SELECT 1 FROM memory_index WHERE kind = 'key' AND value = ? LIMIT ?)"
            for (number,) in self._file.rows(sql, (key, _COMMON)):
                counted.append((int(str(number)), key))
        rarest = [key for number, key in sorted(counted) if number][:_RAREST]
        if not rarest:
            return []
        marks = ", ".join("?" for _ in rarest)
        sql = (
            "SELECT entry FROM memory_entries WHERE (source, title) IN "
            f"(SELECT source, title FROM memory_index WHERE kind = 'key' AND value IN ({marks})) "
            "ORDER BY generation DESC, source, title LIMIT ?"
        )
        return _entries(self._file.rows(sql, (*rarest, limit)))

    def expire(self, alive: Collection[str]) -> int:
        """Removes the entries with evidence that is no longer alive; returns how many. Without evidence they stay."""
        living = set(alive)
        rows = self._file.rows("SELECT source, title, value FROM memory_index WHERE kind = 'evidence'")
        return self._remove({(str(source), str(title)) for source, title, value in rows if value not in living})

    def remove_document(self, document: str) -> int:
        """Removes the entries made from this document; returns how many."""
        sql = "SELECT source, title FROM memory_index WHERE kind = 'document' AND value = ?"
        return self._remove({(str(source), str(title)) for source, title in self._file.rows(sql, (document,))})

    def _remove(self, names: Collection[tuple[str, str]]) -> int:
        if names:
            with self._file.transaction() as connection:
                _delete(connection, names)
        return len(names)


def _put(connection: sqlite3.Connection, entry: MemoryEntry, keys: Collection[str]) -> None:
    names = (entry.source, entry.title)
    sets = {name: tuple(sorted(set(getattr(entry, name)))) for name in ("evidence", "documents")}
    indexed = {"evidence": sets["evidence"], "document": sets["documents"], "key": set(keys)}
    same_title = """
        SELECT source, title FROM memory_entries
        WHERE title = ? AND json_extract(entry, '$.surroundings') <> ?
    """
    outdated = connection.execute(same_title, (entry.title, entry.surroundings)).fetchall()
    _delete(connection, [names, *outdated])
    stored = entry.model_copy(update=sets).model_dump_json()
    connection.execute(
        "INSERT INTO memory_entries (source, title, generation, entry) VALUES (?, ?, ?, ?)",
        (*names, entry.generation, stored),
    )
    rows = [(*names, kind, value) for kind, values in indexed.items() for value in values]
    connection.executemany("INSERT INTO memory_index (source, title, kind, value) VALUES (?, ?, ?, ?)", rows)


def _delete(connection: sqlite3.Connection, names: Collection[tuple[str, str]]) -> None:
    for table in ("memory_entries", "memory_index"):
        connection.executemany(f"DELETE FROM {table} WHERE source = ? AND title = ?", names)


def _entries(rows: Sequence[Row]) -> list[MemoryEntry]:
    return [MemoryEntry.model_validate_json(str(entry)) for (entry,) in rows]
