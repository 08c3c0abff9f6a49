"""Which cells does a text state that is no table? (the table structurizer of StructRAG, section 2.3, by a model)

What the model writes is compared with the text afterwards (`tasks.structurize.written`): a figure that does not
stand in the sentence that it names is refused.
"""

from collections.abc import Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step


class CellWritten(BaseModel):
    """One cell: what of whom, and the sentence that says it."""

    thing: str = Field(description="Whose figure it is, as in the text.")
    attribute: int = Field(description="Number of the attribute.")
    raw: str = Field(description="The figure or words exactly as in the text, with sign, currency and commas.")
    period: str = Field(description="2023, 2024-Q1 or 2024-03-31; empty: not stated.")
    sentence: int = Field(description="Number of the sentence or row that says it.")


class TableWritten(BaseModel):
    """The cells of one document."""

    cells: list[CellWritten]


class FillTable(dspy.Signature):
    """Find the numbered attributes in the numbered sentences and rows. Copy each value character by character; convert
    and compute nothing. No cell for what is not stated."""

    attributes: list[str] = dspy.InputField()
    title: str = dspy.InputField()
    sentences: list[str] = dspy.InputField()
    table: TableWritten = dspy.OutputField()


class WriteTable(Step):
    """Sentences of one document → the cells that they state."""

    step = "table"
    role = "structurize"
    task = FillTable

    async def run(self, attributes: Sequence[str], title: str, sentences: Sequence[str]) -> list[CellWritten]:
        """The cells that name an attribute and a sentence that exist; both are numbered from 0."""
        prediction = await self.acall(
            attributes=[f"[{place}] {name}" for place, name in enumerate(attributes)],
            title=title,
            sentences=[f"[{place}] {sentence}" for place, sentence in enumerate(sentences)],
        )
        written: TableWritten = prediction.table
        return [
            cell
            for cell in written.cells
            if 0 <= cell.attribute < len(attributes) and 0 <= cell.sentence < len(sentences)
        ]
