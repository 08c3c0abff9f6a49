"""Lexical search: BM25 (Robertson and Zaragoza 2009) over stored term counts."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property, lru_cache

import numpy as np
import scipy  # its parts are loaded at their first use
from numpy.typing import NDArray

from prompts.text.languages import language_among
from prompts.text.misspelling import SEARCHED, known_spelling
from prompts.text.regex import regex
from prompts.text.words import HAN_RUN, bare_word, is_signed, simplified, terms
from storage.answer_records import Passage
from storage.records import Chunk, by_key

K1 = 1.2
B = 0.75
_LAST_READ = 1_024  # texts
_SIGNED_TERM = regex(r"^\.|[#♯♭+−]$", re.MULTILINE)

Scores = NDArray[np.float64]


def scaled(scores: Scores) -> Scores:
    """Scores divided by the best one."""
    best = scores.max(initial=0.0)
    return scores / best if best > 0 else scores


def passage_of(chunk: Chunk, score: float) -> Passage:
    """A chunk as a passage with its score."""
    score = round(float(score), 6)
    return Passage(document=chunk.document, title=chunk.title, chunk=chunk.id, score=score, text=chunk.text)


def chunk_terms(chunk: Chunk) -> Counter[str]:
    """Term counts of a chunk with its title and headings, so that a passage is found by what it belongs to."""
    return Counter(terms(f"{chunk.title}\n{chunk.heading}\n{chunk.text}", chunk.language))


class Lexicon:
    """BM25 over a fixed set of chunks; immutable, so safe to share between threads."""

    def __init__(
        self, counts: "scipy.sparse.csr_matrix", vocabulary: Sequence[str], languages: Collection[str] = ("en",)
    ) -> None:
        """`counts[i, j]`: how often chunk i holds term j of the vocabulary; the chunks are in these `languages`."""
        stored = "\n".join(vocabulary)
        self._signed = _SIGNED_TERM.search(stored) is not None
        names = simplified(stored).split("\n")
        if vocabulary and names != list(vocabulary):  # an earlier version stored the terms as they were written
            distinct, places = np.unique(names, return_inverse=True)
            vocabulary = distinct.tolist()
            counts = counts @ scipy.sparse.csr_matrix((np.ones(len(names), int), (np.arange(len(names)), places)))
        self.size = counts.shape[0]
        self.languages = frozenset(languages)
        self.column = {term: index for index, term in enumerate(vocabulary)}
        weights = counts.astype(np.float64).tocsc()
        held = np.diff(weights.indptr)
        self.idf = np.log1p((self.size - held + 0.5) / (held + 0.5))
        lengths = np.asarray(weights.sum(axis=1)).ravel()
        norm = K1 * (1 - B + B * lengths[weights.indices] / max(lengths.mean() if self.size else 1.0, 1e-9))
        weights.data = np.repeat(self.idf, held) * weights.data * (K1 + 1) / (weights.data + norm)
        self.matrix = weights
        self._last_terms = lru_cache(_LAST_READ)(self._terms_of)

    def idf_of(self, term: str) -> float:
        """How rare a term is; a term that occurs nowhere is the rarest."""
        column = self.column.get(term)
        return float(self.idf[column]) if column is not None else float(np.log1p(self.size + 0.5) + 0.7)

    def holding(self, term: str) -> NDArray[np.int32]:
        """The chunks that hold a term, in no order."""
        column = self.column.get(term)
        if column is None:
            return np.zeros(0, np.int32)
        return np.asarray(self.matrix.indices[self.matrix.indptr[column] : self.matrix.indptr[column + 1]])

    def scores(self, question: str) -> Scores:
        """BM25 of every chunk for a question, ≥ 0."""
        return self.scores_of(self.terms_of(question))

    def terms_of(self, question: str) -> list[str]:
        """The terms of a question, stemmed as the chunks of its language are; for one that no chunk holds, what it may
        be a misspelling of. Those of the last texts are kept: several steps of one question ask for them."""
        return list(self._last_terms(question))

    def _terms_of(self, question: str) -> list[str]:
        wanted = language_among(question, self.languages).content_terms(question)
        return [self._spelling(term) for term in wanted]

    @cached_property
    def _begun(self) -> dict[str, list[str]]:
        """The vocabulary by first letter, which few mistype: a look at the whole would cost each question its size."""
        return by_key((term[:1], term) for term in self.column)

    def _spelling(self, term: str) -> str:
        """The term, or what it may be a misspelling of; without its sign where no term has one, as in
        an index that an earlier version made."""
        if not self._signed and is_signed(term):
            term = bare_word(term)
        if len(term) < SEARCHED or term in self.column or HAN_RUN.match(term):
            return term
        return known_spelling(term, self._begun.get(term[0], ()))

    def scores_of(self, wanted: Iterable[str]) -> Scores:
        columns = [self.column[term] for term in wanted if term in self.column]
        total = np.zeros(self.size)
        for column in columns:
            start, end = self.matrix.indptr[column], self.matrix.indptr[column + 1]
            total[self.matrix.indices[start:end]] += self.matrix.data[start:end]
        return total


def lexicon_of(chunks: Sequence[Chunk]) -> Lexicon:
    """BM25 over these chunks alone."""
    vocabulary: dict[str, int] = {}
    rows: list[tuple[int, int, int]] = []
    for place, chunk in enumerate(chunks):
        rows += [(place, vocabulary.setdefault(t, len(vocabulary)), n) for t, n in chunk_terms(chunk).items()]
    chunk_index, term_index, counts = np.array(rows, np.int32).reshape(-1, 3).T
    shape = len(chunks), len(vocabulary)
    return Lexicon(scipy.sparse.csr_matrix((counts, (chunk_index, term_index)), shape=shape), list(vocabulary))
