"""Traversal: a question answered by walking the graph (PolyG, section 3). link ─ plan ─ traverse ─
tell
"""

from dataclasses import replace
from functools import partial

from flows.modes.query_mode import QueryMode
from flows.question import ModeResult, Question, Resources
from flows.session import GraphReader
from prompts.engine.calls import first_fitting, rough_tokens
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
    """Walk over the graph: tables and paths for a model to write from, or an answer of its own."""
    question, search, graph = resources.question, resources.search, resources.graph
    models = resources.models
    imported, walked_graph = is_imported(question, graph), graph_of(question, graph)
    stated = Statements(walked_graph.facts, search.chunk, search.at_most)
    linked = await link(question.text, walked_graph.spellings)
    planner = PlanTraversal(models, partial(wrong_with, graph=walked_graph))
    planned = await plan(question.text, linked, walked_graph, planner, imported=imported)
    notes: list[Note] = []
    trail: tuple[SubQuestion, ...] = ()
    if isinstance(planned.steps, Problem):
        walked = refused(planned.steps)
    else:
        outcomes = await traverse(planned.steps, walked_graph)
        trail = traversal_trail(planned.steps, outcomes, stated)
        end = outcomes[-1]
        walked = traversal_answer(planned.steps, outcomes, stated)
        if isinstance(end, StepResult):
            of_triples = all(
                search.chunk(piece.chunk).kind == "triples"
                for piece in map(stated.of, relations_in(end.chains))
            )
            said = (
                support_of_lookup(question.text, linked, planned.steps, end, walked_graph)
                if of_triples
                else None
            )
            walked = replace(walked, fallback=said or "partial", looked_up=said is not None)
            most = models.policy.limits.structure
            # All that was found, where the walk's own answer names a few.
            found = ", ".join(first_fitting(walked.values, rough_tokens, most))
            notes = [
                Note("Found by the walk", found or walked.text),
                *in_formats(end.chains, stated, most),
            ]
    pool = stated.pool()
    sources = [piece_source(piece) for piece in pool]
    return ModeResult(
        context=AnswerContext(sources, notes),
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
    """Whether the graph has all that the question names from imported triples alone; all of it, if
    nothing is named.
    """
    alone = graph.triples_alone
    named = graph.traversal.spellings.named(question.text) if alone else []
    if not named:
        return bool(alone) and len(alone) == len(graph.facts.entities)
    return all(alone.issuperset(name.entities) for name in named if not name.doubtful)


def graph_of(question: Question, graph: GraphReader) -> TraversalGraph:
    """The graph, or what of it the documents state that the question may look into."""
    if question.only is None:
        return graph.traversal
    documents = frozenset(question.only)
    facts = graph.facts.stated_in(
        chunk.id for chunk in graph.index.chunks if chunk.document in documents
    )
    return replace(graph.traversal, facts=facts, vocabulary=Vocabulary(facts.predicates))


def in_formats(chains: tuple[Chain, ...], stated: Statements, most: int) -> list[Note]:
    """What was walked as an entity table, a relation table and, where there are longer chains, a
    path list, each of them within a third of `most` tokens.
    """
    relations = relations_in(chains)
    ends = [end for relation in relations for end in (relation.source, relation.target)]
    each = most // 3
    notes = [
        Note("Entities", entity_table(stated.facts, ends, each)),
        Note("Relations", relation_table(stated, relations, each)),
    ]
    if any(len(chain) > 1 for chain in chains):
        notes.append(
            Note("Paths", "\n".join(first_fitting(path_list(stated, chains), rough_tokens, each)))
        )
    return notes


TRAVERSE = QueryMode("traverse", walk)
