"""Lazy answers: the questions of a question, the relevance tests of their passages, and the claims.

A test reads the sentences of one passage; a call tests several. What is found goes to the claims by
groups, so that a call reads what belongs together.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from prompts.engine.helper import helped
from prompts.engine.messages import first_fitting, portions, rough_tokens
from prompts.engine.step import Step
from prompts.lazy import Assess, Divide, LazyQuestion, passage_text
from prompts.read_reports import Offered, Partial
from prompts.text.evidence import Evidence
from prompts.text.relevance import CollectionTopic, telling
from storage.answer_records import Passage
from storage.records import Chunk, by_key
from tasks.batches import gather_or_cancel
from tasks.lazy.explore import Exploration, Home
from tasks.read_reports.points import (
    Point,
    ReportTexts,
    helpful_points,
    partial_answers,
    text_of,
    with_sentences,
)
from tasks.retrieve.search import SearchIndex
from tasks.retrying import BRIEF
from tasks.step import step

MOST_NAMES = 60
BY_RULES = "the sentences with most of the question's words are read"
PER_SENTENCE = 4  # tokens: its number and brackets


# --- the questions --------------------------------------------------------------------------------


@step("subquestions", BRIEF, asks_model=True)
async def divide(question: str, names: Sequence[str], divider: Divide) -> list[LazyQuestion]:
    """Divide a wide question; `names` are those that the documents speak of nearby."""
    instead = "the question is searched for as it is"
    return await helped(divider, lambda step: step.run(question, names), instead)


def names_near(index: SearchIndex, near: Mapping[str, float]) -> list[str]:
    """Return the concepts that the passages near to a question name, those of fewest others first.

    `near` says how near passages (ids) are.
    """
    spread = np.diff(index.entity_counts.indptr)
    worth = (index.entity_counts > 0) @ index.chunk_scores(near) / (1 + np.log1p(spread))
    best = np.argsort(-worth, kind="stable")[:MOST_NAMES].tolist()
    return [index.entities[place].name for place in best if worth[place] > 0]


# --- the tests ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Communities:
    """The communities of the graph: the broadest, those below each, and what passages belong to."""

    roots: Sequence[str]
    below: Mapping[str, Sequence[str]]
    home: Home


@dataclass(frozen=True)
class LazySearch:
    """A question with its passages, best first, and the number of its tests; `chunk` gives the text
    of a passage by id.
    """

    asked: LazyQuestion
    topic: CollectionTopic
    passages: Sequence[Passage]
    chunk: Callable[[str], Chunk]
    tests: int


@dataclass(frozen=True)
class Found:
    """What the tests of a question found: relevant sentences with their neighbours, the best
    passage first, and how many passages were tested and were relevant, in how many communities.
    """

    search: LazySearch
    sentences: Sequence[Evidence]
    tests: int
    relevant: int
    communities: int


@step("relevance", BRIEF, asks_model=True)
async def find_relevant(
    searches: Sequence[LazySearch], communities: Communities, assessor: Assess
) -> list[Found]:
    """Test passages of each question, the questions side by side, and return what is relevant."""
    return await gather_or_cancel(_explored(search, communities, assessor) for search in searches)


async def _explored(search: LazySearch, communities: Communities, assessor: Assess) -> Found:
    scores = {passage.chunk: passage.score for passage in search.passages}
    best = max(scores.values(), default=0.0) or 1.0
    exploration = Exploration(
        scores, communities.roots, communities.below, communities.home, search.tests
    )
    pool: list[Evidence] = []
    marked: set[int] = set()
    while names := exploration.next():
        pool, new = with_sentences(pool, [search.chunk(name) for name in names])
        told = [piece for piece in new if telling(text_of(piece))]
        relevant = await _relevant(told, search.topic, assessor)
        marked |= {piece.number for piece in relevant}
        exploration.tell({piece.chunk for piece in relevant})
    chosen = [
        piece._replace(prior=max(scores[piece.chunk], 0.0) / best)
        for piece in with_neighbours(pool, marked)
    ]
    chosen.sort(key=lambda piece: -piece.prior)
    passages = {piece.chunk for piece in pool if piece.number in marked}
    visited = len(exploration.visited)
    return Found(search, chosen, exploration.tests, len(passages), visited)


async def _relevant(
    sentences: Sequence[Evidence], topic: CollectionTopic, assessor: Assess
) -> list[Evidence]:
    """Return the relevant ones of the sentences of several passages, by calls side by side."""
    passages = list(by_key((piece.chunk, piece) for piece in sentences).values())
    sizes = (rough_tokens(passage_text(passage)) for passage in passages)
    calls = portions(passages, sizes, tokens_a_call(assessor))
    found = await gather_or_cancel(_marked(call, topic, assessor) for call in calls)
    return [piece for call in found for piece in call]


async def _marked(
    passages: Sequence[Sequence[Evidence]], topic: CollectionTopic, assessor: Assess
) -> list[Evidence]:
    return await helped(assessor, lambda step: step.run(passages, topic), BY_RULES)


def tokens_a_call(assessor: Step) -> int:
    """Return how much text a call tests: less for a small model (chosen, not measured)."""
    limits = assessor.policy.limits
    return limits.part if assessor.policy.profile == "small" else limits.filter


def with_neighbours(pool: Sequence[Evidence], marked: set[int]) -> list[Evidence]:
    """Return the marked sentences, each with the one before and after it in its passage, in the
    order of the pool.
    """
    passages = by_key((piece.chunk, piece) for piece in pool)
    kept: set[int] = set()
    for sentences in passages.values():
        in_order = sorted(sentences, key=lambda piece: piece.start)
        for place, piece in enumerate(in_order):
            if piece.number in marked:
                near = in_order[max(place - 1, 0) : place + 2]
                kept |= {other.number for other in near if telling(text_of(other))}
    return [piece for piece in pool if piece.number in kept | marked]


# --- the claims -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClaimTexts:
    """The groups of sentences that claims are read from, of each question; no sentence is in two.

    `pool` holds all sentences by their numbers.
    """

    groups: Sequence[Mapping[str, Offered]]
    pool: Sequence[Evidence]

    def named(self, questions: Sequence[str]) -> ReportTexts:
        """Return all groups with the question of each as its title, as a trace shows them."""
        offered = {
            name: Offered(question, "", group.findings)
            for question, groups in zip(questions, self.groups, strict=True)
            for name, group in groups.items()
        }
        return ReportTexts(offered, self.pool)


def claim_texts(
    found: Sequence[Found],
    communities: Communities,
    titles: Callable[[Sequence[str]], Mapping[str, str]],
    share: int,
    most: int,
) -> ClaimTexts:
    """Group what each question found by the broadest communities, in groups of `most` tokens.

    A question has room for `share` tokens: the sentences of its best passages come first. What
    several found is read for the first alone. `titles` names communities.
    """
    pool: list[Evidence] = []
    known: set[tuple[str, int, int]] = set()
    groups: list[dict[str, Offered]] = []
    roots = dict.fromkeys(communities.roots)
    for place, one in enumerate(found):
        new = [
            piece
            for piece in one.sentences
            if (piece.document, piece.start, piece.end) not in known
        ]
        chosen = first_fitting(new, _tokens, share)
        known |= {(piece.document, piece.start, piece.end) for piece in chosen}
        numbered = [piece._replace(number=number) for number, piece in enumerate(chosen, len(pool))]
        pool += numbered
        homes = {piece.chunk: communities.home(piece.chunk, roots) for piece in numbered}
        together = by_key((homes[piece.chunk], piece) for piece in numbered)
        named = titles([name for name in together if name is not None])
        groups.append({})
        for home, pieces in together.items():
            for number, part in enumerate(portions(pieces, map(_tokens, pieces), most)):
                inside = sorted(part, key=lambda piece: (piece.document, piece.start))
                findings = [(text_of(piece), piece) for piece in inside]
                title = named.get(home or "", "")
                groups[-1][f"{place}:{home or ''}:{number}"] = Offered(title, "", findings)
    return ClaimTexts(groups, pool)


def _tokens(piece: Evidence) -> int:
    return rough_tokens(text_of(piece)) + PER_SENTENCE


async def claims_of(
    texts: ClaimTexts, found: Sequence[Found], answerer: Partial, most: int
) -> list[Point]:
    """Read the claims of each question in calls of `most` tokens, and choose the most helpful.

    Those of one question stand together, the question with the best claim first.
    """

    async def claims_in(groups: Mapping[str, Offered], topic: CollectionTopic) -> list[Point]:
        return await partial_answers(ReportTexts(groups, texts.pool), None, topic, answerer, most)

    claims = await gather_or_cancel(
        claims_in(groups, one.search.topic) for groups, one in zip(texts.groups, found, strict=True)
    )
    ranked = sorted(
        (point for own in claims for point in own),
        key=lambda point: (-point.score, point.findings),
    )
    helpful = helpful_points(ranked, answerer)
    by_question = by_key((point.report.partition(":")[0], point) for point in helpful)
    return [point for own in by_question.values() for point in own]
