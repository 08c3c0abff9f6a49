"""What each entity is, and how two are tied: one description from all that is said (GraphRAG 2.3;
LightRAG `Prof`).

What is said once is kept as it is, and few short statements are joined: there is nothing to pay
for. More than fit into one request are summarised in groups, and then the groups' summaries.
Relations go to a model several in one request. What a model has described before is not described
again for as long as model, prompt and statements are the same.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace

from prompts.engine.effort import LIMITS
from prompts.engine.errors import ModelRefused
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
from tasks.batches import gather_or_cancel, portions
from tasks.resolve.assemble import ResolvedGraph
from tasks.retrying import PATIENT
from tasks.step import step

STATEMENTS_TOKENS = LIMITS["medium"].summary  # in one request, unless the settings say otherwise
RELATIONS_IN_ONE_CALL = 10


class KnownDescription(Record):
    """A description that a model wrote, with the hash of what it was written from."""

    inputs: str
    text: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Described:
    """The graph with descriptions of its entities and relations; `inputs` of those that a model
    described, by id; a dead letter for each entity whose description, or a relation's, a model
    refused.
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
    """Describe all entities and relations; the latter by `relater`. `known` are earlier
    descriptions by id.

    `limit`: tokens of statements in one request. Where a model gives no usable answer the
    statements are quoted.
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
            replace(entity, description=entities[entity.id].text)
            if entities[entity.id].text
            else entity
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
    each = {letter.item: letter for letter in sorted(letters, key=lambda letter: letter.item)}
    return Described(written, inputs, tuple(each.values()))


async def _entities(
    graph: ResolvedGraph,
    summarizer: Summarize,
    known: Mapping[str, KnownDescription],
    limit: int,
    letters: list[DeadLetter],
) -> dict[str, KnownDescription]:
    """Descriptions by entity; those without inputs are no model's."""

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
        # What somebody wrote stands.
        text = entity.description or (
            summarizer.sure(entity.name, statements) if len(statements) > 1 else "".join(statements)
        )
        earlier = known.get(entity.id)
        if text is not None:
            texts[entity.id] = KnownDescription(inputs="", text=text)
        elif earlier and earlier.inputs == _inputs(summarizer.author, entity.name, statements):
            texts[entity.id] = earlier
        else:
            asked.append(entity)
    # A task for each call, not for each entity: a graph has a hundred times as many.
    answers = await gather_or_cancel(map(described, asked))
    return texts | {entity.id: text for entity, text in zip(asked, answers, strict=True)}


async def _relations(
    graph: ResolvedGraph,
    relater: DescribeRelations | None,
    known: Mapping[str, KnownDescription],
    limit: int,
    letters: list[DeadLetter],
) -> dict[str, KnownDescription]:
    """Descriptions by relation, of those with several statements; offline they keep the one that
    they have.
    """
    if relater is None or relater.is_offline:
        return {}
    names = {**graph.names, **{entity.id: entity.name for entity in graph.entities}}
    texts: dict[str, KnownDescription] = {}
    asked: list[tuple[Relation, StatedRelation]] = []
    for relation in graph.relations:
        statements = graph.statements.get(relation.id, ())
        stated = StatedRelation(
            names[relation.source], relation.predicate, names[relation.target], statements
        )
        earlier = known.get(relation.id)
        if len(statements) < 2:
            continue
        if relater.sparing and is_short(statements):
            texts[relation.id] = KnownDescription(
                inputs="", text=" ".join(statements), keys=relation.keys
            )
        elif earlier and earlier.inputs == _inputs(relater.author, str(stated)):
            texts[relation.id] = earlier
        else:
            asked.append((relation, stated))
    sizes = count_tokens([str(stated) for _, stated in asked])
    batches = [
        [asked[place] for place in call] for call in portions(sizes, limit, RELATIONS_IN_ONE_CALL)
    ]
    for descriptions in await gather_or_cancel(
        _described(batch, relater, limit, letters) for batch in batches
    ):
        texts |= descriptions
    return texts


async def _described(
    batch: Sequence[tuple[Relation, StatedRelation]],
    relater: DescribeRelations,
    limit: int,
    letters: list[DeadLetter],
) -> dict[str, KnownDescription]:
    """Descriptions and keys of some relations. One that the model leaves out keeps the statements,
    joined; one alone is described however much is stated of it.
    """

    def known(
        relation: Relation, stated: StatedRelation, answer: RelationDescribed | None
    ) -> KnownDescription:
        if answer is None:
            return KnownDescription(inputs="", text=" ".join(stated.statements), keys=relation.keys)
        keys = tuple(dict.fromkeys(answer.keys)) or relation.keys
        return KnownDescription(
            inputs=_inputs(relater.author, str(stated)), text=answer.description, keys=keys
        )

    relation, stated = batch[0]

    async def of_group(group: tuple[str, ...]) -> KnownDescription:
        return known(relation, stated, (await relater.run([replace(stated, statements=group)]))[0])

    try:
        if len(batch) == 1:
            return {relation.id: await _in_groups(stated.statements, limit, of_group)}
        answers = await relater.run([stated for _, stated in batch])
    except ModelRefused as error:
        # The letter is the source's: with it, its relations are tried again.
        letters += [_letter(relation.source, error) for relation, _ in batch]
        return {}
    return {
        relation.id: known(relation, stated, answer)
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
    """One description of all statements: of groups that fit into `limit` tokens, then of their
    descriptions.
    """
    groups = packs(statements, limit)
    while len(groups) > 1:
        parts = [
            known.text for known in await gather_or_cancel(map(describe, groups)) if known.text
        ]
        fewer = packs(parts, limit)
        # Summaries that are no shorter than what they sum up will not get shorter: the model has to
        # take them at once.
        groups = fewer if len(fewer) < len(groups) else [tuple(parts)]
    return await describe(groups[0])


def packs(statements: Sequence[str], limit: int) -> list[tuple[str, ...]]:
    """The statements in order, in groups of at most `limit` tokens; a longer one is a group of its
    own.
    """
    groups = portions(count_tokens(statements), limit)
    return [tuple(statements[place] for place in group) for group in groups] or [()]
