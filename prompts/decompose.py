"""Decompose: a model splits a question into smaller ones (StructRAG, section 2.4: decompose(q, B)).

A sub-question refers to the answers of earlier ones as `{1}`, `{2}`. Without a model the question
stays whole.
"""

import re
from collections.abc import Mapping, Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.messages import NotAsAsked, first_fitting, rough_tokens
from prompts.engine.step import Inputs, Outputs, Step

MAX_PARTS = 8
PLAIN = "a short question for one thing has no parts"
LOW = "low effort: the question is answered whole"
_LINK = re.compile(r"\{(\d+)\}")


def needs(part: str) -> list[int]:
    """The numbers of the answers that a sub-question waits for."""
    return [int(number) for number in _LINK.findall(part)]


def filled(part: str, answers: Mapping[int, str]) -> str:
    """The sub-question with its references replaced by the answers that are known."""
    return _LINK.sub(lambda link: answers.get(int(link[1]), link[0]), part)


class Parts(BaseModel):
    """Sub-questions in the order in which they must be answered; `{n}` stands for the answer of the
    n-th.
    """

    reasoning: str = Field(default="", description="What must be found out, in a sentence.")
    questions: list[str] = Field(
        min_length=1, max_length=MAX_PARTS, description=f"At most {MAX_PARTS}, in order."
    )


class DecomposeQuestion(dspy.Signature):
    """Split a question into the fewest questions that can be looked up one by one.

    Each asks for one thing and names it in full. Where it needs the answer to an earlier question,
    write {1} for the first one's answer, {2} for the second's. A chain becomes its links, a
    comparison one question for each thing compared, several concerns one question each. Leave out
    conclusions: they are drawn afterwards. A question that asks for one thing, or for an overview,
    stays as it is, unchanged and alone.
    """

    knowledge: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    parts: Parts = dspy.OutputField()


class Decompose(Step):
    """A question and what is known → sub-questions; without a model the question stays whole."""

    step = "decompose"
    role = "decompose"
    writes_in = "question"
    task = DecomposeQuestion

    async def run(self, question: str, knowledge: Sequence[str], plain: bool) -> list[str]:
        """`plain`: whether the question asks one short thing of one named thing."""
        if (
            self.is_offline
            or (plain and self.spares(PLAIN))
            or (self.policy.effort == "low" and self.spares(LOW))
        ):
            return [question]
        shown = first_fitting(knowledge, rough_tokens, self.policy.limits.rate)
        parts: Parts = (await self.acall(question=question, knowledge=shown)).parts
        questions = [" ".join(part.split()) for part in parts.questions if part.strip()]
        return questions or [question]

    def check(self, outputs: Outputs, inputs: Inputs) -> None:
        """Raise NotAsAsked where a sub-question needs the answer of a later one."""
        for place, part in enumerate(outputs["parts"].questions, 1):
            late = [number for number in needs(part) if not 1 <= number < place]
            if late:
                raise NotAsAsked(
                    f"question {place} needs the answer {late[0]}, which does not come before it."
                )
