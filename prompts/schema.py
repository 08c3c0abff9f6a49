"""Schema: the things, attributes and periods that a question needs of every document.

One schema for all documents keeps the columns of their tables the same where they are built in several calls.
"""

from collections.abc import Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.calls import fitting
from prompts.engine.step import Step

MOST_ATTRIBUTES = 20


class SchemaFound(BaseModel):
    """What the table has: a row for each thing, a column for each attribute."""

    reasoning: str = Field(default="", description="In a sentence or two: which look-ups lead to the answer.")
    things: list[str] = Field(
        default_factory=list, description="Names of the things asked about; empty: every document is one."
    )
    attributes: list[str] = Field(description="What to look up of each thing, in the question's own words.")
    periods: list[str] = Field(default_factory=list, description="2023, 2024-Q1 or 2024-03-31; empty: none is named.")


class FindSchema(dspy.Signature):
    """Name the columns and rows of the table from which a question is answered.

    The table is filled from many documents by several readers who do not see one another's work. Your schema is what
    they have in common: the same column for the same attribute, whatever each document calls it.

    attributes: what has to be looked up, one column each, in the words of the question (the readers match other names
    of it: "turnover" for "revenue"). Only what can stand in a document. What is computed from it is no column: no rank,
    sum, mean, share, growth, trend, group. A ratio that documents state themselves is one; for a ratio that has to be
    worked out name its two parts. A condition of the question needs a column too ("of the mills with more than ten
    workers": number of workers). If the question only says "figures" or "situation", name the attributes that such
    documents usually state for it.

    things: what the rows are, by name, where the question names some; "each company", "all of them", "the above" name
    none. Leave it empty then: each document is a row.

    periods: the years, quarters or days for which values are wanted, each by itself; a span with all its years. "Last
    year" or "the latest" names none.

    Keep the language of the question; be sparing: a column that the answer does not need costs every reader.

    Example. "Which of Tarn Mill and Holm Mill had the higher output per worker from 1911 to 1913?": reasoning "output
    divided by workers, yearly", things "Tarn Mill", "Holm Mill", attributes "output", "number of workers", periods
    "1911", "1912", "1913".

    例：“上述公司2023年第一季度的净利润按高低如何排列？”attributes“净利润”，periods“2023-Q1”，things为空；排名不是一列。"""

    question: str = dspy.InputField()
    titles: list[str] = dspy.InputField(desc="Titles of the documents.")
    schema_found: SchemaFound = dspy.OutputField()


class ReadSchema(Step):
    """Question and titles of the documents → the schema of their table."""

    step = "schema"
    role = "structurize"
    task = FindSchema

    async def run(self, question: str, titles: Sequence[str]) -> SchemaFound:
        """The schema, without repetitions; what exceeds `MOST_ATTRIBUTES` is left out."""
        shown = fitting(titles, self.policy.limits.rate)
        found: SchemaFound = (await self.acall(question=question, titles=shown)).schema_found
        return SchemaFound(
            things=_each_once(found.things),
            attributes=_each_once(found.attributes)[:MOST_ATTRIBUTES],
            periods=_each_once(found.periods),
        )


def _each_once(names: Sequence[str]) -> list[str]:
    return [name for name in dict.fromkeys(" ".join(name.split()) for name in names) if name]
