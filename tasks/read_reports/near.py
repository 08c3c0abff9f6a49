"""The passages and sentences nearest to a question, and the reports that they belong to.

Words, meaning and the communities of what a passage names decide. No model is asked.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import scipy

from prompts.text.evidence import Evidence
from prompts.text.relevance import CollectionTopic, Relevance, term_set
from prompts.text.thesaurus import members
from prompts.text.tokens import rarity
from prompts.text.words import content_terms, is_han
from storage.records import Chunk
from tasks.citations import pool_of
from tasks.retrieve.lexical import scaled
from tasks.retrieve.search import SearchIndex

NEAR_CHUNKS = 48
# The best passages whose common words are taken: a tenth of all, but between these numbers.
FEEDBACK_LEAST, FEEDBACK_CHUNKS = 6, 20
NEAR_TERMS = 24
LEAST_BITS = 2.0  # the rarity in English of a word that names a theme
LEAST_HOLDERS = 3  # of the best passages must hold a word that they are said to share
# A word that a collection is about is in at least this share of its sources; EVENLY is the weight
# of one that is spread evenly.
LEAST_SOURCES, EVENLY = 0.25, 0.02
COMMON_WORDS = 500  # the most widespread, from which its words are chosen in any case
MOST_OF_A_DOCUMENT = 3  # sentences
# Shares of the greatest rarity: a word below the first is in every passage or title ("tech" in a
# tech podcast), one below the second is common.
EVERYWHERE, COMMONPLACE = 0.03, 0.35


@dataclass(frozen=True)
class NearPassages:
    """A question's topic with the words of the best passages, and how near these are (0-1)."""

    topic: CollectionTopic
    chunks: Mapping[str, float]


class CommunityChunkIndex:
    """The share that the members of each community are of what each chunk names, by rarity."""

    def __init__(self, members: Mapping[str, Sequence[str]], index: SearchIndex) -> None:
        """`members` are the entities of each community."""
        self.communities = sorted(members)
        self._index = index
        where = index.by_id.place
        sizes = [len(members[name]) for name in self.communities]
        all_members = chain.from_iterable(members[name] for name in self.communities)
        columns = np.fromiter(
            (where.get(entity, -1) for entity in all_members), np.int64, sum(sizes)
        )
        known, rows = columns >= 0, np.repeat(np.arange(len(sizes)), sizes)
        held = scipy.sparse.csr_matrix(
            (np.ones(known.sum()), (rows[known], columns[known])), shape=(len(sizes), len(where))
        )
        stands, spread = index.entity_counts, np.diff(index.entity_counts.indptr)
        weights = np.repeat(1 / (1 + np.log1p(spread)), spread)
        totals = np.bincount(stands.indices, weights=weights, minlength=len(index.chunks))
        named = scipy.sparse.csr_matrix(
            (weights / totals[stands.indices], stands.indices, stands.indptr), stands.shape
        )
        self._shares = (held @ named).tocsc()
        self._sizes = np.asarray(self._shares.sum(axis=1)).ravel()

    def held(self, near: Mapping[str, float], most: int) -> dict[str, float]:
        """Score the communities that hold most of the near passages for their size; the best 1."""
        held = scaled((self._shares @ self._index.chunk_scores(near)) / np.sqrt(1 + self._sizes))
        best = np.argsort(-held, kind="stable")[:most]
        return {self.communities[row]: float(held[row]) for row in best}

    def of(self, chunk: str, communities: Collection[str]) -> str | None:
        """Return which of these communities holds most of what a chunk names, if any does."""
        column = self._index.position.get(chunk)
        if column is None:
            return None
        start, end = self._shares.indptr[column], self._shares.indptr[column + 1]
        shares = zip(
            self._shares.indices[start:end].tolist(),
            self._shares.data[start:end].tolist(),
            strict=True,
        )
        named = [(-share, self.communities[row]) for row, share in shares]
        return min((own for own in named if own[1] in communities), default=(0.0, None))[1]


