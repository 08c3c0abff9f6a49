"""Describes entities and relations by all that was said of them (GraphRAG 2.3; LightRAG `Prof`).

A few short statements are joined without a model, since a description would be no shorter.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import dspy
from pydantic import BaseModel, Field

from prompts.engine.adapter import StepAdapter
from prompts.engine.messages import rough_tokens
from prompts.engine.step import Inputs, Outputs, doubt_missing
from prompts.tailored_step import TailoredStep
from prompts.text.words import fold

MAX_SENTENCES = 3
MAX_LENGTH = 500
# Joined instead of summarised: a summary of four sentences would be no shorter.
MOST_JOINED = 4
MOST_JOINED_TOKENS = 120
# What follows a name in a statement that defines it.
_DEFINES = re.compile(r"\s*+(?:[(（][^()（）]*[)）])?\s*+,?\s*+(?:is|was|are|were|是|为)(?![a-z])")


class SummarizeEntity(dspy.Signature):
    """Write the one description of an entity in place of the statements that passages have left
    about it.

    Begin with what it is, under the given name; then the lasting and defining, then events in the
    order of time. Keep every figure, date, name and condition as written; say once what several
    say. Where statements contradict each other, give both sides. A statement about another thing
    of this name is told as such ("Another ..."). What is doubted, denied or planned stays so. Add
    nothing. Two to six full sentences, more where much is said, in one paragraph, without mention
    of statements.
    """

    name: str = dspy.InputField()
    statements: list[str] = dspy.InputField()
    description: str = dspy.OutputField()


class RelationDescribed(BaseModel):
    """The one description of a relation, and themes to find it by."""

    relation: int
    description: str = Field(min_length=1)
    keys: list[str] = Field(default_factory=list)


class RelationsDescribed(BaseModel):
    """One for every relation, in their order."""

    relations: list[RelationDescribed] = Field(default_factory=list)


class SummarizeRelations(dspy.Signature):
    """Several passages state the same relation between two entities. For each numbered relation
    write one description in place of its statements, and keys to find it by.

    description: one to four sentences that stand alone, with names for pronouns: how the two are
    tied, since and until when, where, how much. Keep every figure, date, name and condition; say
    once what several say; where statements contradict each other, give both sides. Add nothing.
    keys: two to five themes under which somebody would look who names neither entity. No names.
    """

    relations: list[str] = dspy.InputField()
    described: RelationsDescribed = dspy.OutputField()


class Summarize(TailoredStep):
    """The statements about an entity → one description."""

    step = "summarize"
    role = "summarize"
    task = SummarizeEntity
    writes_in = "statements"

    def sure(self, name: str, statements: tuple[str, ...]) -> str | None:
        """The description without a model; None where a model has to write it."""
        if self.is_offline:
            return summarize_offline(name, statements)
        return " ".join(ranked(name, statements)) if self.sparing and is_short(statements) else None

    async def run(self, name: str, statements: tuple[str, ...]) -> str:
        """The model's description, for where `sure` gives None."""
        prediction = await self.acall(name=name, statements=list(statements))
        return str(prediction.description)


@dataclass(frozen=True, slots=True)
class StatedRelation:
    """A relation with all that is stated of it."""

    source: str
    predicate: str
    target: str
    statements: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(
            [
                f"{self.source} -[{self.predicate}]-> {self.target}",
                *(f"- {statement}" for statement in self.statements),
            ]
        )


class DescribeRelations(TailoredStep):
    """Relations with their statements → a description and keys for each."""

    step = "relate"
    role = "summarize"
    task = SummarizeRelations
    writes_in = "relations"
    output_format = StepAdapter(items=True)

    async def run(self, relations: Sequence[StatedRelation]) -> list[RelationDescribed | None]:
        """The descriptions in order; None for a relation that the model left out twice."""
        shown = [f"[{number}] {relation}" for number, relation in enumerate(relations)]
        described: RelationsDescribed = (await self.acall(relations=shown)).described
        by_number = {relation.relation: relation for relation in described.relations}
        return [by_number.get(number) for number in range(len(relations))]

    def check(self, outputs: Outputs, inputs: Inputs) -> None:
        """Raise Doubtful where a relation is left out."""
        described = (relation.relation for relation in outputs["described"].relations)
        problem = "it says nothing of the relations {}."
        doubt_missing(len(inputs["relations"]), described, outputs, problem)


def is_short(statements: tuple[str, ...]) -> bool:
    """Whether distinct statements together are no longer than a summary of them would be."""
    return (
        len(statements) <= MOST_JOINED and sum(map(rough_tokens, statements)) <= MOST_JOINED_TOKENS
    )


def ranked(name: str, statements: tuple[str, ...]) -> list[str]:
    """Statements that define the entity first, then those that open with its name."""
    bare = fold(name.split(" (", maxsplit=1)[0])

    def rank(item: tuple[int, str]) -> tuple[int, int]:
        place, statement = item
        text = fold(statement).lstrip("#*-> \"'")
        opens = text.startswith(bare)
        defines = opens and _DEFINES.match(text, len(bare)) is not None
        return -(2 * defines + opens), place

    return [statement for _, statement in sorted(enumerate(statements), key=rank)]


def summarize_offline(name: str, statements: tuple[str, ...]) -> str:
    """The first statements by `ranked` up to a length, without headings that are just the name."""
    chosen: list[str] = []
    bare = fold(name.split(" (", maxsplit=1)[0])
    saying = tuple(statement for statement in statements if fold(statement).lstrip("# ") != bare)
    for statement in ranked(name, saying or statements):
        if chosen and (
            sum(map(len, chosen)) + len(statement) > MAX_LENGTH or len(chosen) == MAX_SENTENCES
        ):
            break
        chosen.append(statement)
    return " ".join(chosen)
