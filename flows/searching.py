"""What is laid before the answer in the modes that search? retrieve ─ filter ─ route ─ structurize"""

from collections.abc import Sequence

from flows.asking_view import View
from flows.contexts import Context
from flows.utilizing import utilized
from prompts.engine.models import Models
from prompts.filter import Filter
from prompts.route import Route
from prompts.structures.schema import ReadSchema
from prompts.structurize import Structurize
from storage.records import Passage
from tasks.better_supported import better
from tasks.filter import filter_passages
from tasks.route import choose_structure, hypothesis_of
from tasks.structurize.step import SHORT, THOROUGH, Apart, Effort, structurize


async def searched(view: View, passages: Sequence[Passage], models: Models) -> Context:
    """Of the passages that search or memory offers, those that help, and what they say in the structure that fits."""
    taken, relevance = view.taken, view.relevance
    pool, standing = view.pool(passages), view.standing(passages)
    kept = await filter_passages(hypothesis_of(taken), passages, pool, relevance, Filter(models), standing)
    pool = pool.inside(kept.chunks)
    route = await choose_structure(taken, pool, Route(models), view.options.forced)
    tabled = await utilized(view, passages, route, kept, models)
    if tabled is not None:
        return tabled
    chains = view.chains(pool, route.type)
    if chains is not None:
        return Context(passages, chains, route, kept)
    builder, apart = Structurize(models), Apart(ReadSchema(models), view.shelf)
    built = await structurize(route, pool, relevance, builder, effort_of(view, models), apart)
    if route.second is not None:  # a close call: what the documents give decides it
        instead = route.model_copy(update={"type": route.second})
        other = await structurize(instead, pool, relevance, builder, SHORT, apart)
        built, route = better(built, other, route, relevance)
    return Context(passages, built, route, kept)


def effort_of(view: View, models: Models) -> Effort:
    """Every document is read where the caller asks for a structure or names the documents."""
    named = view.options.documents is not None
    return THOROUGH if named or view.options.structure is not None or view.options.mode == "struct" else SHORT
