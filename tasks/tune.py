"""Tuning: the passages that stand for all documents, and what of the findings on them may enter a
prompt.

What a model writes is looked up: an example's passage must stand in the sample, and its names in
the passage.
"""

from collections import Counter
from collections.abc import Sequence

from prompts.tailoring import EntityType, Example, ExampleEntity, ExampleRelation, Tailoring, Unfit
from prompts.tune import ExampleShown, Sampled, Tune, Tuned
from storage.records import Chunk, Document, Record, content_id
from tasks.retrying import PATIENT
from tasks.step import step


class FittedTailoring(Record):
    """A tailoring, and what was left out of it and why."""

    tailoring: Tailoring
    left_out: tuple[str, ...]


def some_documents(documents: Sequence[Document], most: int, seed: int) -> list[Document]:
    """At most so many documents by lot; the same seed draws the same."""
    return sorted(documents, key=lambda document: _lot(seed, document.id))[:most]


def some_passages(chunks: Sequence[Chunk], tokens: int, seed: int) -> list[Chunk]:
    """Passages by lot, of every document one before any gives two, of at most so many tokens in all
    (at least one).

    Triples are no passages. The same seed draws the same, whatever the order.
    """
    drawn = sorted(
        (chunk for chunk in chunks if chunk.kind == "text"),
        key=lambda chunk: (_lot(seed, chunk.id), chunk.id),
    )
    counts: Counter[str] = Counter()
    turns = []
    for chunk in drawn:
        turns.append((counts[chunk.document], chunk))
        counts[chunk.document] += 1
    chosen: list[Chunk] = []
    left = tokens
    for _, chunk in sorted(turns, key=lambda turn: turn[0]):  # stable: by lot within a turn
        if chunk.tokens <= left or not chosen:
            chosen.append(chunk)
            left -= chunk.tokens
    return sorted(chosen, key=lambda chunk: (chunk.document, chunk.ordinal))


def _lot(seed: int, name: str) -> str:
    return content_id("lot", str(seed), name)


def to_tailoring(tuned: Tuned, passages: Sequence[Sampled], most: int) -> FittedTailoring:
    """What may be used of the findings, examples of at most so many tokens in all, and what may
    not, in words.
    """
    left_out: list[str] = []
    types: dict[str, EntityType] = {}
    for entity_type in tuned.entity_types:
        try:
            types.setdefault(
                entity_type.name.strip().casefold(),
                EntityType(name=entity_type.name, meaning=entity_type.meaning),
            )
        except ValueError:  # pydantic's, with our Unfit inside
            left_out.append(f"the kind {entity_type.name!r}: a name has no ':' and no ';'")
    examples: list[Example] = []
    room = most
    for number, shown in enumerate(tuned.examples, 1):
        try:
            example = _example(shown, types, passages)
        except Unfit as problem:
            left_out.append(f"example {number}: {problem.expected}")
            continue
        if example.tokens() > room:
            left_out.append(f"example {number}: all together may have {most} tokens")
            continue
        examples.append(example)
        room -= example.tokens()
    tailoring = Tailoring(
        persona=tuned.persona,
        language=tuned.language,
        entity_types=tuple(types.values()),
        examples=tuple(examples),
    )
    return FittedTailoring(tailoring=tailoring, left_out=tuple(left_out))


def _example(
    shown: ExampleShown, types: dict[str, EntityType], passages: Sequence[Sampled]
) -> Example:
    passage = " ".join(shown.passage.split())
    source = next(
        (sample for sample in passages if passage and passage in " ".join(sample.text.split())),
        None,
    )
    if source is None:
        raise Unfit(passage, "its passage does not stand in the sample")
    entities = tuple(
        ExampleEntity(
            name=entity.name,
            kind=types[entity.kind.strip().casefold()].name,
            description=entity.description,
        )
        for entity in shown.entities
        if " ".join(entity.name.split()) in passage
        and entity.name.strip()
        and entity.kind.strip().casefold() in types
    )
    if not entities:
        raise Unfit(passage, "none of its entities stands in its passage and has a listed kind")
    names = {entity.name for entity in entities}
    relations = tuple(
        ExampleRelation(**relation.model_dump())
        for relation in shown.relations
        if {" ".join(relation.source.split()), " ".join(relation.target.split())} <= names
    )
    return Example(title=source.title, passage=passage, entities=entities, relations=relations)


@step("tune", PATIENT, asks_model=True)
async def tune(passages: Sequence[Sampled], tuner: Tune) -> FittedTailoring:
    """What fits the prompts to the passages' domain. EngineError where the model gives no usable
    answer.
    """
    return to_tailoring(await tuner.run(passages), passages, tuner.policy.limits.examples)
