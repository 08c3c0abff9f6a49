"""The search: words, meaning and the entity graph together, ranked the same way every time.

The names in the question start a personalised PageRank over passages and entities (Haveliwala 2002;
over a graph of both as in HippoRAG, arXiv 2405.14831); the best lexical and dense passages join the
start with a small weight. The less of the question its linked names cover, the more words and
meaning count. The first passages are then chosen as a set (`passage_sets`).
"""

import asyncio
import copy
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import scipy

from prompts.engine.rerankers import Reranker
from prompts.text.words import fold_name, is_han, terms
from storage.answer_records import Passage, Reranking
from storage.columns import ById, column_of
from storage.database import SparseCounts
from storage.graph_records import Alias, Entity
from storage.records import Chunk, by_key
from tasks.retrieve.lexical import Lexicon, Scores, passage_of, scaled
from tasks.retrieve.link import Link, Names
from tasks.retrieve.passage_sets import (
    FUSED_DEPTH,
    Bridges,
    Flags,
    PassageSetSelector,
    SearchedQuestion,
    SearchParts,
    Subjects,
    best_places,
)
from tasks.retrying import BRIEF
from tasks.step import step


def texts_of_triples(chunks: Sequence[Chunk]) -> dict[int, int]:
    """For each chunk of triples the chunk that holds all the text of its document, by place."""
    texts = by_key(
        (chunk.document, place) for place, chunk in enumerate(chunks) if chunk.kind == "text"
    )
    return {
        place: texts[chunk.document][0]
        for place, chunk in enumerate(chunks)
        if chunk.kind == "triples" and len(texts.get(chunk.document, ())) == 1
    }


LEAST_SPOKEN = 0.02  # of the chunks: a language of fewer is not asked in


_QUALIFIER = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")


class NamedTitle(NamedTuple):
    """The terms of a title that a question holds, and whether they are all but its qualifier."""

    held: frozenset[str]
    whole: bool

    def outnames(self, other: "NamedTitle") -> bool:
        """Whether the question means this document rather than one whose title is alike."""
        if not self.whole or not other.held:
            return False
        return other.held < self.held or (other.held == self.held and not other.whole)


def named_title(chunk: Chunk, wanted: Set[str], by_link: Set[str]) -> NamedTitle:
    """What of a chunk's title a question holds, by its terms; `by_link` are those of its names.

    A title of one word is only named where a name of the question has it.
    """
    every, name = _title_terms(chunk.title, chunk.language)
    return NamedTitle(
        every & wanted, bool(name) and name <= wanted and (len(name) > 1 or name <= by_link)
    )


@lru_cache(maxsize=20_000)
def _title_terms(title: str, language: str) -> tuple[frozenset[str], frozenset[str]]:
    """The terms of a title, and those that stand in no brackets."""
    every, name = (
        frozenset(
            term for term in terms(text, language) if "-" not in term
        )  # whose parts are terms too
        for text in (title, _QUALIFIER.sub("", title))
    )
    return every, name or every


DAMPING = 0.85  # the chance that a walk goes on, instead of starting again
STEPS = 24  # of the power iteration


class Walker:
    """Random walks with restart on the bipartite graph of chunks and entities; immutable."""

    def __init__(self, named: "scipy.sparse.csr_matrix") -> None:
        """`named` is chunks × entities: how strongly chunk i and entity j are tied, or 0."""
        self.chunks, self.entities = named.shape
        self._ties = scipy.sparse.bmat(
            [[None, named], [named.T, None]], format="csr", dtype=np.float64
        )
        out = np.asarray(self._ties.sum(axis=0)).ravel()
        self._out = np.where(out > 0, out, 1.0)
        self.degree = np.bincount(named.indices, minlength=self.entities).astype(np.float64)

    def walk(self, entities: dict[int, float], chunks: dict[int, float]) -> Scores:
        """Stationary probability of every chunk, in order.

        `entities` and `chunks` are restart weights by index, at least one of them positive.
        """
        restart = np.zeros(self.chunks + self.entities)
        for entity, weight in entities.items():
            restart[self.chunks + entity] = weight
        for chunk, weight in chunks.items():
            restart[chunk] = weight
        restart /= restart.sum()
        scores = restart
        for _ in range(STEPS):
            scores = DAMPING * (self._ties @ (scores / self._out)) + (1 - DAMPING) * restart
        return scores[: self.chunks]


