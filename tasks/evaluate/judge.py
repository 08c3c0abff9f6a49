"""The judge's verdicts on answers: pairs in both orders, points by a rubric, and their reliability.

Each criterion of a pair is judged in a call of its own, once with each answer shown first
(LightRAG, arXiv 2410.05779, section 4.1: positions alternated); orders that disagree make a tie.
Citation markers are not shown, as they would tell the systems apart.
"""

import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import combinations
from pathlib import Path
from statistics import mean
from typing import TypeVar

from prompts.engine.errors import NoUsableAnswer
from prompts.engine.key_masking import mask_keys
from prompts.judge import CRITERIA, Grade, Judge
from storage.errors import UsageError
from storage.evaluation_records import EvaluatedAnswer, EvaluationQuestion, Score, Verdict, plain
from storage.files import text_of_file
from storage.records import Record, by_key
from tasks.batches import gather_or_cancel
from tasks.retrying import PATIENT
from tasks.step import step

logger = logging.getLogger(__name__)
T = TypeVar("T")
FULL = 100
LOONG = ("loong_score", "loong_em")
Answers = Sequence[EvaluatedAnswer]


def require_judge(judged: Sequence[str], judge: Judge | Grade) -> None:
    """Raise UsageError where something is to be judged and the role has no model."""
    if judged and judge.is_offline:
        raise UsageError(
            f"{', '.join(judged)}: that is the judge's, and the role `judge` has no model.",
            "Set TRELLIS_LM_JUDGE (or TRELLIS_LM), or leave it out.",
        )


# --- pairs ----------------------------------------------------------------------------------------


@step("judge", PATIENT, asks_model=True)
async def judged_pairs(
    questions: Sequence[EvaluationQuestion],
    answers_of_two_systems: tuple[Answers, Answers],
    judge: Judge,
    criteria: Sequence[str] = tuple(CRITERIA),
    repeats: int = 1,
    on_verdict: Callable[[], None] = lambda: None,
) -> list[Verdict]:
    """Return a verdict for each criterion and each question that both systems were asked.

    The winner in one order is named by most of its repeats; the verdict's winner by both orders,
    else it is a tie. A system without an answer loses without a call. Where the judge gives no
    usable answer there is no verdict, and a log line. UsageError where the judge has no model.
    `on_verdict` is called after each verdict.
    """
    require_judge(("a comparison of answers",), judge)
    first, second = (
        {answer.question: answer for answer in answers} for answers in answers_of_two_systems
    )

    async def judged(question: EvaluationQuestion, criterion: str) -> Verdict | None:
        pair = first[question.id], second[question.id]
        verdict = await _or_none(
            _verdict(question, criterion, pair, judge, repeats), f"verdict on {question.id}"
        )
        on_verdict()
        return verdict

    work = (
        judged(question, criterion)
        for question in questions
        for criterion in criteria
        if question.id in first and question.id in second
    )
    return [verdict for verdict in await gather_or_cancel(work) if verdict is not None]


async def _or_none(judged: Awaitable[T], what: str) -> T | None:
    """Return what a judge gives, None for no usable answer: the other judgements go on."""
    try:
        return await judged
    except NoUsableAnswer as error:
        logger.warning("no %s: %s", what, mask_keys(error.message))
        return None


async def _verdict(
    question: EvaluationQuestion,
    criterion: str,
    pair: tuple[EvaluatedAnswer, EvaluatedAnswer],
    judge: Judge,
    repeats: int,
) -> Verdict:
    names = tuple(answer.system for answer in pair)
    texts = [plain(answer.answer.answer) if answer.answer else "" for answer in pair]
    if all(texts):
        places = [(order, repeat) for order in (0, 1) for repeat in _tries(repeats)]
        judged = await gather_or_cancel(
            judge.run(question.question, criterion, texts[order], texts[1 - order], repeat)
            for order, repeat in places
        )
        shown = {"first": 0, "second": 1}
        winners = [
            names[shown[judgement.winner] ^ order] if judgement.winner in shown else ""
            for (order, _), judgement in zip(places, judged, strict=True)
        ]
        orders = tuple(winners[:repeats]), tuple(winners[repeats:])
        winner = _majority(orders[0]) if _majority(orders[0]) == _majority(orders[1]) else ""
        reasons = [judgement.reason for judgement in judged]
    else:
        winner = next((name for name, text in zip(names, texts, strict=True) if text), "")
        orders = (winner,), (winner,)
        reasons = [
            f"{answer.system} gave no answer. {answer.error}".strip()
            for answer in pair
            if not answer.answer
        ]
    return Verdict(
        question=question.id,
        criterion=criterion,
        first=names[0],
        second=names[1],
        winner=winner,
        orders=orders,
        reasons=tuple(reasons),
    )


def _tries(repeats: int) -> Sequence[int]:
    """Number the repeats from 1; a single try is 0."""
    return range(1, repeats + 1) if repeats > 1 else (0,)


def _majority(winners: Sequence[str]) -> str:
    name, count = Counter(winners).most_common(1)[0]
    return name if count * 2 > len(winners) else ""


# --- points ---------------------------------------------------------------------------------------


