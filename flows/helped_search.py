"""The search with a model's help, where that is wanted: before it, a model keeps the statements of
the graph that bear on the question, and the walk starts from these; after it, what the first
passages leave open is searched for.

recognize → retrieve → rerank → (call → search)…

Source of the first: HippoRAG 2 (arXiv 2502.14802). The second is mode `agent` with the search as
its only tool and few calls. `recognition` and `further_searches` set them; by default both are for
high effort with a large model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from flows.modes.agent import QuestionTools, budget_of, tools_from
from flows.question import AUTO, Resources
from flows.tools import Tool
from prompts.agent import CallTool
from prompts.engine.step import Step
from prompts.recognize import Recognize
from storage.answer_records import Passage, Recognition, Reranking, SubQuestion
from storage.columns import column_of
from storage.graph_records import Occurrence
from tasks.agent import explore
from tasks.recognize import (
    SEARCHED,
    places_alike,
    recognition_of,
    recognize,
    seeds_of,
    statements_near,
)
from tasks.retrieve.passage_sets import best_places
from tasks.retrieve.search import NO_SEEDS, Reranked, Seeds

# Calls at high effort: the three links after the first of MuSiQue's longest questions, and the end.
FURTHER = 4


@dataclass(frozen=True)
class Searched:
    """The passages that a search found, best first, and what a model did for it.

    `steps` are the further searches with what they showed.
    """

    passages: Sequence[Passage]
    reranking: Reranking | None = None
    recognition: Recognition | None = None
    steps: tuple[SubQuestion, ...] = ()


async def searched(resources: Resources, queries: Sequence[str], k: int) -> Searched:
    """Find the k best passages for the queries, of which the first is the question."""
    search, question = resources.search, resources.question
    seeds = NO_SEEDS
    recognition: Recognition | None = None
    if recognizes(resources):
        seeds, recognition = await recognized(resources, Recognize(resources.models))
    found = await search.passages(queries, search.candidates(k), seeds=seeds)  # retrieve
    first = await search.reranked(question.text, found, k)  # rerank, where a model is set for it
    calls = further_calls(resources)
    if not calls:
        return Searched(first.passages, first.trace, recognition)
    tools = await followed(resources, first, CallTool(resources.models), calls)
    steps = tools.seen.trail[1:]
    return Searched(tools.result().passages[:k], first.trace, recognition, steps)


def recognizes(resources: Resources) -> bool:
    """Whether a model is asked which statements of the graph bear on the question."""
    setting = resources.search.session.runtime.settings.recognition
    judge = Recognize(resources.models)
    return not judge.is_offline and (setting == "on" or (setting == "auto" and _is_generous(judge)))


def further_calls(resources: Resources) -> int:
    """Return how often a model may search again. In mode `auto` it does not by itself: there the
    agent goes on where a link is open.
    """
    setting = resources.search.session.runtime.settings.further_searches
    caller = CallTool(resources.models)
    if caller.is_offline:
        return 0
    if setting is None:
        is_named = resources.question.options.mode != AUTO
        return FURTHER if is_named and _is_generous(caller) else 0
    return setting


def _is_generous(step: Step) -> bool:
    """Whether effort and profile ask for a step that costs more than the usual search."""
    policy = step.policy
    is_high = policy.effort == "high" and policy.profile == "large"
    return is_high and not policy.spared(step.step)


async def recognized(resources: Resources, judge: Recognize) -> tuple[Seeds, Recognition]:
    """Show the statements near to the question to a model; return what those kept lead to."""
    question, search, graph = resources.question, resources.search, resources.graph
    index, text = search.index, question.text
    asked = index.asked(text, search.cosines(text))
    first = best_places(asked.base, SEARCHED, index.allowed(question.only))
    alike: list[Occurrence] = []
    has_keys = any(column_of(graph.facts.relations.records, "keys"))
    if has_keys and graph.levels.has_vectors and search.embedder.reads(text):
        vectors = search.embedder.embed([text], query=True)
        alike = places_alike(graph.levels, vectors, index, question.only)
    chunks = [index.chunks[place].id for place in first]
    near = statements_near(question.relevance, chunks, index, graph.facts, alike)
    shown = near[: len(judge.fitting([one.line for one in near]))]
    is_wanted = search.session.runtime.settings.recognition == "on"
    kept = await recognize(text, shown, judge, wanted=is_wanted)
    return seeds_of(kept, index), recognition_of(shown, kept)


class SearchAlone(QuestionTools):
    """The question's own search as the only tool."""

    @property
    def offered(self) -> Mapping[str, Tool]:
        return {"search": self.search}


async def followed(
    resources: Resources, first: Reranked, caller: CallTool, calls: int
) -> QuestionTools:
    """Search for what the first passages leave open, by at most `calls` short queries of a model.

    The result's passages are those that the model named, then the first of each search, the second
    of each, ….
    """
    tools = tools_from(resources, first, SearchAlone)
    budget = replace(budget_of(resources), calls=calls)
    await explore(resources.question.text, tools.seen, tools, caller, budget)
    return tools
