"""What can be read from an open generation?"""

from types import TracebackType
from typing import Protocol

from storage.communities import CommunityReader
from storage.database import Database
from storage.documents import DocumentReader
from storage.edits import EditReader
from storage.extractions import ExtractionReader
from storage.filters import FilterReader
from storage.graph import GraphReader
from storage.graph_export import TableReader
from storage.items import ItemReader
from storage.locks import Lease
from storage.meta import MetaReader
from storage.postings import PostingReader
from storage.traversal import TraversalReader
from storage.vectors import StoredVectors, VectorReader, VectorStore


class Rooms(Protocol):
    """What a generation and a staging have in common."""

    @property
    def documents(self) -> DocumentReader: ...
    @property
    def extractions(self) -> ExtractionReader: ...
    @property
    def postings(self) -> PostingReader: ...
    @property
    def graph(self) -> GraphReader: ...
    @property
    def communities(self) -> CommunityReader: ...
    @property
    def vectors(self) -> StoredVectors: ...
    @property
    def meta(self) -> MetaReader: ...


class Generation:
    """A published generation, open for reading from any thread. It stays as it is, and stays, until `close`."""

    def __init__(self, number: int, database: Database, store: VectorStore, lease: Lease) -> None:
        self.number = number
        self._db = database
        self._lease = lease
        self.documents = DocumentReader(database)
        self.extractions = ExtractionReader(database)
        self.postings = PostingReader(database)
        self.graph = GraphReader(database)
        self.communities = CommunityReader(database)
        self.vectors = VectorReader(database, number, store)
        self.meta = MetaReader(database)
        self.edits = EditReader(database)
        self.tables = TableReader(database)
        self.traversal = TraversalReader(database)
        self.filters = FilterReader(database)
        self.items = ItemReader(database)

    def __enter__(self) -> "Generation":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.vectors.close()
        self._db.close()
        self._lease.release()
