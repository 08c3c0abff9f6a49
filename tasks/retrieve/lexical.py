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

Scores = NDArray[np.float64]


def scaled(scores: Scores) -> Scores:
    """Divide scores by the best one."""
    best = scores.max(initial=0.0)
    return scores / best if best > 0 else scores


def passage_of(chunk: Chunk, score: float) -> Passage:
    """Make a passage of a chunk."""
    return Passage(
        document=chunk.document,
        title=chunk.title,
        chunk=chunk.id,
        score=round(float(score), 6),
        text=chunk.text,
    )


def chunk_terms(chunk: Chunk) -> Counter[str]:
    """Count the terms of a chunk, those of its title and headings among them."""
    return Counter(terms(f"{chunk.title}\n{chunk.heading}\n{chunk.text}", chunk.language))


class Lexicon:
    """BM25 over a fixed set of chunks; immutable, so safe to share between threads."""

    def __init__(
        self,
        counts: "scipy.sparse.csr_matrix",
        vocabulary: Sequence[str],
        languages: Collection[str] = ("en",),
    ) -> None:
        """`counts[i, j]` says how often chunk i holds term j; the chunks are in `languages`."""
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
        self._last_terms = lru_cache(1_024)(self._terms_of)

    def idf_of(self, term: str) -> float:
        """Return the inverse document frequency; a term that no chunk holds is the rarest."""
        column = self.column.get(term)
        return float(np.log1p(self.size + 0.5) + 0.7 if column is None else self.idf[column])

    def holding(self, term: str) -> NDArray[np.int32]:
        """Return the chunks that hold a term, in no order."""
        column = self.column.get(term)
        if column is None:
            return np.zeros(0, np.int32)
        return np.asarray(self.matrix.indices[self._entries(column)])

    def scores(self, question: str) -> Scores:
        return self.scores_of(self.terms_of(question))

    def terms_of(self, question: str) -> list[str]:
        """Return the terms of a question, stemmed as the chunks of its language are."""
        return list(self._last_terms(question))

    def _terms_of(self, question: str) -> list[str]:
        return language_among(question, self.languages).content_terms(question)

    def scores_of(self, wanted: Iterable[str]) -> Scores:
        total = np.zeros(self.size)
        for column in (self.column[term] for term in wanted if term in self.column):
            entries = self._entries(column)
            total[self.matrix.indices[entries]] += self.matrix.data[entries]
        return total

    def _entries(self, column: int) -> slice:
        return slice(self.matrix.indptr[column], self.matrix.indptr[column + 1])


def lexicon_of(chunks: Sequence[Chunk]) -> Lexicon:
    """Build BM25 over these chunks alone."""
    vocabulary: dict[str, int] = {}
    rows = [
        (place, vocabulary.setdefault(term, len(vocabulary)), count)
        for place, chunk in enumerate(chunks)
        for term, count in chunk_terms(chunk).items()
    ]
    places, columns, counts = np.array(rows, np.int32).reshape(-1, 3).T
    shape = len(chunks), len(vocabulary)
    matrix = scipy.sparse.csr_matrix((counts, (places, columns)), shape=shape)
    return Lexicon(matrix, list(vocabulary))
