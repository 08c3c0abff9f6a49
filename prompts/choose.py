"""Choose: is a question about the whole collection or a part of it? (GraphRAG, section 1)

Where the index has typed facts, a third answer is a computation over these.
"""

from collections.abc import Sequence
from typing import Literal

import dspy
from pydantic import BaseModel, Field

from prompts.engine.messages import first_fitting, rough_tokens
from prompts.engine.models import Models
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


class SourceRead(BaseModel):
    """Why, what holds the answer, and how sure (0-1)."""

    reason: str = Field(description="What one would have to read or compute, in a sentence.")
    about: Literal["facts", "whole", "part"]
    confidence: float = Field(ge=0, le=1)


class ChooseScopeOrFacts(dspy.Signature):
    """Say what answers a question to a collection of documents: a computation over typed facts that
    were taken from it, a part of the documents, or what many of them say together.

    facts: the question counts things, adds up or averages their figures, compares or ranks them,
    asks for the most, the least, the first or the last, or for all things that meet a condition on
    a figure, a date or a relation; and every kind, figure, date and relation that it needs is among
    the types. part: some passages hold the answer: one fact of one thing, an explanation, a
    procedure, an account, a chain of facts, or what needs a type that is not listed. whole: no
    passage holds the answer, but what many documents say together: their themes, tendencies and
    views, what is typical, frequent or missing. In doubt, say part.
    """

    documents: list[str] = dspy.InputField()
    types: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    scope: SourceRead = dspy.OutputField()


class Choose(Step):
    """A question and some titles → whether it is about the whole collection."""

    step = "choose"
    role = "route"
    task = ChooseScope
    types: Sequence[str] = ()

    def doubts(self, confidence: float) -> bool:
        """Whether only the wording, and not a clear one, makes a question one about the whole."""
        return self.is_offline and confidence < FIRST_WHOLE

    def is_plain(self, whole: float) -> bool:
        """Whether the wording alone tells, by its probability of the whole."""
        return not SURELY_PART < whole < SURELY_WHOLE

    async def run(self, ask: ParsedQuestion, titles: Sequence[str]) -> ScopeRead | SourceRead:
        """Rules read `ask`; a model reads its text and as many titles as fit."""
        whole = whole_offline(ask)
        is_low, is_plain = self.policy.effort == "low", self.is_plain(whole)
        if self.is_offline or ((is_low or is_plain) and self.spares(LOW if is_low else PLAIN)):
            about_whole = whole >= LEAST_WHOLE
            confidence = whole if about_whole else round(1 - whole, 3)
            return ScopeRead(
                reason=REASON, about="whole" if about_whole else "part", confidence=confidence
            )
        limit = self.policy.limits.rate
        inputs = {"question": ask.text, "documents": first_fitting(titles, rough_tokens, limit)}
        if self.types:
            inputs["types"] = first_fitting(self.types, rough_tokens, limit)
        scope: ScopeRead | SourceRead = (await self.acall(**inputs)).scope
        return scope


class ChooseWithFacts(Choose):
    """A question, some titles and the types of facts, a line each → what holds the answer.

    Rules know no facts: where a model is not asked, this is `Choose`.
    """

    task = ChooseScopeOrFacts

    def __init__(self, models: Models | None = None, types: Sequence[str] = ()) -> None:
        super().__init__(models)
        self.types = types

    def is_plain(self, whole: float) -> bool:
        """Whether the wording is plainly about the whole: a part may be facts."""
        return whole >= SURELY_WHOLE
