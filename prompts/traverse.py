"""By which steps through the graph is a question answered? A plan: validated data, never code. (PolyG, section 3)

Offline a plan is made from the question's words and the relations around the things that it names; a model is asked for
one where that fails.
"""

from collections.abc import Sequence
from typing import Literal

import dspy
from pydantic import BaseModel, ConfigDict, Field

from prompts.engine.step import Step

MAX_STEPS = 6
MAX_HOPS = 4

Operator = Literal["neighbours", "follow", "connect", "check", "intersect", "difference", "count", "max", "min", "sort"]


class Hop(BaseModel):
    """One step of a meta-path: a relation, its direction, and the kind that its far end must have ("": any)."""

    model_config = ConfigDict(frozen=True)

    relation: str = Field(description="Exactly as in the list of relations.")
    inverse: bool = Field(default=False, description="True: from the relation's object to its subject.")
    kind: str = Field(default="", description="Of what kind the far end must be; empty: any.")

    def __lt__(self, other: "Hop") -> bool:
        return (self.relation, self.inverse, self.kind) < (other.relation, other.inverse, other.kind)


class PlanStep(BaseModel):
    """One operation. `sources` and `targets` are names, or {n} for what the n-th step found."""

    model_config = ConfigDict(frozen=True)

    operator: Operator = Field(
        description="neighbours: all around the sources. follow: where hops lead. connect: paths from sources to "
        "targets, by the hops' relations alone if any. check: whether hops lead to the targets. intersect, difference: "
        "of earlier results. count: of a result, or of where hops lead. max, min, sort: sources by the value, or the "
        "number of things, that hops lead to."
    )
    sources: tuple[str, ...] = Field(
        min_length=1, description="Names, {1} for what step 1 found, * for everything (with hops to rank or count by)."
    )
    targets: tuple[str, ...] = ()
    hops: tuple[Hop, ...] = Field(default=(), max_length=MAX_HOPS)


class TraversalPlan(BaseModel):
    """Steps in order; the last one's result is the answer."""

    model_config = ConfigDict(frozen=True)

    steps: tuple[PlanStep, ...] = Field(min_length=1, max_length=MAX_STEPS)


class PlanQuestion(dspy.Signature):
    """Plan how the question is answered from the graph, in the fewest steps, with the listed relations alone."""

    question: str = dspy.InputField()
    question_type: str = dspy.InputField(desc="What it leaves open; nested where something must be found first.")
    names: list[str] = dspy.InputField(desc="What the question names, as the graph calls it.")
    relations: list[str] = dspy.InputField(desc="The graph's relations, those near these names first.")
    plan: TraversalPlan = dspy.OutputField()


class PlanTraversal(Step):
    """A question, the things it names and the graph's relations → a plan. Only for roles with a model."""

    step = "plan"
    role = "classify"
    task = PlanQuestion

    async def run(
        self, question: str, question_type: str, names: Sequence[str], relations: Sequence[str]
    ) -> TraversalPlan:
        """What the model plans; its names and relations are still to be checked against the graph."""
        prediction = await self.acall(
            question=question, question_type=question_type, names=list(names), relations=list(relations)
        )
        plan: TraversalPlan = prediction.plan
        return plan
