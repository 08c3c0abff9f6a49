"""Pages from outside the index (ERM4): whole pages are read, and BM25 keeps their relevant parts.

Any object with the one method of `Retriever` can bring pages: a search engine, an intranet, or the
`FolderRetriever` of this module.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Protocol

import numpy as np

from storage.answer_records import Passage
from storage.errors import SourceNotFound
from storage.records import Chunk, Document, Part, Record
from tasks.chunk import chunk_document
from tasks.load.discover import SourceFile, resolve, walk
from tasks.load.sources import compose, read_file
from tasks.load.tables import markdown_tables
from tasks.load.text import Unreadable, clean, pretty_stem
from tasks.retrieve.lexical import lexicon_of, passage_of, scaled
from tasks.step import step

PAGES = 5  # for each query
PART_TOKENS = 200
FURTHER_QUERY = 0.8  # the weight of every query after the first

logger = logging.getLogger(__name__)


class Page(Record):
    """The text of a whole page; `path` is a file or an address.

    `pages` are the offsets at which its printed pages begin, if it has any.
    """

    path: str
    title: str
    text: str
    pages: tuple[int, ...] = ()


class Retriever(Protocol):
    """Brings the n most promising pages for a query, best first; fewer if there are fewer."""

    async def pages(self, query: str, n: int) -> Sequence[Page]: ...


@dataclass(frozen=True)
class OutsidePages:
    """The pages read for a question, as documents and chunks by id; a document's id is the path
    of its page.
    """

    documents: dict[str, Document] = field(default_factory=dict)
    chunks: dict[str, Chunk] = field(default_factory=dict)

    def add(self, documents: Sequence[Document], chunks: Sequence[Chunk]) -> None:
        self.documents.update({document.id: document for document in documents})
        self.chunks.update({chunk.id: chunk for chunk in chunks})


@step("read-pages")
async def read_pages(
    retriever: Retriever, queries: Sequence[str]
) -> tuple[list[Document], list[Chunk]]:
    """Read the best pages for each query, each page once, as documents and their parts.

    Pages without text are left out.
    """
    brought = await asyncio.gather(*(retriever.pages(query, PAGES) for query in queries))
    pages = {page.path: page for best in brought for page in best[:PAGES] if page.text.strip()}

    def cut() -> tuple[list[Document], list[Chunk]]:
        documents = compose(map(_part, pages.values()))
        return documents, [
            chunk for document in documents for chunk in chunk_document(document, PART_TOKENS, 0)
        ]

    return await asyncio.to_thread(cut)


def best_parts(chunks: Sequence[Chunk], queries: Sequence[str], most: int) -> list[Passage]:
    """Return up to `most` chunks that share words with the queries, best first, scored from 0 to 1.

    The first query counts most.
    """
    lexicon = lexicon_of(chunks)
    total = np.zeros(len(chunks))
    for rank, query in enumerate(queries):
        total = np.maximum(total, scaled(lexicon.scores(query)) * (FURTHER_QUERY if rank else 1.0))
    order = np.argsort(-total, kind="stable")[:most].tolist()
    return [passage_of(chunks[place], total[place]) for place in order if total[place] > 0]


def interleaved(passages: Sequence[Passage], outside: Sequence[Passage]) -> list[Passage]:
    """Take passages from both lists in turn: their scores cannot be compared."""
    pairs = zip_longest(passages, outside)
    return [passage for pair in pairs for passage in pair if passage is not None]


class FolderRetriever:
    """Brings the files of a folder as pages, in every format that can be indexed.

    A file that has changed is read again.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._read: dict[str, tuple[tuple[int, int], list[Page]]] = {}

    async def pages(self, query: str, n: int) -> Sequence[Page]:
        """Rank whole pages with their titles by BM25. Raises SourceNotFound without a folder."""
        return await asyncio.to_thread(self._best, query, n)

    def _best(self, query: str, n: int) -> list[Page]:
        pages = self._all()
        chunks = [
            Chunk(
                id=page.path,
                document=page.path,
                ordinal=0,
                start=0,
                end=len(page.text),
                text=page.text,
                tokens=0,
                language="und",
                title=page.title,
            )
            for page in pages
        ]
        scores = lexicon_of(chunks).scores(query)
        order = np.argsort(-scores, kind="stable")[:n].tolist()
        return [pages[place] for place in order if scores[place] > 0]

    def _all(self) -> list[Page]:
        if not self.folder.exists():
            raise SourceNotFound(self.folder, "Name a folder of pages that is there.")
        (source,) = resolve([self.folder])
        pages: list[Page] = []
        for file in walk(source, []):
            stat = Path(file.path).stat()
            stamp = (stat.st_mtime_ns, stat.st_size)
            if file.path not in self._read or self._read[file.path][0] != stamp:
                self._read[file.path] = (stamp, _pages_of(file))
            pages += self._read[file.path][1]
        return pages


def _pages_of(file: SourceFile) -> list[Page]:
    try:
        parts = read_file(file).parts
    except Unreadable as reason:
        logger.warning("%s cannot be read as a page: %s", file.path, reason)
        return []
    return [
        Page(path=part.path, title=part.title, text=part.text, pages=part.pages) for part in parts
    ]


def _part(page: Page) -> Part:
    return Part(
        document=page.path,
        source="",
        path=page.path,
        kind="text",
        title=page.title or pretty_stem(page.path),
        text=clean(page.text),
        pages=page.pages,
        tables=markdown_tables(page.text),
    )
