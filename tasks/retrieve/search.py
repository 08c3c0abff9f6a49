"""The search: words, meaning and the entity graph together, with the same ranking every time.

The names in the question start a personalised PageRank (Haveliwala 2002) over passages and
entities, as in HippoRAG (arXiv 2405.14831); the best lexical and dense passages join the start with
a small weight. The less of the question its linked names cover, the more words and meaning count.
The first passages are then chosen as a set (`passage_sets`).
"""

import asyncio
import copy
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import scipy

from prompts.engine.rerankers import Reranker
from prompts.engine.spans import note_found
from prompts.text.words import fold_name, is_han, terms
from storage.answer_records import Passage, Reranking
from storage.columns import ById, column_of
from storage.database import SparseCounts
from storage.graph_records import Alias, Entity
from storage.records import Chunk, by_key
from tasks.retrieve.lexical import Lexicon, Scores, passage_of, scaled
from tasks.retrieve.link import Link, Names
from tasks.retrieve.pagerank import Walker
from tasks.retrieve.passage_sets import (
    FUSED_DEPTH,
    Bridges,
    Flags,
    PassageSetSelector,
    SearchedQuestion,
    SearchParts,
    Subjects,
    best_places,
    shorter_names,
)
from tasks.retrying import BRIEF
from tasks.step import step

# --- documents that a question names by their titles ----------------------------------------------

_QUALIFIER = re.compile(r"[(（][^()（）]*[)）]\s*$")


class _NamedTitle(NamedTuple):
    """The terms of a title that a question holds, and whether these are all of its name."""

    held: frozenset[str]
    whole: bool

    def outnames(self, other: "_NamedTitle") -> bool:
        """Whether the question means this document rather than one with a similar title."""
        is_part = other.held < self.held or (other.held == self.held and not other.whole)
        return self.whole and bool(other.held) and is_part


def named_title(chunk: Chunk, wanted: Set[str], linked: Set[str]) -> _NamedTitle:
    """Compare a title with the terms of a question and of its linked names.

    A title of one word counts as named only by a linked name.
    """
    every, name = _title_terms(chunk.title, chunk.language)
    whole = bool(name) and name <= wanted and (len(name) > 1 or name <= linked)
    return _NamedTitle(every & wanted, whole)


