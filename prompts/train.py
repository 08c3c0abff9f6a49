"""Train: the model's part in making rows for a router (StructRAG, section 4).

Tasks are made from seed tasks, a solution of each is simulated with each type of structure, and a judge ranks them.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, Field

from prompts.engine.calls import NotAsAsked
from prompts.engine.step import InputField, OutputField, Signature, Step, definitions
from prompts.structures import StructureName

LETTERS = "ABCDE"
FORMS = definitions("forms")  # by StructureName


class SyntheticTask(BaseModel):
    """A question over several documents that do not exist."""

    question: str = Field(description="Complete, of one or two sentences.")
    documents: list[str] = Field(min_length=2, max_length=12, description="The titles of 3 to 8 documents.")


class SyntheticTasks(BaseModel):
    """New tasks."""

    tasks: list[SyntheticTask]


class SynthesizeTasks(Signature, prompt="synthesize_tasks"):  # noqa: D101 -- its prompt tells
    language: str = InputField()
    number: int = InputField(desc="How many tasks.")
    examples: list[str] = InputField(desc="Question (titles).")
    new: SyntheticTasks = OutputField()


class Synthesize(Step):
    """Seed tasks → new tasks in a language; there is no offline version."""

    step = "synthesize_tasks"
    role = "synthesize"
    task = SynthesizeTasks

    async def run(self, language: str, number: int, seeds: Sequence[str], turn: int) -> list[SyntheticTask]:
        """`turn` tells apart calls that shall differ."""
        config = {"temperature": 1.0, "rollout_id": turn}
        new: SyntheticTasks = (
            await self.acall(language=language, number=number, examples=list(seeds), config=config)
        ).new
        return [task for task in new.tasks if task.question.strip()]


class SimulateSolution(Signature, prompt="simulate_solution"):  # noqa: D101 -- its prompt tells
    question: str = InputField()
    documents: list[str] = InputField(desc="Titles.")
    form: str = InputField()
    solution: str = OutputField()


class Simulate(Step):
    """A task and a structure → how it would be solved with it; there is no offline version."""

    step = "simulate_solution"
    role = "synthesize"
    task = SimulateSolution

    async def run(self, question: str, documents: Sequence[str], structure: StructureName) -> str:
        prediction = await self.acall(question=question, documents=list(documents), form=FORMS[structure])
        return " ".join(str(prediction.solution).split())


class Ranking(BaseModel):
    """Why, and the solutions from the best to the worst."""

    reason: str = Field(description="In two or three sentences: what the task needs, and which solution gives it.")
    ranking: list[Literal["A", "B", "C", "D", "E"]] = Field(description="All letters, the best first.")


class RankSolutions(Signature, prompt="rank_solutions"):  # noqa: D101 -- its prompt tells
    question: str = InputField()
    documents: list[str] = InputField(desc="Titles.")
    solutions: list[str] = InputField(desc="Each with its letter.")
    judged: Ranking = OutputField()


class Rank(Step):
    """Solutions of a task → the same from the best to the worst; there is no offline version."""

    step = "rank_solutions"
    role = "judge"
    task = RankSolutions

    async def run(self, question: str, documents: Sequence[str], solutions: Sequence[str]) -> list[int]:
        """The places of the solutions, the best first."""
        shown = [f"{letter}: {text}" for letter, text in zip(LETTERS, solutions, strict=False)]
        prediction = await self.acall(question=question, documents=list(documents), solutions=shown)
        return [LETTERS.index(letter) for letter in prediction.judged.ranking]

    def check(self, outputs: Mapping[str, object], inputs: Mapping[str, object]) -> None:
        """A ranking that leaves out or repeats a solution is asked for once more."""
        judged, solutions = outputs["judged"], inputs["solutions"]
        expected = LETTERS[: len(solutions)] if isinstance(solutions, list) else LETTERS
        if isinstance(judged, Ranking) and sorted(judged.ranking) != sorted(expected):
            raise NotAsAsked(f"it does not rank each of {', '.join(expected)} once.")
