"""Which structures of documents need not be built again? (StructRAG: by document, type and what was wanted of it.)"""

from collections.abc import Callable

from storage.sqlite import SideDatabase

_FRESH = 60.0  # seconds: a hit is marked as used at most once a minute, so that reading stays reading
_TRIMMED_EACH = 64


class StructureCache:
    """Structures (JSON text) by key, at most about `limit` rows, the longest unused going first."""

    def __init__(self, database: SideDatabase, limit: int, clock: Callable[[], float]) -> None:
        self._db = database
        self._limit = limit
        self._clock = clock
        self._added = 0

    def get(self, key: str) -> str | None:
        found = self._db.rows("SELECT built, used FROM structures WHERE key = ?", (key,))
        if not found:
            return None
        if self._clock() - float(str(found[0][1])) > _FRESH:
            with self._db.transaction() as connection:
                connection.execute("UPDATE structures SET used = ? WHERE key = ?", (self._clock(), key))
        return str(found[0][0])

    def put(self, key: str, document: str, built: str) -> None:
        """Stores a structure; the same key replaces."""
        with self._db.transaction() as connection:
            connection.execute(
                "INSERT INTO structures (key, document, built, used) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (key) DO UPDATE SET built = excluded.built, used = excluded.used",
                (key, document, built, self._clock()),
            )
            self._added += 1
            if self._added >= min(_TRIMMED_EACH, self._limit):
                self._added = 0
                connection.execute(
                    "DELETE FROM structures WHERE key IN "
                    "(SELECT key FROM structures ORDER BY used DESC, key LIMIT -1 OFFSET ?)",
                    (self._limit,),
                )

    def remove_document(self, document: str) -> int:
        """Removes the structures of this document; returns how many."""
        with self._db.transaction() as connection:
            return connection.execute("DELETE FROM structures WHERE document = ?", (document,)).rowcount
