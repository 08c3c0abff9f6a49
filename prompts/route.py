"""Route: the structure of knowledge that a question needs (StructRAG, section 2.2: R(q, C) → t)."""

from collections.abc import Sequence
from typing import cast

import dspy
from pydantic import BaseModel, Field

from prompts.engine.messages import first_fitting, rough_tokens
from prompts.engine.step import Step
from prompts.offline.route import (
    REASON,
    UNIT,
    LinearClassifier,
    classifier_of,
    features,
    program_of,
    ranked,
)
from prompts.structures import StructureName
from prompts.text.question import ParsedQuestion, is_plain

__all__ = ["LINEAR", "UNIT", "LinearClassifier", "Route", "Routed", "features", "program_of"]

# The shape of a program that is a classifier, for a role without a model.
LINEAR = "linear"
LOW = "low effort: the passages are read as they are"
SINGLE = "a short question for one thing is answered from passages as they are"


class Routed(BaseModel):
    """Why, the structure, how sure (0-1), and the distance to the second choice (0-1)."""

    reason: str = Field(description="What has to be done with the documents, in a sentence.")
    structure: StructureName
    confidence: float = Field(ge=0, le=1)
    margin: float = Field(default=0.0, ge=0, le=1)


class RouteQuestion(dspy.Signature):
    """Choose the form into which documents are brought before a question is answered from them.

    chunk: the passages as they stand, for one fact or explanation that a passage gives. table:
    rows of things and columns of attributes, for figures, dates and properties of several things
    or times: comparing, ranking, counting, adding up. graph: relations from thing to thing, for
    chains ("the birthplace of its designer") and for how things are tied. algorithm: steps with
    conditions, for how something is done, made or decided. catalogue: headings with points, for
    summaries, arguments, themes, positions of several speakers.

    Where several fit, take the one without which the answer would go wrong; where no form gains
    anything, chunk. margin is the lead over the second best.
    """

    core_content: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    routed: Routed = dspy.OutputField()


class Route(Step):
    """A question and the documents' core content → a structure."""

    step = "route"
    role = "route"
    task = RouteQuestion

    async def run(self, ask: ParsedQuestion, core_content: Sequence[str], tabular: bool) -> Routed:
        """Rules read `ask` and `tabular` (whether the best passages are rows).

        A model reads the question and as much of the core content as fits.
        """
        if not self.is_offline and self.policy.effort == "low" and self.spares(LOW):
            return Routed(reason=LOW, structure="chunk", confidence=1.0, margin=1.0)
        first, second, *_ = ranked(ask, tabular, self._classifier)
        by_rules = Routed(
            reason=REASON,
            structure=cast(StructureName, first.label),
            confidence=round(first.probability, 3),
            margin=round(first.probability - second.probability, 3),
        )
        if self.is_offline:
            return by_rules
        plain = first.label == "chunk" and is_plain(ask)
        if plain and self.spares(SINGLE):
            return by_rules
        shown = first_fitting(core_content, rough_tokens, self.policy.limits.rate)
        routed: Routed = (await self.acall(question=ask.text, core_content=shown)).routed
        return routed

    @property
    def _classifier(self) -> LinearClassifier | None:
        """The last classifier among the programs; None means ours."""
        trained = [program for program in self.models.programs if program.get("shape") == LINEAR]
        return classifier_of(trained[-1]) if trained else None
