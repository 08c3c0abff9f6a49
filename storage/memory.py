"""What has been answered before, from which evidence (ERM4's memory: titles and their contents).

An entry is looked up by keys (`tasks.question_similarity.keys`), never by reading all of them: a question's cost does
not grow with what is remembered.
"""

import json
import sqlite3
from collections.abc import Collection, Sequence
from itertools import zip_longest

from storage.answer_records import Fallback
from storage.records import Record
from storage.sqlite import Row, SqliteFile

_SELECT = """
    SELECT source, title, content, generation,
           (SELECT json_group_array(hash) FROM memory_evidence AS e WHERE e.source = m.source AND e.title = m.title),
           (SELECT json_group_array(document) FROM memory_documents AS d
               WHERE d.source = m.source AND d.title = m.title),
           coalesce(b.support, 'none'), coalesce(b.surroundings, ''), coalesce(b.ranked, '[]')
    FROM memory AS m LEFT JOIN memory_basis AS b USING (source, title)
"""


class MemoryEntry(Record):
    """A title and its content. `evidence` are the hashes of what it was made from, `documents` where that stands;
    both are sets and come back sorted; `ranked` is the evidence in the order in which it was read, `shares` what each
    had, beside the others, by the graph (`tasks.filter`; 0: not told). `support` is how well the answer was
    supported that it comes from.

    `surroundings` stands for all passages about what the title names when it was stored: where they are others, newer
    ones may say more. Empty: not told.
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
    shares: tuple[float, ...] = ()


_OLDEST = "SELECT source, title FROM memory ORDER BY generation DESC, random() LIMIT -1 OFFSET ?"
_TRIMMED_EACH = 64  # entries: counting thousands of them is too much for every one
_TABLES = ("memory", "memory_evidence", "memory_documents", "memory_basis", "memory_keys")
_RAREST = 3  # keys that entries are looked up by
_COMMON = 500  # entries: a key of more is not looked up by where there is another


class Memory:
    """The reservoir of titles and contents, at most about `limit` entries: any of the oldest generation go first."""

    def __init__(self, database: SqliteFile, limit: int = 10_000) -> None:
        self._db = database
        self._limit = limit
        self._added = 0

    def put(self, entry: MemoryEntry, keys: Collection[str] = (), title_alone: bool = False) -> None:
        """Stores an entry, to be found by `keys`; the same title of the same source replaces.

        With `title_alone` the title of whatever source does, as published. One of another source goes also where its
        surroundings are others: it would not be served again.
        """
        key = (entry.source, entry.title)
        made = (
            *key,
            entry.support,
            entry.surroundings,
            json.dumps(list(zip_longest(entry.ranked, entry.shares, fillvalue=0.0))),
        )
        with self._db.transaction() as connection:
            _delete(connection, [key, *_outdated(connection, entry, title_alone)])
            connection.execute("INSERT INTO memory VALUES (?, ?, ?, ?)", (*key, entry.content, entry.generation))
            connection.execute("INSERT INTO memory_basis VALUES (?, ?, ?, ?, ?)", made)
            for table, values in (
                ("memory_evidence", entry.evidence), ("memory_documents", entry.documents), ("memory_keys", keys)
            ):  # fmt: skip
                rows = [(*key, value) for value in set(values)]
                connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)
            self._added += 1
            if self._added >= min(_TRIMMED_EACH, self._limit):
                self._added = 0
                _delete(connection, connection.execute(_OLDEST, (self._limit,)).fetchall())

    def get(self, source: str, title: str) -> MemoryEntry | None:
        found = self._db.rows(f"{_SELECT} WHERE m.source = ? AND m.title = ?", (source, title))
        return _entry(found[0]) if found else None

    def entries(self) -> list[MemoryEntry]:
        """By source and title."""
        return [_entry(row) for row in self._db.rows(f"{_SELECT} ORDER BY m.source, m.title")]

    def found_by(self, keys: Sequence[str], limit: int = 64) -> list[MemoryEntry]:
        """The entries with one of the rarest keys of these, the newest first, at most `limit`."""
        counted = []
        for key in keys:
            sql = "SELECT count(*) FROM (SELECT 1 FROM memory_keys WHERE key = ? LIMIT ?)"
            for (number,) in self._db.rows(sql, (key, _COMMON)):
                counted.append((int(str(number)), key))
        rarest = [key for number, key in sorted(counted) if number][:_RAREST]
        if not rarest:
            return []
        marks = ", ".join("?" for _ in rarest)
        sql = (
            f"{_SELECT} WHERE (m.source, m.title) IN (SELECT source, title FROM memory_keys WHERE key IN ({marks})) "
            "ORDER BY m.generation DESC, m.source, m.title LIMIT ?"
        )
        return [_entry(row) for row in self._db.rows(sql, (*rarest, limit))]

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


def _outdated(connection: sqlite3.Connection, entry: MemoryEntry, title_alone: bool) -> list[tuple[str, str]]:
    """The entries of other sources that a new one of the same title replaces."""
    sql = (
        "SELECT source, title FROM memory LEFT JOIN memory_basis USING (source, title) WHERE title = ? AND source <> ?"
    )
    parameters = [entry.title, entry.source]
    if not title_alone:
        sql += " AND coalesce(surroundings, '') <> ?"
        parameters.append(entry.surroundings)
    return [(str(source), str(title)) for source, title in connection.execute(sql, parameters)]


def _delete(connection: sqlite3.Connection, keys: Collection[tuple[str, str]]) -> None:
    for table in _TABLES:
        connection.executemany(f"DELETE FROM {table} WHERE source = ? AND title = ?", keys)


def _entry(row: Row) -> MemoryEntry:
    source, title, content, generation, evidence, documents, support, surroundings, ranked = row
    order = json.loads(str(ranked))
    return MemoryEntry.model_validate(
        {
            "source": source, "title": title, "content": content, "generation": generation, "support": support,
            "evidence": sorted(json.loads(str(evidence))), "documents": sorted(json.loads(str(documents))),
            "surroundings": surroundings, "ranked": [chunk for chunk, _ in order],
            "shares": [share for _, share in order] if any(share for _, share in order) else (),
        }
    )  # fmt: skip
