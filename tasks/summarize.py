"""What is each entity? One description from everything said of it (GraphRAG 2.3; LightRAG `Prof`).

An entity with a single statement keeps it as it is: there is nothing to summarise, and nothing to pay for.
"""

import asyncio
from collections.abc import Sequence

from prompts.summarize import Summarize
from storage.records import Entity
from tasks.dedupe import Graph
from tasks.step import step


@step("summarize")
async def summarize(graph: Graph, summarizer: Summarize) -> tuple[Entity, ...]:
    """The graph's entities with their descriptions, in the same order."""

    async def one(entity: Entity) -> Entity:
        statements: Sequence[str] = graph.evidence.get(entity.id, ())
        if not statements:
            return entity
        text = statements[0] if len(statements) == 1 else await summarizer.run(entity.name, tuple(statements))
        return entity.model_copy(update={"description": text})

    if summarizer.is_offline:
        return tuple([await one(entity) for entity in graph.entities])
    return tuple(await asyncio.gather(*map(one, graph.entities)))
