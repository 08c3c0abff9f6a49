"""Judge: which of two answers is better on one criterion, and how good an answer is by a rubric.

Pairs are judged as in GraphRAG (arXiv 2404.16130v2, head-to-head measures) and LightRAG (arXiv 2410.05779, section
4.1), one criterion a call and the reason before the verdict; points as in Loong (arXiv 2406.17419), from 0 to 100.
"""

from typing import Any, Literal

from pydantic import BaseModel, Field

from prompts.engine.step import InputField, OutputField, Signature, Step, definitions

Shown = Literal["first", "second", "tie"]

CRITERIA, RUBRICS = definitions("criteria"), definitions("rubrics")


class PairJudged(BaseModel):
    """Why, and which answer is better."""

    reason: str = Field(description="What each answer does and lacks on this criterion alone: two to four sentences.")
    winner: Shown


class ComparePair(Signature, prompt="judge"):  # noqa: D101 -- its prompt tells
    question: str = InputField()
    criterion: str = InputField()
    first: str = InputField(desc="The answer that is shown first.")
    second: str = InputField(desc="The other one.")
    judgement: PairJudged = OutputField()


class PointsJudged(BaseModel):
    """Why, and how many points."""

    reason: str = Field(description="What is right, wrong, missing and made up by the rubric: two to four sentences.")
    score: int = Field(ge=0, le=100)


class GradeAnswer(Signature, prompt="grade"):  # noqa: D101 -- its prompt tells
    question: str = InputField()
    right: str = InputField(desc="The known right answer, or (none).")
    rubric: str = InputField()
    answer: str = InputField()
    grade: PointsJudged = OutputField()


class _Judging(Step):
    """Asks the judge. `repeat` (from 1) tells tries apart that the cache would answer as one: they are made at
    temperature 1, a single try at 0."""

    role = "judge"

    async def _ask(self, repeat: int, **inputs: str) -> Any:
        return await self.acall(**inputs, config={"rollout_id": repeat, "temperature": 1.0} if repeat else {})


class Judge(_Judging):
    """Two answers and a criterion → the better one, with the reason before it."""

    step = "judge"
    task = ComparePair

    async def run(self, question: str, criterion: str, first: str, second: str, repeat: int = 0) -> PairJudged:
        """`criterion` is a name of CRITERIA, or a criterion in words."""
        wording = f"{criterion}: {CRITERIA[criterion]}" if criterion in CRITERIA else criterion
        judged = await self._ask(repeat, question=question, criterion=wording, first=first, second=second)
        judgement: PairJudged = judged.judgement
        return judgement


class Grade(_Judging):
    """An answer and a rubric → points, with the reason before them."""

    step = "grade"
    task = GradeAnswer

    async def run(self, question: str, right: str, rubric: str, answer: str, repeat: int = 0) -> PointsJudged:
        """`rubric` is a name of RUBRICS, or a rubric in words."""
        rubric_text = RUBRICS.get(rubric, rubric)
        judged = await self._ask(repeat, question=question, right=right or "(none)", rubric=rubric_text, answer=answer)
        grade: PointsJudged = judged.grade
        return grade