@step("grade", PATIENT, asks_model=True)
async def judged_points(
    questions: Sequence[EvaluationQuestion],
    answers: Answers,
    judge: Grade,
    rubrics: Sequence[str] = ("loong_score",),
    repeats: int = 1,
) -> list[Score]:
    """Return the points (0 to 100) of each answer by each rubric: the mean of the repeats.

    A missing answer gets 0. `loong_score` compares with the known answer and is None where there
    is none; it comes with `loong_em`, the share of repeats that gave 100. A repeat without a usable
    answer does not count, and is logged. UsageError where the judge has no model.
    """
    require_judge(rubrics, judge)
    known = {question.id: question for question in questions}
    pairs = [
        (answer, rubric) for answer in answers if answer.question in known for rubric in rubrics
    ]
    points = await gather_or_cancel(
        _points(known[answer.question], answer, rubric, judge, repeats) for answer, rubric in pairs
    )
    scores: list[Score] = []
    for (answer, rubric), own in zip(pairs, points, strict=True):
        values = {rubric: mean(own) if own else None}
        if rubric == LOONG[0]:
            values[LOONG[1]] = mean(float(point == FULL) for point in own) if own else None
        scores += [
            Score(system=answer.system, question=answer.question, measure=name, value=value)
            for name, value in values.items()
        ]
    return scores


async def _points(
    question: EvaluationQuestion, answer: EvaluatedAnswer, rubric: str, judge: Grade, repeats: int
) -> list[int]:
    if rubric == LOONG[0] and not question.answers:
        return []
    if answer.answer is None:
        return [0] * repeats
    text, right = plain(answer.answer.answer), " / ".join(question.answers or question.values)
    graded = (
        _or_none(
            judge.run(question.question, right, rubric, text, repeat), f"points for {question.id}"
        )
        for repeat in _tries(repeats)
    )
    return [grade.score for grade in await gather_or_cancel(graded) if grade is not None]


# --- reliability ----------------------------------------------------------------------------------


class JudgeReliability(Record):
    """How far a judge can be trusted.

    `shown_first` is the share of decided judgements won by the answer shown first: .5 is no
    position bias. `orders_agree` is the share of verdicts whose orders name the same winner,
    `repeats_agree` that of pairs of repeats in one order. `people_agree` and `people_kappa` (Cohen
    1960) compare the verdicts with people's on `people` pairs.
    """

    judgements: int
    verdicts: int
    shown_first: float | None
    orders_agree: float | None
    repeats_agree: float | None
    people: int = 0
    people_agree: float | None = None
    people_kappa: float | None = None


def reliability(verdicts: Sequence[Verdict], people: Iterable[Verdict] = ()) -> JudgeReliability:
    """Measure a judge by its verdicts, and against the winners that `people` named."""
    firsts = [
        (winner, (verdict.first, verdict.second)[order])
        for verdict in verdicts
        for order in (0, 1)
        for winner in verdict.orders[order]
        if winner
    ]
    repeats = [
        a == b
        for verdict in verdicts
        for order in verdict.orders
        for a, b in combinations(order, 2)
    ]
    own = {_key(verdict): verdict.winner for verdict in verdicts}
    both = [(own[_key(verdict)], verdict.winner) for verdict in people if _key(verdict) in own]
    return JudgeReliability(
        judgements=sum(len(order) for verdict in verdicts for order in verdict.orders),
        verdicts=len(verdicts),
        shown_first=_share([winner == shown for winner, shown in firsts]),
        orders_agree=_share(
            [_majority(verdict.orders[0]) == _majority(verdict.orders[1]) for verdict in verdicts]
        ),
        repeats_agree=_share(repeats),
        people=len(both),
        people_agree=_share([a == b for a, b in both]),
        people_kappa=_kappa(both),
    )


def win_rates(verdicts: Sequence[Verdict]) -> dict[str, dict[str, float]]:
    """Return the shares of verdicts that each of two systems won and of ties, by criterion."""
    pairs = by_key(((row.criterion, row.first, row.second), row.winner) for row in verdicts)
    return {
        f"{criterion}, {first} against {second}": {
            name or "tie": winners.count(name) / len(winners) for name in (first, second, "")
        }
        for (criterion, first, second), winners in pairs.items()
    }


def read_people(path: Path) -> list[Verdict]:
    """Read people's verdicts: JSON lines {question (its id), criterion, first, second, winner}.

    An empty winner is a tie. UsageError for what cannot be read.
    """
    try:
        lines = text_of_file(path).split("\n")
        return [
            Verdict.model_validate({"orders": ((), ())} | json.loads(line))
            for line in lines
            if line.strip()
        ]
    except (OSError, ValueError, TypeError) as error:
        remedy = "A row is {question, criterion, first, second, winner}; no winner is a tie."
        raise UsageError(
            f"{path} holds no verdicts of people: {str(error).splitlines()[0]}.", remedy
        ) from error


def _key(verdict: Verdict) -> tuple[str, str, frozenset[str]]:
    return verdict.question, verdict.criterion, frozenset((verdict.first, verdict.second))


def _share(marks: Sequence[bool]) -> float | None:
    return mean(marks) if marks else None


def _kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return the agreement beyond chance; None where chance alone would agree."""
    if not pairs:
        return None
    ours, theirs = (Counter(names) for names in zip(*pairs, strict=True))
    chance = sum(count * theirs[name] for name, count in ours.items()) / len(pairs) ** 2
    return (mean(a == b for a, b in pairs) - chance) / (1 - chance) if chance < 1 else None
