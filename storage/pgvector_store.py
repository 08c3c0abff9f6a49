"""Serves vectors from PostgreSQL with the extension pgvector: a table for each generation.

A table has the columns window, text, metadata (JSON) and embedding, for other programs too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from json import dumps
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from pgvector import HalfVector
from pgvector.psycopg import register_vector
from psycopg.sql import SQL, Composed, Identifier
from psycopg.types.json import Jsonb

from storage.errors import SettingsError, StorageError
from storage.server_store import ServerStore, in_json, without_credentials
from storage.vector_store import REBUILD, ServerAddress
from storage.vectors import Hit, StoredVectors, Vector

_PAGE = 5_000
_TIMEOUT = 10  # seconds, for a connection
_LONGEST = 2_000  # numbers that an index of `vector` takes; `halfvec` takes twice as many
# A search visits 200 entries of the graph, and then more until it has found enough.
_SEARCHES = "SET hnsw.ef_search = 200; SET hnsw.iterative_scan = strict_order"
_COPY = 'COPY {name} ("window", text, metadata, embedding) FROM STDIN (FORMAT BINARY)'
_NEAREST = """
    SELECT "window", 1 - (embedding <=> %(asked)s) FROM {name}
    ORDER BY embedding <=> %(asked)s LIMIT %(count)s
"""
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
_NO_SERVER = "no PostgreSQL server with pgvector does this"
_REMEDY = (
    "Start it and install pgvector (a superuser's CREATE EXTENSION vector), or correct "
    "TRELLIS_VECTOR_URL and TRELLIS_VECTOR_API_KEY."
)


class PgvectorServer:
    """Implements `storage.server_store.IndexServer` with a database of a PostgreSQL server."""

    def __init__(self, server: ServerAddress) -> None:
        self._place = without_credentials(server.url)
        if urlsplit(server.url).scheme not in {"postgresql", "postgres"}:
            expected = "an address such as postgresql://USER@localhost/DATABASE"
            raise SettingsError("vector_url", self._place, expected)
        self._server = server

    def check(self) -> None:
        """Create the extension where the database lacks it."""
        with self.connection(vectors=False) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")

    def make(self, name: str, stored: StoredVectors) -> None:
        """Copy all windows into a new table and index them, in one transaction."""
        longer, size = stored.size() > _LONGEST, stored.size()
        kind = "halfvec" if longer else "vector"
        columns = f'"window" text, text text, metadata jsonb, embedding {kind}({size})'
        index = f"CREATE INDEX ON {{name}} USING hnsw (embedding {kind}_cosine_ops)"
        with self.connection() as connection, connection.transaction():
            connection.execute(_named(f"CREATE TABLE {{name}} ({columns})", name))
            with connection.cursor().copy(_named(_COPY, name)) as copy:
                copy.set_types(["text", "text", "jsonb", kind])
                for entry in (entry for page in stored.entries(_PAGE) for entry in page):
                    vector = HalfVector(entry.vector) if longer else entry.vector
                    metadata = Jsonb(in_json(entry.metadata), _without_nul)
                    copy.write_row((entry.id, entry.text.replace("\0", ""), metadata, vector))
            connection.execute(_named(index, name))

    def open(self, name: str) -> "PgvectorIndex":
        if name not in self.names():
            raise StorageError(f"{self._place} {name}", "the vector index is missing", REBUILD)
        return PgvectorIndex(self, name)

    def names(self) -> list[str]:
        with self.connection(vectors=False) as connection:
            return [name for (name,) in connection.execute(_TABLES)]

    def remove(self, name: str) -> None:
        with self.connection(vectors=False) as connection:
            connection.execute(_named("DROP TABLE IF EXISTS {name}", name))

    def connect(self, vectors: bool = True) -> "psycopg.Connection[tuple[Any, ...]]":
        connection = psycopg.connect(
            self._server.url, autocommit=True, password=self._server.token, connect_timeout=_TIMEOUT
        )
        if vectors:
            register_vector(connection)
            connection.execute(_SEARCHES)
        return connection

    @contextmanager
    def connection(self, vectors: bool = True) -> "Iterator[psycopg.Connection[tuple[Any, ...]]]":
        with self.reported(_NO_SERVER, _REMEDY), self.connect(vectors) as connection:
            yield connection

    @contextmanager
    def reported(self, problem: str, remedy: str) -> Iterator[None]:
        """Turn the driver's errors into a StorageError about this server."""
        try:
            yield
        except psycopg.Error as error:
            words = (str(error).splitlines() or [type(error).__name__])[0]
            raise StorageError(self._place, f"{problem} ({words})", remedy) from error


class PgvectorIndex:
    """A table and a connection, which serves one thread after another."""

    def __init__(self, server: PgvectorServer, name: str) -> None:
        self._server = server
        self._name = name
        with server.reported(_NO_SERVER, _REMEDY):
            self._connection = server.connect()

    def search(self, vector: Vector, count: int) -> list[Hit]:
        with self._server.reported(f"the vector index {self._name} cannot be used", REBUILD):
            try:
                return self._found(vector, count)
            except psycopg.OperationalError:  # The server began anew, or closed an idle connection
                self._connection = self._server.connect()
                return self._found(vector, count)

    def _found(self, vector: Vector, count: int) -> list[Hit]:
        asked = HalfVector(vector) if len(vector) > _LONGEST else vector
        values = {"asked": asked, "count": count}
        return [Hit(*row) for row in self._connection.execute(_named(_NEAREST, self._name), values)]

    def close(self) -> None:
        self._connection.close()


def open_store(root: Path, server: ServerAddress | None) -> ServerStore:
    """Make the store of a workspace. Raises SettingsError without an address."""
    return ServerStore(root, PgvectorServer(server or ServerAddress("")))


def _named(sql: str, name: str) -> Composed:
    return SQL(sql).format(name=Identifier(name))


def _without_nul(metadata: object) -> str:
    """Write JSON as PostgreSQL can store it."""
    return dumps(metadata, ensure_ascii=False).replace("\\u0000", "")
