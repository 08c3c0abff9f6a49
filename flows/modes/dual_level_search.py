"""Dual-level search: the graph by what a question names (low) and what it asks about (high)
(LightRAG 3.2, 3.3).

keys → entities and relations → passages → tables. Modes `low`, `high`, `hybrid`, and `mix`, which
adds the search's passages.
"""

from dataclasses import replace

from flows.modes.query_mode import QueryMode
from flows.question import ModeResult, Resources
from prompts.filter import Filter
from prompts.rewrite import Keywords
from storage.answer_records import Mode, Passage
from storage.records import Chunk
from tasks.answer import AnswerContext
from tasks.filter import filter_passages, filter_request
from tasks.retrieve.dual_levels import (
    Level,
    LevelScores,
    best_rows,
    graph_notes,
    search_graph,
    stating_sources,
)
from tasks.rewrite import find_keys

LEVEL_OF: dict[Mode, Level] = {
    "local": "low",
    "low": "low",
    "high": "high",
    "hybrid": "both",
    "mix": "both",
}
MIXED_IN = 4  # passages of the graph alone that `mix` adds to those of the search
PASSAGE_SHARE = 0.75  # of an answer's evidence; the tables take the rest


async def passages_at_levels(resources: Resources, k: int) -> list[Passage]:
    """Find the passages that the mode's levels lead to."""
    return (await _search_levels(resources, k))[1]


async def dual_level_search(resources: Resources) -> ModeResult:
    """Find a table of entities, one of relations, and passages.

    Where documents are restricted, descriptions are left out: they are made from all documents.
    """
    question, search, graph = resources.question, resources.search, resources.graph
    facts, only = graph.facts, question.only
    levels, retrieved = await _search_levels(resources, search.candidates(search.depth))
    reranked = await search.best(question.text, retrieved)
    passages = reranked.passages
    request = filter_request(question.text, passages, resources.writes)
    filtered = await filter_passages(request, passages, Filter(resources.models))
    most = resources.models.policy.limits.answer
    entities, relations = best_rows(levels, graph.levels, most)
    if only is not None:
        entities = [replace(entity, description="") for entity in entities]
        relations = [replace(relation, description="") for relation in relations]

    def stating(relation: str) -> list[Chunk]:
        """Return the chunks that state a relation, of the documents that may be used."""
        chunks = [search.chunk(place.chunk) for place in facts.places(relation)]
        return [chunk for chunk in chunks if only is None or chunk.document in only]

    passage_sources = search.sources(filtered.kept(passages), round(PASSAGE_SHARE * most))
    sources, numbers = stating_sources(relations, facts, stating, passage_sources, search.admits)
    return ModeResult(
        context=AnswerContext(sources, graph_notes(entities, relations, facts, numbers)),
        passages=passages,
        reason=f"the mode {question.options.mode} brings tables of entities and relations",
        filtered=filtered,
        structure="graph" if entities or numbers else "chunk",
        reranking=reranked.trace,
    )


async def _search_levels(resources: Resources, k: int) -> tuple[LevelScores, list[Passage]]:
    """Score entities and relations at the mode's levels, and find the passages they lead to, best
    first.
    """
    question, search = resources.question, resources.search
    mode, levels = question.options.mode, resources.graph.levels
    keys = await find_keys(question.text, Keywords(resources.models))
    near = levels.near(question.text, search.cosines(question.text), question.only)
    links = [] if mode == "high" else levels.link(question.text, keys.low)
    scores = await search_graph(levels, LEVEL_OF[mode], links, keys.high, near, search.embedder)
    passages = levels.best(scores, k)
    if mode != "mix":
        return scores, await search.with_pages(question.queries, passages)
    searched = await search.passages(question.queries, k)
    known = {passage.chunk for passage in searched}
    further = [passage for passage in passages if passage.chunk not in known]
    return scores, [*searched, *further[:MIXED_IN]]


LOW = QueryMode("low", dual_level_search, retrieve=passages_at_levels)
HIGH = QueryMode("high", dual_level_search, retrieve=passages_at_levels)
HYBRID = QueryMode("hybrid", dual_level_search, retrieve=passages_at_levels)
MIX = QueryMode("mix", dual_level_search, retrieve=passages_at_levels)
