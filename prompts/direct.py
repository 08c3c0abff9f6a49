"""What does the model say by itself, without any document? (The baseline without retrieval.)"""

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step


class DirectWritten(BaseModel):
    """An answer from memory."""

    answer: str = Field(description="Empty if not known.")
    values: list[str] = Field(
        default_factory=list, description="The bare answers when entities, figures, dates or yes/no are asked."
    )


class AnswerDirectly(dspy.Signature):
    """Answer from what you know, briefly, in the question's language. Say nothing rather than guess."""

    question: str = dspy.InputField()
    written: DirectWritten = dspy.OutputField()


class Direct(Step):
    """A question → an answer that no document supports; there is no offline version."""

    step = "direct"
    role = "answer"
    task = AnswerDirectly

    async def run(self, question: str) -> DirectWritten:
        written: DirectWritten = (await self.acall(question=question)).written
        return written
