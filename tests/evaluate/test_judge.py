"""The judge: pairs in both orders, points by a rubric, and what verdicts tell of the judge
itself.
"""

from collections.abc import Sequence
from typing import Any

import pytest

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
from tasks.evaluate.tables import TABLES, budget_note, published_table
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


def judging(place: Place, step: type[Any]) -> Any:
    return step(place.runtime().models)


@pytest.fixture
def place(tmp_path: Any, model_server: Server) -> Place:
    return Place(tmp_path / "ws", model_server)


async def test_pairs_are_judged_in_both_orders_one_criterion_a_call(
    place: Place, model_server: Server
) -> None:
    told = list[str]()
    judge = judging(place, Judge)
    verdicts = await judged_pairs(
        QUESTIONS, PAIR, judge, ["diversity", "overall"], 1, lambda: told.append("one more")
    )
    assert len(told) == len(verdicts)
    assert [(verdict.winner, verdict.orders) for verdict in verdicts] == [
        ("long", (("long",), ("long",)))
    ] * 6
    assert {verdict.criterion for verdict in verdicts} == {"diversity", "overall"}
    bodies = [str(request["body"]) for request in model_server.requests()]
    assert len(bodies) == 12
    assert all(("diversity: " in body) != ("overall: " in body) for body in bodies)
    assert not any(
        "[1]" in body.partition("[[ ## first ## ]]")[2] for body in bodies
    )  # no marker tells them apart
    found = reliability(verdicts)
    assert (found.shown_first, found.orders_agree) == (0.5, 1.0)


async def test_a_position_bias_is_found_and_the_verdicts_are_ties(place: Place) -> None:
    """The scripted judge calls whatever it sees first the more direct answer."""
    verdicts = await judged_pairs(QUESTIONS, PAIR, judging(place, Judge), ["directness"], 3)
    assert [verdict.winner for verdict in verdicts] == ["", "", ""]
    assert verdicts[0].orders == (("short",) * 3, ("long",) * 3)
    assert reliability(verdicts) == JudgeReliability(
        judgements=18, verdicts=3, shown_first=1.0, orders_agree=0.0, repeats_agree=1.0
    )
    assert win_rates(verdicts) == {
        "directness, short against long": {"short": 0.0, "long": 0.0, "tie": 1.0}
    }


async def test_repeats_are_calls_of_their_own_and_the_most_decide(
    place: Place, model_server: Server
) -> None:
    judge = judging(place, Judge)
    await judged_pairs(QUESTIONS[:1], PAIR, judge, ["overall"], 3)
    assert len(model_server.requests()) == 6
    wavering = scripted(Judge, *({"reason": "r", "winner": winner} for winner in WAVERING))
    (verdict,) = await judged_pairs(QUESTIONS[:1], PAIR, wavering, ["overall"], 3)
    assert verdict.orders == (("long", "short", "long"), ("long", "long", "short"))
    assert verdict.winner == "long"
    assert reliability([verdict]).repeats_agree == pytest.approx(2 / 6)


# Shown as (short, long) three times, then as (long, short).
WAVERING = ("second", "first", "second", "first", "first", "second")


def test_agreement_with_people_is_told_beyond_chance() -> None:
    def verdict(name: str, winner: str) -> Verdict:
        return Verdict(
            question=name,
            criterion="overall",
            first="a",
            second="b",
            winner=winner,
            orders=((winner,), (winner,)),
        )

    ours = [verdict("1", "a"), verdict("2", "a"), verdict("3", "b"), verdict("4", "")]
    people = [verdict("1", "a"), verdict("2", "b"), verdict("3", "b"), verdict("9", "a")]
    found = reliability(ours, people)
    assert found.people == 3
    assert found.people_agree == pytest.approx(2 / 3)
    # By chance: a 2/3 × 1/3 + b 1/3 × 2/3 = 4/9.
    assert found.people_kappa == pytest.approx((2 / 3 - 4 / 9) / (1 - 4 / 9))


async def test_points_come_with_loong_s_exact_match(place: Place) -> None:
    graded = answers("s", "Ada Korb in 1931.", "Ada Korb.", None)
    scores = await judged_points(
        QUESTIONS, graded, judging(place, Grade), ["loong_score", "directness"], 1
    )
    values = {(score.question, score.measure): score.value for score in scores}
    assert (values["q0", "loong_score"], values["q0", "loong_em"]) == (100.0, 1.0)
    assert (values["q1", "loong_score"], values["q1", "loong_em"]) == (66.0, 0.0)
    assert (values["q2", "loong_score"], values["q2", "directness"]) == (0.0, 0.0)
    unknown = [QUESTIONS[0].model_copy(update={"answers": ()})]
    blank = await judged_points(unknown, graded, judging(place, Grade), ["loong_score"], 1)
    assert [score.value for score in blank] == [None, None]


