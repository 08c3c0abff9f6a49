"""How is a question answered by walking the graph? link ─ classify ─ plan ─ traverse ─ tell"""

from collections.abc import Sequence

from flows.asking_view import View
from flows.contexts import Context
from prompts.answer import AnswerStep
from prompts.classify import Classify
from prompts.engine.models import Models
from prompts.reading.claims import Desk
from prompts.traverse import PlanTraversal
from storage.records import Passage, RouteDecision
from tasks.classify import classify
from tasks.structurize.step import Structured
from tasks.traverse.context import Stated, entity_table, path_list, relation_table, relations_in
from tasks.traverse.names import link
from tasks.traverse.plan import Graph
from tasks.traverse.results import Chain, Found, Problem
from tasks.traverse.run import Ground
from tasks.traverse.steps import plan, traverse
from tasks.traverse.tell import Told, refused, tell
from tasks.traverse.vocabulary import Vocabulary


async def traversed(view: View, queries: Sequence[str], models: Models) -> Context:
    """Answer from the graph; an open question is written by a model where there is one, from what was walked."""
    ground = ground_of(view)
    stated = Stated(ground.facts, view.chunk)
    linked = await link(view.taken.text, ground.graph.spellings)
    question = await classify(view.taken.text, linked, Classify(models))
    steps = await plan(question, ground.graph, PlanTraversal(models))
    if isinstance(steps, Problem):
        told = Told(refused(steps), (), is_open=False)
    else:
        outcomes = await traverse(steps, ground)
        told = tell(question.text, question.asks_if, steps, outcomes, stated)
        if told.is_open and isinstance(outcomes[-1], Found):
            told = await _written(told, outcomes[-1], view, stated, models)
    pool = stated.pool()
    typed = question.typed
    return Context(
        passages=_passages(view, stated),
        structured=Structured("graph", pool.evidence, (f"{len(pool.evidence)} relations",), pool),
        route=RouteDecision(type="graph", confidence=1.0, margin=1.0, reason=f"{typed.type}: {typed.reason}"),
        reading=told.reading, question_type=typed.type, subquestions=told.subquestions,
    )  # fmt: skip


def ground_of(view: View) -> Ground:
    """The session's graph, or what of it the documents state that the question may look into."""
    ground, only = view.session.ground, view.options.documents
    if only is None:
        return ground
    kept = frozenset(only)
    facts = ground.facts.stated_in(chunk.id for chunk in view.session.index.chunks if chunk.document in kept)
    return Ground(Graph(facts, Vocabulary(facts.relations.values()), ground.graph.spellings), ground.tables)


async def _written(told: Told, found: Found, view: View, stated: Stated, models: Models) -> Told:
    """An open question's answer by the model, from the three formats; offline as it was told."""
    writer = AnswerStep(models, view.options.on_text, view.session.runtime.settings.tailoring.language)
    if writer.is_offline:
        return told
    formats = in_formats(found.chains, stated)
    pool = stated.pool()
    reading = await writer.run(Desk(view.taken, pool.evidence, pool.evidence, view.relevance), formats)
    return Told(reading, told.subquestions, is_open=True)


def in_formats(chains: tuple[Chain, ...], stated: Stated) -> list[tuple[str, str]]:
    """What was walked as an entity table, a relation table and, where there are longer chains, a path list."""
    relations = relations_in(chains)
    ends = [end for relation in relations for end in (relation.source, relation.target)]
    formats = [
        ("Entities:", entity_table(stated.facts, ends)),
        ("Relations:", relation_table(stated, relations)),
    ]
    if any(len(chain) > 1 for chain in chains):
        formats.append(("Paths:", "\n".join(path_list(stated, chains))))
    return formats


def _passages(view: View, stated: Stated) -> tuple[Passage, ...]:
    """The chunks that state what was walked, in that order."""
    chunks = list(dict.fromkeys(one.place.chunk for one in stated.known.values()))
    return tuple(
        Passage(
            document=chunk.document, title=chunk.title, chunk=chunk.id, score=round(1 - rank / len(chunks), 6),
            text=chunk.text,
        )
        for rank, chunk in enumerate(map(view.chunk, chunks))
    )  # fmt: skip
