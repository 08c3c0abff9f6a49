"""Plan a traversal: what a question leaves open, and the steps through the graph that find it (PolyG, section 3).

A plan is validated data, never code. One call gives the type and the plan; while walking none is made.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import dspy
from pydantic import BaseModel, ConfigDict, Field

from prompts.engine.calls import NotAsAsked, fitting
from prompts.engine.models import Models
from prompts.engine.step import Step
from prompts.offline.traverse import SURE, QuestionType, RuleType, classify_offline

__all__ = [
    "MAX_HOPS", "MAX_STEPS", "SURE", "Hop", "Operator", "PlanQuestion", "PlanStep", "PlanTraversal", "PlannedQuestion",
    "TraversalPlan",
]  # fmt: skip

MAX_STEPS = 6
MAX_HOPS = 4

LOW = "low effort: the question's words give a plan"
IMPORTED = "the question's words give a plan over imported triples"
NOTHING_NAMED = "the question names nothing that the graph knows"

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

    operator: Operator = Field(description="What is done, as described above.")
    sources: tuple[str, ...] = Field(
        min_length=1, description="Names, {1} for what step 1 found, * for everything (with hops to rank or count by)."
    )
    targets: tuple[str, ...] = ()
    hops: tuple[Hop, ...] = Field(default=(), max_length=MAX_HOPS)


class TraversalPlan(BaseModel):
    """Steps in order; the last one's result is the answer."""

    model_config = ConfigDict(frozen=True)

    steps: tuple[PlanStep, ...] = Field(min_length=1, max_length=MAX_STEPS)


class PlannedQuestion(BaseModel):
    """Why, the type of a question, and the steps that answer it."""

    model_config = ConfigDict(frozen=True)

    reasoning: str = Field(
        default="", description="In a few sentences: what is given, what is missing, which way leads there."
    )
    type: QuestionType = Field(description="What the question leaves open.")
    steps: tuple[PlanStep, ...] = Field(
        min_length=1, max_length=MAX_STEPS, description="In order; the last one's result is the answer."
    )


class PlanQuestion(dspy.Signature):
    """Say what a question leaves open, and plan the walk through a knowledge graph that finds it.

    The graph holds things and directed relations between them: subject -[relation]-> object. Your plan is carried out
    as it stands, by a program; what the last step finds, with the relations on the way, is the answer. Nobody looks at
    the graph in between, so the plan must be right from what is shown here.

    Types. s**: everything about one named thing ("Tell me about Holm Quay"). sp*: what stands in one or more given
    relations to a named thing, also along a chain ("Who taught the builder of Holm Quay?"). s*o: how two named things
    are connected, whatever the relations. spo: whether a stated relation holds between named things, or what they have
    in common. nested: several of these, one after the other, or a comparison of what is found first.

    Operators. neighbours: all relations in and out of the sources (s**). follow: where the hops lead from the sources,
    one hop after the other (sp*). connect: shortest paths from the sources to the targets, by the relations of the hops
    alone if there are any (s*o). check: whether the hops lead from the sources to the targets (spo, yes or no).
    intersect, difference: of two or more earlier results, {1} and {2}. count: how many things a result has, or the hops
    lead to. max, min, sort: the sources by the value that the hops lead to, or, if they lead to things, by how many.

    Sources and targets are names from the list, or other names as the graph may have them; {1} is what step 1 found; *
    is everything in the graph, only for max, min, sort and count with hops.

    Hops. relation exactly as in the list of relations; a relation's name may be coarser or finer than the word of the
    question: take the one that means it. inverse is false from the subject of a relation to its object, true from the
    object to its subject: "children" leads from parent to child, so the parents of somebody are children, inverse. The
    list of ways around the names shows which directions there are. kind narrows where a hop may end ("person").

    Use the fewest steps. A chain is one follow with several hops, not several steps. For what two things share, follow
    from each, then intersect. For a superlative over a described group, follow to the group, then max or min with {1}.
    For a question about everything around what must be found first, follow, then neighbours of {1}. If no relation
    means what is asked for, take connect or neighbours, from which the answer can still be read.

    Example. Question: "Which pupil of Mara Holt is the oldest?" Relations: taught, born in year. Reasoning: "her
    pupils, then the smallest year of birth". Type: nested. Steps: follow from "Mara Holt" along taught; min of {1} by
    born in year.

    例：问题“沈望的老师是谁？”，关系“教过”（老师→学生）。reasoning“从学生回到老师，方向相反”，type sp*，一步：
    follow，从“沈望”沿“教过”，inverse为true。"""

    question: str = dspy.InputField()
    names: list[str] = dspy.InputField(desc="What the question names, as the graph calls it.")
    unknown: list[str] = dspy.InputField(desc="What looks like a name in it, and is none of the graph's.")
    around: list[str] = dspy.InputField(desc="Ways that lead on from these names.")
    relations: list[str] = dspy.InputField(desc="The graph's relations, those near these names first.")
    plan: PlannedQuestion = dspy.OutputField()


class PlanTraversal(Step):
    """A question, the things it names and the graph's relations → its type and a plan.

    `wrong_with` says what of a plan the graph does not have, with what may have been meant ("": nothing): a model is
    told so once.
    """

    step = "plan"
    role = "classify"
    task = PlanQuestion

    def __init__(self, models: Models, wrong_with: Callable[[TraversalPlan], str] = lambda _: "") -> None:
        super().__init__(models)
        self.wrong_with = wrong_with
        self._told = False

    def typed_by_words(self, question: str, names: Sequence[str]) -> RuleType:
        """The type by the words around the names, which stand in the question so; below `SURE` it is a guess."""
        return classify_offline(question, names)

    def asks(self, *, drafted: bool, named: bool, imported: bool) -> bool:
        """Whether a model is to plan.

        `drafted`: the question's words give a plan that can be run; `named`: the question names things of the graph;
        `imported`: the graph has all of these from imported triples.
        """
        if self.is_offline or (not named and not drafted and self.spares(NOTHING_NAMED)):
            return False
        if drafted and self.policy.effort == "low" and self.spares(LOW):
            return False
        return not (drafted and imported and self.spares(IMPORTED))

    async def run(
        self, question: str, names: Sequence[str], unknown: Sequence[str], around: Sequence[str],
        relations: Sequence[str],
    ) -> PlannedQuestion:  # fmt: skip
        """What the model plans; its names and relations are still to be checked against the graph."""
        self._told = False
        most = self.policy.limits.rate // 2
        planned: PlannedQuestion = (
            await self.acall(
                question=question, names=list(names), unknown=list(unknown), around=fitting(around, most),
                relations=fitting(relations, most),
            )
        ).plan  # fmt: skip
        return planned

    def check(self, outputs: Mapping[str, object], inputs: Mapping[str, object]) -> None:
        """A plan with names or relations that the graph does not have is sent back once."""
        planned = outputs["plan"]
        if not isinstance(planned, PlannedQuestion) or self._told:
            return
        wrong = self.wrong_with(TraversalPlan(steps=planned.steps))
        if wrong:
            self._told = True
            raise NotAsAsked(wrong)
