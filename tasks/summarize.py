"""What is each entity? One description from everything said of it (GraphRAG 2.3; LightRAG `Prof`).

An entity with a single statement keeps it as it is, few short ones are joined: there is nothing to pay for.
"""

from prompts.engine.errors import ModelRefused
from prompts.summarize import Summarize, summarize_offline
from storage.records import DeadLetter, Entity, Record
from tasks.dedupe import Graph
from tasks.step import step
from tasks.together import together


class Described(Record):
    """The graph's entities with their descriptions, in the same order; a dead letter for each that a model refused."""

    entities: tuple[Entity, ...]
    dead_letters: tuple[DeadLetter, ...]


@step("summarize")
async def summarize(graph: Graph, summarizer: Summarize) -> Described:
    """Describe all entities. Where a model gives no usable answer the statements are quoted instead."""

    async def one(entity: Entity) -> tuple[str, DeadLetter | None]:
        said = graph.evidence[entity.id]
        try:
            return await summarizer.run(entity.name, said), None
        except ModelRefused as error:
            letter = DeadLetter(item=entity.id, step="summarize", error=error.message, remedy=error.remedy)
            return summarize_offline(entity.name, said), letter

    described: dict[str, str] = {}
    asked: list[Entity] = []
    for entity in graph.entities:
        said = graph.evidence.get(entity.id, ())
        text = summarizer.sure(entity.name, said) if len(said) > 1 else "".join(said)
        if text is None:
            asked.append(entity)
        else:
            described[entity.id] = text
    # A task for each call, not for each entity: a graph has a hundred times as many.
    answers = await together(map(one, asked))
    described |= {entity.id: text for entity, (text, _) in zip(asked, answers, strict=True)}
    return Described(
        entities=tuple(
            entity.model_copy(update={"description": described[entity.id]}) if described[entity.id] else entity
            for entity in graph.entities
        ),
        dead_letters=tuple(letter for _, letter in answers if letter),
    )
