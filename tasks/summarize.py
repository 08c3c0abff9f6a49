"""Summaries: one description of each entity and relation from all statements about it.

A single statement is kept as it is, and a few short ones are joined, without asking a model. More
statements than fit into one request are summarized in groups, and then the summaries of the groups.
Several relations share a request. A description is kept while model, prompt and statements stay
the same. Papers: GraphRAG, section 2.3; LightRAG, `Prof`.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace

from prompts.engine.effort import LIMITS
from prompts.engine.errors import ModelRefused
from prompts.engine.messages import portions
from prompts.summarize import (
    DescribeRelations,
    RelationDescribed,
    StatedRelation,
    Summarize,
    is_short,
    summarize_offline,
)
from prompts.text.tokens import count_tokens
from storage.graph_records import Entity, Relation
from storage.records import DeadLetter, Record, content_id
from tasks.batches import gather_or_cancel
from tasks.resolve.assemble import ResolvedGraph
from tasks.retrying import PATIENT
from tasks.step import step

STATEMENTS_TOKENS = LIMITS["medium"].summary  # of statements in one request, by default
RELATIONS_IN_ONE_CALL = 10


class KnownDescription(Record):
    """A description, with the hash of what a model wrote it from; empty where none did."""

    inputs: str
    text: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Described:
    """The graph with descriptions.

    `inputs` holds the hash of what a model described, by id. An entity has a dead letter where the
    model refused its description or that of a relation from it.
    """

    graph: ResolvedGraph
    inputs: Mapping[str, str]
    dead_letters: tuple[DeadLetter, ...]


@step("summarize", PATIENT, asks_model=True)
async def summarize(
    graph: ResolvedGraph,
    summarizer: Summarize,
    relater: DescribeRelations | None = None,
    known: Mapping[str, KnownDescription] | None = None,
    limit: int = STATEMENTS_TOKENS,
) -> Described:
    """Describe all entities by `summarizer` and all relations by `relater`.

    `known` holds earlier descriptions by id, `limit` the tokens of statements in one request.
    Where a model gives no usable answer, the statements are quoted.
    """
    known, letters = known or {}, list[DeadLetter]()
    entities, relations = await gather_or_cancel(
        [
            _entities(graph, summarizer, known, limit, letters),
            _relations(graph, relater, known, limit, letters),
        ]
    )
    written = replace(
        graph,
        entities=[
            replace(entity, description=entities[entity.id].text or entity.description)
            for entity in graph.entities
        ],
        relations=[
            replace(relation, description=description.text, keys=description.keys)
            if (description := relations.get(relation.id))
            else relation
            for relation in graph.relations
        ],
    )
    inputs = {
        item: description.inputs
        for item, description in (entities | relations).items()
        if description.inputs
    }
    by_item = {letter.item: letter for letter in sorted(letters, key=lambda letter: letter.item)}
    return Described(written, inputs, tuple(by_item.values()))


async def _entities(
    graph: ResolvedGraph,
    summarizer: Summarize,
    known: Mapping[str, KnownDescription],
    limit: int,
    letters: list[DeadLetter],
) -> dict[str, KnownDescription]:
    async def described(entity: Entity) -> KnownDescription:
        statements = graph.evidence[entity.id]
        inputs = _inputs(summarizer.author, entity.name, statements)

        async def of_group(group: tuple[str, ...]) -> KnownDescription:
            return KnownDescription(inputs=inputs, text=await summarizer.run(entity.name, group))

        try:
            return await _in_groups(statements, limit, of_group)
        except ModelRefused as error:
            letters.append(_letter(entity.id, error))
            return KnownDescription(inputs="", text=summarize_offline(entity.name, statements))

    texts: dict[str, KnownDescription] = {}
    asked: list[Entity] = []
    for entity in graph.entities:
        statements = graph.evidence.get(entity.id, ())
        text: str | None = entity.description  # A description written by hand stands.
        if not text:
            several = len(statements) > 1
            text = summarizer.sure(entity.name, statements) if several else "".join(statements)
        earlier = known.get(entity.id)
        if text is not None:
            texts[entity.id] = KnownDescription(inputs="", text=text)
        elif earlier and earlier.inputs == _inputs(summarizer.author, entity.name, statements):
            texts[entity.id] = earlier
        else:
            asked.append(entity)
    # Tasks only for entities that need a call: most need none.
    answers = await gather_or_cancel(map(described, asked))
    return texts | {entity.id: text for entity, text in zip(asked, answers, strict=True)}


async def _relations(
    graph: ResolvedGraph,
    relater: DescribeRelations | None,
    known: Mapping[str, KnownDescription],
    limit: int,
    letters: list[DeadLetter],
) -> dict[str, KnownDescription]:
    """Return the description of each relation with several statements, by id; none offline."""
    if relater is None or relater.is_offline:
        return {}
    names = {**graph.names, **{entity.id: entity.name for entity in graph.entities}}
    texts: dict[str, KnownDescription] = {}
    asked: list[tuple[Relation, StatedRelation]] = []
    for relation in graph.relations:
        statements = graph.statements.get(relation.id, ())
        if len(statements) < 2:
            continue
        stated = StatedRelation(
            names[relation.source], relation.predicate, names[relation.target], statements
        )
        earlier = known.get(relation.id)
        if relater.sparing and is_short(statements):
            texts[relation.id] = KnownDescription(
                inputs="", text=" ".join(statements), keys=relation.keys
            )
        elif earlier and earlier.inputs == _inputs(relater.author, str(stated)):
            texts[relation.id] = earlier
        else:
            asked.append((relation, stated))
    sizes = count_tokens([str(stated) for _, stated in asked])
    batches = portions(asked, sizes, limit, RELATIONS_IN_ONE_CALL)
    for described in await gather_or_cancel(
        _describe(batch, relater, limit, letters) for batch in batches
    ):
        texts |= described
    return texts


async def _describe(
    batch: Sequence[tuple[Relation, StatedRelation]],
    relater: DescribeRelations,
    limit: int,
    letters: list[DeadLetter],
) -> dict[str, KnownDescription]:
    """Describe relations in one request, or a single one, whose statements may need several.

    A relation that the model leaves out gets its statements, joined.
    """

    def described(
        relation: Relation, stated: StatedRelation, answer: RelationDescribed | None, inputs: str
    ) -> KnownDescription:
        if answer is None:
            return KnownDescription(inputs="", text=" ".join(stated.statements), keys=relation.keys)
        keys = tuple(dict.fromkeys(answer.keys)) or relation.keys
        return KnownDescription(inputs=inputs, text=answer.description, keys=keys)

    relation, stated = batch[0]

    async def of_group(group: tuple[str, ...]) -> KnownDescription:
        asked = replace(stated, statements=group)
        [answer] = await relater.run([asked])
        return described(relation, asked, answer, _inputs(relater.author, str(stated)))

    try:
        if len(batch) == 1:
            return {relation.id: await _in_groups(stated.statements, limit, of_group)}
        answers = await relater.run([stated for _, stated in batch])
    except ModelRefused as error:
        # The letter names the source: its relations are retried with it.
        letters += [_letter(relation.source, error) for relation, _ in batch]
        return {}
    return {
        relation.id: described(relation, stated, answer, _inputs(relater.author, str(stated)))
        for (relation, stated), answer in zip(batch, answers, strict=True)
    }


def _inputs(author: str, name: str, statements: Sequence[str] = ()) -> str:
    return content_id("inp", author, name, *statements)


def _letter(item: str, error: ModelRefused) -> DeadLetter:
    return DeadLetter(item=item, step="summarize", error=error.message, remedy=error.remedy)


async def _in_groups(
    statements: tuple[str, ...],
    limit: int,
    describe: Callable[[tuple[str, ...]], Coroutine[object, object, KnownDescription]],
) -> KnownDescription:
    """Describe groups that fit into `limit` tokens, then their descriptions, until one is left."""
    groups = _packs(statements, limit)
    while len(groups) > 1:
        parts = [
            known.text for known in await gather_or_cancel(map(describe, groups)) if known.text
        ]
        fewer = _packs(parts, limit)
        # Descriptions that do not get shorter go to the model all at once.
        groups = fewer if len(fewer) < len(groups) else [tuple(parts)]
    return await describe(groups[0])


def _packs(statements: Sequence[str], limit: int) -> list[tuple[str, ...]]:
    groups = portions(statements, count_tokens(statements), limit)
    return list(map(tuple, groups)) or [()]
