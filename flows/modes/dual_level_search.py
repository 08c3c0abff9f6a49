"""Dual-level search: the graph by what a question names (low) and by what it asks about (high) (LightRAG 3.2, 3.3).

keys ─ entities and relations ─ passages ─ tables. Modes `low`, `high`, `hybrid` and, with the search's passages, `mix`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from flows.modes.registry import mode
from flows.modes.structured_search import structured_search
from flows.question import QuestionContext
from flows.response import ModeResult
from prompts.filter import Filter
from prompts.rewrite import Keywords
from prompts.text.words import fold_name
from storage.answer_records import Mode, Passage, RouteDecision
from tasks.answer import AnswerContext
from tasks.filter import filter_passages
from tasks.retrieve.levels import Found, Level, search_graph
from tasks.retrieve.link import Link
from tasks.retrieve.tables import Shares, best_rows, graph_notes, stating_sources
from tasks.rewrite import find_keys

LEVEL_OF: dict[Mode, Level] = {"local": "low", "low": "low", "high": "high", "hybrid": "both", "mix": "both"}
# So many passages that only the graph leads to follow those that search finds.
MIXED_IN = 4
# Of an answer's evidence: what is left for passages beside the tables.
PASSAGE_SHARE = 0.75


@dataclass(frozen=True)
class GraphSearch:
    """What the levels of a mode found, and the passages that this leads to, best first."""

    found: Found
    passages: list[Passage]


@mode("low", "high", "hybrid", "mix", structure="graph")
async def dual_level_search(question: QuestionContext) -> ModeResult:
    """A table of entities, one of relations, and passages; a structure that the caller asks for replaces the tables.

    Where documents are restricted no description is shown: it
    is made of all of them."""
    session, models = question.session, question.models
    searched = await search_levels(question, question.depth)
    passages = searched.passages
    if question.options.structure is not None:
        return await structured_search(question, passages)
    filtered = await filter_passages(question.filter_request(passages), passages, Filter(models))
    kept = [passage for passage in passages if passage.chunk in set(filtered.chunks)]
    most = models.policy.limits.answer
    entities, relations = best_rows(searched.found, session.index.entities, session.facts, Shares().of(most))
    if question.options.documents is not None:
        entities = [entity.model_copy(update={"description": ""}) for entity in entities]
        relations = [relation.model_copy(update={"description": ""}) for relation in relations]
    found = question.sources(kept, round(PASSAGE_SHARE * most))
    sources, numbers = stating_sources(relations, session.facts, question.stating, found)
    reason = f"the mode {question.options.mode} brings tables of entities and relations"
    return ModeResult(
        context=AnswerContext(sources, graph_notes(entities, relations, session.facts, numbers)),
        passages=passages,
        route=RouteDecision(type="graph", confidence=1.0, margin=1.0, reason=reason),
        filtered=filtered,
        structure="graph" if entities or numbers else "chunk",
    )


async def search_levels(question: QuestionContext, k: int) -> GraphSearch:
    """What the mode's levels find: `low` and `high` one level alone, `mix` what search finds first of all."""
    mode, documents = question.options.mode, question.options.documents
    keys = await find_keys(question.text, Keywords(question.models))
    levels = question.session.levels
    # Kept for the filter too: it compares the passages by the graph.
    question.cosines[question.text] = question.session.dense([question.text], documents, question.embedder)[0]
    near = levels.near(question.text, question.cosines[question.text], documents)
    links = [] if mode == "high" else levels.link(question.text, keys.low)
    links += _linked_by_meaning(question, keys.low, links)
    found = await search_graph(levels, LEVEL_OF[mode], links, keys.high, near, question.embedder)
    passages = levels.best(found, k)
    if mode == "mix":
        searched = await question.search(question.queries, k)
        known = {passage.chunk for passage in searched}
        return GraphSearch(found, [*searched, *[one for one in passages if one.chunk not in known][:MIXED_IN]])
    return GraphSearch(found, await question.with_pages(question.queries, passages))


def _linked_by_meaning(question: QuestionContext, keys: Sequence[str], links: Sequence[Link]) -> list[Link]:
    """Links of the low keys, and of what looks like a name, that no spelling led to, where names have vectors."""
    vectors = question.session.name_vectors
    if question.options.mode == "high" or not vectors:
        return []
    linked = {fold_name(link.text) for link in links}
    names = dict.fromkeys([*keys, *question.unlinked])
    left = [name for name in names if fold_name(name) not in linked and question.embedder.reads(name)]
    return vectors.nearest(left, question.embedder.embed(left)) if left else []
