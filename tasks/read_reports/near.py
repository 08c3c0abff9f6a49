"""The passages and sentences below the reports that are nearest to a question, and the reports that
they belong to.

Free of charge: words, meaning, and the communities of what a passage names. No model is asked.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import scipy  # its parts are loaded at their first use

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
FEEDBACK_CHUNKS, FEEDBACK_LEAST = 20, 6  # a tenth of all, within these
NEAR_TERMS = 24
LEAST_BITS = 2.0  # a word that names a theme is no everyday word
LEAST_HOLDERS = 3  # passages: what fewer of the best say is their own
# Of a word that a collection is about: the least share of its sources, and what one counts that is
# spread evenly.
LEAST_SOURCES, EVENLY = 0.25, 0.02
COMMON_WORDS = 500  # the most widespread, from which its words are chosen at any rate
MOST_OF_A_DOCUMENT = 3  # sentences
# Shares of the greatest rarity: a word below the first is in every passage or its title ("tech" of
# a tech podcast).
EVERYWHERE, COMMONPLACE = 0.03, 0.35


@dataclass(frozen=True)
class NearPassages:
    """What stands near to a question: its topic with the words of the best passages, and these
    passages (0-1).
    """

    topic: CollectionTopic
    chunks: Mapping[str, float]


class CommunityChunkIndex:
    """Which chunks does each community stand in? The share of what a chunk names, rare names
    counting more.
    """

    def __init__(self, members: Mapping[str, Sequence[str]], index: SearchIndex) -> None:
        """`members` are the entities of each community; both of one generation."""
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
        """How much of the near passages the communities that hold most of them hold for their size;
        the best 1.
        """
        raw = scaled((self._shares @ self._index.chunk_scores(near)) / np.sqrt(1 + self._sizes))
        return {
            self.communities[row]: float(raw[row]) for row in np.argsort(-raw, kind="stable")[:most]
        }

    def of(self, chunk: str, communities: Collection[str]) -> str | None:
        """Which of these communities names most of a chunk; None where none names anything in
        it.
        """
        column = self._index.position.get(chunk)
        if column is None:
            return None
        start, end = self._shares.indptr[column], self._shares.indptr[column + 1]
        shares = zip(
            self._shares.indices[start:end].tolist(),
            self._shares.data[start:end].tolist(),
            strict=True,
        )
        ranked = [
            (-share, self.communities[row])
            for row, share in shares
            if self.communities[row] in communities
        ]
        return min(ranked)[1] if ranked else None


def near_of(
    relevance: Relevance,
    index: SearchIndex,
    cosines: Mapping[str, float],
    documents: Collection[str] | None,
) -> NearPassages:
    """The passages nearest to the question by words and meaning, and the words that they share."""
    held = index.lexicon.column
    absent = frozenset(
        term for term in relevance.weights if held.keys().isdisjoint(members(term) or (term,))
    )
    topic = CollectionTopic(
        relevance,
        everywhere=_commoner(EVERYWHERE, relevance, index),
        common=_commoner(COMMONPLACE, relevance, index),
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
    # Where the question says nothing that sets passages apart, they are those about what the
    # collection is about.
    keys = {} if set(topic.asked) - topic.common else _key_terms(topic, index)
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
    """The question's words whose rarity is below this share of that of a word that nothing has."""
    rarest = index.lexicon.idf_of("")
    return frozenset(term for term, weight in relevance.weights.items() if weight < share * rarest)


def _key_terms(topic: CollectionTopic, index: SearchIndex) -> dict[str, float]:
    """The words that a collection is about, with their weights (together 1): many passages hold
    them, but those of fewer sources than chance would have it (residual IDF: Church and Gale 1995).
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
    # Where every passage is a source of its own, no word of content is in a quarter of them.
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
    """Weights that are 1 together."""
    total = sum(weights.values())
    return {term: weight / total for term, weight in weights.items()}


def _shared_terms(
    chunks: Sequence[Chunk], topic: CollectionTopic, index: SearchIndex
) -> dict[str, float]:
    """The words that the best passages share and others lack, with their weights (together 1)."""
    holders = Counter(term for chunk in chunks for term in term_set(chunk.text))
    left_out = set(topic.relevance.weights) | topic.relevance.name_terms
    size = index.lexicon.size
    worth: dict[str, float] = {}
    for term, count in holders.items():
        if (
            count < LEAST_HOLDERS
            or term in left_out
            or not term.isalpha()
            or topic.of_collection(term)
        ):
            continue
        lift = float(
            np.log((count / len(chunks)) / (max(1, len(index.lexicon.holding(term))) / size))
        )
        if lift > 0:
            worth[term] = count / len(chunks) * lift
    best = sorted(worth, key=lambda term: (-worth[term], term))[:NEAR_TERMS]
    return _shares({term: worth[term] for term in best})


def sentences_near(near: NearPassages, index: SearchIndex, most: int) -> list[Evidence]:
    """The sentences of the near passages that say most about the question, best first, few of each
    document; what several passages repeat is taken once. Their `prior` is how near their passage
    is.
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
