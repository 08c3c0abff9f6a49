"""How is a question answered from both levels of the graph? (LightRAG, section 3.2 and 3.3)

keys ─ entities and relations ─ passages ─ filter ─ tables
"""

from collections.abc import Sequence
from dataclasses import dataclass

from flows.asking_view import View
from flows.contexts import Context
from prompts.engine.models import Models
from prompts.filter import Filter
from prompts.keywords import Keywords
from prompts.language.words import fold_name
from prompts.route import Route
from prompts.structurize import Structurize
from storage.records import Mode, Passage, RouteDecision
from tasks.filter import filter_passages
from tasks.keywords import find_keys
from tasks.retrieve.levels import Found, Level, search_graph
from tasks.retrieve.link import Link
from tasks.retrieve.tables import Shares, best_rows, with_tables
from tasks.route import choose_structure, depth, hypothesis_of
from tasks.structurize.step import structurize

LEVEL_OF: dict[Mode, Level] = {"local": "low", "low": "low", "high": "high", "hybrid": "both", "mix": "both"}
LEVELS: tuple[Mode, ...] = tuple(LEVEL_OF)
# So many passages that only the graph leads to follow those that search finds.
MIXED_IN = 4


@dataclass(frozen=True)
class Levelled:
    """What the levels of a mode gave for a question."""

    found: Found
    passages: list[Passage]


async def by_levels(view: View, queries: Sequence[str], models: Models) -> Context:
    """A table of entities, one of relations, and passages. A structure that the caller asks for replaces the tables."""
    taken, options, session = view.taken, view.options, view.session
    levelled = await levels_of(view, queries, models, depth(taken, options.k))
    pool = view.pool(levelled.passages)
    passages, standing = levelled.passages, view.standing(levelled.passages)
    kept = await filter_passages(hypothesis_of(taken), passages, pool, view.relevance, Filter(models), standing)
    pool = pool.inside(kept.chunks)
    if options.structure is not None:
        route = await choose_structure(taken, pool, Route(models), options.structure)
        structured = await structurize(route, pool, view.relevance, Structurize(models))
    else:
        entities, relations = best_rows(levelled.found, session.index.entities, session.facts, Shares())
        if options.documents is not None:
            # Descriptions are made of all documents: they would tell what the question may not look into.
            entities = [entity.model_copy(update={"description": ""}) for entity in entities]
        structured = with_tables(pool, entities, relations, session.facts, view.stating)
        reason = f"the mode {options.mode} brings tables of entities and relations"
        route = RouteDecision(type="graph", confidence=1.0, margin=1.0, reason=reason)
    return Context(levelled.passages, structured, route, kept)


async def passages_by_levels(view: View, queries: Sequence[str], models: Models, k: int) -> list[Passage]:
    """The passages of a mode of levels, best first; at most k, in `mix` a few more."""
    return (await levels_of(view, queries, models, k)).passages


async def levels_of(view: View, queries: Sequence[str], models: Models, k: int) -> Levelled:
    """What the mode's levels find: `low` and `high` one level alone, `mix` what search finds first of all."""
    mode, question, documents = view.options.mode, queries[0], view.options.documents
    # A rewriting with a history was the one call that may be spent before the search.
    rewritten = any(step == "rewrite" for step, _, _ in models.meter.rows())
    keys = await find_keys(question, Keywords(models), rewritten)
    levels = view.session.levels
    # Kept for the filter too: it compares the passages by the graph.
    view.near[question] = view.session.dense([question], documents, view.embedder)[0]
    near = levels.near(question, view.near[question], documents)
    links = [] if mode == "high" else levels.link(question, keys.low)
    links += linked_by_meaning(view, keys.low, links)
    found = await search_graph(levels, LEVEL_OF[mode], links, keys.high, near, view.embedder)
    passages = levels.best(found, k)
    if mode == "mix":
        searched = await view.search(queries, k)
        known = {passage.chunk for passage in searched}
        return Levelled(found, [*searched, *[one for one in passages if one.chunk not in known][:MIXED_IN]])
    return Levelled(found, await view.with_pages(queries, passages))


def linked_by_meaning(view: View, keys: Sequence[str], links: Sequence[Link]) -> list[Link]:
    """Links of the low keys, and of what looks like a name, that no spelling led to, where names have vectors."""
    if view.options.mode == "high" or not view.session.name_vectors:
        return []
    linked = {fold_name(link.text) for link in links}
    names = dict.fromkeys([*keys, *view.unlinked])
    left = [name for name in names if fold_name(name) not in linked and view.embedder.reads(name)]
    return view.session.name_vectors.nearest(left, view.embedder.embed(left)) if left else []
