"""Lexical search: BM25 (Robertson and Zaragoza 2009) over stored term counts."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from prompts.text.languages import language_among
from prompts.text.words import terms
from storage.answer_records import Passage
from storage.records import Chunk

K1 = 1.2
B = 0.75
_LAST_READ = 1_024  # texts

Scores = NDArray[np.float64]


def scaled(scores: Scores) -> Scores:
    """Scores divided by the best one."""
    best = scores.max(initial=0.0)
    return scores / best if best > 0 else scores


def passage_of(chunk: Chunk, score: float) -> Passage:
    """A chunk as a passage with its score."""
    score = round(float(score), 6)
    return Passage(
        document=chunk.document, title=chunk.title, chunk=chunk.id, score=score, text=chunk.text
    )


def chunk_terms(chunk: Chunk) -> Counter[str]:
    """Term counts of a chunk with its title and headings: it is found by what it belongs to."""
    return Counter(terms(f"{chunk.title}\n{chunk.heading}\n{chunk.text}", chunk.language))


class Lexicon:
    """BM25 over a fixed set of chunks; immutable, so safe to share between threads."""

    def __init__(
        self,
        counts: "scipy.sparse.csr_matrix",
        vocabulary: Sequence[str],
        languages: Collection[str] = ("en",),
    ) -> None:
        """`counts[i, j]`: how often chunk i, in one of the languages, holds term j."""
        self.size = counts.shape[0]
        self.languages = frozenset(languages)
        self.column = {term: index for index, term in enumerate(vocabulary)}
        weights = counts.astype(np.float64).tocsc()
        held = np.diff(weights.indptr)
        self.idf = np.log1p((self.size - held + 0.5) / (held + 0.5))
        lengths = np.asarray(weights.sum(axis=1)).ravel()
        norm = K1 * (
            1 - B + B * lengths[weights.indices] / max(lengths.mean() if self.size else 1.0, 1e-9)
        )
        weights.data = np.repeat(self.idf, held) * weights.data * (K1 + 1) / (weights.data + norm)
        self.matrix = weights
        self._last_terms = lru_cache(_LAST_READ)(self._terms_of)

    def idf_of(self, term: str) -> float:
        """How rare a term is; a term that occurs nowhere is the rarest."""
        column = self.column.get(term)
        return (
            float(self.idf[column])
            if column is not None
            else float(np.log1p(self.size + 0.5) + 0.7)
        )

    def holding(self, term: str) -> NDArray[np.int32]:
        """The chunks that hold a term, in no order."""
        column = self.column.get(term)
        if column is None:
            return np.zeros(0, np.int32)
        return np.asarray(
            self.matrix.indices[self.matrix.indptr[column] : self.matrix.indptr[column + 1]]
        )

    def scores(self, question: str) -> Scores:
        """BM25 of every chunk for a question, ≥ 0."""
        return self.scores_of(self.terms_of(question))

    def terms_of(self, question: str) -> list[str]:
        """The terms of a question, stemmed as the chunks of its language are."""
        return list(self._last_terms(question))

    def _terms_of(self, question: str) -> list[str]:
        return language_among(question, self.languages).content_terms(question)

    def scores_of(self, wanted: Iterable[str]) -> Scores:
        """BM25 of every chunk for these terms."""
        total = np.zeros(self.size)
        for column in (self.column[term] for term in wanted if term in self.column):
            start, end = self.matrix.indptr[column], self.matrix.indptr[column + 1]
            total[self.matrix.indices[start:end]] += self.matrix.data[start:end]
        return total


def lexicon_of(chunks: Sequence[Chunk]) -> Lexicon:
    """BM25 over these chunks alone."""
    vocabulary: dict[str, int] = {}
    rows: list[tuple[int, int, int]] = []
    for place, chunk in enumerate(chunks):
        rows += [
            (place, vocabulary.setdefault(t, len(vocabulary)), n)
            for t, n in chunk_terms(chunk).items()
        ]
    chunk_index, term_index, counts = np.array(rows, np.int32).reshape(-1, 3).T
    shape = len(chunks), len(vocabulary)
    return Lexicon(
        scipy.sparse.csr_matrix((counts, (chunk_index, term_index)), shape=shape), list(vocabulary)
    )
