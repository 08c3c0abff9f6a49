"""The judge: pairs in both orders, points by a rubric, reliability; and published tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from prompts.engine.models import Models
from prompts.judge import Grade, Judge
from storage.answer_records import StructureType
from storage.errors import UsageError
from storage.evaluation_records import (
    EvaluatedAnswer,
    EvaluatedSystem,
    Evaluation,
    EvaluationQuestion,
    EvaluationResult,
    Score,
    Verdict,
)
from tasks.evaluate.judge import (
    JudgeReliability,
    judged_pairs,
    judged_points,
    reliability,
    win_rates,
)
from tasks.evaluate.measures import MEASURES, plain_answer
from tasks.evaluate.tables import TABLES, published_table
from tests.models.running import Place
from tests.query.steps import scripted
from tests.server.client import Server

QUESTIONS = [
    EvaluationQuestion(
        id=f"q{place}", question=f"What of bridge {place}?", answers=("Ada Korb in 1931",)
    )
    for place in range(3)
]
SHORT, LONG = (
    "Ada Korb [1].",
    "Ada Korb designed the bridge in 1931, and salt eats its bearings [1][2].",
)


def answers(system: str, *texts: str | None) -> list[EvaluatedAnswer]:
    return [
        EvaluatedAnswer(
            system=system,
            question=question.id,
            error="" if text else "It broke.",
            answer=plain_answer(question.question, text) if text else None,
        )
        for question, text in zip(QUESTIONS, texts, strict=False)
    ]


PAIR = (answers("short", SHORT, SHORT, SHORT), answers("long", LONG, LONG, LONG))


def verdict(name: str, winner: str, first: str = "a", second: str = "b") -> Verdict:
    return Verdict(
        question=name,
        criterion="overall",
        first=first,
        second=second,
        winner=winner,
        orders=((winner,), (winner,)),
    )


def result(
    questions: Sequence[EvaluationQuestion] = (),
    systems: Sequence[EvaluatedSystem] = (),
    **parts: Any,
) -> EvaluationResult:
    evaluation = Evaluation(
        name="",
        key="",
        started="",
        systems=tuple(systems),
        questions=tuple(questions),
        measures=(),
    )
    empty = {"answers": (), "scores": (), "verdicts": ()}
    return EvaluationResult(evaluation=evaluation, **(empty | parts))


def scores_of(measure: str, values: Mapping[str, Sequence[float | None]]) -> tuple[Score, ...]:
    return tuple(
        Score(system=system, question=str(place), measure=measure, value=value)
        for system, row in values.items()
        for place, value in enumerate(row)
    )


@pytest.fixture
def models(tmp_path: Path, model_server: Server) -> Models:
    return Place(tmp_path / "ws", model_server).runtime().models


async def test_pairs_are_judged_in_both_orders_one_criterion_a_call(
    models: Models, model_server: Server
) -> None:
    told = list[str]()
    verdicts = await judged_pairs(
        QUESTIONS, PAIR, Judge(models), ["diversity", "overall"], 1, lambda: told.append("one more")
    )
    assert len(told) == len(verdicts)
    assert [(one.winner, one.orders) for one in verdicts] == [("long", (("long",), ("long",)))] * 6
    bodies = [str(request["body"]) for request in model_server.requests()]
    assert len(bodies) == 12
    assert all(("diversity: " in body) != ("overall: " in body) for body in bodies)
    shown = [body.partition("[[ ## first ## ]]")[2] for body in bodies]
    assert not any("[1]" in answers for answers in shown), "markers tell systems apart"
    found = reliability(verdicts)
    assert (found.shown_first, found.orders_agree) == (0.5, 1.0)


async def test_a_position_bias_is_found_and_the_verdicts_are_ties(models: Models) -> None:
    """The scripted judge calls the answer shown first the more direct one."""
    verdicts = await judged_pairs(QUESTIONS, PAIR, Judge(models), ["directness"], 3)
    assert [verdict.winner for verdict in verdicts] == ["", "", ""]
    assert verdicts[0].orders == (("short",) * 3, ("long",) * 3)
    assert reliability(verdicts) == JudgeReliability(
        judgements=18, verdicts=3, shown_first=1.0, orders_agree=0.0, repeats_agree=1.0
    )
    assert win_rates(verdicts) == {
        "directness, short against long": {"short": 0.0, "long": 0.0, "tie": 1.0}
    }


async def test_repeats_are_calls_and_most_of_them_decide(
    models: Models, model_server: Server
) -> None:
    await judged_pairs(QUESTIONS[:1], PAIR, Judge(models), ["overall"], 3)
    assert len(model_server.requests()) == 6
    # Shown as (short, long) three times, then as (long, short).
    named = ("second", "first", "second", "first", "first", "second")
    wavering = scripted(Judge, *({"reason": "r", "winner": winner} for winner in named))
    (found,) = await judged_pairs(QUESTIONS[:1], PAIR, wavering, ["overall"], 3)
    assert found.orders == (("long", "short", "long"), ("long", "long", "short"))
    assert found.winner == "long"
    assert reliability([found]).repeats_agree == pytest.approx(2 / 6)


def test_agreement_with_people_is_told_beyond_chance() -> None:
    ours = [verdict("1", "a"), verdict("2", "a"), verdict("3", "b"), verdict("4", "")]
    people = [verdict("1", "a"), verdict("2", "b"), verdict("3", "b"), verdict("9", "a")]
    found = reliability(ours, people)
    assert found.people == 3
    assert found.people_agree == pytest.approx(2 / 3)
    # By chance: a 2/3 × 1/3 + b 1/3 × 2/3 = 4/9.
    assert found.people_kappa == pytest.approx((2 / 3 - 4 / 9) / (1 - 4 / 9))


async def test_points_come_with_loong_s_exact_match(models: Models) -> None:
    grade = Grade(models)
    graded = answers("s", "Ada Korb in 1931.", "Ada Korb.", None)
    scores = await judged_points(QUESTIONS, graded, grade, ["loong_score", "directness"], 1)
    values = {(score.question, score.measure): score.value for score in scores}
    assert (values["q0", "loong_score"], values["q0", "loong_em"]) == (100.0, 1.0)
    assert (values["q1", "loong_score"], values["q1", "loong_em"]) == (66.0, 0.0)
    assert (values["q2", "loong_score"], values["q2", "directness"]) == (0.0, 0.0)
    unknown = [QUESTIONS[0].model_copy(update={"answers": ()})]
    blank = await judged_points(unknown, graded, grade, ["loong_score"], 1)
    assert [score.value for score in blank] == [None, None]


def test_scores_take_the_form_of_published_tables() -> None:
    cells = [("comparison", "set 1"), ("clustering", "set 1"), ("clustering", "set 2")]
    questions = [
        EvaluationQuestion(id=str(place), question="?", kind=kind, group=group)
        for place, (kind, group) in enumerate(cells)
    ]
    values = {"full": (100.0, 50.0, None), "chunk": (0.0, 10.0, 20.0)}
    scored = result(questions, scores=scores_of("loong_score", values))
    assert published_table("loong_by_task", scored)["full"] == {
        "loong_score, comparison": 100,
        "loong_score, clustering": 50,
        "loong_score, all": 75,
    }
    assert published_table("loong_by_length", scored)["full"] == {
        "loong_score, set 1": 75,
        "loong_score, set 2": None,
        "loong_score, all": 75,
    }
    assert published_table("structrag_ablation", scored)["chunk"] == {"loong_score": 10}
    with pytest.raises(UsageError, match="loong_by_task"):
        published_table("table 9", scored)


def test_a_table_of_win_rates_counts_verdicts() -> None:
    won, tied = verdict("0", "full", "full", "chunk"), verdict("0", "", "full", "chunk")
    third = verdict("0", "third", "full", "third")
    assert published_table("lightrag_wins", result(verdicts=(won, tied, third))) == {
        "overall, full against chunk": {"full": 0.5, "chunk": 0.0, "tie": 0.5},
        "overall, full against third": {"full": 0.0, "third": 1.0, "tie": 0.0},
    }


def test_published_tables_show_measures_that_exist() -> None:
    assert {measure for table in TABLES.values() for measure in table.measures} <= MEASURES.keys()


def test_the_effect_of_a_router_on_the_final_score() -> None:
    forced: dict[StructureType, tuple[float, ...]] = {
        "table": (1.0, 0.0, 0.5, 0.5),
        "chunk": (0.0, 1.0, 0.2, 0.5),
    }
    routed: tuple[StructureType, ...] = ("table", "table", "table", "chunk")

    def answered(place: int, structure: StructureType) -> EvaluatedAnswer:
        answer = plain_answer("?", "so")
        route = answer.trace.route.model_copy(update={"type": structure})
        trace = answer.trace.model_copy(update={"route": route})
        answer = answer.model_copy(update={"trace": trace})
        return EvaluatedAnswer(system="ours", question=str(place), answer=answer)

    systems = [EvaluatedSystem(name=name, mode="struct", structure=name) for name in forced]
    ours = [forced[structure][place] for place, structure in enumerate(routed)]
    scored = result(
        [EvaluationQuestion(id=str(place), question="?") for place in range(4)],
        [*systems, EvaluatedSystem(name="ours", mode="struct")],
        answers=tuple(answered(place, structure) for place, structure in enumerate(routed)),
        scores=scores_of("f1", {"table": forced["table"], "chunk": forced["chunk"], "ours": ours}),
    )
    assert published_table("structrag_router", scored) == {
        "ours": {"accuracy": pytest.approx(2 / 3), "f1": pytest.approx(0.5)},
        "by lot": {"accuracy": 0.5, "f1": pytest.approx(0.4625)},
        "never right": {"accuracy": 0.0, "f1": pytest.approx(0.175)},
        "always right": {"accuracy": 1.0, "f1": pytest.approx(0.75)},
    }
    with pytest.raises(UsageError, match="structure for all"):
        published_table("structrag_router", result(systems=systems[:1], scores=scored.scores))
