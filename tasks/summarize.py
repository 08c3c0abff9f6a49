"""What is each entity? One description from everything said of it (GraphRAG 2.3; LightRAG `Prof`).

An entity with a single statement keeps it as it is, few short ones are joined: there is nothing to pay for. More than
fit into one request are summarised in groups, and then the groups' summaries.
"""

from collections.abc import Sequence

from prompts.engine.errors import ModelRefused
from prompts.language.tokens import count_tokens
from prompts.summarize import Summarize, summarize_offline
from storage.records import DeadLetter, Entity, Record
from tasks.dedupe import Graph
from tasks.step import PATIENT, step
from tasks.together import together

STATEMENTS_TOKENS = 3_000  # in one request


class Described(Record):
    """The graph's entities with their descriptions, in the same order; a dead letter for each that a model refused."""

    entities: tuple[Entity, ...]
    dead_letters: tuple[DeadLetter, ...]


@step("summarize", PATIENT)
async def summarize(graph: Graph, summarizer: Summarize) -> Described:
    """Describe all entities. Where a model gives no usable answer the statements are quoted instead."""

    async def one(entity: Entity) -> tuple[str, DeadLetter | None]:
        said = graph.evidence[entity.id]
        try:
            return await _summary(entity.name, said, summarizer), None
        except ModelRefused as error:
            letter = DeadLetter(item=entity.id, step="summarize", error=error.message, remedy=error.remedy)
            return summarize_offline(entity.name, said), letter

    described: dict[str, str] = {}
    asked: list[Entity] = []
    for entity in graph.entities:
        if entity.description:  # somebody wrote it
            described[entity.id] = entity.description
            continue
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


async def _summary(name: str, said: tuple[str, ...], summarizer: Summarize) -> str:
    groups = packs(said, STATEMENTS_TOKENS)
    while len(groups) > 1:
        parts = await together(summarizer.run(name, group) for group in groups)
        fewer = packs(parts, STATEMENTS_TOKENS)
        # Summaries that are no shorter than what they sum up will not get shorter: the model has to take them at once.
        groups = fewer if len(fewer) < len(groups) else [tuple(parts)]
    return await summarizer.run(name, groups[0])


def packs(statements: Sequence[str], limit: int) -> list[tuple[str, ...]]:
    """The statements in order, in groups of at most `limit` tokens; a longer one is a group of its own."""
    groups: list[list[str]] = [[]]
    left = limit
    for statement, tokens in zip(statements, count_tokens(statements), strict=True):
        if groups[-1] and tokens > left:
            groups.append([])
            left = limit
        groups[-1].append(statement)
        left -= tokens
    return [tuple(group) for group in groups]
