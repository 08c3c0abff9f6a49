"""Plans a traversal: the type of a question, and the steps through the graph (PolyG, section 3).

A plan is validated data, never code. One call makes it; walking needs none.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import dspy
from pydantic import BaseModel, Field

from prompts.engine.messages import NotAsAsked, first_fitting, rough_tokens
from prompts.engine.models import Models
from prompts.engine.step import Inputs, Outputs, Step

MAX_STEPS = 6
MAX_HOPS = 4

LOW = "low effort: the question's words are relations of the graph"
IMPORTED = "imported triples say it in the question's words"
NOTHING_NAMED = "the question names nothing that the graph knows"

QuestionType = Literal["s**", "sp*", "s*o", "spo", "nested"]
Operator = Literal[
    "neighbours",
    "follow",
    "connect",
    "check",
    "intersect",
    "difference",
    "count",
    "max",
    "min",
    "sort",
]


class Hop(BaseModel, frozen=True):
    """One step of a meta-path: a relation, its direction, and the kind that its far end must have
    ("": any).
    """

    relation: str
    inverse: bool = False
    kind: str = ""

    def __lt__(self, other: "Hop") -> bool:
        return (self.relation, self.inverse, self.kind) < (
            other.relation,
            other.inverse,
            other.kind,
        )


class PlanStep(BaseModel, frozen=True):
    """One operation. `sources` and `targets` are names, or {n} for what the n-th step found."""

    operator: Operator
    sources: tuple[str, ...] = Field(min_length=1)
    targets: tuple[str, ...] = ()
    hops: tuple[Hop, ...] = Field(
        default=(), max_length=MAX_HOPS, description=f"At most {MAX_HOPS}."
    )


class PlannedQuestion(BaseModel, frozen=True):
    """Why, the type of a question, and the steps to its answer: the last one's result."""

    reasoning: str = Field(
        default="", description="What is given, and which way leads to what is asked."
    )
    type: QuestionType
    steps: tuple[PlanStep, ...] = Field(
        min_length=1, max_length=MAX_STEPS, description=f"At most {MAX_STEPS}."
    )


class PlanQuestion(dspy.Signature):
    """Plan the walk through a knowledge graph that answers a question. The graph holds directed
    relations, subject -[relation]-> object; a program carries the plan out as it stands, and what
    the last step finds is the answer.

    type: s** all about one thing; sp* what stands in given relations to a thing, also along a
    chain; s*o how two things are connected; spo whether a relation holds, or what things share;
    nested several of these.

    operator: neighbours, all relations of the sources (s**). follow, where the hops lead from the
    sources, one after the other (sp*). connect, the shortest paths from sources to targets, by the
    relations of the hops if there are any (s*o). check, whether the hops lead from sources to
    targets (spo). intersect, difference, of earlier results. count, how many things a result holds
    or the hops lead to. max, min, sort, the sources by the value that the hops lead to, or by how
    many things.

    sources and targets are names from the list, or {1} for what step 1 found; * is everything, for
    count, max, min and sort with hops. relation is copied from the list: take the one that means
    what is asked. inverse is true where the walk goes from object to subject: with "children" from
    parent to child, the parents of somebody are children, inverse. kind narrows where a hop ends.

    Use the fewest steps: a chain is one follow with several hops. For what two things share,
    follow from each, then intersect. For a superlative in a group, follow to the group, then max
    or min of {1}. Where no relation means what is asked, take connect or neighbours.
    """

    relations: list[str] = dspy.InputField()
    around: list[str] = dspy.InputField()
    names: list[str] = dspy.InputField()
    unknown: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    plan: PlannedQuestion = dspy.OutputField()


class PlanTraversal(Step):
    """A question, the things it names and the graph's relations → its type and a plan.

    `wrong_with` says what in a plan is not in the graph (empty: nothing), and what may be meant;
    the model is told once.
    """

    step = "plan"
    role = "classify"
    task = PlanQuestion

    def __init__(
        self,
        models: Models | None = None,
        wrong_with: Callable[[Sequence[PlanStep]], str] = lambda _: "",
    ) -> None:
        super().__init__(models)
        self.wrong_with = wrong_with
        self._told = False

    def asks(self, *, looked_up: bool, named: bool, imported: bool) -> bool:
        """Whether a model is to plan.

        `looked_up`: the question's words are relations of the graph; `named`: the question names
        things of the graph; `imported`: the graph has all of these from imported triples.
        """
        if self.is_offline or (not named and self.spares(NOTHING_NAMED)):
            return False
        if looked_up and self.policy.effort == "low" and self.spares(LOW):
            return False
        return not (looked_up and imported and self.spares(IMPORTED))

    async def run(
        self,
        question: str,
        names: Sequence[str],
        unknown: Sequence[str],
        around: Sequence[str],
        relations: Sequence[str],
    ) -> PlannedQuestion:
        """The model's plan, whose names and relations may still not be in the graph."""
        self._told = False
        most = self.policy.limits.rate // 2
        planned: PlannedQuestion = (
            await self.acall(
                question=question,
                names=list(names),
                unknown=list(unknown),
                around=first_fitting(around, rough_tokens, most),
                relations=first_fitting(relations, rough_tokens, most),
            )
        ).plan
        return planned

    def check(self, outputs: Outputs, inputs: Inputs) -> None:
        """Raise NotAsAsked once for names or relations that the graph does not have."""
        wrong = "" if self._told else self.wrong_with(outputs["plan"].steps)
        if wrong:
            self._told = True
            raise NotAsAsked(wrong)
