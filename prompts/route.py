"""Which knowledge structure does a question need? (StructRAG, section 2.2: R(q, C) → t)"""

from collections.abc import Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.language.asked import Ask
from prompts.structurize import StructureName


class Routed(BaseModel):
    """The structure, how sure (0-1), the distance to the second choice (0-1), and why."""

    structure: StructureName
    confidence: float = Field(ge=0, le=1)
    margin: float = Field(ge=0, le=1)
    reason: str


class RouteQuestion(dspy.Signature):
    """Choose the structure that answers the question best: table for statistics and comparison, graph for chains of relations,
    algorithm for planning and how-to, catalogue for summaries and overviews, chunk for a single fact."""

    question: str = dspy.InputField()
    core_content: list[str] = dspy.InputField(desc="Title or first sentence of each document.")
    routed: Routed = dspy.OutputField()


class Route(Step):
    """A question and the documents' core content → a structure."""

    step = "route"
    role = "route"
    task = RouteQuestion

    async def run(self, ask: Ask, hops: int, core_content: Sequence[str], tabular: bool) -> Routed:
        if self.is_offline:
            return route_offline(ask, hops, tabular)
        prediction = await self.acall(question=ask.text, core_content=list(core_content))
        routed: Routed = prediction.routed
        return routed


def route_offline(ask: Ask, hops: int, tabular: bool) -> Routed:
    """By the question's form; `hops` counts its links, `tabular` says whether the best passages are rows."""
    scores: dict[StructureName, float] = {"chunk": 0.4, "table": 0.1, "graph": 0.1, "algorithm": 0.05, "catalogue": 0.1}
    reasons: dict[StructureName, str] = {"chunk": "a single fact"}

    def raise_to(structure: StructureName, score: float, reason: str) -> None:
        if score > scores[structure]:
            scores[structure], reasons[structure] = score, reason

    if ask.form == "howto":
        raise_to("algorithm", 0.9, "asks how something is done")
    if ask.form == "compare":
        raise_to("table", 0.9, "compares figures or dates of several things")
        if hops > 1:
            raise_to("graph", 0.6, "what is compared must be found first")
    if ask.form == "connect":
        raise_to("graph", 0.95, "asks how two things are connected")
    if hops > 1 and ask.form in {"fact", "list", "yesno"}:
        raise_to("graph", 0.6 + 0.1 * min(hops, 4), f"a chain of {hops} questions")
    if ask.form in {"summary", "global"}:
        raise_to("catalogue", 0.9, "asks for an overview")
    if ask.form == "about":
        raise_to("catalogue", 0.6, "asks what there is to know about one thing")
    if ask.form == "list":
        raise_to("graph", 0.55, "asks for all things in one relation")
        if tabular:
            raise_to("table", 0.5, "the best passages are rows of a table")
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    total = sum(scores.values())
    best, second = ordered[0], ordered[1]
    return Routed(
        structure=best[0], confidence=round(best[1] / total, 3), margin=round((best[1] - second[1]) / total, 3),
        reason=reasons.get(best[0], "a single fact"),
    )