START_PASSAGES = 10  # the best by words and meaning, where the walk starts beside the names
START_DENSE = 0.5  # what meaning counts beside words, in choosing these
# what such a passage with the score 1 weighs there, for a weight 1 of all names together
START_WEIGHT = 0.01
# Words and meaning count (1 - coverage) ** this beside the walk: little as soon as names cover half
# of a question.
UNLINKED_POWER = 4
HAN_WALK = 0.3  # what the walk counts beside words and meaning in a Chinese question
# What the passages of a further query count beside those of the question at the same rank: its
# first comes third.
FURTHER_QUERY = 0.45


class SearchIndex:
    """All that retrieval needs of one generation; immutable, so safe to share between threads."""

    def __init__(
        self,
        chunks: Sequence[Chunk],
        postings: SparseCounts,
        pairs: SparseCounts,
        entities: Sequence[Entity],
        aliases: Sequence[Alias],
    ) -> None:
        """`postings` are chunks × terms, `pairs` entities × chunks, the entities in this order;
        their order is that of all indexes here.
        """
        by_id = {chunk.id: chunk for chunk in chunks}
        self.chunks = [by_id[name] for name in postings.rows]
        self.position = {chunk.id: index for index, chunk in enumerate(self.chunks)}
        self.entities = entities
        self.entity_counts = (
            pairs.counts
        )  # entities × chunks: how often an entity stands in a chunk
        # A language of few chunks is more often one wrongly told than one that is asked in.
        spoken = Counter(chunk.language for chunk in self.chunks)
        languages = [
            code for code, count in spoken.items() if count >= LEAST_SPOKEN * len(self.chunks)
        ]
        self.lexicon = Lexicon(postings.counts, postings.columns, languages)
        self.parts = SearchParts()
        self.spellings: list[tuple[str, ...]] = [(name,) for name in column_of(entities, "name")]
        where = {name: index for index, name in enumerate(pairs.rows)} if aliases else {}
        for alias in aliases:
            self.spellings[where[alias.entity]] += (alias.name,)
        self.names = Names(self.spellings)
        self.documents = by_key((chunk.document, index) for index, chunk in enumerate(self.chunks))
        self._texts = texts_of_triples(self.chunks)
        # What triples name beside a text, the text names.
        count = len(self.chunks)
        speaker = [self._texts.get(place, place) for place in range(count)]
        speaks = scipy.sparse.csr_matrix(
            (np.ones(count, np.int32), (speaker, np.arange(count))), shape=(count, count)
        )
        named = speaks @ self.entity_counts.T.tocsr()
        named.sort_indices()
        about = Subjects(self.chunks, named, self.spellings, self.names.by_key)
        self.walker = Walker(named)
        self.selector = PassageSetSelector(
            self.chunks, self._texts, self.lexicon, Bridges(named, about), self.spellings
        )

    @cached_property
    def by_id(self) -> ById[Entity]:
        """The entities by their ids."""
        return ById(self.entities)

    def link(self, question: str) -> list[Link]:
        """The entities that a question names."""
        return self.names.link(question)

    def coverage(self, question: str, links: Sequence[Link]) -> float:
        """The share of the question's rare words that its linked names hold, 0 to 1."""
        wanted = self.lexicon.terms_of(question)
        named = set(self.lexicon.terms_of(" ".join(link.text for link in links)))
        total = sum(self.lexicon.idf_of(term) for term in wanted)
        return (
            sum(self.lexicon.idf_of(term) for term in wanted if term in named) / total
            if total
            else 0.0
        )

    def asked(self, question: str, dense: Mapping[str, float]) -> SearchedQuestion:
        """What words, meaning and the walk make of a question; `dense` maps the nearest chunk ids
        to their cosine.
        """
        lexical = (
            scaled(self.lexicon.scores(question))
            if self.parts.words
            else np.zeros(len(self.chunks))
        )
        cosines = self.chunk_scores(dense if self.parts.meaning else {})
        meaning = scaled(cosines)
        near = lexical + meaning
        links = self._linked(question)
        walked = self._walked(links, lexical + START_DENSE * meaning)
        base = near
        if links and self.parts.walk:
            if is_han(question):
                # Chinese names are cut from unspaced text and so are less sure than the words that
                # they are made of.
                base = near + HAN_WALK * walked
            else:
                base = walked + (1 - self.coverage(question, links)) ** UNLINKED_POWER * near
        return SearchedQuestion(question, links, lexical, cosines, walked, base)

    def chunk_scores(self, cosines: Mapping[str, float]) -> Scores:
        """The cosines of some chunks (by id) as scores of all, none below 0."""
        scores = np.zeros(len(self.chunks))
        for name, cosine in cosines.items():
            if name in self.position:
                scores[self.position[name]] = max(cosine, 0.0)
        return scores

    def _linked(self, question: str) -> list[Link]:
        links = self.link(question)
        if self.parts.fuzzy:
            return links
        return [link for link in links if fold_name(link.text) in self.names.by_key]

    def _walked(self, links: Sequence[Link], seeds: Scores) -> Scores:
        """The walk from the names, the best 1; from the best seeds alone where nothing is named."""
        best = best_places(seeds, START_PASSAGES)
        if not self.parts.walk or not (links or best):
            return np.zeros(len(self.chunks))
        start: dict[int, float] = {}
        for link in links:
            hub = 1 + float(np.log1p(self.walker.degree[link.entity]))
            start[link.entity] = start.get(link.entity, 0.0) + link.score / hub
        share = START_WEIGHT * sum(start.values()) if start else 1.0
        walked = scaled(
            self.walker.walk(start, {place: share * float(seeds[place]) for place in best})
        )
        walked[list(self._texts)] = walked[list(self._texts.values())]
        return walked

    def order(self, asked: SearchedQuestion, allowed: Flags, k: int) -> list[int]:
        """The k best allowed chunks with a score above 0, by index: a set that belongs together,
        then one by one.
        """
        # Chinese names tie passages less surely than they are found by their words.
        as_set = bool(asked.links) and self.parts.sets and not is_han(asked.question)
        first = self.selector.first(asked, allowed, self.parts) if as_set else []
        rest = np.where(allowed, asked.base, 0.0)
        rest[first] = 0.0
        ordered = [*first, *best_places(rest, max(k - len(first), 0))]
        return self._with_named_titles_first(asked, allowed, ordered)[:k]

    def _with_named_titles_first(
        self, asked: SearchedQuestion, allowed: Flags, ordered: Sequence[int]
    ) -> list[int]:
        """The chunks in their order, but none of "Paris" before the best one of "Paris, Texas"
        where the question names all of that title; and the other way round where it names no Texas.
        """
        terms_of = self.lexicon.terms_of
        wanted = frozenset(terms_of(asked.question))
        by_link = frozenset(term for link in asked.links for term in terms_of(link.text))
        near, alike = (
            best_places(scores, FUSED_DEPTH, allowed) for scores in (asked.base, asked.lexical)
        )
        looked_at = (*ordered, *near, *alike)
        named = {place: named_title(self.chunks[place], wanted, by_link) for place in looked_at}
        result: dict[int, None] = {}
        for place in ordered:
            rivals = [other for other in named if named[other].outnames(named[place])]
            if rivals and not any(other in result for other in rivals):
                result[max(rivals, key=lambda other: (asked.base[other], -other))] = None
            result.setdefault(place)
        return list(result)

    def allowed(self, documents: Collection[str] | None) -> Flags:
        """Which chunks are of these documents, in their order; all for None."""
        mask = np.full(len(self.chunks), documents is None)
        mask[[index for name in documents or () for index in self.documents.get(name, ())]] = True
        return mask

    def rank(self, scores: Scores, k: int) -> list[Passage]:
        """The k best chunks that score above 0, best first, each text once; ties go to the earlier
        chunk."""
        found = scores > 0
        best = best_places(scores, k, self.without_copies(scores, found))
        return [self.passage(place, scores[place], found) for place in best]

    def passage(self, place: int, score: float, allowed: Flags) -> Passage:
        """A chunk as a passage with its score, and the other allowed documents that hold its
        text.
        """
        passage = passage_of(self.chunks[place], score)
        also = self._holding(place, allowed)
        return passage.model_copy(update={"also": also}) if also else passage

    @cached_property
    def _copies(self) -> Mapping[int, Sequence[int]]:
        """The places of the chunks with one text, by each of them; none for a text that stands
        once."""
        by_text = by_key((chunk.text.strip(), place) for place, chunk in enumerate(self.chunks))
        return {place: places for places in by_text.values() if len(places) > 1 for place in places}

    def without_copies(self, scores: Scores, allowed: Flags) -> Flags:
        """The allowed chunks but, of those with one text, only the best; ties go to the earlier
        one."""
        once = allowed.copy()
        for place, places in self._copies.items():
            if place == places[0]:
                held = [copy for copy in places if allowed[copy]]
                best = max(held, key=lambda copy: (scores[copy], -copy), default=place)
                once[[copy for copy in held if copy != best]] = False
        return once

    def other_documents(self, chunk: str, documents: Collection[str] | None) -> tuple[str, ...]:
        """The documents among these (None: all) that hold the text of a chunk as well, by id."""
        place = self.position.get(chunk)
        return () if place is None else self._holding(place, self.allowed(documents))

    def _holding(self, place: int, allowed: Flags) -> tuple[str, ...]:
        copies = self._copies.get(place, ())
        holding = {self.chunks[copy].document for copy in copies if allowed[copy]}
        return tuple(sorted(holding - {self.chunks[place].document}))

    def switched(self, parts: SearchParts) -> "SearchIndex":
        """The same index, searched with some parts left out."""
        other = copy.copy(self)
        other.parts = parts
        return other

    def without_graph(self) -> "SearchIndex":
        """The same index, searched by words and vectors alone."""
        return self.switched(SearchParts(walk=False, bridges=False, sets=False))

    def chunk(self, name: str) -> Chunk:
        """A chunk by id."""
        return self.chunks[self.position[name]]


