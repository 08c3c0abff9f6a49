"""Tuning: sample documents, and check which findings of a model on them may enter a prompt.

The passage of an example must stand in the sample, and its names in the passage.
"""

from collections import Counter
from collections.abc import Sequence

from pydantic import ValidationError

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
    """Draw up to `most` documents; the same seed draws the same ones."""
    return sorted(documents, key=lambda document: _lot(seed, document.id))[:most]


def some_passages(chunks: Sequence[Chunk], tokens: int, seed: int) -> list[Chunk]:
    """Draw passages of up to `tokens` in all, but at least one; the same seed draws the same ones.

    Every document gives one passage before any gives two. Triples are no passages.
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
    for _, chunk in sorted(turns, key=lambda turn: turn[0]):  # stable: drawn order within a turn
        if chunk.tokens <= left or not chosen:
            chosen.append(chunk)
            left -= chunk.tokens
    return sorted(chosen, key=lambda chunk: (chunk.document, chunk.ordinal))


def _lot(seed: int, name: str) -> str:
    return content_id("lot", str(seed), name)


def to_tailoring(tuned: Tuned, passages: Sequence[Sampled], most: int) -> FittedTailoring:
    """Keep the findings that fit, examples of up to `most` tokens, and say what is left out."""
    left_out: list[str] = []
    types: dict[str, EntityType] = {}
    for entity_type in tuned.entity_types:
        try:
            fitted = EntityType(name=entity_type.name, meaning=entity_type.meaning)
            types.setdefault(_type_key(entity_type.name), fitted)
        except ValueError:  # pydantic's, caused by Unfit
            left_out.append(f"the kind {entity_type.name!r}: a name has no ':' and no ';'")
    examples: list[Example] = []
    room = most
    for number, shown in enumerate(tuned.examples, 1):
        try:
            example = _example(shown, types, passages)
        except (Unfit, ValidationError) as problem:
            left_out.append(f"example {number}: {_reason(problem)}")
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
    passage = _as_line(shown.passage)
    source = next(
        (sample for sample in passages if passage and passage in _as_line(sample.text)), None
    )
    if source is None:
        raise Unfit(passage, "its passage does not stand in the sample")
    entities = tuple(
        ExampleEntity(
            name=entity.name,
            kind=types[_type_key(entity.kind)].name,
            description=entity.description,
        )
        for entity in shown.entities
        if entity.name.strip()
        and _as_line(entity.name) in passage
        and _type_key(entity.kind) in types
    )
    if not entities:
        raise Unfit(passage, "none of its entities stands in its passage and has a listed kind")
    names = {entity.name for entity in entities}
    relations = tuple(
        ExampleRelation(**relation.model_dump())
        for relation in shown.relations
        if {_as_line(relation.source), _as_line(relation.target)} <= names
    )
    return Example(title=source.title, passage=passage, entities=entities, relations=relations)


def _reason(problem: Unfit | ValidationError) -> str:
    if isinstance(problem, Unfit):
        return problem.expected
    return problem.errors(include_url=False)[0]["msg"]


def _as_line(text: str) -> str:
    return " ".join(text.split())


def _type_key(name: str) -> str:
    return _as_line(name).casefold()


@step("tune", PATIENT, asks_model=True)
async def tune(passages: Sequence[Sampled], tuner: Tune) -> FittedTailoring:
    """Fit the prompts to the domain of the passages. Raises EngineError without a usable answer."""
    return to_tailoring(await tuner.run(passages), passages, tuner.policy.limits.examples)
