"""What is laid before the answer in the modes that search? retrieve ─ filter ─ route ─ structurize"""

from collections.abc import Sequence

from flows.asking_view import View
from flows.contexts import Context
from prompts.engine.models import Models
from prompts.filter import Filter
from prompts.route import Route
from prompts.structurize import Structurize
from tasks.filter import filter_passages
from tasks.route import choose_structure, hypothesis_of
from tasks.structurize.step import SHORT, THOROUGH, Effort, structurize
from tasks.trigger import Recall


async def searched(view: View, queries: Sequence[str], recall: Recall, models: Models) -> Context:
    """The passages that search or memory offers, those that help, and what they say in the structure that fits."""
    taken, relevance = view.taken, view.relevance
    passages = await view.passages(queries, recall)
    pool = view.pool(passages)
    kept = await filter_passages(hypothesis_of(taken), passages, pool, relevance, Filter(models))
    pool = pool.inside(kept.chunks)
    route = await choose_structure(taken, pool, Route(models), view.options.forced)
    built = await structurize(route, pool, relevance, Structurize(models), effort_of(view), view.shelf)
    return Context(passages, view.connected(built), route, kept)


def effort_of(view: View) -> Effort:
    """Every document is read where the caller asks for a structure or names the documents."""
    named = view.options.documents is not None
    return THOROUGH if named or view.options.structure is not None or view.options.mode == "struct" else SHORT
