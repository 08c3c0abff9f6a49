"""Traversal: a question answered by walking the graph (PolyG, section 3). link ─ plan ─ traverse ─ tell"""

from dataclasses import replace

from flows.modes.registry import mode
from flows.question import ModeResult, QuestionContext
from prompts.engine.models import Models
from storage.answer_records import RouteDecision
from tasks.answer import AnswerContext, Note
from tasks.sources import piece_source
from tasks.traverse.answer import (
    Statements,
    TraversalAnswer,
    entity_table,
    path_list,
    refused,
    relation_table,
    relations_in,
    traversal_answer,
)
from tasks.traverse.entity_names import link
from tasks.traverse.meta_paths import Chain, Vocabulary
from tasks.traverse.plan import Problem, StepResult, TraversalGraph, traverse
from tasks.traverse.planning import plan, planner_of


@mode("traverse", structure="graph")
async def traversal(question: QuestionContext) -> ModeResult:
    """What a walk over the graph finds: tables and paths for a model to write from, or its own answer."""
    return await walk(question, question.models)


async def walk(question: QuestionContext, models: Models) -> ModeResult:
    """The same, planned by these models."""
    graph = graph_of(question)
    stated = Statements(graph.facts, question.chunk)
    linked = await link(question.text, graph.spellings)
    planned = await plan(question.text, linked, graph, planner_of(models, graph), imported=is_imported(question))
    notes: list[Note] = []
    if isinstance(planned.steps, Problem):
        walked = TraversalAnswer(refused(planned.steps), ())
    else:
        outcomes = await traverse(planned.steps, graph)
        walked = traversal_answer(question.text, planned.asks_if, planned.steps, outcomes, stated)
        end = outcomes[-1]
        if isinstance(end, StepResult):
            notes = [Note("Found by the walk", walked.answer.text), *in_formats(end.chains, stated)]
    pool = stated.pool()
    sources = [piece_source(piece, pool.places[piece.number]) for piece in pool.evidence]
    passages = [question.chunk(name) for name in dict.fromkeys(place.chunk for place in pool.places)]
    return ModeResult(
        context=AnswerContext(sources, notes),
        passages=[question.passage_of(chunk) for chunk in passages],
        stated=walked.answer,
        route=RouteDecision(
            type="graph",
            confidence=planned.confidence,
            margin=1.0,
            reason=f"{planned.type}: {planned.reason}",
        ),
        question_type=planned.type,
        subquestions=walked.subquestions,
        structure="graph",
    )


def is_imported(question: QuestionContext) -> bool:
    """Whether the graph has all that the question names from imported triples alone; all of it, if nothing is named."""
    alone, graph = question.session.triples_alone, question.session.traversal_graph
    named = graph.spellings.named(question.text) if alone else []
    if not named:
        return bool(alone) and len(alone) == len(graph.facts.entities)
    return all(alone.issuperset(name.entities) for name in named if not name.doubtful)


def graph_of(question: QuestionContext) -> TraversalGraph:
    """The session's graph, or what of it the documents state that the question may look into."""
    graph, only = question.session.traversal_graph, question.options.documents
    if only is None:
        return graph
    documents = frozenset(only)
    facts = graph.facts.stated_in(chunk.id for chunk in question.session.index.chunks if chunk.document in documents)
    return replace(graph, facts=facts, vocabulary=Vocabulary(facts.relations.values()))


def in_formats(chains: tuple[Chain, ...], stated: Statements) -> list[Note]:
    """What was walked as an entity table, a relation table and, where there are longer chains, a path list."""
    relations = relations_in(chains)
    ends = [end for relation in relations for end in (relation.source, relation.target)]
    notes = [Note("Entities", entity_table(stated.facts, ends)), Note("Relations", relation_table(stated, relations))]
    if any(len(chain) > 1 for chain in chains):
        notes.append(Note("Paths", "\n".join(path_list(stated, chains))))
    return notes
