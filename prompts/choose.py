"""Choose: is a question about the whole collection, or about a part of it? (GraphRAG, section 1: global sensemaking)"""

from collections.abc import Sequence
from typing import Literal

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.offline.route import LEAST_WHOLE, REASON, SURELY_PART, SURELY_WHOLE, whole_offline
from prompts.text.question import ParsedQuestion

LOW = "low effort: the question's wording chooses"
PLAIN = f"the wording is plainly about one side (outside {SURELY_PART} to {SURELY_WHOLE})"


class ScopeRead(BaseModel):
    """Why, what the question is about, and how sure (0-1)."""

    reason: str = Field(description="In a sentence: what one would have to read to answer it.")
    about: Literal["whole", "part"]
    confidence: float = Field(ge=0, le=1)


class ChooseScope(dspy.Signature):
    """Say how a question to a collection of documents is to be answered: from the whole of it, or from a part.

    whole: the answer lies in no passage, but in what all or many documents say together: their themes, tendencies,
    views, differences, who of many speaks of something, what is typical, frequent or missing. To answer it one would
    read everything, or summaries of everything. Reports on all parts of the collection are then read.

    part: some passages give the answer: a fact, a figure, a date, an explanation, the steps of a procedure, an account
    of certain things or events, a comparison of things that are named, a chain of facts. To answer it one would look
    them up. Passages are then searched for.

    Hard cases. A question that names what it asks about is mostly about a part, however wide its words ("What are the
    main tasks of the harbour master?"); it is about the whole only if the documents as such are asked ("What do the
    letters say about the harbour?" where all of the titles are letters). A list of everything of one kind ("Which
    guests mention failure?") is whole if every document may hold a member. "Summarise" is whole without an object or
    with the collection as its object, part with one document or event. Short and vague questions of a newcomer ("What
    can one learn here?") are whole. If you are in doubt, a search that finds nothing can still be followed by the
    reports: say part.

    Give the reason first.

    Examples. "What worries the people who wrote these letters?", titles "Letter from Holm, 1911", "Letter from Tarn,
    1912": "every letter has to be read for worries", whole, 0.95. "Why was the Tarn ferry given up?": "one event, which
    a few passages tell", part, 0.9.

    例：“这些访谈中反复出现的困难有哪些？”：“要通读所有访谈”，whole，0.95。“县航运站有哪些部门？”：“问一个机构，查得到”，part，0.9。"""

    question: str = dspy.InputField()
    documents: list[str] = dspy.InputField(desc="Titles of some documents.")
    scope: ScopeRead = dspy.OutputField()


class Choose(Step):
    """A question and some titles → whether it is about the whole collection."""

    step = "choose"
    role = "route"
    task = ChooseScope

    async def run(self, ask: ParsedQuestion, titles: Sequence[str]) -> ScopeRead:
        """`ask` is what the rules read."""
        whole = whole_offline(ask)
        spared = LOW if self.policy.effort == "low" else "" if SURELY_PART < whole < SURELY_WHOLE else PLAIN
        if self.is_offline or (spared and self.spares(spared)):
            about_whole = whole >= LEAST_WHOLE
            confidence = whole if about_whole else round(1 - whole, 3)
            return ScopeRead(reason=REASON, about="whole" if about_whole else "part", confidence=confidence)
        scope: ScopeRead = (await self.acall(question=ask.text, documents=list(titles))).scope
        return scope
