"""Makes training rows for a router (StructRAG, section 4).

A model makes tasks from seed tasks and simulates their solution with each type of structure; a
judge ranks the solutions.
"""

from collections.abc import Sequence
from typing import Literal

import dspy
from pydantic import BaseModel, Field

from prompts.engine.messages import NotAsAsked
from prompts.engine.step import Inputs, Outputs, Step
from prompts.structures import StructureName

LETTERS = "ABCDE"
FORMS: dict[StructureName, str] = {
    "table": "a table: rows of things, columns of attributes",
    "graph": "a graph: triples of head, relation, tail",
    "algorithm": "an algorithm: numbered steps with conditions",
    "catalogue": "a catalogue: numbered headings with a line for each point",
    "chunk": "the passages as they stand, in no other form",
}


class SyntheticTask(BaseModel):
    """A question over several documents that do not exist."""

    question: str = Field(description="Complete, of one or two sentences.")
    documents: list[str] = Field(
        min_length=2, max_length=12, description="The titles of 3 to 8 documents."
    )


class SyntheticTasks(BaseModel):
    """New tasks."""

    tasks: list[SyntheticTask]


class SynthesizeTasks(dspy.Signature):
    """Invent tasks for a system that answers questions from many long documents over which the
    answer is scattered. A task is a question and the titles of its documents.

    The examples show how varied and how hard tasks are; choose other fields, kinds of documents
    and things to be done. About as many tasks each should compare figures or properties, follow
    relations over several links, ask how something is done, ask for an account of a matter, and
    ask for a single fact. A question does not say which form of notes would help. No task repeats
    or varies an example. Write titles, too, in the language asked for.
    """

    language: str = dspy.InputField()
    number: int = dspy.InputField()
    examples: list[str] = dspy.InputField()
    new: SyntheticTasks = dspy.OutputField()


class Synthesize(Step):
    """Seed tasks → new tasks in a language. There is no offline version."""

    step = "synthesize_tasks"
    role = "synthesize"
    task = SynthesizeTasks

    async def run(
        self, language: str, number: int, seeds: Sequence[str], turn: int
    ) -> list[SyntheticTask]:
        """Another `turn` gives other tasks."""
        config = {"temperature": 1.0, "rollout_id": turn}
        new: SyntheticTasks = (
            await self.acall(language=language, number=number, examples=list(seeds), config=config)
        ).new
        return [task for task in new.tasks if task.question.strip()]


class SimulateSolution(dspy.Signature):
    """Imagine how a task is solved with notes on the documents in the given form.

    Judge by the titles what the documents hold. Say in three to six sentences what the notes would
    hold, how the answer is read from them, and where that is easy, laborious or goes wrong,
    because the form loses or mixes up what matters. Neither praise nor condemn the form, and do
    not answer the question.
    """

    documents: list[str] = dspy.InputField()
    form: str = dspy.InputField()
    question: str = dspy.InputField()
    solution: str = dspy.OutputField()


class Simulate(Step):
    """A task and a structure → how it would be solved. There is no offline version."""

    step = "simulate_solution"
    role = "synthesize"
    writes_in = "question"
    task = SimulateSolution

    async def run(self, question: str, documents: Sequence[str], structure: StructureName) -> str:
        prediction = await self.acall(
            question=question, documents=list(documents), form=FORMS[structure]
        )
        return " ".join(str(prediction.solution).split())


class Ranking(BaseModel):
    """Why, and the solutions from the best to the worst."""

    reason: str = Field(
        description="In two or three sentences: what the task needs, and which solution gives it."
    )
    ranking: list[Literal["A", "B", "C", "D", "E"]] = Field(
        description="All letters, the best first."
    )


class RankSolutions(dspy.Signature):
    """Rank ways to solve a task over long documents by how likely each leads to a complete and
    right answer.

    First say what the task needs: values side by side, links to follow, steps in order, points
    under headings, or one place to read. Prefer the way that shows all that is needed and nothing
    to be undone; of two that would do, the plainer. Length and wording count for nothing. Rank
    every letter once.
    """

    documents: list[str] = dspy.InputField()
    solutions: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    judged: Ranking = dspy.OutputField()


class Rank(Step):
    """Solutions of a task → their ranking. There is no offline version."""

    step = "rank_solutions"
    role = "judge"
    task = RankSolutions

    async def run(
        self, question: str, documents: Sequence[str], solutions: Sequence[str]
    ) -> list[int]:
        """The indexes of the solutions, the best first."""
        shown = [f"{letter}: {text}" for letter, text in zip(LETTERS, solutions, strict=False)]
        prediction = await self.acall(question=question, documents=list(documents), solutions=shown)
        return [LETTERS.index(letter) for letter in prediction.judged.ranking]

    def check(self, outputs: Outputs, inputs: Inputs) -> None:
        """Raise NotAsAsked where a ranking leaves out or repeats a solution."""
        expected = LETTERS[: len(inputs["solutions"])]
        if sorted(outputs["judged"].ranking) != sorted(expected):
            raise NotAsAsked(f"it does not rank each of {', '.join(expected)} once.")
