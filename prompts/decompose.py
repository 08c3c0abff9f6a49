"""Into which smaller questions does a question fall? (StructRAG, section 2.4: decompose(q, B))"""

from collections.abc import Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.language.question import Ask
from prompts.reading.chains import chain

MAX_PARTS = 6


class Parts(BaseModel):
    """Sub-questions in the order in which they must be answered; `{n}` stands for the answer of the n-th."""

    questions: list[str] = Field(min_length=1, max_length=MAX_PARTS)


class DecomposeQuestion(dspy.Signature):
    """Split the question into the fewest sub-questions that the described knowledge can answer one by one. Write {1} where the
    first answer is needed. A simple question stays as it is."""

    question: str = dspy.InputField()
    knowledge: list[str] = dspy.InputField(desc="One description for each document.")
    parts: Parts = dspy.OutputField()


class Decompose(Step):
    """A question and what is known → sub-questions."""

    step = "decompose"
    role = "decompose"
    task = DecomposeQuestion

    async def run(self, ask: Ask, descriptions: Sequence[str]) -> list[str]:
        if self.is_offline:
            return decompose_offline(ask)
        prediction = await self.acall(question=ask.text, knowledge=list(descriptions))
        parts: Parts = prediction.parts
        return parts.questions


def decompose_offline(ask: Ask) -> list[str]:
    """One question for each thing compared, one for each link of a chain, else the question itself."""
    if ask.form == "compare" and ask.options:
        head = ask.text
        for option in ask.options:
            head = head.replace(option, "")
        stem = " ".join(head.strip(" ?,:").replace(" or ", " ").rstrip(":, ").split()).rstrip(": ,")
        return [f"{stem}: {option}?" for option in ask.options]
    if ask.form in {"fact", "list"} and not ask.chinese:
        return chain(ask.text)
    return [ask.text]
