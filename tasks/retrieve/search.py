"""Which passages does a question need? Words, meaning and the entity graph together, ranked the same way every time.

The names in the question start a personalised PageRank over passages and entities; the best lexical and dense passages
join the start with a small weight. The less of the question its linked names cover, the more words and meaning count.
"""

import copy
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from prompts.language.words import content_terms, is_han, terms
from storage.graph import EntityChunkPairs
from storage.postings import Postings
from storage.records import Alias, Chunk, Entity, Passage
from tasks.retrieve.lexical import Lexicon
from tasks.retrieve.link import Link, Names
from tasks.retrieve.walk import Walker
from tasks.step import step

START_PASSAGES = 10
START_DENSE = 0.5
START_WEIGHT = 0.01
UNLINKED_POWER = 4
HAN_WALK = 0.3

Scores = NDArray[np.float64]


class SearchIndex:
    """All that retrieval needs of one generation; immutable, so safe to share between threads."""

    def __init__(
        self,
        chunks: Sequence[Chunk],
        postings: Postings,
        pairs: EntityChunkPairs,
        entities: Sequence[Entity],
        aliases: Sequence[Alias],
    ) -> None:
        """`postings.chunks` gives the order of chunks; `pairs` may name entities in any order."""
        by_id = {chunk.id: chunk for chunk in chunks}
        self.chunks = [by_id[name] for name in postings.chunks]
        self.position = {chunk.id: index for index, chunk in enumerate(self.chunks)}
        self.entities = list(entities)
        self.lexicon = Lexicon(len(self.chunks), postings.terms, postings.chunk_index, postings.term_index, postings.tf)
        where = {entity.id: index for index, entity in enumerate(self.entities)}
        entity_of = np.array([where[name] for name in pairs.entities], np.int32)
        chunk_of = np.array([self.position[name] for name in pairs.chunks], np.int32)
        self.walker = Walker(
            len(self.chunks),
            len(self.entities),
            chunk_of[pairs.chunk_index] if len(chunk_of) else chunk_of,
            entity_of[pairs.entity_index] if len(entity_of) else entity_of,
            pairs.counts.astype(np.float64),
        )
        self.names = Names(
            [(entity.name, index) for index, entity in enumerate(self.entities)]
            + [(alias.name, where[alias.entity]) for alias in aliases]
        )
        self.spellings: list[tuple[str, ...]] = [(entity.name,) for entity in self.entities]
        for alias in aliases:
            self.spellings[where[alias.entity]] += (alias.name,)
        self.documents: dict[str, list[int]] = {}
        for index, chunk in enumerate(self.chunks):
            self.documents.setdefault(chunk.document, []).append(index)

    def link(self, question: str) -> list[Link]:
        """The entities that a question names."""
        return self.names.link(question)

    def coverage(self, question: str, links: Sequence[Link]) -> float:
        """The share of the question's rare words that its linked names hold, 0 to 1."""
        wanted = content_terms(question)
        named = set(terms(" ".join(link.text for link in links)))
        total = sum(self.lexicon.idf_of(term) for term in wanted)
        return sum(self.lexicon.idf_of(term) for term in wanted if term in named) / total if total else 0.0

    def scores(self, question: str, dense: Mapping[str, float]) -> Scores:
        """A score ≥ 0 for every chunk; `dense` maps the nearest chunk ids to their cosine."""
        lexical = _scaled(self.lexicon.scores(question))
        meaning = np.zeros(len(self.chunks))
        for chunk, cosine in dense.items():
            if chunk in self.position:
                meaning[self.position[chunk]] = max(cosine, 0.0)
        meaning = _scaled(meaning)
        near = lexical + meaning
        links = self.link(question)
        if not links:
            return near
        degree = self.walker.degree
        start: dict[int, float] = {}
        for link in links:
            start[link.entity] = start.get(link.entity, 0.0) + link.score / (1 + float(np.log1p(degree[link.entity])))
        total = sum(start.values())
        seeds = lexical + START_DENSE * meaning
        best = np.argsort(-seeds, kind="stable")[:START_PASSAGES]
        walked = self.walker.walk(start, {int(i): START_WEIGHT * total * seeds[i] for i in best if seeds[i] > 0})
        if is_han(question):
            # Chinese names are cut from unspaced text and so are less sure than the words that they are made of.
            return near + HAN_WALK * _scaled(walked)
        return _scaled(walked) + (1 - self.coverage(question, links)) ** UNLINKED_POWER * near

    def rank(
        self, scores: Scores, k: int, documents: Collection[str] | None = None, floor: float = 0.0
    ) -> list[Passage]:
        """The k best chunks above `floor`, best first; ties go to the earlier chunk. `documents` restricts them."""
        if documents is not None:
            allowed = [index for name in sorted(set(documents)) for index in self.documents.get(name, ())]
            mask = np.full(len(self.chunks), -1.0)
            mask[allowed] = scores[allowed]
            scores = mask
        order = [int(index) for index in np.argsort(-scores, kind="stable")[:k] if scores[index] > floor]
        return [self._passage(index, float(scores[index])) for index in order]

    def _passage(self, index: int, score: float) -> Passage:
        chunk = self.chunks[index]
        return Passage(
            document=chunk.document, title=chunk.title, chunk=chunk.id, score=round(score, 6), text=chunk.text
        )

    def names_of(self, entity: int) -> tuple[str, ...]:
        """All names of an entity, the main one first."""
        return self.spellings[entity]

    def without_graph(self) -> "SearchIndex":
        """The same index with no name known: search by words and vectors alone."""
        plain = copy.copy(self)
        plain.names = Names([])
        return plain

    def rank_chunks(self, scores: Scores, chunks: Sequence[str]) -> list[Passage]:
        """These chunks as passages, best first; ties go to the earlier one."""
        ordered = sorted((self.position[name] for name in chunks), key=lambda place: (-scores[place], place))
        return [self._passage(place, float(scores[place])) for place in ordered]

    def chunk(self, name: str) -> Chunk:
        """A chunk by id."""
        return self.chunks[self.position[name]]


def _scaled(scores: Scores) -> Scores:
    """Scores divided by the best one."""
    best = scores.max() if scores.size else 0.0
    return scores / best if best > 0 else scores


@step("retrieve")
async def retrieve(
    index: SearchIndex,
    queries: Sequence[str],
    dense: Sequence[Mapping[str, float]],
    k: int,
    documents: Collection[str] | None = None,
) -> list[Passage]:
    """The k best passages over all queries, `dense` in their order; the first query counts most."""
    total = np.zeros(len(index.chunks))
    for rank, (query, near) in enumerate(zip(queries, dense, strict=True)):
        total = np.maximum(total, _scaled(index.scores(query, near)) * (1.0 if rank == 0 else 0.8))
    return index.rank(total, k, documents)