def test_scores_take_the_form_of_published_tables() -> None:
    questions = [
        EvaluationQuestion(id=str(place), question="?", kind=kind, group=group)
        for place, (kind, group) in enumerate(
            [("comparison", "set 1"), ("clustering", "set 1"), ("clustering", "set 2")]
        )
    ]
    values = {"full": (100.0, 50.0, None), "chunk": (0.0, 10.0, 20.0)}
    scores = [
        Score(system=system, question=str(place), measure="loong_score", value=value)
        for system, row in values.items()
        for place, value in enumerate(row)
    ]

    def result(scores: Sequence[Score], *verdicts: Verdict) -> EvaluationResult:
        evaluation = Evaluation(
            name="",
            key="",
            started="",
            systems=(),
            questions=tuple(questions),
            measures=("loong_score",),
        )
        return EvaluationResult(
            evaluation=evaluation, answers=(), scores=tuple(scores), verdicts=verdicts
        )

    rows = published_table("loong_by_task", result(scores))
    assert rows["full"] == {
        "loong_score, comparison": 100,
        "loong_score, clustering": 50,
        "loong_score, all": 75,
    }
    lengths = published_table("loong_by_length", result(scores))
    assert lengths["full"] == {
        "loong_score, set 1": 75,
        "loong_score, set 2": None,
        "loong_score, all": 75,
    }
    won = Verdict(
        question="0",
        criterion="overall",
        first="full",
        second="chunk",
        winner="full",
        orders=(("full",), ("full",)),
    )
    tied = won.model_copy(update={"winner": ""})
    third = won.model_copy(update={"second": "third", "winner": "third"})
    wins = published_table("lightrag_wins", result([], won, tied, third))
    assert wins == {
        "overall, full against chunk": {"full": 0.5, "chunk": 0.0, "tie": 0.5},
        "overall, full against third": {"full": 0.0, "third": 1.0, "tie": 0.0},
    }
    assert published_table("structrag_ablation", result(scores))["chunk"] == {"loong_score": 10}
    assert {measure for table in TABLES.values() for measure in table.measures} <= MEASURES.keys()
    assert len(TABLES) >= 10
    with pytest.raises(UsageError, match="loong_by_task"):
        published_table("table 9", result(scores))
    assert "6,000 tokens" in budget_note()


def test_the_effect_of_a_router_on_the_final_score() -> None:
    forced: dict[StructureType, tuple[float, ...]] = {
        "table": (1.0, 0.0, 0.5, 0.5),
        "chunk": (0.0, 1.0, 0.2, 0.5),
    }
    routed: tuple[StructureType, ...] = ("table", "table", "table", "chunk")

    def answered(system: str, place: int, structure: StructureType) -> EvaluatedAnswer:
        answer = plain_answer("?", "so")
        route = answer.trace.route.model_copy(update={"type": structure})
        trace = answer.trace.model_copy(update={"route": route})
        return EvaluatedAnswer(
            system=system, question=str(place), answer=answer.model_copy(update={"trace": trace})
        )

    systems = [EvaluatedSystem(name=name, mode="struct", structure=name) for name in forced]
    scores: list[tuple[str, int, float]]
    scores = [
        (name, place, value) for name, own in forced.items() for place, value in enumerate(own)
    ]
    scores += [("ours", place, forced[own][place]) for place, own in enumerate(routed)]
    evaluation = Evaluation(
        name="",
        key="",
        started="",
        systems=(*systems, EvaluatedSystem(name="ours", mode="struct")),
        measures=("f1",),
        questions=tuple(EvaluationQuestion(id=str(place), question="?") for place in range(4)),
    )
    result = EvaluationResult(
        evaluation=evaluation,
        answers=tuple(answered("ours", place, own) for place, own in enumerate(routed)),
        scores=tuple(
            Score(system=name, question=str(at), measure="f1", value=value)
            for name, at, value in scores
        ),
    )
    assert published_table("structrag_router", result) == {
        "ours": {"accuracy": pytest.approx(2 / 3), "f1": pytest.approx(0.5)},
        "by lot": {"accuracy": 0.5, "f1": pytest.approx(0.4625)},
        "never right": {"accuracy": 0.0, "f1": pytest.approx(0.175)},
        "always right": {"accuracy": 1.0, "f1": pytest.approx(0.75)},
    }
    with pytest.raises(UsageError, match="structure for all"):
        published_table(
            "structrag_router",
            result.model_copy(
                update={"evaluation": evaluation.model_copy(update={"systems": systems[:1]})}
            ),
        )
