"""Is a question about the whole collection, or about some of what it says? That decides which mode answers it.

Offline, and where its wording is clear, rules decide; a model is asked about the rest (GraphRAG, section 1: questions
about a whole corpus are another task than looking something up).
"""

from typing import Literal

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.language.asked import Ask, Expected
from prompts.routing.scope import scope_of

# Between these shares the wording does not tell.
SURELY_PART, SURELY_WHOLE = 0.2, 0.7
# A passage that is not searched for is missed; a question that is searched first may still be asked of the whole.
LEAST_WHOLE = 0.6
_VALUES: frozenset[Expected] = frozenset({"person", "place", "date", "money", "number"})


class ScopeRead(BaseModel):
    """What the question is about, how sure (0-1), and why."""

    about: Literal["whole", "part"]
    confidence: float = Field(ge=0, le=1)
    reason: str = Field(description="A few words.")


class ChooseScope(dspy.Signature):
    """Say what a question to a collection of documents is about. whole: what all or many of its documents say together,
    such as themes, tendencies, views, who of many speaks of something. part: facts, figures, steps or an account of
    certain things that a few passages give."""

    question: str = dspy.InputField()
    documents: list[str] = dspy.InputField(desc="Titles of some documents.")
    scope: ScopeRead = dspy.OutputField()


class Choose(Step):
    """A question and some titles → whether it is about the whole; a model is asked only where its wording does not
    tell."""

    step = "choose"
    role = "route"
    task = ChooseScope

    async def run(self, ask: Ask, titles: list[str]) -> ScopeRead:
        by_rule = scope_offline(ask)
        whole = by_rule.confidence if by_rule.about == "whole" else 1 - by_rule.confidence
        if self.is_offline or not SURELY_PART < whole < SURELY_WHOLE or asks_one_value(ask):
            return by_rule
        scope: ScopeRead = (await self.acall(question=ask.text, documents=titles)).scope
        return scope


def asks_one_value(ask: Ask) -> bool:
    """Whether one person, place, date or figure is asked for: no model is asked about the scope of that."""
    return ask.form == "fact" and ask.expects in _VALUES


def scope_offline(ask: Ask) -> ScopeRead:
    """By the question's wording alone."""
    found = scope_of(ask)
    if found.whole >= LEAST_WHOLE:
        return ScopeRead(about="whole", confidence=found.whole, reason=found.reason)
    return ScopeRead(about="part", confidence=round(1 - found.whole, 3), reason=found.reason)