def near_of(
    relevance: Relevance,
    index: SearchIndex,
    cosines: Mapping[str, float],
    documents: Collection[str] | None,
) -> NearPassages:
    """Find the passages nearest to the question by words and meaning, and their common words."""
    held = index.lexicon.column
    absent = frozenset(
        term for term in relevance.weights if held.keys().isdisjoint(members(term) or (term,))
    )
    topic = CollectionTopic(
        relevance,
        everywhere=_commoner(EVERYWHERE, relevance, index),
        absent=absent,
    )
    if topic.missing == 1.0 and not relevance.names:
        return NearPassages(topic, {})  # nothing in the collection has a word of it
    named = [
        term
        for forms in relevance.aliases.values()
        for form in forms
        for term in content_terms(form)
    ]
    lexical = index.lexicon.scores_of(dict.fromkeys([*topic.words, *named]))
    # If no word of the question sets passages apart, those about the collection's topic are taken.
    common = _commoner(COMMONPLACE, relevance, index)
    keys = {} if set(topic.asked) - common else _key_terms(topic, index)
    scores = (
        scaled(lexical) + scaled(index.chunk_scores(cosines))
        if topic.asked
        else np.zeros(len(index.chunks))
    )
    for term, weight in ({} if topic.asked else keys).items():
        scores[index.lexicon.holding(term)] += weight
    scores[~index.allowed(documents)] = 0.0
    best = [
        int(place)
        for place in np.argsort(-scores, kind="stable")[:NEAR_CHUNKS]
        if scores[place] > 0
    ]
    few = min(FEEDBACK_CHUNKS, max(FEEDBACK_LEAST, len(index.chunks) // 10))
    near = keys or _shared_terms([index.chunks[place] for place in best[:few]], topic, index)
    chunks = {index.chunks[place].id: float(scores[place] / scores[best[0]]) for place in best}
    return NearPassages(replace(topic, near=near), chunks)


def _commoner(share: float, relevance: Relevance, index: SearchIndex) -> frozenset[str]:
    """Return the question's words that are less rare than this share of the greatest rarity."""
    rarest = index.lexicon.idf_of("")
    return frozenset(term for term, weight in relevance.weights.items() if weight < share * rarest)


def _key_terms(topic: CollectionTopic, index: SearchIndex) -> dict[str, float]:
    """Return the words that a collection is about, with weights that sum to 1.

    Many passages hold them, but of fewer sources than by chance (residual IDF: Church and Gale
    1995).
    """
    lexicon = index.lexicon
    held = np.diff(lexicon.matrix.indptr)
    names, rows = np.unique(
        [chunk.title or chunk.document for chunk in index.chunks], return_inverse=True
    )
    of = scipy.sparse.csr_matrix(
        (np.ones(len(rows)), (rows, range(len(rows)))), shape=(len(names), len(rows))
    )
    spread = np.diff((of @ lexicon.matrix).tocsc().indptr)
    expected = len(names) * -np.expm1(-held / len(names))
    bursts = np.log(np.maximum(1.0, expected / np.maximum(spread, 1)))
    # If every passage is a source of its own, no content word is in a quarter of them.
    common = np.sort(spread)[::-1][:COMMON_WORDS][-1] if spread.size else 0
    least = max(2, min(LEAST_SOURCES * len(names), common))
    worth = np.where(spread >= least, held * (EVENLY + bursts) * lexicon.idf, 0.0)
    terms = list(lexicon.column)
    weights: dict[str, float] = {}
    for column in np.argsort(-worth, kind="stable"):
        term = terms[column]
        if len(weights) == NEAR_TERMS or worth[column] <= 0:
            break
        telling = rarity(term) >= LEAST_BITS and (len(term) > 3 or is_han(term))
        if term.isalpha() and telling and not topic.of_collection(term):
            weights[term] = float(worth[column])
    return _shares(weights)


def _shares(weights: Mapping[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    return {term: weight / total for term, weight in weights.items()}


def _shared_terms(
    chunks: Sequence[Chunk], topic: CollectionTopic, index: SearchIndex
) -> dict[str, float]:
    """Return the words that the best passages share and others lack; the weights sum to 1."""
    holders = Counter(term for chunk in chunks for term in term_set(chunk.text))
    left_out = set(topic.relevance.weights) | topic.relevance.name_terms
    size = index.lexicon.size
    worth: dict[str, float] = {}
    for term, count in holders.items():
        shared = count >= LEAST_HOLDERS and term not in left_out and term.isalpha()
        if shared and not topic.of_collection(term):
            share = count / len(chunks)
            lift = float(np.log(share / (max(1, len(index.lexicon.holding(term))) / size)))
            if lift > 0:
                worth[term] = share * lift
    best = sorted(worth, key=lambda term: (-worth[term], term))[:NEAR_TERMS]
    return _shares({term: worth[term] for term in best})


def sentences_near(near: NearPassages, index: SearchIndex, most: int) -> list[Evidence]:
    """Return the best sentences of the near passages: few of each document, and no repetitions.

    Their `prior` says how near their passage is.
    """
    rated = []
    for piece in pool_of([index.chunk(name) for name in near.chunks]):
        known = piece._replace(prior=near.chunks[piece.chunk])
        if not piece.label and (worth := near.topic.worth(known)):
            rated.append((worth, known))
    rated.sort(key=lambda pair: (-pair[0], pair[1].document, pair[1].start))
    counts: Counter[str] = Counter()
    chosen: dict[frozenset[str], Evidence] = {}
    for _, sentence in rated:
        key = term_set(sentence.text)
        if len(chosen) < most and key not in chosen and counts[sentence.title] < MOST_OF_A_DOCUMENT:
            counts[sentence.title] += 1
            chosen[key] = sentence
    return list(chosen.values())
