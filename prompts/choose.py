"""Choose: is a question about the whole collection or a part of it? (GraphRAG, section 1)"""

from collections.abc import Sequence
from typing import Literal

import dspy
from pydantic import BaseModel, Field

from prompts.engine.messages import first_fitting, rough_tokens
from prompts.engine.step import Step
from prompts.offline.route import (
    FIRST_WHOLE,
    LEAST_WHOLE,
    REASON,
    SURELY_PART,
    SURELY_WHOLE,
    whole_offline,
)
from prompts.text.question import ParsedQuestion

LOW = "low effort: the question's wording chooses"
PLAIN = f"the wording is plainly about one side (outside {SURELY_PART} to {SURELY_WHOLE})"


class ScopeRead(BaseModel):
    """Why, what the question is about, and how sure (0-1)."""

    reason: str = Field(description="What one would have to read, in a sentence.")
    about: Literal["whole", "part"]
    confidence: float = Field(ge=0, le=1)


class ChooseScope(dspy.Signature):
    """Say whether a question to a collection of documents is about a part of it or about the
    whole.

    part: some passages hold the answer: a fact, a figure, an explanation, a procedure, an account
    or a comparison of named things, a chain of facts. whole: no passage holds the answer, but what
    many documents say together: their themes, tendencies and views, what is typical, frequent or
    missing, all members of a kind. A question that names what it asks about is mostly about a
    part. In doubt, say part.
    """

    documents: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    scope: ScopeRead = dspy.OutputField()


class Choose(Step):
    """A question and some titles → whether it is about the whole collection."""

    step = "choose"
    role = "route"
    task = ChooseScope

    def doubts(self, confidence: float) -> bool:
        """Whether only the wording, and not a clear one, makes a question one about the whole."""
        return self.is_offline and confidence < FIRST_WHOLE

    async def run(self, ask: ParsedQuestion, titles: Sequence[str]) -> ScopeRead:
        """Rules read `ask`; a model reads its text and as many titles as fit."""
        whole = whole_offline(ask)
        is_low, is_plain = self.policy.effort == "low", not SURELY_PART < whole < SURELY_WHOLE
        if self.is_offline or ((is_low or is_plain) and self.spares(LOW if is_low else PLAIN)):
            about_whole = whole >= LEAST_WHOLE
            confidence = whole if about_whole else round(1 - whole, 3)
            return ScopeRead(
                reason=REASON, about="whole" if about_whole else "part", confidence=confidence
            )
        shown = first_fitting(titles, rough_tokens, self.policy.limits.rate)
        scope: ScopeRead = (await self.acall(question=ask.text, documents=shown)).scope
        return scope
