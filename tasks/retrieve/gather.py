"""Which passages come first for a question? A pool of candidates, signs of how they fit together, the best set.

The pool holds the best of the walk, the best of words and meaning together, and what the first of these lead to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from prompts.language.concepts import concept_terms, members
from prompts.language.words import content_terms
from storage.records import Chunk
from tasks.retrieve.bridges import Bridges
from tasks.retrieve.cues import cues
from tasks.retrieve.lexical import Lexicon
from tasks.retrieve.link import Link
from tasks.retrieve.sets import Signs, choose, fused, pair_scores
from tasks.retrieve.switches import Switches

POOL_WALKED = 40
POOL_FUSED = 8
POOL_BRIDGED = 10
FUSED_DEPTH = 50
FIRST = 6
# Triples are read beside their text where they hold so much more of the question's rarity.
TOLD = 0.2
# What a passage counts that a bridge leads to and that has no other word of the question.
_WORDLESS = 0.05

Scores = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Asked:
    """A question and what each way of searching makes of every chunk.

    `lexical` and `walked` are 1 for the best chunk, `cosines` 0 for chunks that are not near; `base` is the mixture
    that ranks chunks one by one.
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
        found: dict[int, float] = {}
        for link in self.links:
            found[link.entity] = max(found.get(link.entity, 0.0), link.score)
        return found


class Gatherer:
    """Orders chunks as sets of evidence; immutable, so safe to share between threads."""

    def __init__(
        self,
        chunks: Sequence[Chunk],
        texts: Mapping[int, int],
        lexicon: Lexicon,
        bridges: Bridges,
        spellings: Sequence[tuple[str, ...]],
    ) -> None:
        """`chunks` in the order of lexicon and bridges; `texts` maps chunks of triples to the text that they speak for;
        `spellings` are the names of each entity."""
        self._texts = texts
        self._chunks = chunks
        self._lexicon = lexicon
        self._bridges = bridges
        self._spellings = spellings

    def first(self, asked: Asked, allowed: Flags, switches: Switches) -> list[int]:
        """The chunks to read first, best first, at most `sets.CHOSEN`, none but the allowed ones."""
        pool = self.pool(asked, allowed, switches)
        if len(pool) < 2:
            return pool
        signs = self.signs(asked, pool, switches)
        chosen = [pool[place] for place in choose(pair_scores(signs), signs.subject)]
        # Of the best pair the one that is better by itself: a question may need no second.
        return sorted(chosen[:2], key=lambda chunk: -asked.base[chunk]) + chosen[2:]

    def pool(self, asked: Asked, allowed: Flags, switches: Switches) -> list[int]:
        """The candidates, those of the walk first."""
        texts = allowed.copy()
        texts[list(self._texts)] = False
        walked = _best(asked.walked if switches.walk else asked.base, POOL_WALKED, texts)
        rankings = [_best(scores, FUSED_DEPTH, allowed) for scores in (asked.lexical, asked.cosines)]
        pool = dict.fromkeys([*walked, *fused(rankings)[:POOL_FUSED]])
        if switches.bridges and pool:
            further = self._bridges.further(_best(asked.base, FIRST, texts), asked.linked)
            further *= _WORDLESS + _scaled(self._lexicon.scores_of(self._unnamed(asked)))
            further[list(pool)] = 0.0
            pool |= dict.fromkeys(_best(further, POOL_BRIDGED, allowed))
        return self._untold(list(pool), asked.question)

    def _untold(self, pool: list[int], question: str) -> list[int]:
        """The pool without triples that hold little more of the question than the text beside them."""
        if self._texts.keys().isdisjoint(pool):
            return pool
        weights = self._concepts(question)
        rarity = np.array(list(weights.values()))
        holds = dict(zip(pool, self._holds(pool, list(weights)), strict=True))
        least = TOLD * rarity.sum()
        return [
            chunk
            for chunk in pool
            if (text := self._texts.get(chunk)) not in holds or (holds[chunk] & ~holds[text]) @ rarity > least
        ]

    @staticmethod
    def _unnamed(asked: Asked) -> list[str]:
        """The terms of the question that are no part of a name."""
        named = {term for link in asked.links for term in content_terms(link.text)}
        return [term for term in content_terms(asked.question) if term not in named]

    def signs(self, asked: Asked, pool: Sequence[int], switches: Switches) -> Signs:
        """What is known of the passages of a pool."""
        linked = asked.linked
        weights = self._concepts(asked.question)
        total = sum(weights.values()) or 1.0
        ties = self._bridges.ties(pool, linked)
        near = asked.cosines[asked.cosines > 0]
        named = {concept for link in asked.links for concept in concept_terms(link.text)}
        signs = Signs(
            walked=asked.walked[pool],
            meaning=np.maximum(asked.cosines[pool], near.min() if len(near) else 0.0),
            subject=np.array([max((linked.get(entity, 0.0) for entity in here), default=0.0) for here in ties.about]),
            holds=self._holds(pool, list(weights)),
            rarity=np.array(list(weights.values())) / total,
            ties=ties,
            cues=cues(
                [self._chunks[chunk].text for chunk in pool],
                ties.mentions,
                [[name for entity in here for name in self._spellings[entity]] for here in ties.about],
                {concept: weight for concept, weight in weights.items() if concept not in named},
            ),
        )
        return signs if switches.bridges else replace(signs, ties=ties.cut(), cues=np.zeros_like(signs.cues))

    def _concepts(self, question: str) -> Mapping[str, float]:
        """The concepts of the question with their rarity, that of the commonest word of each."""
        rarity = self._lexicon.idf_of
        return {
            concept: min(map(rarity, members(concept)), default=rarity(concept)) for concept in concept_terms(question)
        }

    def _holds(self, pool: Sequence[int], concepts: Sequence[str]) -> Flags:
        """pool × concepts: whether a passage holds any word of a concept."""
        found = np.zeros((len(pool), len(concepts)), bool)
        for column, concept in enumerate(concepts):
            for term in members(concept) or (concept,):
                found[:, column] |= np.isin(pool, self._lexicon.holding(term))
        return found


def _best(scores: Scores, count: int, allowed: Flags) -> list[int]:
    """The places of the best allowed scores above 0, best first; ties go to the earlier place."""
    found = np.flatnonzero((scores > 0) & allowed)
    return [int(place) for place in found[np.argsort(-scores[found], kind="stable")[:count]]]


def _scaled(scores: Scores) -> Scores:
    best = scores.max(initial=0.0)
    return scores / best if best > 0 else scores
