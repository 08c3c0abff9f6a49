"""Compiling a step with DSPy's optimisers: its examples, and what its answers to them are worth.

A router and a filter are measured by the labels of their rows, a rewriter by what its queries find,
an answer by the measures of `tasks/evaluate/measures.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import Any

from prompts.answer import AnswerRequest, AnswerStep, NumberedText, evidence_text
from prompts.engine.compiling import Worth
from prompts.engine.errors import ModelRefused
from storage.answer_records import Answer, Passage
from storage.errors import UsageError
from storage.evaluation_records import EvaluationQuestion
from storage.training_records import Row, TrainedStep
from tasks.batches import gather_or_cancel
from tasks.evaluate.measures import CUTS, MEASURES, plain_answer
from tasks.train import filter as filtering
from tasks.train import router
from tasks.train.rewriter import Find

ACCURACY = "accuracy"
# The first measure of a step is the default.
COMPILED_BY: Mapping[TrainedStep, tuple[str, ...]] = {
    "router": (ACCURACY,),
    "filter": (ACCURACY,),
    "rewriter": tuple(
        f"{name}@{cut}"
        for name in ("ndcg", "recall", "all_gold")
        for cut in sorted(CUTS, reverse=True)
    ),
    "answer": ("f1", "exact_match", "answer_in_text", "values_f1", "values_exact", "values_hit"),
}
Examples = list[dict[str, object]]


def measure_of(step: TrainedStep, name: str | None) -> str:
    """Return the named measure of a step, or its first; UsageError for one of another step."""
    known = COMPILED_BY[step]
    if name is not None and name not in known:
        raise UsageError(
            f"A {step} is not compiled by the measure {name!r}.",
            f"Choose one of {', '.join(known)}.",
        )
    return name or known[0]


async def examples_of(
    step: TrainedStep, rows: Sequence[Row], find: Find | None, passages: int
) -> Examples:
    """Return each row as inputs of the step, with its outputs, or under `gold` with its question.

    An answer is written from the first passages that the search finds.
    """
    if step == "router":
        return router.examples_of(rows)
    if step == "filter":
        return filtering.examples_of(rows)
    questions = [row for row in rows if isinstance(row, EvaluationQuestion)]
    if step == "rewriter":
        return [
            {"question": row.question, "history": list(row.history), "gold": row}
            for row in questions
        ]
    requests = await gather_or_cancel(_request(row, find, passages) for row in questions)
    return [
        {
            "question": row.question,
            "response": "",
            "notes": "",
            "evidence": evidence_text(request.evidence),
            "gold": row,
        }
        for row, request in zip(questions, requests, strict=True)
    ]


async def _request(question: EvaluationQuestion, find: Find | None, most: int) -> AnswerRequest:
    passages = (await find([question.question]))[:most] if find is not None else ()
    texts = [
        NumberedText(number, passage.title, passage.text)
        for number, passage in enumerate(passages, 1)
    ]
    return AnswerRequest(question.question, texts)


def worth_of(
    step: TrainedStep, name: str, search: Callable[[Sequence[str]], Sequence[Passage]]
) -> Worth:
    """Return what an answer is worth by a measure; `search` runs a rewriter's queries."""
    if step in {"router", "filter"}:
        return router.same_structure if step == "router" else filtering.same_label

    def worth(example: Mapping[str, Any], given: Mapping[str, Any]) -> float:
        gold: EvaluationQuestion = example["gold"]
        if step == "answer":
            written = given["written"]
            return _score(name, gold, plain_answer(gold.question, written.answer, written.values))
        rewriting = given["rewriting"]
        passages = tuple(search([rewriting.question, *rewriting.queries]))
        answer = plain_answer(gold.question, "").model_copy(update={"passages": passages})
        return _score(name, gold, answer)

    return worth


def _score(name: str, question: EvaluationQuestion, answer: Answer) -> float:
    return MEASURES[name].score(question, answer) or 0.0


async def answered_by(
    questions: Sequence[EvaluationQuestion],
    step: AnswerStep,
    find: Find,
    passages: int,
    measure: str,
) -> dict[str, float]:
    """Return the mean of a measure over a step's answers; one that cannot be read is worth 0."""

    async def worth(question: EvaluationQuestion) -> float:
        request = await _request(question, find, passages)
        try:
            draft = await step.run(request)
        except ModelRefused:
            return 0.0
        return _score(measure, question, plain_answer(question.question, draft.text, draft.values))

    scores = await gather_or_cancel(worth(question) for question in questions)
    return {measure: mean(scores)} if scores else {}
