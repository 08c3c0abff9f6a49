"""Tune: the tailoring of prompts to a sample of documents (GraphRAG 3.1.1: domain tailoring)."""

from collections.abc import Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step

MOST_TYPES, MOST_EXAMPLES = 12, 3


class Sampled(BaseModel, frozen=True):
    """A passage of the sample."""

    title: str
    text: str


class TypeFound(BaseModel):
    """A kind of entity."""

    name: str = Field(
        min_length=1, max_length=40, description="One or two words, singular, lower case."
    )
    meaning: str = Field(
        default="", max_length=200, description="A few words that tell it from the others."
    )


class EntityShown(BaseModel):
    """An entity of an example."""

    name: str = Field(description="Exactly as the example's passage writes it.")
    kind: str = Field(description="One of the entity types.")
    description: str = Field(default="", description="What the passage says of it: one sentence.")


class RelationShown(BaseModel):
    """A relation of an example."""

    source: str = Field(description="A listed entity.")
    target: str = Field(description="Another one.")
    predicate: str = Field(description="A verb phrase of two to five words.")
    description: str = Field(default="", description="One sentence.")


class ExampleShown(BaseModel):
    """A short passage with all that is to be found in it."""

    passage: str = Field(description="One to three sentences of the sample, copied exactly.")
    entities: list[EntityShown]
    relations: list[RelationShown] = Field(default_factory=list)


class Tuned(BaseModel):
    """What fits the domain."""

    persona: str = Field(
        max_length=600, description="One or two sentences to an expert of the domain: You are …."
    )
    language: str = Field(
        max_length=60, description="The language of the sample, in English: one word."
    )
    entity_types: list[TypeFound] = Field(max_length=MOST_TYPES)
    examples: list[ExampleShown] = Field(default_factory=list, max_length=MOST_EXAMPLES)


class TuneToDomain(dspy.Signature):
    """Fit a model's prompts to documents like those of the sample. It will read them passage by
    passage, list entities and relations, and write descriptions and reports.

    - persona: the expert with an eye for such documents, and the readers, as an address: "You are
    a ... who writes for ...".
    - language: the language of the sample, in English, one word.
    - entity_types: four to twelve kinds that readers ask about, from the concrete (person, place)
    to what is special to the field; each can be told from the others. None for dates, amounts or
    single words.
    - examples: two or three different short passages of the sample, copied word for word, each
    with ALL its entities (named as in the passage) and the relations between them.
    """

    sample: list[str] = dspy.InputField()
    found: Tuned = dspy.OutputField()


class Tune(Step):
    """Passages of a domain → the tailoring of prompts to it. There is no offline version."""

    step = "tune"
    role = "tune"
    task = TuneToDomain

    async def run(self, passages: Sequence[Sampled]) -> Tuned:
        tuned: Tuned = (
            await self.acall(sample=[f"{passage.title}: {passage.text}" for passage in passages])
        ).found
        return tuned
