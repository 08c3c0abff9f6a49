"""Which things, attributes and periods does a question need of every document? (the schema pass, by a model)

One schema for all documents keeps the columns of their tables the same.
"""

from collections.abc import Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step

MOST_TITLES = 30
MOST_ATTRIBUTES = 12


class SchemaFound(BaseModel):
    """What the table has: a row for each thing, a column for each attribute."""

    things: list[str] = Field(description="Names of the things asked about; empty: every document is one.")
    attributes: list[str] = Field(description="What to look up of each, in the question's own words.")
    periods: list[str] = Field(description="2023, 2024-Q1 or 2024-03-31; empty: none is named.")


class FindSchema(dspy.Signature):
    """Name the columns of the table that answers the question: only what has to be looked up, nothing that is computed
    from it (no ranking, sum, trend or group). Keep the question's language."""

    question: str = dspy.InputField()
    titles: list[str] = dspy.InputField()
    schema_found: SchemaFound = dspy.OutputField()


class ReadSchema(Step):
    """Question and titles of the documents → the schema of their table, where the rules find no attribute."""

    step = "schema"
    role = "structurize"
    task = FindSchema

    async def run(self, question: str, titles: Sequence[str]) -> SchemaFound:
        """The schema, without repetitions; what exceeds `MOST_ATTRIBUTES` is left out."""
        prediction = await self.acall(question=question, titles=list(titles[:MOST_TITLES]))
        found: SchemaFound = prediction.schema_found
        return SchemaFound(
            things=_each_once(found.things),
            attributes=_each_once(found.attributes)[:MOST_ATTRIBUTES],
            periods=_each_once(found.periods),
        )


def _each_once(names: Sequence[str]) -> list[str]:
    return [name for name in dict.fromkeys(" ".join(name.split()) for name in names) if name]
