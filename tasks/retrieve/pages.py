"""Pages outside the index (ERM4): the whole page is read, its relevant parts are kept by BM25.

Anything with `Retriever`'s one method can bring pages: a search engine, an intranet, or, shipped, a
folder of files.
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

PAGES = 5
PART_TOKENS = 200
FURTHER_QUERY = 0.8

logger = logging.getLogger(__name__)


class Page(Record):
    """A whole page: where it is (a path or an address), and its text. `pages` are the offsets at
    which its printed pages begin, empty where it has none.
    """

    path: str
    title: str
    text: str
    pages: tuple[int, ...] = ()


class Retriever(Protocol):
    """Brings the n pages that promise most for a query, best first; fewer where there are fewer."""

    async def pages(self, query: str, n: int) -> Sequence[Page]: ...


@dataclass(frozen=True)
class OutsidePages:
    """The pages that a question has read, as documents and chunks by id; a document's id is its
    page's path.
    """

    documents: dict[str, Document] = field(default_factory=dict)
    chunks: dict[str, Chunk] = field(default_factory=dict)

    def add(self, documents: Sequence[Document], chunks: Sequence[Chunk]) -> None:
        """From now on these are known too."""
        self.documents.update({document.id: document for document in documents})
        self.chunks.update({chunk.id: chunk for chunk in chunks})


@step("read-pages")
async def read_pages(
    retriever: Retriever, queries: Sequence[str]
) -> tuple[list[Document], list[Chunk]]:
    """The best pages for each query, once each, as documents and their parts; a page without text
    is none.
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
    """At most so many chunks that share words with the queries, best first, scores up to 1; the
    first counts most.
    """
    lexicon = lexicon_of(chunks)
    total = np.zeros(len(chunks))
    for rank, query in enumerate(queries):
        total = np.maximum(total, scaled(lexicon.scores(query)) * (FURTHER_QUERY if rank else 1.0))
    order = [
        place for place in np.argsort(-total, kind="stable")[:most].tolist() if total[place] > 0
    ]
    return [passage_of(chunks[place], total[place]) for place in order]


def interleaved(passages: Sequence[Passage], outside: Sequence[Passage]) -> list[Passage]:
    """Both in turn, best first: their scores do not compare, and neither may push the other out."""
    return [
        passage
        for pair in zip_longest(passages, outside)
        for passage in pair
        if passage is not None
    ]


class FolderRetriever:
    """The files of a folder as pages: every format that can be indexed. A file is read again when
    it has changed.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._read: dict[str, tuple[tuple[int, int], tuple[Page, ...]]] = {}

    async def pages(self, query: str, n: int) -> Sequence[Page]:
        """By BM25 over whole pages with their titles. Raises SourceNotFound where there is no such
        folder.
        """
        return await asyncio.to_thread(self._best, query, n)

    def _best(self, query: str, n: int) -> list[Page]:
        pages = self._all()
        whole = [
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
        scores = lexicon_of(whole).scores(query)
        return [
            pages[place]
            for place in np.argsort(-scores, kind="stable")[:n].tolist()
            if scores[place] > 0
        ]

    def _all(self) -> list[Page]:
        if not self.folder.exists():
            raise SourceNotFound(self.folder, "Name a folder of pages that is there.")
        (source,) = resolve([self.folder])
        pages: list[Page] = []
        for file in walk(source, []):
            stat = Path(file.path).stat()
            stamp = (stat.st_mtime_ns, stat.st_size)
            if self._read.get(file.path, (None,))[0] != stamp:
                self._read[file.path] = (stamp, tuple(_pages_of(file)))
            pages += self._read[file.path][1]
        return pages


def _pages_of(file: SourceFile) -> list[Page]:
    try:
        parts = read_file(file).parts
    except Unreadable as reason:
        logger.warning("%s is no page: %s", file.path, reason)
        return []
    return [
        Page(path=part.path, title=part.title, text=part.text, pages=part.pages) for part in parts
    ]


def _part(page: Page) -> Part:
    title = page.title or pretty_stem(page.path)
    return Part(
        document=page.path,
        source="",
        path=page.path,
        kind="text",
        title=title,
        text=clean(page.text),
        pages=page.pages,
        tables=markdown_tables(page.text),
    )
