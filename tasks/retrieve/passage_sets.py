"""Passage sets: candidate passages, how well they fit together, and the best set of them.

The pool holds the best passages of the walk, the best by words and meaning, and what the first of
these lead to. Evidence is often a chain: a passage about a name of the question mentions a second
thing, and what is asked of that stands in the passage about it, or in a third. So pairs of passages
are ranked. A pair is good if its passages are near the question's names, cover different parts of
the question, and are tied: one names what the other is about, or both name the same rare thing.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from prompts.text.thesaurus import concept_terms, members
from prompts.text.words import fold_name
from storage.records import Chunk, Record
from tasks.retrieve.lexical import Lexicon, Scores, scaled
from tasks.retrieve.link import Link

Flags = NDArray[np.bool_]


class SearchParts(Record):
    """The parts of a search; each can be switched off."""

    words: bool = True
    """The question's words, in the start of the walk, in the pool and in the scores."""
    meaning: bool = True
    """The nearest vectors, in the same places."""
    walk: bool = True
    """Personalised PageRank from the question's names."""
    fuzzy: bool = True
    """Names that the question spells almost as the documents do."""
    bridges: bool = True
    """Passages that the first ones lead to, and ties between passages."""
    sets: bool = True
    """Passages ranked as sets instead of each by itself."""


@dataclass(frozen=True)
class SearchedQuestion:
    """A question, and how every chunk scores in each way of searching.

    `lexical` and `walked` are 1 for the best chunk, `cosines` 0 for chunks that are not near;
    `base` is the mixture that ranks single chunks.
    """

    question: str
    links: Sequence[Link]
    lexical: Scores
    cosines: Scores
    walked: Scores
    base: Scores

    @property
    def linked(self) -> dict[int, float]:
        """The entities that the question names, each with its best score."""
        scores: dict[int, float] = {}
        for link in self.links:
            scores[link.entity] = max(scores.get(link.entity, 0.0), link.score)
        return scores


def best_places(scores: Scores, count: int, allowed: Flags | bool = True) -> list[int]:
    """Return the places of the best allowed scores above 0; ties go to the earlier place."""
    places = np.flatnonzero((scores > 0) & allowed)
    if len(places) > count > 0:  # only these are sorted
        places = places[scores[places] >= np.partition(scores[places], -count)[-count]]
    return [int(place) for place in places[np.argsort(-scores[places], kind="stable")[:count]]]


def fused(rankings: Sequence[Sequence[int]]) -> list[int]:
    """Join rankings by reciprocal rank fusion (Cormack 2009); ties go to the smaller number."""
    total: dict[int, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, 1):
            total[item] = total.get(item, 0.0) + 1 / (60 + rank)
    return sorted(total, key=lambda item: (-total[item], item))


# --- what passages name and are about -------------------------------------------------------------

OPENING = 200  # characters of a document, in which it may name what it is about


class Subjects:
    """The entities that each chunk is about, sorted; found when they are first asked for."""

    def __init__(
        self,
        chunks: Sequence[Chunk],
        mentioned: "scipy.sparse.csr_matrix",
        spellings: Sequence[Sequence[str]],
        by_key: Mapping[str, Sequence[int]],
    ) -> None:
        """`mentioned` is chunks × entities, not 0 where a chunk names an entity.

        `spellings` are the names of each entity, `by_key` the entities of each folded name.
        """
        self._chunks, self._mentioned = chunks, mentioned
        self._spellings, self._by_key = spellings, by_key
        self._found = cache(self._about)

    def __getitem__(self, place: int) -> tuple[int, ...]:
        return self._found(place)

    def _about(self, place: int) -> tuple[int, ...]:
        chunk, begins = self._chunks[place], self._mentioned.indptr
        named = set(self._mentioned.indices[begins[place] : begins[place + 1]].tolist())
        titled = self._by_key.get(fold_name(chunk.title), ())
        about = {entity for entity in titled if entity in named} or set(titled)
        if chunk.ordinal == 0:
            about.update(_opening(chunk.text[:OPENING], named, self._spellings))
        return tuple(sorted(about))


def _opening(text: str, named: Collection[int], spellings: Sequence[Sequence[str]]) -> list[int]:
    """Return the entities with the longest name that the text begins with."""
    opening = f"{fold_name(text)} "
    names = [
        (len(key), entity)
        for entity in named
        for key in {fold_name(name) for name in spellings[entity]}
        if key and opening.startswith(f"{key} ")
    ]
    longest = max((size for size, _ in names), default=0)
    return [entity for size, entity in names if size == longest]