@lru_cache(maxsize=20_000)
def _title_terms(title: str, language: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the terms of a title, with and without a qualifier in brackets."""
    # The parts of a term with a hyphen are terms too.
    every, name = (
        frozenset(term for term in terms(text, language) if "-" not in term)
        for text in (title, _QUALIFIER.sub("", title).rstrip())
    )
    return every, name or every


# --- the index ------------------------------------------------------------------------------------

# The share of the chunks that must be in a language: in a rarer one, wrongly detected more often
# than not, no question is read.
LEAST_SPOKEN = 0.02
START_PASSAGES = 10  # the best by words and meaning, from which the walk starts too
START_DENSE = 0.5  # the weight of meaning, relative to words, in choosing these
START_WEIGHT = 0.01  # of such a passage with the score 1, relative to all names together
# Words and meaning weigh (1 - coverage) ** this relative to the walk: little as soon as names cover
# half of a question.
UNLINKED_POWER = 4
HAN_WALK = 0.3  # the weight of the walk, relative to words and meaning, in a Chinese question
# The weight of the passages of a further query relative to those of the question at the same rank:
# its first comes third.
FURTHER_QUERY = 0.45


@dataclass(frozen=True)
class Seeds:
    """Entities and chunks, by their places, from which a walk starts beside the question's names.

    Their weights are relative to a name that the question spells as the documents do, which has 1.
    The chunks come first in the ranking, in this order.
    """

    entities: Mapping[int, float] = field(default_factory=dict)
    chunks: Mapping[int, float] = field(default_factory=dict)


NO_SEEDS = Seeds()


class SearchIndex:
    """All that retrieval needs from one generation; immutable, so safe to share between threads."""

    def __init__(
        self,
        chunks: Sequence[Chunk],
        postings: SparseCounts,
        pairs: SparseCounts,
        entities: Sequence[Entity],
        aliases: Sequence[Alias],
    ) -> None:
        """`postings` are chunks × terms, `pairs` entities × chunks.

        All indexes here have the chunks in the order of `postings`, and the entities in that of
        `entities` and `pairs`.
        """
        by_id = {chunk.id: chunk for chunk in chunks}
        self.chunks = [by_id[name] for name in postings.rows]
        self.position = {chunk.id: index for index, chunk in enumerate(self.chunks)}
        self.entities = entities
        # How often each entity stands in each chunk.
        self.entity_counts = pairs.counts
        spoken = Counter(chunk.language for chunk in self.chunks)
        least = LEAST_SPOKEN * len(self.chunks)
        languages = [language for language, count in spoken.items() if count >= least]
        self.lexicon = Lexicon(postings.counts, postings.columns, languages)
        self.parts = SearchParts()
        self.seeds = NO_SEEDS
        self.spellings: list[tuple[str, ...]] = [(name,) for name in column_of(entities, "name")]
        for alias in aliases:
            self.spellings[self.by_id.place[alias.entity]] += (alias.name,)
        self.names = Names(self.spellings)
        self.documents = by_key((chunk.document, index) for index, chunk in enumerate(self.chunks))
        self._texts = texts_of_triples(self.chunks)
        # A text also names what the triples of its document name.
        count = len(self.chunks)
        speaker = [self._texts.get(place, place) for place in range(count)]
        speaks = scipy.sparse.csr_matrix(
            (np.ones(count, np.int32), (speaker, np.arange(count))), shape=(count, count)
        )
        named = speaks @ self.entity_counts.T.tocsr()
        named.sort_indices()
        about = Subjects(self.chunks, named, self.spellings, self.names.by_key)
        self.walker = Walker(named)
        bridges = Bridges(named, about, shorter_names(self.names.by_key, len(entities)))
        self.selector = PassageSetSelector(
            self.chunks, self._texts, self.lexicon, bridges, self.spellings
        )

    @cached_property
    def by_id(self) -> ById[Entity]:
        return ById(self.entities)

    def chunk(self, name: str) -> Chunk:
        return self.chunks[self.position[name]]

    def link(self, question: str) -> list[Link]:
        return self.names.link(question)

    def switched(self, parts: SearchParts) -> "SearchIndex":
        other = copy.copy(self)
        other.parts = parts
        return other

    def seeded(self, seeds: Seeds) -> "SearchIndex":
        other = copy.copy(self)
        other.seeds = seeds
        return other

    def without_graph(self) -> "SearchIndex":
        return self.switched(SearchParts(walk=False, bridges=False, sets=False))

    # --- scores -----------------------------------------------------------------------------------

    def asked(self, question: str, dense: Mapping[str, float]) -> SearchedQuestion:
        """Score every chunk for a question by words, meaning and the walk.

        `dense` maps the nearest chunks (ids) to their cosines.
        """
        lexical = np.zeros(len(self.chunks))
        if self.parts.words:
            lexical = scaled(self.lexicon.scores(question))
        cosines = self.chunk_scores(dense if self.parts.meaning else {})
        meaning = scaled(cosines)
        base = near = lexical + meaning
        links = self._linked(question)
        walked = self._walked(links, lexical + START_DENSE * meaning)
        if (links or self.seeds.entities) and self.parts.walk:
            if is_han(question):
                # Chinese names are cut out of unspaced text, so they are less certain than the
                # words that they consist of.
                base = near + HAN_WALK * walked
            else:
                base = walked + (1 - self._coverage(question, links)) ** UNLINKED_POWER * near
        return SearchedQuestion(question, links, lexical, cosines, walked, base)

    def chunk_scores(self, cosines: Mapping[str, float]) -> Scores:
        """Turn the cosines of some chunks (by id) into scores of all, none below 0."""
        scores = np.zeros(len(self.chunks))
        for name, cosine in cosines.items():
            if name in self.position:
                scores[self.position[name]] = max(cosine, 0.0)
        return scores

    def _coverage(self, question: str, links: Sequence[Link]) -> float:
        """Return the share of the question's words, by rarity, that its linked names hold."""
        wanted = self.lexicon.terms_of(question)
        named = set(self.lexicon.terms_of(" ".join(link.text for link in links)))
        total = sum(self.lexicon.idf_of(term) for term in wanted)
        held = sum(self.lexicon.idf_of(term) for term in wanted if term in named)
        return held / total if total else 0.0

    def _linked(self, question: str) -> list[Link]:
        links = self.link(question)
        if self.parts.fuzzy:
            return links
        return [link for link in links if fold_name(link.text) in self.names.by_key]

    def _walked(self, links: Sequence[Link], seeds: Scores) -> Scores:
        """Walk from the names and the best seeds; the best chunk scores 1."""
        best, further = best_places(seeds, START_PASSAGES), self.seeds
        if not self.parts.walk or not (links or best or further.entities):
            return np.zeros(len(self.chunks))
        start: dict[int, float] = {}
        for link in links:
            hub = 1 + float(np.log1p(self.walker.degree[link.entity]))
            start[link.entity] = start.get(link.entity, 0.0) + link.score / hub
        for entity, weight in further.entities.items():
            hub = 1 + float(np.log1p(self.walker.degree[entity]))
            start[entity] = start.get(entity, 0.0) + weight / hub
        share = START_WEIGHT * sum(start.values()) if start else 1.0
        chunks = {place: share * float(seeds[place]) for place in best}
        for place, weight in further.chunks.items():
            chunks[place] = chunks.get(place, 0.0) + weight
        walked = scaled(self.walker.walk(start, chunks))
        walked[list(self._texts)] = walked[list(self._texts.values())]
        return walked

    # --- ranking ----------------------------------------------------------------------------------

    def order(self, asked: SearchedQuestion, allowed: Flags, k: int) -> list[int]:
        """Return the k best allowed chunks that score above 0: those of the seeds, then a set of
        passages that belong together, then single ones.
        """
        # Chinese names tie passages less reliably than their words find them.
        as_set = bool(asked.links) and self.parts.sets and not is_han(asked.question)
        first = self.selector.first(asked, allowed, self.parts) if as_set else []
        rest = np.where(allowed, asked.base, 0.0)
        rest[first] = 0.0
        ordered = [*first, *best_places(rest, max(k - len(first), 0))]
        leading = [place for place in self.seeds.chunks if allowed[place]]
        named = self._with_named_titles_first(asked, allowed, ordered)
        return list(dict.fromkeys([*leading, *named]))[:k]

    def _with_named_titles_first(
        self, asked: SearchedQuestion, allowed: Flags, ordered: Sequence[int]
    ) -> list[int]:
        """Move chunks whose whole title the question names before those with a similar title.

        "Paris, Texas" comes before "Paris" if the question names all of it, and after "Paris" if
        the question does not name Texas.
        """
        terms_of = self.lexicon.terms_of
        wanted = frozenset(terms_of(asked.question))
        linked = frozenset(term for link in asked.links for term in terms_of(link.text))
        near, alike = (
            best_places(scores, FUSED_DEPTH, allowed) for scores in (asked.base, asked.lexical)
        )
        titles = {
            place: named_title(self.chunks[place], wanted, linked)
            for place in (*ordered, *near, *alike)
        }
        result: dict[int, None] = {}
        for place in ordered:
            rivals = [other for other in titles if titles[other].outnames(titles[place])]
            if rivals and not any(other in result for other in rivals):
                result[max(rivals, key=lambda other: (asked.base[other], -other))] = None
            result.setdefault(place)
        return list(result)

    def allowed(self, documents: Collection[str] | None) -> Flags:
        """Flag the chunks of these documents (None: all chunks)."""
        mask = np.full(len(self.chunks), documents is None)
        mask[[index for name in documents or () for index in self.documents.get(name, ())]] = True
        return mask

    def rank(self, scores: Scores, k: int) -> list[Passage]:
        """Return the k best chunks that score above 0, each text once; ties go to the earlier
        chunk.
        """
        found = scores > 0
        best = best_places(scores, k, self.without_copies(scores, found))
        return [self.passage(place, scores[place], found) for place in best]

    def by_words(
        self, query: str, k: int, documents: Collection[str] | None = None
    ) -> list[Passage]:
        """Return the k chunks of these documents (None: all) that share most words with a query
        (BM25).
        """
        return self.rank(np.where(self.allowed(documents), self.lexicon.scores(query), 0.0), k)

    def by_meaning(self, cosines: Mapping[str, float], k: int) -> list[Passage]:
        """Return the k nearest of some chunks with these cosines (by id)."""
        return self.rank(self.chunk_scores(cosines), k)

    # --- texts that several documents hold --------------------------------------------------------

    def passage(self, place: int, score: float, allowed: Flags) -> Passage:
        """Make a passage of a chunk, with the other allowed documents that hold its text."""
        passage = passage_of(self.chunks[place], score)
        also = self._holding(place, allowed)
        return passage.model_copy(update={"also": also}) if also else passage

    @cached_property
    def _copies(self) -> Mapping[int, Sequence[int]]:
        """The places of all chunks with the same text, by each of these places."""
        by_text = by_key((chunk.text.strip(), place) for place, chunk in enumerate(self.chunks))
        return {place: places for places in by_text.values() if len(places) > 1 for place in places}

    def without_copies(self, scores: Scores, allowed: Flags) -> Flags:
        """Allow only the best chunk of those with the same text; ties go to the earlier one."""
        once = allowed.copy()
        for place, places in self._copies.items():
            if place == places[0]:
                held = [other for other in places if allowed[other]]
                best = max(held, key=lambda other: (scores[other], -other), default=place)
                once[[other for other in held if other != best]] = False
        return once

    def other_documents(self, chunk: str, documents: Collection[str] | None) -> tuple[str, ...]:
        """Return which of these documents (None: all) hold the text of a chunk too, sorted."""
        place = self.position.get(chunk)
        return () if place is None else self._holding(place, self.allowed(documents))

    def _holding(self, place: int, allowed: Flags) -> tuple[str, ...]:
        copies = self._copies.get(place, ())
        holding = {self.chunks[other].document for other in copies if allowed[other]}
        return tuple(sorted(holding - {self.chunks[place].document}))


def texts_of_triples(chunks: Sequence[Chunk]) -> dict[int, int]:
    """Map each chunk of triples to the only chunk of text in its document, by their places."""
    texts = by_key(
        (chunk.document, place) for place, chunk in enumerate(chunks) if chunk.kind == "text"
    )
    return {
        place: texts[chunk.document][0]
        for place, chunk in enumerate(chunks)
        if chunk.kind == "triples" and len(texts.get(chunk.document, ())) == 1
    }


@step("retrieve")
async def retrieve(
    index: SearchIndex,
    queries: Sequence[str],
    dense: Sequence[Mapping[str, float]],
    k: int,
    documents: Collection[str] | None = None,
) -> list[Passage]:
    """Find the k best passages for all queries, of which the first counts most.

    `dense` maps, for each query, the nearest chunks (ids) to their cosines; it may be empty. A
    passage's score says how well it fits by itself (`SearchedQuestion.base`). The order also counts
    how passages belong together, so a score may be higher than the one before. A text that several
    documents hold comes once, from the one that fits best.
    """
    allowed = once = index.allowed(documents)
    best, fits = dict[int, float](), np.zeros(len(index.chunks))
    for number, (query, near) in enumerate(zip(queries, dense, strict=True)):
        weight = FURTHER_QUERY if number else 1.0
        asked = index.asked(query, near)
        if not number:
            once = index.without_copies(asked.base, allowed)
        fits = np.maximum(fits, weight * asked.base)
        for rank, place in enumerate(index.order(asked, once, k), 1):
            best[place] = max(best.get(place, 0.0), weight / rank)
    order = sorted(best, key=lambda place: (-best[place], place))[:k]
    passages = [index.passage(place, fits[place], allowed) for place in order]
    note_found(passages)
    return passages


# --- reranking ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reranked:
    """Passages in their new order; `trace` is None if nothing was reranked."""

    passages: list[Passage]
    trace: Reranking | None = None


@step("rerank", BRIEF, asks_model=True)
async def rerank(
    question: str, passages: Sequence[Passage], k: int, reranker: Reranker
) -> Reranked:
    """Pick the k most relevant passages by the model's scores; equal ones keep their order.

    The model reads each passage with its title. Raises EngineError if the model cannot be reached
    or does not score every passage.
    """
    if not passages:
        return Reranked([])
    texts = [
        passage.text
        if passage.text.startswith(passage.title)
        else f"{passage.title}\n{passage.text}"
        for passage in passages
    ]
    # In a thread, so that calls to other models go on meanwhile.
    scores = await asyncio.to_thread(reranker.scores, question, texts)
    order = sorted(range(len(passages)), key=lambda place: -scores[place])[:k]
    ranked = [
        passages[place].model_copy(update={"score": round(scores[place], 6)}) for place in order
    ]
    note_found(ranked)
    ranks = tuple(place + 1 for place in order)
    return Reranked(ranked, Reranking(model=reranker.name, passages=len(passages), ranks=ranks))
