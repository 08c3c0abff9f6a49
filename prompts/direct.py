"""Direct: what the model says by itself, without any document (the baseline without retrieval)."""

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step


class DirectWritten(BaseModel):
    """An answer from memory."""

    reasoning: str = Field(default="", description="First, in a few sentences: what you know that bears on it.")
    answer: str = Field(default="", description="For the user. Empty if not known.")
    values: list[str] = Field(
        default_factory=list,
        description="The bare answers (names, figures, dates, yes or no) if such are asked for, else none.",
    )


class AnswerDirectly(dspy.Signature):
    """Answer a question from what you know yourself; there are no documents, and the user is told so.

    Think first, in the field reasoning: what you know for certain, what follows from it, which dates or figures have to
    be computed. Then answer, beginning with what was asked for: one or two sentences for a plain question, as many
    paragraphs as a wide one needs. Write in the language of the question. Put no markers or sources: there are none. If
    you know a part, give that part and say what you do not know. If a question rests on something that is not so, say
    so. If you would have to guess, leave the answer empty; a likely answer that you can give reasons for is no guess,
    but say that it is uncertain.

    Values are the answer without a sentence around it, each by itself: a name, a figure with its unit, a date, yes or
    no. A question for an explanation, a summary or instructions has none.

    Example. "How many sides do a hexagon and a square have together?": reasoning "a hexagon has 6, a square 4, together
    10", answer "Together they have 10 sides.", values "10".

    例：“三年共有几个季度？”answer“共十二个季度。”values“12”。"""

    question: str = dspy.InputField()
    written: DirectWritten = dspy.OutputField()


class Direct(Step):
    """A question → an answer that no document supports; there is no offline version."""

    step = "direct"
    role = "answer"
    task = AnswerDirectly

    async def run(self, question: str) -> DirectWritten:
        """The model's own words."""
        written: DirectWritten = (await self.acall(question=question)).written
        return written
