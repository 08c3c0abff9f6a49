"""Traversal: a question answered by walking the graph (PolyG, section 3).

link → plan → traverse → answer
"""

from dataclasses import replace
from functools import partial

from flows.modes.query_mode import QueryMode
from flows.question import ModeResult, Question, Resources
from flows.session import GraphReader
from prompts.engine.messages import first_fitting, rough_tokens
from prompts.traverse import PlanTraversal
from storage.answer_records import RouteDecision, SubQuestion
from tasks.answer import AnswerContext, Note
from tasks.citations import piece_source
from tasks.traverse.answer import (
    Statements,
    entity_table,
    path_list,
    refused,
    relation_table,
    relations_in,
    traversal_answer,
    traversal_trail,
)
from tasks.traverse.entity_names import link
from tasks.traverse.lookup import support_of_lookup
from tasks.traverse.meta_paths import Chain, Vocabulary
from tasks.traverse.plan import Problem, StepResult, TraversalGraph, traverse
from tasks.traverse.planning import plan, wrong_with


async def walk(resources: Resources) -> ModeResult:
    """Walk the graph: find tables and paths for a model to write from, and an answer without
    one.
    """
    question, search = resources.question, resources.search
    graph = _allowed_graph(question, resources.graph)
    imported = is_imported(question, resources.graph)
    stated = Statements(graph.facts, search.chunk, search.at_most)
    linked = await link(question.text, graph.spellings)
    planner = PlanTraversal(resources.models, partial(wrong_with, graph=graph))
    planned = await plan(question.text, linked, graph, planner, imported=imported)
    notes: list[Note] = []
    trail: tuple[SubQuestion, ...] = ()
    if isinstance(planned.steps, Problem):
        walked = refused(planned.steps)
    else:
        outcomes = await traverse(planned.steps, graph)
        trail = traversal_trail(planned.steps, outcomes, stated)
        walked = traversal_answer(planned.steps, outcomes, stated)
        end = outcomes[-1]
        if isinstance(end, StepResult):
            pieces = map(stated.of, relations_in(end.chains))
            support = None
            if all(search.chunk(piece.chunk).kind == "triples" for piece in pieces):
                support = support_of_lookup(question.text, linked, planned.steps, end, graph)
            walked = replace(walked, fallback=support or "partial", looked_up=support is not None)
            most = resources.models.policy.limits.structure
            # The walk's own answer names only a few of the values.
            found = ", ".join(first_fitting(walked.values, rough_tokens, most))
            notes = [
                Note("Found by the walk", found or walked.text, computed=True),
                *_chain_notes(end.chains, stated, most // 3),
            ]
    pool = stated.pool()
    return ModeResult(
        context=AnswerContext([piece_source(piece) for piece in pool], notes),
        passages=[search.passage(name) for name in dict.fromkeys(piece.chunk for piece in pool)],
        stated=walked,
        route=RouteDecision(
            type="graph", confidence=1.0, margin=1.0, reason=f"{planned.type}: {planned.reason}"
        ),
        question_type=planned.type,
        subquestions=trail,
        structure="graph",
    )


def is_imported(question: Question, graph: GraphReader) -> bool:
    """Whether imported triples alone hold all that the question names, or the whole graph where it
    names nothing.
    """
    alone = graph.triples_alone
    named = graph.traversal.spellings.named(question.text) if alone else []
    if not named:
        return bool(alone) and len(alone) == len(graph.facts.entities)
    return all(alone.issuperset(name.entities) for name in named if not name.doubtful)


def _allowed_graph(question: Question, graph: GraphReader) -> TraversalGraph:
    """Return the part of the graph that the documents state which the question may look into."""
    if question.only is None:
        return graph.traversal
    documents = frozenset(question.only)
    facts = graph.facts.stated_in(
        chunk.id for chunk in graph.index.chunks if chunk.document in documents
    )
    return replace(graph.traversal, facts=facts, vocabulary=Vocabulary(facts.predicates))


def _chain_notes(chains: tuple[Chain, ...], stated: Statements, most: int) -> list[Note]:
    """Show chains as an entity table, a relation table and, where any has several relations, a path
    list, each within `most` tokens.
    """
    relations = relations_in(chains)
    ends = [end for relation in relations for end in (relation.source, relation.target)]
    notes = [
        Note("Entities", entity_table(stated.facts, ends, most)),
        Note("Relations", relation_table(stated, relations, most)),
    ]
    if any(len(chain) > 1 for chain in chains):
        paths = first_fitting(path_list(stated, chains), rough_tokens, most)
        notes.append(Note("Paths", "\n".join(paths)))
    return notes


TRAVERSE = QueryMode("traverse", walk)
