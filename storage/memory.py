"""What has been answered before, from which evidence (ERM4's memory: titles and their contents)?"""

import json
import sqlite3
from collections.abc import Collection

from storage.records import Record
from storage.sqlite import Row, SideDatabase

_SELECT = """
    SELECT source, title, content, generation,
           (SELECT json_group_array(hash) FROM memory_evidence AS e WHERE e.source = m.source AND e.title = m.title),
           (SELECT json_group_array(document) FROM memory_documents AS d
               WHERE d.source = m.source AND d.title = m.title)
    FROM memory AS m
"""


class MemoryEntry(Record):
    """A title and its content. `evidence` are the hashes of what it was made from, `documents` where that stands;
    both are sets and come back sorted."""

    source: str
    title: str
    content: str
    evidence: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    generation: int


_OLDEST = "SELECT source, title FROM memory ORDER BY generation DESC, random() LIMIT -1 OFFSET ?"
_TRIMMED_EACH = 64  # entries: counting thousands of them is too much for every one


class Memory:
    """The reservoir of titles and contents, at most about `limit` entries: any of the oldest generation go first."""

    def __init__(self, database: SideDatabase, limit: int = 10_000) -> None:
        self._db = database
        self._limit = limit
        self._added = 0

    def put(self, entry: MemoryEntry) -> None:
        """Stores an entry; the same title of the same source replaces."""
        key = (entry.source, entry.title)
        with self._db.transaction() as connection:
            _delete(connection, [key])
            connection.execute("INSERT INTO memory VALUES (?, ?, ?, ?)", (*key, entry.content, entry.generation))
            connection.executemany(
                "INSERT INTO memory_evidence VALUES (?, ?, ?)", [(*key, h) for h in set(entry.evidence)]
            )
            connection.executemany(
                "INSERT INTO memory_documents VALUES (?, ?, ?)", [(*key, d) for d in set(entry.documents)]
            )
            self._added += 1
            if self._added >= min(_TRIMMED_EACH, self._limit):
                self._added = 0
                _delete(connection, connection.execute(_OLDEST, (self._limit,)).fetchall())

    def get(self, source: str, title: str) -> MemoryEntry | None:
        found = self._db.rows(f"{_SELECT} WHERE source = ? AND title = ?", (source, title))
        return _entry(found[0]) if found else None

    def entries(self) -> list[MemoryEntry]:
        """By source and title."""
        return [_entry(row) for row in self._db.rows(f"{_SELECT} ORDER BY source, title")]

    def titles(self) -> list[tuple[str, str]]:
        """Source and title of every entry, in that order."""
        return [(str(s), str(t)) for s, t in self._db.rows("SELECT source, title FROM memory ORDER BY source, title")]

    def expire(self, alive: Collection[str]) -> int:
        """Removes the entries with evidence that is no longer alive; returns how many. Without evidence they stay."""
        living = set(alive)
        rows = self._db.rows("SELECT source, title, hash FROM memory_evidence")
        return self._remove({(str(source), str(title)) for source, title, h in rows if h not in living})

    def remove_document(self, document: str) -> int:
        """Removes the entries made from this document; returns how many."""
        rows = self._db.rows("SELECT source, title FROM memory_documents WHERE document = ?", (document,))
        return self._remove({(str(source), str(title)) for source, title in rows})

    def clear(self) -> None:
        self._remove(self.titles())

    def _remove(self, keys: Collection[tuple[str, str]]) -> int:
        if keys:
            with self._db.transaction() as connection:
                _delete(connection, keys)
        return len(keys)


def _delete(connection: sqlite3.Connection, keys: Collection[tuple[str, str]]) -> None:
    for table in ("memory", "memory_evidence", "memory_documents"):
        connection.executemany(f"DELETE FROM {table} WHERE source = ? AND title = ?", keys)


def _entry(row: Row) -> MemoryEntry:
    source, title, content, generation, evidence, documents = row
    return MemoryEntry(
        source=str(source),
        title=str(title),
        content=str(content),
        generation=int(str(generation)),
        evidence=tuple(sorted(json.loads(str(evidence)))),
        documents=tuple(sorted(json.loads(str(documents)))),
    )