def entries_of(
    matrix: "scipy.sparse.spmatrix", rows: Collection[int]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the entries of some rows (columns of a csc matrix), and to which of these rows each
    belongs.
    """
    entries = [matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]] for row in rows]
    return np.concatenate([np.zeros(0, np.int32), *entries]), np.repeat(
        np.arange(len(entries)), [*map(len, entries)]
    )


def shorter_names(by_key: Mapping[str, Sequence[int]], entities: int) -> "scipy.sparse.csr_matrix":
    """Return entities × entities, 1 where the name of the first holds that of the second.

    Whoever writes "Supreme Leader Kim Jong-il" also writes "Kim Jong-il". `by_key` maps folded
    names to entities.
    """
    longer, shorter = list[int](), list[int]()
    for key, own in by_key.items():
        words = key.split(" ")
        ends = range(1, len(words) + 1)
        parts = {" ".join(words[start:end]) for end in ends for start in range(end)} - {key}
        inner = {entity for part in parts for entity in by_key.get(part, ())}
        longer += [entity for entity in own for _ in inner]
        shorter += [part for _ in own for part in inner]
    holds = np.ones(len(longer), np.int32), (longer, shorter)
    return scipy.sparse.csr_matrix(holds, shape=(entities, entities))


class Bridges:
    """What every chunk names and is about; immutable, so safe to share between threads."""

    def __init__(
        self,
        mentions: "scipy.sparse.csr_matrix",
        about: Subjects,
        shorter: "scipy.sparse.csr_matrix",
    ) -> None:
        """`mentions` is chunks × entities, above 0 where a chunk names an entity; `shorter` says
        which names hold others (`shorter_names`).
        """
        self.about = about
        self._chunks = chunks = mentions.shape[0]
        self._shorter = shorter
        self._mentions = (mentions + mentions @ shorter > 0).astype(np.float64)
        self._holders = self._mentions.tocsc()
        counts = np.diff(self._holders.indptr)
        self._rarity = np.log1p((chunks - counts + 0.5) / (counts + 0.5)) / np.log1p(
            (chunks + 0.5) / 0.5
        )
        self._width = np.sqrt(np.maximum(np.diff(self._mentions.indptr), 1))

    def further(self, first: Sequence[int], linked: Collection[int]) -> Scores:
        """Score every chunk by the entities that it shares with the first ones, ≥ 0.

        Rare entities and earlier chunks count most; the `linked` entities, which led to the first
        chunks, and those within their names do not count.
        """
        named, of = entries_of(self._mentions, first)
        entities, which = np.unique(named, return_inverse=True)
        reached = np.bincount(which, 1 / (1 + of)) * self._rarity[entities] ** 2
        reached[np.isin(entities, self._with_shorter(linked))] = 0.0
        holding, by = entries_of(self._holders, entities)
        scores: Scores = np.bincount(holding, reached[by], self._chunks) / self._width
        return scores

    def ties(self, pool: Sequence[int], linked: Collection[int]) -> tuple[Flags, Scores]:
        """Tell how the n chunks of a pool are tied, as two n × n matrices.

        The first says whether chunk i names what chunk j is about, the second how rare the rarest
        entity is that both name, 0 to 1. The `linked` entities and those within their names do not
        count in the second, and chunks about the same thing are not tied.
        """
        (named, at), own = entries_of(self._mentions, pool), [self.about[chunk] for chunk in pool]
        subjects = [entity for about in own for entity in about]
        entities, which = np.unique(
            np.append(named, np.array(subjects, np.int32)), return_inverse=True
        )
        names, about = np.zeros((2, len(pool), len(entities)), bool)
        names[at, which[: len(at)]] = True
        of = np.repeat(np.arange(len(pool)), [*map(len, own)])
        about[of, which[len(at) :]] = True
        same, mentions = np.zeros((2, len(pool), len(pool)), bool)
        for place, entity in zip(of, which[len(at) :], strict=True):
            same[:, place] |= about[:, entity]
            mentions[:, place] |= names[:, entity]
        both = (names.sum(axis=0) > 1) & ~np.isin(entities, self._with_shorter(linked))
        rarity = names[:, both] * self._rarity[entities[both]]
        shared = np.minimum(rarity[:, None], rarity[None]).max(axis=2, initial=0.0)
        return mentions & ~same, np.where(same, 0.0, shared)

    def _with_shorter(self, linked: Collection[int]) -> list[int]:
        """Return these entities and those within their names."""
        within, _ = entries_of(self._shorter, linked)
        return [*linked, *within.tolist()]


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_SHORTEST_NAME = 3  # characters


@lru_cache(maxsize=4_096)
def _sentences(text: str) -> tuple[tuple[str, str], ...]:
    """Return each sentence, and how it is when folded like a name."""
    return tuple((sentence, fold_name(sentence)) for sentence in _SENTENCE_END.split(text))


def cues(
    texts: Sequence[str],
    mentions: Flags,
    names: Sequence[Collection[str]],
    wanted: Mapping[str, float],
) -> Scores:
    """Return for each pair of passages the share of `wanted` in the sentence that ties them best.

    In such a sentence one passage names what the other is about. `wanted` are concepts with their
    weights, and `names[j]` the names of what passage j is about.
    """
    total = sum(wanted.values()) or 1.0
    pairs = np.argwhere(mentions).tolist()
    keys = {
        other: [key for key in map(fold_name, names[other]) if len(key) >= _SHORTEST_NAME]
        for _, other in pairs
    }
    shares = np.zeros(mentions.shape)
    for place, other in pairs:
        weights = [
            sum(weight for concept, weight in wanted.items() if concept in concept_terms(sentence))
            for sentence, folded in _sentences(texts[place])
            if any(key in folded for key in keys[other])
        ]
        shares[place, other] = max(weights, default=0.0) / total
    return np.maximum(shares, shares.T)


# --- choosing -------------------------------------------------------------------------------------

CHOSEN = 10
MATCHED = 0.6  # how much a passage still wants another second half, for each one that it has found
_ALONE = 0.01  # the weight of a passage by itself, relative to its pairs with those chosen
_LEAST_WALKED = 1e-5

# The weights of the features of a pair: coefficients of a log-linear model of which pair is
# evidence, fitted to every other question of two public sets and tested on the rest and on other
# sets (docs/experiments.md).
WALKED, MEANING, SUBJECT, COVERED = 0.4, 6.8, 2.2, -2.4
TOGETHER, MENTION, SHARED, CUE = 10.4, 1.6, 3.7, 2.4


def choose(pairs: Scores, subject: Scores, holds: Flags, rarity: Scores) -> list[int]:
    """Choose up to CHOSEN places of the pool: the best pair, then what pairs best with the chosen.

    `pairs` are log-likelihoods (n × n, symmetric). `subject` says how surely each passage is about
    a name of the question: such a passage waits for a second half. `holds` says which concepts of
    the question each passage holds (n × concepts), `rarity` what share of it each is. A concept
    that any chosen passage holds is no gain of a further one (maximal marginal relevance, Carbonell
    and Goldstein 1998). Ties go to the earlier place.
    """
    count = len(pairs)
    if count < 2:
        return list(range(count))
    likely = np.exp(pairs - pairs[~np.eye(count, dtype=bool)].max())
    np.fill_diagonal(likely, 0.0)
    alone = likely.sum(axis=1)
    waiting = np.ones(count)

    def match(place: int, other: int) -> None:
        """Note that `other` is a second half for `place`, unless it is a beginning itself."""
        if subject[other] == 0:
            waiting[place] *= MATCHED

    first, second = divmod(int(likely.argmax()), count)
    match(first, second)
    match(second, first)
    chosen = [first, second]
    while len(chosen) < min(CHOSEN, count):
        # What a pair counts as the gain of its second passage, though others of the chosen hold it.
        known = holds[chosen].any(axis=0) & ~holds[chosen]
        repeated = (known * rarity) @ holds.T
        fresh = likely[chosen] * np.exp(-TOGETHER * repeated)
        gained = waiting[chosen] @ fresh + _ALONE * alone
        gained[chosen] = -1.0
        best = int(gained.argmax())
        match(max(chosen, key=lambda place: (likely[best, place], -place)), best)
        chosen.append(best)
    return chosen


POOL_WALKED = 40
POOL_FUSED = 8
POOL_BRIDGED = 10
FUSED_DEPTH = 50  # of each ranking that is fused
FIRST = 6  # passages from which bridges lead on
# The share of the question, by rarity, that triples must add to the text of their document.
TOLD = 0.2
# The weight of a passage that a bridge leads to, and that has no other word of the question.
_WORDLESS = 0.05


class PassageSetSelector:
    """Orders chunks as sets of evidence; immutable, so safe to share between threads."""

    def __init__(
        self,
        chunks: Sequence[Chunk],
        texts: Mapping[int, int],
        lexicon: Lexicon,
        bridges: Bridges,
        spellings: Sequence[tuple[str, ...]],
    ) -> None:
        """`chunks` are in the order of the lexicon and the bridges.

        `texts` maps each chunk of triples to the text of its document; `spellings` are the names of
        each entity.
        """
        self._texts = texts
        self._chunks = chunks
        self._lexicon = lexicon
        self._bridges = bridges
        self._spellings = spellings

    def first(self, asked: SearchedQuestion, allowed: Flags, parts: SearchParts) -> list[int]:
        """Return up to CHOSEN allowed chunks that should be read first, in order."""
        pool = self.pool(asked, allowed, parts)
        if len(pool) < 2:
            return pool
        chosen = [pool[place] for place in choose(*self._pairs(asked, pool, parts))]
        # Of the best pair, the better passage by itself: a question may need no second.
        return sorted(chosen[:2], key=lambda chunk: -asked.base[chunk]) + chosen[2:]

    def pool(self, asked: SearchedQuestion, allowed: Flags, parts: SearchParts) -> list[int]:
        texts = allowed.copy()
        texts[list(self._texts)] = False
        walked = best_places(asked.walked if parts.walk else asked.base, POOL_WALKED, texts)
        rankings = [
            best_places(scores, FUSED_DEPTH, allowed) for scores in (asked.lexical, asked.cosines)
        ]
        pool = dict.fromkeys([*walked, *fused(rankings)[:POOL_FUSED]])
        if parts.bridges and pool:
            further = self._bridges.further(best_places(asked.base, FIRST, texts), asked.linked)
            further *= _WORDLESS + scaled(self._lexicon.scores_of(self._unnamed(asked)))
            further[list(pool)] = 0.0
            pool |= dict.fromkeys(best_places(further, POOL_BRIDGED, allowed))
        return self._without_repeated_triples(list(pool), asked.question)

    def _without_repeated_triples(self, pool: list[int], question: str) -> list[int]:
        """Leave out triples that add little of the question to a text in the pool."""
        if self._texts.keys().isdisjoint(pool):
            return pool
        weights = self._concepts(question)
        rarity = np.array(list(weights.values()))
        holds = dict(zip(pool, self._holds(pool, list(weights)), strict=True))
        least = TOLD * rarity.sum()
        return [
            chunk
            for chunk in pool
            if (text := self._texts.get(chunk)) not in holds
            or (holds[chunk] & ~holds[text]) @ rarity > least
        ]

    def _unnamed(self, asked: SearchedQuestion) -> list[str]:
        named = {term for link in asked.links for term in self._lexicon.terms_of(link.text)}
        return [term for term in self._lexicon.terms_of(asked.question) if term not in named]

    def _pairs(
        self, asked: SearchedQuestion, pool: Sequence[int], parts: SearchParts
    ) -> tuple[Scores, Scores, Flags, Scores]:
        """Return what `choose` takes: log-likelihoods up to a constant, subjects (0 to 1), the
        concepts that each passage holds, and their rarity.
        """
        linked, weights = asked.linked, self._concepts(asked.question)
        about = [self._bridges.about[chunk] for chunk in pool]
        subject = np.array(
            [max((linked.get(entity, 0.0) for entity in own), default=0.0) for own in about]
        )
        near = asked.cosines[asked.cosines > 0]
        meaning = np.maximum(asked.cosines[pool], near.min() if len(near) else 0.0)
        holds = self._holds(pool, list(weights))
        # The share of the question that each concept is.
        rarity = np.array(list(weights.values())) / (sum(weights.values()) or 1)
        covered, both = holds @ rarity, (holds * rarity) @ holds.T
        walked = np.log(np.maximum(asked.walked[pool], _LEAST_WALKED))
        alone = WALKED * walked + MEANING * meaning + SUBJECT * subject + COVERED * covered
        pairs = (
            alone[:, None]
            + alone[None, :]
            + TOGETHER * (covered[:, None] + covered[None, :] - both)
        )
        if parts.bridges:
            mentions, shared = self._bridges.ties(pool, linked)
            named = {concept for link in asked.links for concept in concept_terms(link.text)}
            cued = cues(
                [self._chunks[chunk].text for chunk in pool],
                mentions,
                [[name for entity in own for name in self._spellings[entity]] for own in about],
                {concept: weight for concept, weight in weights.items() if concept not in named},
            )
            pairs = pairs + MENTION * (mentions | mentions.T) + SHARED * shared + CUE * cued
        return np.asarray(pairs), subject, holds, rarity

    def _concepts(self, question: str) -> Mapping[str, float]:
        """Return the question's concepts, each as rare as the commonest of its words."""
        rarity = self._lexicon.idf_of
        return {
            concept: min(map(rarity, members(concept)), default=rarity(concept))
            for concept in concept_terms(question)
        }

    def _holds(self, pool: Sequence[int], concepts: Sequence[str]) -> Flags:
        """Tell whether each passage holds any word of each concept (pool × concepts)."""
        flags = np.zeros((len(pool), len(concepts)), bool)
        for column, concept in enumerate(concepts):
            holds = np.zeros(self._lexicon.size, bool)
            for term in members(concept) or (concept,):
                holds[self._lexicon.holding(term)] = True
            flags[:, column] = holds[pool]
        return flags
