"""What each entity is, and how two are tied: one description from all that is said (GraphRAG 2.3; LightRAG `Prof`).

What is said once is kept as it is, and few short statements are joined: there is nothing to pay for. More than fit into
one request are summarised in groups, and then the groups' summaries. Relations go to a model several in one request.
What a model has described before is not described again for as long as model, prompt and statements are the same.
"""

from collections.abc import Mapping, Sequence

from prompts.engine.errors import ModelRefused
from prompts.summarize import DescribeRelations, RelationDescribed, Stated, Summarize, is_short, summarize_offline
from prompts.text.tokens import count_tokens
from storage.graph_records import Entity, Relation
from storage.records import DeadLetter, Record, content_id
from tasks.dedupe import Graph
from tasks.step import PATIENT, gather_or_cancel, step

STATEMENTS_TOKENS = 3_000  # in one request, unless the settings say otherwise
RELATIONS_IN_ONE_CALL = 10


class Known(Record):
    """A description that a model wrote, with the hash of what it was written from."""

    inputs: str
    text: str
    keys: tuple[str, ...] = ()


class Described(Record):
    """The graph's entities and relations with their descriptions, in the same order; `inputs` of those that a model
    described, by id; a dead letter for each entity whose description, or a relation's, a model refused."""

    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...] = ()
    inputs: Mapping[str, str] = {}
    dead_letters: tuple[DeadLetter, ...]


@step("summarize", PATIENT)
async def summarize(
    graph: Graph,
    summarizer: Summarize,
    relater: DescribeRelations | None = None,
    known: Mapping[str, Known] | None = None,
    limit: int = STATEMENTS_TOKENS,
) -> Described:
    """Describe all entities, and with `relater` the relations; `known` are earlier descriptions by entity or relation.

    `limit`: tokens of statements in one request. Where a model gives no usable answer the statements are quoted.
    """
    known = known or {}
    entities, relations = await gather_or_cancel(
        [_entities(graph, summarizer, known, limit), _relations(graph, relater, known, limit)]
    )
    return Described(
        entities=tuple(
            entity.model_copy(update={"description": entities.texts[entity.id].text})
            if entities.texts[entity.id].text
            else entity
            for entity in graph.entities
        ),
        relations=tuple(
            one.model_copy(update={"description": made.text, "keys": made.keys})
            if (made := relations.texts.get(one.id))
            else one
            for one in graph.relations
        ),
        inputs={
            item: made.inputs for part in (entities, relations) for item, made in part.texts.items() if made.inputs
        },
        dead_letters=tuple({letter.item: letter for letter in (*entities.letters, *relations.letters)}.values()),
    )


class _Texts(Record):
    """Descriptions by id; those without inputs are no model's."""

    texts: Mapping[str, Known]
    letters: tuple[DeadLetter, ...] = ()


async def _entities(graph: Graph, summarizer: Summarize, known: Mapping[str, Known], limit: int) -> _Texts:
    async def described(entity: Entity) -> tuple[Known, DeadLetter | None]:
        said = graph.evidence[entity.id]
        try:
            text = await _summary(entity.name, said, summarizer, limit)
            return Known(inputs=_inputs(summarizer.author, entity.name, said), text=text), None
        except ModelRefused as error:
            return Known(inputs="", text=summarize_offline(entity.name, said)), _letter(entity.id, error)

    texts: dict[str, Known] = {}
    asked: list[Entity] = []
    for entity in graph.entities:
        said = graph.evidence.get(entity.id, ())
        # What somebody wrote stands.
        text = entity.description or (summarizer.sure(entity.name, said) if len(said) > 1 else "".join(said))
        earlier = known.get(entity.id)
        if text is not None:
            texts[entity.id] = Known(inputs="", text=text)
        elif earlier and earlier.inputs == _inputs(summarizer.author, entity.name, said):
            texts[entity.id] = earlier
        else:
            asked.append(entity)
    # A task for each call, not for each entity: a graph has a hundred times as many.
    answers = await gather_or_cancel(map(described, asked))
    texts |= {entity.id: text for entity, (text, _) in zip(asked, answers, strict=True)}
    return _Texts(texts=texts, letters=tuple(letter for _, letter in answers if letter))