@step("retrieve")
async def retrieve(
    index: SearchIndex,
    queries: Sequence[str],
    dense: Sequence[Mapping[str, float]],
    k: int,
    documents: Collection[str] | None = None,
) -> list[Passage]:
    """Find the k best passages over all queries; the first query counts most.

    `dense` gives for each query the nearest chunks by id with their cosines (empty: words and graph
    alone).

    A passage's score says how well it fits by itself, by words, meaning and the graph (see
    `SearchedQuestion.base`); the order also counts how passages belong together, so that a score
    may be higher than one before it.

    A text that several documents hold comes once, from the one that fits best.
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
    return [index.passage(place, fits[place], allowed) for place in order]


# --- reranking ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reranked:
    """The passages in their order, and what the trace says of it; None where nothing was
    reranked.
    """

    passages: list[Passage]
    trace: Reranking | None = None


@step("rerank", BRIEF, asks_model=True)
async def rerank(
    question: str, passages: Sequence[Passage], k: int, reranker: Reranker
) -> Reranked:
    """Pick the k most relevant passages, best first, with the model's scores; equal ones stay in
    their order.

    Each is read under its title, so that it keeps its subject; in a thread, so that calls to models
    go on meanwhile. Raises EngineError where the model cannot be reached, or does not answer for
    every passage.
    """
    if not passages:
        return Reranked([])
    texts = [
        (
            passage.text
            if passage.text.startswith(passage.title)
            else f"{passage.title}\n{passage.text}"
        )
        for passage in passages
    ]
    scores = await asyncio.to_thread(reranker.scores, question, texts)
    order = sorted(range(len(passages)), key=lambda place: -scores[place])[:k]
    ranked = [
        passages[place].model_copy(update={"score": round(scores[place], 6)}) for place in order
    ]
    ranks = tuple(place + 1 for place in order)
    return Reranked(ranked, Reranking(model=reranker.name, passages=len(passages), ranks=ranks))
