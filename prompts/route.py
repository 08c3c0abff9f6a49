"""Which knowledge structure does a question need? (StructRAG, section 2.2: R(q, C) → t)"""

from collections.abc import Iterator, Sequence

import dspy
from pydantic import BaseModel, Field

from prompts.engine.step import Step
from prompts.language.asked import Ask, Form
from prompts.reading.sure import is_plain
from prompts.structures.checks import StructureName

# Above it the second structure has less than two thirds of the first one's score.
SURE_MARGIN = 0.25


class Routed(BaseModel):
    """The structure, how sure (0-1), the distance to the second choice (0-1), and why."""

    structure: StructureName
    confidence: float = Field(ge=0, le=1)
    margin: float = Field(ge=0, le=1, description="Lead over the next best structure.")
    reason: str = Field(description="A few words.")


class RouteQuestion(dspy.Signature):
    """Choose the structure that answers the question best: table for statistics and comparison, graph for chains of
    relations, algorithm for planning and how-to, catalogue for summaries and overviews, chunk for a single fact."""

    question: str = dspy.InputField()
    core_content: list[str] = dspy.InputField(desc="Title or first sentence of each document.")
    routed: Routed = dspy.OutputField()


class Route(Step):
    """A question and the documents' core content → a structure; a model is asked where the form does not settle it."""

    step = "route"
    role = "route"
    task = RouteQuestion

    async def run(self, ask: Ask, hops: int, core_content: Sequence[str], tabular: bool) -> Routed:
        by_rule = route_offline(ask, hops, tabular)
        if self.is_offline or is_sure(ask, hops, by_rule):
            return by_rule
        prediction = await self.acall(question=ask.text, core_content=list(core_content))
        routed: Routed = prediction.routed
        return routed


def is_sure(ask: Ask, hops: int, routed: Routed) -> bool:
    """Whether the question's form settles the structure: a clear lead, and for a single fact a plain question."""
    return routed.margin >= SURE_MARGIN and (routed.structure != "chunk" or hops > 1 or is_plain(ask))


def route_offline(ask: Ask, hops: int, tabular: bool) -> Routed:
    """By the question's form; `hops` counts its links, `tabular` says whether the best passages are rows."""
    scores: dict[StructureName, float] = {"table": 0.1, "graph": 0.1, "algorithm": 0.05, "catalogue": 0.1, "chunk": 0.4}
    reasons: dict[StructureName, str] = {"chunk": "a single fact"}
    for structure, score, reason in _claims(ask, hops, tabular):
        if score > scores[structure]:
            scores[structure], reasons[structure] = score, reason
    (best, first), (_, second) = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:2]
    total = sum(scores.values())
    return Routed(
        structure=best,
        confidence=round(first / total, 3),
        margin=round((first - second) / total, 3),
        reason=reasons[best],
    )


def _claims(ask: Ask, hops: int, tabular: bool) -> Iterator[tuple[StructureName, float, str]]:
    """What speaks for each structure, and how much (0-1)."""
    by_form: dict[Form, tuple[StructureName, float, str]] = {
        "howto": ("algorithm", 0.9, "asks how something is done"),
        "compare": ("table", 0.9, "compares figures or dates of several things"),
        "connect": ("graph", 0.95, "asks how two things are connected"),
        "summary": ("catalogue", 0.9, "asks for an overview"),
        "global": ("catalogue", 0.9, "asks for an overview"),
        "about": ("catalogue", 0.6, "asks what there is to know about one thing"),
        "list": ("graph", 0.55, "asks for all things in one relation"),
    }
    if ask.form in by_form:
        yield by_form[ask.form]
    if hops > 1 and ask.form == "compare":
        yield "graph", 0.6, "what is compared must be found first"
    if hops > 1 and ask.form in {"fact", "list", "yesno"}:
        yield "graph", 0.6 + 0.1 * min(hops, 4), f"a chain of {hops} questions"
    if tabular and ask.form == "list":
        yield "table", 0.5, "the best passages are rows of a table"
