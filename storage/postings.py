"""How often does each term stand in each chunk?"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from storage.database import Database


@dataclass(frozen=True)
class Postings:
    """A sparse chunk-term matrix in coordinate form.

    Chunk `chunks[chunk_index[i]]` holds term `terms[term_index[i]]` `tf[i]` times.
    `chunks` lists every chunk of the generation, by document and ordinal; `terms` is sorted; the triplets are in order.
    """

    chunks: list[str]
    terms: list[str]
    chunk_index: NDArray[np.int32]
    term_index: NDArray[np.int32]
    tf: NDArray[np.int32]


class PostingReader:
    """Term counts, ready for a sparse matrix."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def postings(self) -> Postings:
        found = self._db.arrays(
            """
            WITH places AS (SELECT id, row_number() OVER (ORDER BY document, ordinal) - 1 AS place FROM chunks),
                 words AS (SELECT term, row_number() OVER (ORDER BY term) - 1 AS place
                           FROM (SELECT DISTINCT term FROM postings))
            SELECT places.place::INTEGER AS chunk_index, words.place::INTEGER AS term_index, postings.tf AS tf
            FROM postings JOIN places ON places.id = postings.chunk JOIN words ON words.term = postings.term
            ORDER BY chunk_index, term_index
            """
        )
        return Postings(
            chunks=self._db.strings("SELECT id FROM chunks ORDER BY document, ordinal"),
            terms=self._db.strings("SELECT DISTINCT term FROM postings ORDER BY term"),
            chunk_index=found["chunk_index"].astype(np.int32, copy=False),
            term_index=found["term_index"].astype(np.int32, copy=False),
            tf=found["tf"].astype(np.int32, copy=False),
        )

    def chunks_with_postings(self) -> set[str]:
        return set(self._db.strings("SELECT DISTINCT chunk FROM postings"))


class PostingWriter(PostingReader):
    """Adds writing. Every call is one transaction, or part of the one that is open."""

    def put_postings(self, postings: Mapping[str, Mapping[str, int]]) -> None:
        """Stores the term counts of each chunk, replacing what it had."""
        with self._db.transaction():
            self._db.delete("postings", "chunk", list(postings))
            self._db.insert("postings", {
                "chunk": [chunk for chunk, counts in postings.items() for _ in counts],
                "term": [term for counts in postings.values() for term in counts],
                "tf": [tf for counts in postings.values() for tf in counts.values()],
            })  # fmt: skip