async def _relations(graph: Graph, relater: DescribeRelations | None, known: Mapping[str, Known], limit: int) -> _Texts:
    """Of relations with several statements; offline they keep the one that they have."""
    if relater is None or relater.is_offline:
        return _Texts(texts={})
    names = {entity.id: entity.name for entity in graph.entities}
    texts: dict[str, Known] = {}
    asked: list[tuple[Relation, Stated]] = []
    for one in graph.relations:
        said = graph.statements.get(one.id, ())
        stated = Stated(names.get(one.source, ""), one.predicate, names.get(one.target, ""), said)
        earlier = known.get(one.id)
        if len(said) < 2:
            continue
        if relater.sparing and is_short(said):
            texts[one.id] = Known(inputs="", text=" ".join(said), keys=one.keys)
        elif earlier and earlier.inputs == _inputs(relater.author, str(stated), ()):
            texts[one.id] = earlier
        else:
            asked.append((one, stated))
    answers = await gather_or_cancel(_described(batch, relater, limit) for batch in _batches(asked, limit))
    for part in answers:
        texts |= part.texts
    return _Texts(texts=texts, letters=tuple(letter for part in answers for letter in part.letters))


async def _described(batch: Sequence[tuple[Relation, Stated]], relater: DescribeRelations, limit: int) -> _Texts:
    """Descriptions and keys of some relations. One that the model leaves out keeps the statements, joined."""
    try:
        if len(batch) == 1:
            made = [await _relation(batch[0][1], relater, limit)]
        else:
            made = await relater.run([stated for _, stated in batch])
    except ModelRefused as error:
        # The letter is the source's: with it, its relations are tried again.
        return _Texts(texts={}, letters=tuple(_letter(one.source, error) for one, _ in batch))
    return _Texts(
        texts={
            one.id: Known(
                inputs=_inputs(relater.author, str(stated), ()),
                text=said.description,
                keys=tuple(dict.fromkeys(said.keys)) or one.keys,
            )
            if said
            else Known(inputs="", text=" ".join(stated.statements), keys=one.keys)
            for (one, stated), said in zip(batch, made, strict=True)
        }
    )


async def _relation(stated: Stated, relater: DescribeRelations, limit: int) -> RelationDescribed | None:
    """One relation, however much is stated of it."""
    groups = packs(stated.statements, limit)
    while len(groups) > 1:
        parts = await gather_or_cancel(relater.run([_with(stated, group)]) for group in groups)
        fewer = packs([part.description for (part,) in parts if part], limit)
        groups = fewer if len(fewer) < len(groups) else [tuple(text for group in fewer for text in group)]
    (made,) = await relater.run([_with(stated, groups[0])])
    return made


def _with(stated: Stated, statements: tuple[str, ...]) -> Stated:
    return Stated(stated.source, stated.predicate, stated.target, statements)


def _batches(asked: Sequence[tuple[Relation, Stated]], limit: int) -> list[list[tuple[Relation, Stated]]]:
    """Relations that go out together: at most RELATIONS_IN_ONE_CALL, and `limit` tokens unless one alone has more."""
    batches: list[list[tuple[Relation, Stated]]] = []
    left = 0
    for one, tokens in zip(asked, count_tokens([str(stated) for _, stated in asked]), strict=True):
        if not batches or tokens > left or len(batches[-1]) == RELATIONS_IN_ONE_CALL:
            batches.append([])
            left = limit
        batches[-1].append(one)
        left -= tokens
    return batches


def _inputs(author: str, name: str, statements: Sequence[str]) -> str:
    return content_id("inp", author, name, *statements)


def _letter(item: str, error: ModelRefused) -> DeadLetter:
    return DeadLetter(item=item, step="summarize", error=error.message, remedy=error.remedy)


async def _summary(name: str, said: tuple[str, ...], summarizer: Summarize, limit: int) -> str:
    groups = packs(said, limit)
    while len(groups) > 1:
        parts = await gather_or_cancel(summarizer.run(name, group) for group in groups)
        fewer = packs(parts, limit)
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
